"""Folders of Unigram tokenizers and of MPNet's for random_tokenizers.py: XLM-RoBERTa's files, and others of its kind."""
import json
import os
import tempfile

import transformers as t
from sentencepiece import sentencepiece_model_pb2 as pb
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

import random_tokenizer_kinds as kinds
import spm_cases
from random_decoder_kinds import META, add_tokens, compared, settings, write
from random_tokenizer_kinds import WORDS, kind

MAPS = {}
SPECIALS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
# e + U+0301, a + U+0308, ffi, f, 1, xyz, wide space, A, CR + LF, a with a mark of 3 bytes, two letters of 2 bytes
RULES = ("65 301\te9\n61 308\te4\n66 66 69\t66 74 72\n31\t32 20 33\n78 79 7a\t\n3000\t20\n41\t61\nd a\t20\n61 20d0\t62\ne9 e4\t63\n"
         "ad\t\n308\t\nd55c\t68 61 6e\na\t20\n9\t20\n")


def charsmap(name):
    """Rules of SentencePiece, or some of our own."""
    if name not in MAPS:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rules.tsv")
            with open(path, "w", encoding="utf-8") as file:
                file.write(RULES)
            options = dict(normalization_rule_tsv=path) if name == "own" else dict(normalization_rule_name=name)
            model = pb.ModelProto.FromString(spm_cases.train(vocab_size=400, **options))
            MAPS[name] = model.normalizer_spec.precompiled_charsmap
    return MAPS[name]


def vocabulary_of(draw):
    """Pieces and scores: sums that tie, scores above 0, letters without a piece."""
    letters = list("abcdefghijklmnoprstuvwxyABCDTHI0123.,!'<>[]#éä日中") + [META]
    letters = [letter for letter in letters if draw.random() < 0.95]
    pieces = [META * draw.maybe(0.6) + draw.choice([word, word.title()]) for word in draw.sample(WORDS, len(WORDS))]
    pieces += [word[:draw.randint(2, 4)] for word in WORDS] + [META * 2, META + "a", "ing", "12", "日中", "ab", "éa", "..", "<0x41>"]
    how = draw.pick(random=4, short=2, ties=2, odd=1)
    score = {"random": lambda: -draw.uniform(1, 15), "short": lambda: -draw.randint(10, 150) / 10, "ties": lambda: -1.0,
             "odd": lambda: draw.choice([0.0, 2.5, -1e-3, -1e9, -3.0])}[how]
    bytes_ = [f"<0x{i:02X}>" for i in range(draw.choice([0, 0, 256, 200]))]
    pieces = list(dict.fromkeys(letters + pieces + bytes_))
    draw.shuffle(pieces)
    specials = SPECIALS[:4] if draw.maybe(0.9) else draw.sample(SPECIALS, 4)
    return [(piece, 0.0) for piece in specials] + [(piece, score()) for piece in pieces if piece not in specials]


def normalizer_of(draw, small):
    """None, a map, or a map with steps about spaces; now and then what is not read."""
    name = draw.pick(**(dict(own=1) if small else dict(own=2, nmt_nfkc=3, nmt_nfkc_cf=1, nfkc=1)))
    mapped = normalizers.Precompiled(charsmap(name))
    spaces = normalizers.Replace(Regex(" {2,}"), draw.choice([META, " "]))
    strip = normalizers.Strip(draw.maybe(0.5), draw.maybe(0.7))
    return {"no": None, "map": mapped, "list": normalizers.Sequence([mapped, spaces]), "t5": normalizers.Sequence([mapped, strip, spaces]),
            "spaces": normalizers.Sequence([strip, spaces, strip]), "late": normalizers.Sequence([spaces, mapped]),
            "other": normalizers.Sequence([normalizers.NFKC(), mapped])}[draw.pick(no=1, map=5, list=2, t5=2, spaces=1, late=1, other=1)]


def template(draw, ids):
    single = draw.choice(["<s> $A </s>", "<s> $A </s>", "$A </s>"])
    pair = draw.choice(["<s> $A </s> </s> $B </s>", "$A </s> $B </s>"])
    return processors.TemplateProcessing(single=single, pair=pair, special_tokens=[(token, ids[token]) for token in ("<s>", "</s>")])


CLASSES = ["XLMRobertaTokenizer", "XLMRobertaTokenizerFast", "XLMRobertaTokenizer", "T5Tokenizer", "T5TokenizerFast",
           "PreTrainedTokenizerFast", "TokenizersBackend", None]
TYPES = ["xlm-roberta", "xlm-roberta", "t5", "mt5", "bert", "mpnet", "modernbert", None]


def tokenizer_of(draw, small):
    vocabulary = vocabulary_of(draw)
    unk = [piece for piece, _ in vocabulary].index("<unk>") if ("<unk>", 0.0) in vocabulary else 0
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=unk, byte_fallback=draw.maybe(0.3)))
    normalizer = normalizer_of(draw, small)
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    scheme = draw.choice(["always", "always", "first", "never"])
    white, meta = pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme=scheme, split=draw.maybe(0.8))
    way = draw.pick(both=4, meta=3, white=1, none=1)
    if way != "none":
        tokenizer.pre_tokenizer = {"both": pre_tokenizers.Sequence([white, meta]), "meta": meta, "white": white}[way]
    bytes_ = decoders.Sequence([decoders.Replace(META, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tokenizer.decoder = draw.choice([decoders.Metaspace(prepend_scheme=scheme), bytes_])
    return tokenizer


@kind
def unigram(draw, folder, small=False):
    """Files as they are, and as XLMRobertaTokenizer reads them. small: with few rules."""
    tokenizer = tokenizer_of(draw, small)
    added = add_tokens(draw, tokenizer, SPECIALS if draw.maybe(0.9) else SPECIALS[:4])
    if draw.maybe(0.9):
        tokenizer.post_processor = template(draw, {token: tokenizer.token_to_id(token) for token in SPECIALS[:3]})
    names = settings(draw, CLASSES, "<s>", "</s>")
    write(draw, folder, tokenizer, names, draw.choice(TYPES), False)
    return compared(folder, added + SPECIALS)


@kind
def small_unigram(draw, folder):
    return unigram(draw, folder, small=True)


@kind
def mpnet(draw, folder):
    """MPNet's class: words of BERT, put between <s> and </s>."""
    names, vocabulary = kinds.wordpiece_vocabulary(draw)
    names |= {"cls_token": "<s>", "sep_token": "</s>", "pad_token": "<pad>", "mask_token": "<mask>"} if draw.maybe(0.7) else {}
    vocabulary = {token: i for i, token in enumerate(dict.fromkeys(list(names.values()) + list(vocabulary)))}
    maker = t.MPNetTokenizer(vocab=dict(vocabulary), do_lower_case=draw.maybe(0.7), strip_accents=draw.choice([None, None, True, False]),
                             tokenize_chinese_chars=draw.maybe(0.85), **names)
    added = kinds.add_tokens(draw, maker)
    maker.save_pretrained(folder)
    if draw.maybe(0.4, "lines"):
        (folder / "tokenizer.json").unlink()
        kinds.write_lines(draw, folder / "vocab.txt", vocabulary)
        kinds.write_older_lists(draw, folder, maker, len(vocabulary))
    if draw.maybe(0.5):
        kinds.change_config(draw, folder, ["MPNetTokenizer", "MPNetTokenizerFast", "BertTokenizer", "PreTrainedTokenizerFast", None])
    kinds.change_json(draw, folder)
    (folder / "config.json").write_text(json.dumps({"model_type": draw.choice(["mpnet", "mpnet", "bert"])}))
    return kinds.comparison(folder, WORDS, added + list(names.values()) + ["<x1>", "<x2>", "<img>", "<boi>", "<p>", "<m>", "<M>"])


@kind
def t5_words(draw, folder):
    """T5's class, with its own extra tokens, others, or lists that contradict each other."""
    rest = [one for one in vocabulary_of(draw) if one[0] not in ("<pad>", "</s>", "<unk>")]
    vocabulary = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)] + rest
    n_own = draw.choice([100, 0, 1, 7, 100])
    own = [f"<extra_id_{i}>" for i in range(n_own)]
    if draw.maybe(0.5):
        vocabulary += [(token, 0.0) for token in reversed(own[:draw.choice([1, 5, 100])])]
    mapped = charsmap(draw.choice(["own", "nmt_nfkc"])) if draw.maybe(0.7) else None
    maker = t.T5Tokenizer(vocab=vocabulary, extra_ids=n_own, _spm_precompiled_charsmap=mapped)
    added = kinds.add_tokens(draw, maker)
    maker.save_pretrained(folder)
    path = folder / "tokenizer_config.json"
    config = json.loads(path.read_text())
    change = draw.pick(none=4, no_list=2, older=2, other=1, no_count=1, newer_empty=1)
    if change in ("no_list", "older", "other"):
        config.pop("extra_special_tokens", None)
    if change == "older":
        config["additional_special_tokens"] = own
    if change == "other":
        config["additional_special_tokens"] = ["<x1>", "<extra_id_3>"] if draw.maybe(0.5) else ["<x1>"]
    if change == "newer_empty":
        config["extra_special_tokens"] = []
    if change == "no_count":
        config.pop("extra_ids", None)
    path.write_text(json.dumps(config))
    if draw.maybe(0.3):
        (folder / "special_tokens_map.json").write_text(json.dumps({"additional_special_tokens": own, "eos_token": "</s>"}))
    if draw.maybe(0.3):
        kinds.change_config(draw, folder, ["T5Tokenizer", "T5TokenizerFast", "PreTrainedTokenizerFast", None])
    (folder / "config.json").write_text(json.dumps({"model_type": draw.choice(["t5", "t5", "mt5", "bert"])}))
    return kinds.comparison(folder, WORDS, added + ["</s>", "<pad>", "<unk>", "<x1>", "<extra_id_0>", "<extra_id_3>", "<extra_id_99>"])
