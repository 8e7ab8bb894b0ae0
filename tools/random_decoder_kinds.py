"""Folders of tokenizers of decoder models and of ModernBERT for random_tokenizers.py: byte-level BPE with other words than
GPT-2's, and BPE whose spaces are U+2581."""
import json

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

import random_tokenizer_kinds as kinds
from random_tokenizer_kinds import WORDS, byte_characters, flags, content_of, kind

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")
QWEN = LLAMA3.replace("{1,3}", "")
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
TEKKEN = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|\p{N}|\s+"
META = "▁"

# ---- Texts -------------------------------------------------------------------------------------------

POOLS = ["abcXYZ", " ", "  \t", "\n\r", "0123456789", "'", ".,!?-_#@$%^&*()[]{}<>/\\|`~\"", "一二日本語한국어",
         "éÉñÅßẞİıςΣſ", "\u0301\u0316\u0327\u0344\u093c\u0958\u1100\u1161\u11a8\uac00\u0b47\u0b3e\u212b\u2126",
         "٠١९๓²½Ⅳ①\U00011de0\U00016ff4", "😁👩\u200d💻🇩🇪👍🏽", "\u00a0\u2003\u3000\u2028\u0085\u000b\u000c",
         "\u00ad\u200b\ufeff\ufffd\ue000", "𝒜𐐷𠀀", META]
PHRASES = [" (the|a) ", "x.,!? x", "…。，、।۔، 你", " the", " The", "don't", "I'LL", "we'Re", "'ſ", "'S", "ab12cd", "  x", "1234567", "12 345", "\r\n\r\n", " \n ",
           "\n\n  x", "<0x0A>", "x\n", "!!\r\n", " !\n\n", "\t\tx", "a\u0301", "\u0041\u030a\u0301"]


def text_of(draw, added):
    text = ""
    for _ in range(draw.randint(0, 12)):
        what = draw.random()
        if what < 0.08:
            text += chr(draw.choice([draw.randrange(1, 0xd800), draw.randrange(0xe000, 0x110000)]))
        elif what < 0.25:
            text += draw.choice(PHRASES)
        elif what < 0.4 and added:
            text += draw.choice(added)
        elif what < 0.6:
            text += draw.choice(WORDS) + draw.choice(["", " ", " ", "  "])
        else:
            pool = draw.choice(POOLS)
            text += "".join(draw.choice(pool) for _ in range(draw.randint(1, 4)))
    return text


def compared(folder, added):
    added = sorted(added)

    def texts(n, draw):
        pairs = [(text_of(draw, added), text_of(draw, added) or "x") for _ in range(n)]
        return [list(pair) if draw.maybe(0.1) else pair[0] for pair in pairs]

    return kinds.comparison(folder, WORDS, added, texts)


# ---- Files -------------------------------------------------------------------------------------------


def merges_of(draw, words, known, n):
    """Merges that make words, from the left or at random, of symbols that are known; and their tokens."""
    merges, tokens = [], set(known)
    for word in words:
        parts = list(word)
        while len(parts) > 1 and len(merges) < n:
            at = draw.randrange(len(parts) - 1)
            pair = (parts[at], parts[at + 1])
            if pair[0] not in tokens or pair[1] not in tokens:
                break
            if pair not in merges:
                merges.append(pair)
            tokens.add(pair[0] + pair[1])
            parts[at:at + 2] = [pair[0] + pair[1]]
    return merges, sorted(tokens - set(known))


def add_tokens(draw, tokenizer, specials):
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=draw.maybe(0.15)) for token in specials])
    contents = [content_of(draw) for _ in range(draw.choice([0, 0, 1, 2, 4]))] + ["  ", "   "] * draw.maybe(0.2, "spaces")
    for content in contents:
        tokenizer.add_tokens([AddedToken(content, **flags(draw))])
    return contents


def write(draw, folder, tokenizer, config, model_type, text_merges):
    data = json.loads(tokenizer.to_str())
    if text_merges:
        data["model"]["merges"] = [" ".join(pair) for pair in data["model"]["merges"]]
    indent = draw.choice([None, 2])
    (folder / "tokenizer.json").write_text(json.dumps(data, ensure_ascii=draw.maybe(0.3), indent=indent))
    if config is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    if model_type:
        (folder / "config.json").write_text(json.dumps({"model_type": model_type}))


def around(draw, tokenizer, bos, eos):
    """What stands around a text."""
    ids = [(token, tokenizer.token_to_id(token)) for token in (bos, eos)]
    first, last = f"{bos}:0 $A:0", f"{bos}:0 $A:0 {eos}:0"
    single = draw.choice([first, first, last, "$A:0"])
    template = processors.TemplateProcessing(single=single, pair=single + " $B:1", special_tokens=ids)
    level = processors.ByteLevel(trim_offsets=draw.maybe(0.5))
    return draw.choice([None, level, template, template, processors.Sequence([level, template])])


CLASSES = ["PreTrainedTokenizerFast", "PreTrainedTokenizerFast", "TokenizersBackend", "LlamaTokenizerFast", "LlamaTokenizer",
           "Qwen2Tokenizer", "BloomTokenizerFast", "GPT2Tokenizer", "GPTNeoXTokenizer", "GPTNeoXTokenizerFast", "GemmaTokenizerFast", None]
TYPES = ["llama", "llama", "smollm3", "qwen2", "qwen3", "gemma", "gemma3_text", "mistral", "olmo2", "phi3", "modernbert", "granite", "gpt_neox",
         "gptj", "bloom", "bloom", None]


def settings(draw, classes, bos, eos):
    config = {}
    for name, share, values in [("tokenizer_class", 0.9, classes), ("bos_token", 0.5, [bos, None]), ("eos_token", 0.5, [eos]),
                                ("unk_token", 0.3, ["<unk>", None]), ("add_prefix_space", 0.2, [True, False, None]),
                                ("pad_token", 0.3, [eos]), ("mask_token", 0.2, [eos]),
                                ("legacy", 0.3, [True, False, None]), ("add_bos_token", 0.3, [True, False]),
                                ("split_special_tokens", 0.05, [True]), ("clean_up_tokenization_spaces", 0.3, [True, False])]:
        if draw.maybe(share):
            config[name] = draw.choice(values)
    if config.get("tokenizer_class", "") is None:
        del config["tokenizer_class"]
    return config


# ---- Kinds -------------------------------------------------------------------------------------------


@kind
def modern(draw, folder, **cuts):
    """Byte-level: Llama 3, Qwen, SmolLM, ModernBERT and others, files and classes mixed."""
    bytes_ = byte_characters()
    words = ["Ġ" * draw.maybe(0.6) + draw.choice([word, word.title()]) for word in draw.sample(WORDS, len(WORDS))]
    words += ["ĠĠĠĠ", "ĊĊ", "ĠĊ", "123", "'s", "'ll", "!!", ".Ċ", "Ã©", "æĹ¥", "ãģ"] * 2
    merges, made = merges_of(draw, words, bytes_, draw.choice([10, 60, 250]))
    bos, eos = "<|im_start|>", "<|im_end|>"
    vocabulary = {token: i for i, token in enumerate(bytes_ + made)}
    ignore = draw.maybe(0.3, "ignore_merges")
    if ignore and draw.maybe(0.5):
        vocabulary |= {"Ġwholeword": len(vocabulary), "12": len(vocabulary) + 1}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=ignore, fuse_unk=draw.maybe(0.1)))
    normalizer = draw.pick(none=4, nfc=4, lower=1, both=1)
    made = {"none": None, "nfc": normalizers.NFC(), "lower": normalizers.Lowercase(),
            "both": normalizers.Sequence([normalizers.Lowercase(), normalizers.NFC()])}[normalizer]
    if made is not None:
        tokenizer.normalizer = made
    prefix, regex = draw.maybe(0.15, "prefix"), draw.maybe(0.2)
    cut = draw.pick(**(cuts or dict(llama3=4, qwen=4, digits=3, runs=1, gpt2=2, bloom=3, tekken=1, none=3)))
    level = pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=regex or cut in ("digits", "runs", "none"))
    split = {"llama3": LLAMA3, "qwen": QWEN, "gpt2": GPT2, "bloom": BLOOM, "tekken": TEKKEN}.get(cut)
    first = pre_tokenizers.Split(Regex(split), behavior="isolated") if split else pre_tokenizers.Digits(cut == "digits")
    tokenizer.pre_tokenizer = level if cut == "none" else pre_tokenizers.Sequence([first, level])
    tokenizer.decoder = decoders.ByteLevel()
    added = add_tokens(draw, tokenizer, [bos, eos, "<|endoftext|>"])
    processor = around(draw, tokenizer, bos, eos)
    if processor is not None:
        tokenizer.post_processor = processor
    write(draw, folder, tokenizer, settings(draw, CLASSES, bos, eos), draw.choice(TYPES), draw.maybe(0.5, "text merges"))
    return compared(folder, added + [bos, eos])


@kind
def bloom(draw, folder):
    """The same, with the words of BLOOM."""
    return modern(draw, folder, bloom=1)


@kind
def metaspace(draw, folder):
    """Llama 2, Mistral, Gemma: characters and bytes."""
    letters = list("abcdefghijklmnoprstuvwxyABCDTHI0123.,!'<>[]#é日中") + [META]
    bytes_ = [f"<0x{i:02X}>" for i in range(256)]
    has_bytes = draw.pick(bytes=6, none=1, some=1)
    bytes_ = {"bytes": bytes_, "none": [], "some": bytes_[:100]}[has_bytes]
    words = [META * draw.maybe(0.6) + draw.choice([word, word.title()]) for word in draw.sample(WORDS, len(WORDS))]
    merges, made = merges_of(draw, words + [META * 4, META * 2, "12", "日中"] * 2, letters, draw.choice([10, 60, 250]))
    bos, eos = draw.choice([("<s>", "</s>"), ("<bos>", "<eos>")])
    vocabulary = {token: i for i, token in enumerate(["<unk>", bos, eos] + bytes_ + letters + made)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, unk_token=draw.choice(["<unk>", "<unk>", None]),
                                     fuse_unk=draw.maybe(0.8), byte_fallback=draw.maybe(0.85),
                                     ignore_merges=draw.maybe(0.1)))
    style = draw.pick(older=3, metaspace=3, gemma=3, replace=1, nothing=1)
    steps = [normalizers.Prepend(META), normalizers.Replace(" ", META)]
    scheme = draw.choice(["always", "first", "never"])
    strip = [decoders.Strip(" ", draw.choice([1, 1, 2]), 0)] * draw.maybe(0.7)
    tokenizer.decoder = decoders.Sequence([decoders.Replace(META, " "), decoders.ByteFallback(), decoders.Fuse()] + strip)
    if style == "older":
        tokenizer.normalizer = normalizers.Sequence(steps)
    elif style == "metaspace":
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=draw.maybe(0.4))
        if draw.maybe(0.3):
            tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme)
    elif style in ("gemma", "replace"):
        tokenizer.normalizer = steps[1]
        if style == "gemma":
            tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    added = add_tokens(draw, tokenizer, ["<unk>", bos, eos])
    processor = around(draw, tokenizer, bos, eos)
    if processor is not None and style != "nothing":
        tokenizer.post_processor = processor
    write(draw, folder, tokenizer, settings(draw, CLASSES, bos, eos), draw.choice(TYPES), draw.maybe(0.5, "text merges"))
    return compared(folder, added + [bos, eos])
