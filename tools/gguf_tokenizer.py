"""tokenizer.json and tokenizer_config.json from the vocabulary of a GGUF file, as gguf2safetensors.py writes them.

`tokenizer.ggml.model` is gpt2 (byte-level BPE with merges; `tokenizer.ggml.pre` says how words are cut) or llama (SentencePiece BPE with
scores). A GGUF file does not say which normaliser and which words Hugging Face's file had; they follow from the name in `pre`.
"""
from gguf_families import Refused

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)  # tokenizer.ggml.token_type
WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}


def split(numbers):
    return [{"type": "Split", "pattern": {"Regex": WORDS % numbers}, "behavior": "Isolated", "invert": False}, BYTES | {"use_regex": False}]


# tokenizer.ggml.pre: normaliser, pre-tokenizers, ignore_merges, whether <bos> is put in front if the file does not say so
PRE = {
    **dict.fromkeys(("llama3", "llama-v3", "llama-bpe"), (None, split("{1,3}"), True, True)),
    **dict.fromkeys(("dbrx", "smaug-bpe"), (None, split("{1,3}"), False, False)),
    "qwen2": ({"type": "NFC"}, split(""), False, False),
    "smollm": (None, [{"type": "Digits", "individual_digits": True}, BYTES | {"use_regex": True}], False, False),
    **dict.fromkeys(("gpt-2", "olmo"), (None, [BYTES | {"use_regex": True}], False, False)),
    "modern-bert": ({"type": "NFC"}, [BYTES | {"use_regex": True}], False, True),
}


def added(tokens, types):
    """Control and user-defined tokens are found in a text before anything else is."""
    return [{"id": i, "content": tokens[i], "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
             "special": kind != USER_DEFINED} for i, kind in enumerate(types) if kind in (CONTROL, USER_DEFINED, UNKNOWN)]


def around(tokens, fields, bos_by_default):
    """What stands around a text."""
    names = {}
    for which, default in (("bos", bos_by_default), ("eos", False)):
        token = fields.get(f"tokenizer.ggml.{which}_token_id")
        if fields.get(f"tokenizer.ggml.add_{which}_token", default) and token is not None:
            names[which] = tokens[token]

    def with_type(token, kind):
        return {"SpecialToken": {"id": token, "type_id": kind}}

    first = [with_type(names["bos"], 0)] if "bos" in names else []
    last = [[with_type(names["eos"], kind)] if "eos" in names else [] for kind in (0, 1)]
    if not names:
        return None
    ids = {t: {"id": t, "ids": [tokens.index(t)], "tokens": [t]} for t in sorted(set(names.values()))}
    a, b = ({"Sequence": {"id": name, "type_id": kind}} for name, kind in (("A", 0), ("B", 1)))
    return {"type": "TemplateProcessing", "single": [*first, a, *last[0]], "pair": [*first, a, *last[0], b, *last[1]], "special_tokens": ids}


def vocabulary(tokens, types):
    """{token: id} of all tokens but those that only fill the matrix of words."""
    out = {t: i for i, t in enumerate(tokens) if types[i] != UNUSED}
    if len(out) != len(types) - types.count(UNUSED):
        twice = next(t for i, t in enumerate(tokens) if types[i] != UNUSED and out[t] != i)
        raise Refused(f"tokenizer.ggml.tokens has {twice!r} twice")
    return out


def bpe(vocab, merges, **more):
    return {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
            "fuse_unk": False, "byte_fallback": False, "ignore_merges": False} | more | {"vocab": vocab, "merges": merges}


def byte_level(fields, tokens, types):
    pre = fields.get("tokenizer.ggml.pre")
    if pre not in PRE:
        raise Refused(f"tokenizer.ggml.pre is {pre!r}, which is not one of {', '.join(map(repr, PRE))}")
    normalizer, steps, ignore_merges, bos = PRE[pre]
    merges = fields.get("tokenizer.ggml.merges")
    if merges is None:
        raise Refused("tokenizer.ggml.merges is missing")
    whole = steps[0] if len(steps) == 1 else {"type": "Sequence", "pretokenizers": steps}
    return {"normalizer": normalizer, "pre_tokenizer": whole, "post_processor": around(tokens, fields, bos), "decoder": BYTES | {"use_regex": True},
            "model": bpe(vocabulary(tokens, types), merges, ignore_merges=ignore_merges)}


def merges_of_scores(tokens, types, scores, whole=(NORMAL,)):
    """SentencePiece merges the pair whose joined piece has the best score. So each piece gives a merge of every two pieces that make it, in
    the order of scores; of equal scores longer left halves come first, then longer right halves, as in converted files."""
    ids = {t: i for i, t in enumerate(tokens) if types[i] in (*whole, BYTE)}
    merges = []
    for token, i in ids.items():
        if types[i] in whole:
            halves = ((token[:cut], token[cut:]) for cut in range(1, len(token)))
            pairs = [(left, right) for left, right in halves if left in ids and right in ids]
            merges += [(scores[i], left, right) for left, right in sorted(pairs, key=lambda pair: (ids[pair[0]], ids[pair[1]]))]
    merges.sort(key=lambda m: (m[0], len(m[1]), len(m[2])), reverse=True)
    return [[left, right] for _, left, right in merges]


def is_gemma(fields):
    return fields.get("general.architecture", "").startswith("gemma")


def gemma_tokens(tokens, types):
    """Runs of spaces as texts have them, which merges make: tokens of the user are found before there are any marks."""
    marked = {i for i, t in enumerate(tokens) if len(t) > 1 and not t.strip(" ")}
    return (["▁" * len(t) if i in marked else t for i, t in enumerate(tokens)],
            [NORMAL if i in marked and kind == USER_DEFINED else kind for i, kind in enumerate(types)])


def sentencepiece(fields, tokens, types):
    scores = fields.get("tokenizer.ggml.scores")
    if scores is None or len(scores) != len(tokens):
        raise Refused("tokenizer.ggml.scores is missing or has another length than tokenizer.ggml.tokens")
    if is_gemma(fields):  # its scores do not follow the order of its merges; ids do, and tokens of the user are merged, too
        merges = merges_of_scores(tokens, types, [-i for i in range(len(tokens))], (NORMAL, USER_DEFINED))
    else:
        merges = merges_of_scores(tokens, types, scores)
    prefix = fields.get("tokenizer.ggml.add_space_prefix", True)
    unknown = fields.get("tokenizer.ggml.unknown_token_id")
    space = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    normalizers = [{"type": "Prepend", "prepend": "▁"}, space] if prefix else [space]
    decoders = [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]
    if prefix:
        decoders.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    return {"normalizer": {"type": "Sequence", "normalizers": normalizers}, "pre_tokenizer": None,
            "post_processor": around(tokens, fields, True), "decoder": {"type": "Sequence", "decoders": decoders},
            "model": bpe(vocabulary(tokens, types), merges, fuse_unk=True, byte_fallback=True,
                         unk_token=None if unknown is None else tokens[unknown])}


def tokenizer(fields):
    """tokenizer.json."""
    tokens = fields.get("tokenizer.ggml.tokens")
    if tokens is None:
        raise Refused("tokenizer.ggml.tokens is missing: the file has no vocabulary")
    types = fields.get("tokenizer.ggml.token_type") or [NORMAL] * len(tokens)
    if is_gemma(fields):
        tokens, types = gemma_tokens(tokens, types)
    makers = {"gpt2": byte_level, "llama": sentencepiece}
    model = fields.get("tokenizer.ggml.model")
    if model not in makers:
        raise Refused(f"tokenizer.ggml.model is {model!r}, which is not one of {', '.join(map(repr, makers))}")
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added(tokens, types)} | makers[model](fields, tokens, types)


NAMES = {"bos": "bos_token", "eos": "eos_token", "unknown": "unk_token", "padding": "pad_token", "mask": "mask_token",
         "seperator": "sep_token", "cls": "cls_token"}


def ids(fields):
    """{name of config.json: id} of the special tokens that the file has."""
    return {f"{name[:-6]}_token_id": fields[key] for key, name in ((f"tokenizer.ggml.{k}_token_id", n) for k, n in NAMES.items())
            if fields.get(key) is not None}


def tokenizer_config(fields):
    tokens = fields["tokenizer.ggml.tokens"]
    named = {name.replace("_id", ""): tokens[i] for name, i in ids(fields).items()}
    chat = {"chat_template": fields["tokenizer.chat_template"]} if "tokenizer.chat_template" in fields else {}
    return {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False} | named | chat


def generation_config(fields):
    """A text ends with what llama.cpp ends it with: the end of a text, of a turn or of a message."""
    ends = [fields[key] for key in (f"tokenizer.ggml.{w}_token_id" for w in ("eos", "eot", "eom")) if fields.get(key) is not None]
    ends = list(dict.fromkeys(ends))
    one = {k: v for k, v in ids(fields).items() if k in ("bos_token_id", "pad_token_id")}
    return one | ({"eos_token_id": ends[0] if len(ends) == 1 else ends} if ends else {})
