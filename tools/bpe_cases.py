#!/usr/bin/env python3
"""Makes tests/golden/bpe: what PyPI tokenizers and transformers do with byte-level BPE.

    python3 tools/bpe_cases.py tests/golden/bpe           writes everything (half a minute)
    python3 tools/bpe_cases.py tests/golden/bpe --show I  prints tokens and ranges of string I of strings.z
    python3 tools/bpe_cases.py tests/golden/bpe --strings N SEED FILE   N other strings, for golden_bpe FILE

Needs the packages tokenizers and transformers; their versions are written into cases.json. Vocabularies are trained here, on TEXT:

    gpt2/       vocab.json, merges.txt, config.json: nothing else says that it is GPT-2's
    roberta/    vocab.json, merges.txt, tokenizer_config.json, special_tokens_map.json, added_tokens.json
    cases.json  "settings": tokenizer.json files, "vocab" and "merges" being the name of a folder, or of one and the bytes without token;
                then the folders themselves. "pairs", "cut": [setting, a, b, length, ids, types]; "texts": [text, …]
    classes.z   every code point: its class in the pattern and whether it is \\w, deflated: FIRST-LAST CLASS lines
    strings.z   random strings under every setting, deflated: u32 seed, alphabet, hashes (see random_strings)
"""
import copy
import json
import pathlib
import random
import struct
import sys
import unicodedata
import zlib

import tokenizers
import transformers
from tokenizer_cases import Draws
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, trainers

TEXT = """
Attention compares a query with every key and takes the average of the values, weighted by what it found. The weights are not
negative and their sum is one, so the result lies between the values. Nothing else is hidden in it: a query, the keys, the values.
I was watching the door when it opened. Don't you think that they've seen what we're doing? I'll say it's true, I'm sure he'd agree.
The cat sat on the mat; the mat lay on the floor, and the floor was cold. In 1912 there were 3,450 of them, in 2024 only 17 (0.5%).
for (int i = 0; i < n; i++) { sum += weights[i] * values[i]; }    /* four spaces   and three */
\tTabs\tare\there,\tand\n\n\nempty lines. https://example.org/a?b=c&d=e#f -- e-mail: someone@example.org ... !!! ???
Die Straße ist lang, die Tür ist grün, und niemand weiß, wie spät es ist. Où est la bibliothèque? Ça va très bien, merci.
El niño comió una manzana mañana. Привет, мир! Как дела? Сегодня хорошая погода. Γειά σου Κόσμε, τι κάνεις;
日本語のテキストと中文文本。今日は天気がいいですね。我喜欢看书。 한국어 문장도 있습니다. नमस्ते दुनिया। مرحبا بالعالم שלום עולם
Smileys: 😀😁🤖👍🏽 👨‍👩‍👧 and signs: ½ ² Ⅳ ∑ → “quotes” ‘single’ – dash — long… naïve café
"""

HAND_PICKED = r"""

a
 a
a\n\n b
 a  b
hi   
\t\tx
don't DON'T I'Ll
1'll 's
a\u00a0b x\u2028\u2028y
<mask>
a <mask> b
a<mask>b
  <mask>  
<mask><mask> <mask>\t\n<mask>x
<s>a</s> <pad><unk>
<|endoftext|>Hello<|endoftext|> world
<|endoftext|
one two  three   four\n
1234567 12.5 x\u00b2 \u2163
foo_bar==baz
\U0001f601\U0001f468\u200d\U0001f469 \u65e5\u672c
e\u0301a \u0301 \u200b\ufeff
\u0000\u0001\u007f\u0080\u00ad\ufffd\uffff
''s'' 't 're've'm'll'd 'S
wordy sword word words word, aword word_ word
left  [L] right [R]  end [B] x[B]y  [N] [N]
   <|endoftext|>   
\r\n\r\n x\r\n
 \n \n  x
""".strip("\n").split("\n")

SPECIAL = ["<new>", "<mask>", " <mask> ", "<s>", "</s>", "<pad>", "<|endoftext|>", "word", "[L]", " [R] ", "[B]", "[N]"]
ASCII_TEXT = "abcdestXYZ 019  .,!'-\n\t"
N_STRINGS, SEED, N_CUT = 10000, 7, 6
MERGES = {"gpt2": 500, "roberta": 300}


# ---- Vocabularies

def save(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def train(folder, special):
    maker = Tokenizer(models.BPE())
    maker.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    size = 256 + MERGES[folder.name] + len(special)
    maker.train_from_iterator(
        [TEXT],
        trainers.BpeTrainer(
            vocab_size=size, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
        ),
    )
    model = json.loads(maker.to_str())["model"]
    save(folder / "vocab.json", json.dumps(model["vocab"], ensure_ascii=False, separators=(",", ":")))
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    save(folder / "merges.txt", "#version: 0.2\n" + "".join(m + "\n" for m in merges))


def write_folders(root):
    train(root / "gpt2", ["<|endoftext|>"])
    save(root / "gpt2" / "config.json", '{"model_type": "gpt2"}\n')
    roberta = root / "roberta"
    train(roberta, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    size = len(json.loads((roberta / "vocab.json").read_text(encoding="utf-8")))
    save(roberta / "tokenizer_config.json", json.dumps({"tokenizer_class": "RobertaTokenizer", "add_prefix_space": False}))
    mask = {"content": "<mask>", "lstrip": True, "rstrip": False, "single_word": False, "normalized": False}
    save(roberta / "special_tokens_map.json", json.dumps({"cls_token": "<s>", "sep_token": "</s>", "mask_token": mask}))
    save(roberta / "added_tokens.json", json.dumps({"<new>": size}))


def read_folder(root, name):
    vocab = json.loads((root / name / "vocab.json").read_text(encoding="utf-8"))
    lines = (root / name / "merges.txt").read_text(encoding="utf-8").split("\n")
    return vocab, [line for line in lines[1:] if line]


# ---- Settings

def added(content, i, **switches):
    token = {"id": i, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return dict(token, **switches)


def make_settings(root):
    """tokenizer.json objects whose vocab is [folder, characters without token] and whose merges are a number."""
    end = len(read_folder(root, "gpt2")[0])
    plain = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [added("<|endoftext|>", 0)],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "", "end_of_word_suffix": "",
            "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": ["gpt2", ""], "merges": 1000,
        },
    }
    tokens = [
        added("<mask>", end, lstrip=True),
        added("word", end + 1, single_word=True, special=False),
        added("[L]", end + 2, lstrip=True, special=False, normalized=True),
        added("[R]", end + 3, rstrip=True, normalized=True),
        added("[B]", end + 4, lstrip=True, rstrip=True),
        added("[N]", end + 5, single_word=True, lstrip=True, rstrip=True, normalized=True),
        added("<s", end + 6, normalized=True),
        added("s>a", end + 7),
    ]
    prefix = copy.deepcopy(plain)
    prefix["pre_tokenizer"]["add_prefix_space"] = True
    prefix["post_processor"] = {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0], "trim_offsets": True,
                                "add_prefix_space": True}
    prefix["model"]["vocab"][0] = "roberta"
    prefix["added_tokens"] = [added("<s>", 0), added("<pad>", 1), added("</s>", 2), added("<unk>", 3), added("<mask>", 4)]
    many = copy.deepcopy(plain)
    many["added_tokens"] += tokens
    many["post_processor"] = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    unknown = copy.deepcopy(plain)
    unknown["model"].update(vocab=["roberta", "at\u0120\u00c3"], unk_token="<unk>", fuse_unk=False)
    unknown["added_tokens"] = []
    fused = copy.deepcopy(unknown)
    fused["model"]["fuse_unk"] = True
    dropped = copy.deepcopy(unknown)
    dropped["model"]["unk_token"] = None
    whole = copy.deepcopy(plain)
    whole["model"].update(merges=100, ignore_merges=True)
    whole["post_processor"] = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    template = copy.deepcopy(prefix)
    template["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "<s>", "type_id": 1}},
                 {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}},
    }
    template["decoder"] = None
    return [plain, prefix, many, unknown, fused, dropped, whole, template]


def complete(root, setting):
    """The tokenizer.json of a setting."""
    result = copy.deepcopy(setting)
    folder, missing = setting["model"]["vocab"]
    vocab, merges = read_folder(root, folder)
    result["model"]["vocab"] = {t: i for t, i in vocab.items() if not (set(t) & set(missing))}
    merges = [m for m in merges if not (set(m) & set(missing))]
    result["model"]["merges"] = merges[: setting["model"]["merges"]]
    return result


def make_tokenizers(root, settings):
    """Those of the settings, then those of the folders as transformers opens them."""
    result = [Tokenizer.from_str(json.dumps(complete(root, s))) for s in settings]
    result.append(transformers.GPT2Tokenizer.from_pretrained(root / "gpt2").backend_tokenizer)
    result.append(transformers.RobertaTokenizer.from_pretrained(root / "roberta").backend_tokenizer)
    return result


# ---- Random strings

def words_of(text):
    return text.split(" ")


def random_strings(alphabet, n, seed):
    draws, words = Draws(seed), words_of(TEXT)
    for _ in range(n):
        text = ""
        for _ in range(1 + draws.below(12)):
            what = draws.below(100)
            if what < 30:
                text += ASCII_TEXT[draws.below(len(ASCII_TEXT))]
            elif what < 40:
                text += SPECIAL[draws.below(len(SPECIAL))]
            elif what < 70:
                text += words[draws.below(len(words))] + " " * draws.below(2)
            elif what < 95:
                text += alphabet[draws.below(len(alphabet))]
            else:
                code = draws.below(0x110000 - 0x800)
                text += chr(code if code < 0xD800 else code + 0x800)
        yield text


def has_added(text):
    """Beside an added token the package's ranges count a space that add_prefix_space put there."""
    return any(s.strip() in text for s in SPECIAL + ["<unk>", "<new>", "<s", "s>a"])


def tokens_of(maker, text):
    """ids without what is put around, and ranges in bytes; a space that was put before the text has none."""
    starts = [0]
    for c in text:
        starts.append(starts[-1] + len(c.encode("utf-8")))
    coded = maker.encode(text)
    inner = [i for i, s in enumerate(coded.sequence_ids) if s is not None]
    ids, ranges = [coded.ids[i] for i in inner], [(starts[coded.offsets[i][0]], starts[coded.offsets[i][1]]) for i in inner]
    if inner and coded.tokens[inner[0]] == "\u0120" and text[0] != " ":
        ranges[0] = (0, 0)
    return ids, ranges


class Hash:
    """FNV-1a, a number at a time."""

    def __init__(self):
        self.value = 0x811C9DC5

    def add(self, *numbers):
        for number in numbers:
            self.value = (self.value ^ number) * 0x01000193 % (1 << 32)


def with_ranges(text, setting):
    """Not where bytes are dropped: there the package's ranges are shifted."""
    if setting is None:
        return True
    drops = setting["model"]["unk_token"] is None and setting["model"]["vocab"][1]
    return not drops and not (setting["pre_tokenizer"]["add_prefix_space"] and has_added(text))


def hash_string(text, makers, settings):
    """ids, ranges, the text of the ids with and without the special ones, and that of the ids backwards."""
    result = Hash()
    for maker, setting in zip(makers, settings + [None, None]):
        ids, ranges = tokens_of(maker, text)
        result.add(len(ids), *ids)
        if with_ranges(text, setting):
            result.add(*[x for pair in ranges for x in pair])
        for some, skip in ((ids, False), (ids, True), (ids[::-1], False)):
            result.add(*maker.decode(some, skip_special_tokens=skip).encode("utf-8"))
    return result.value & ~1 | (not has_added(text))


def strings_file(alphabet, makers, settings, n, seed):
    hashes = [hash_string(text, makers, settings) for text in random_strings(alphabet, n, seed)]
    numbers = [seed, len(alphabet)] + [ord(c) for c in alphabet] + [n] + hashes
    return zlib.compress(struct.pack("<%dI" % len(numbers), *numbers), 9)


def make_alphabet():
    rng, pools = random.Random(3), {}
    for code in range(0x110000):
        if not 0xD800 <= code < 0xE000:
            pools.setdefault(unicodedata.category(chr(code)), []).append(chr(code))
    few = [c for name in sorted(pools) for c in rng.sample(pools[name], min(12, len(pools[name])))]
    return "".join(few) + "\u0085\u00a0\u1680\u2003\u2028\u3000\u200b\ufeff\u24b6\U0001f170\u00b2\u2163\u203f\u1c89\U0002ebf0\U00010d40"


# ---- All code points

def classes():
    split = pre_tokenizers.ByteLevel(add_prefix_space=False)
    maker = Tokenizer(models.BPE({"x": 0, "<u>": 1}, [], unk_token="<u>"))
    maker.add_tokens([AddedToken("xx", single_word=True)])

    def is_one(text):
        return len(split.pre_tokenize_str(text)) == 1

    runs = []
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000:
            continue
        c = chr(code)
        group = next((name for name, before in zip("LNO", "a1!") if is_one(before + c)), "S")
        is_word = 2 not in maker.encode(c + "xx").ids
        if is_word != (2 not in maker.encode("xx" + c).ids):
            sys.exit("U+%04X is \\w on one side only" % code)
        name = group + ("w" if is_word else "-")
        if runs and runs[-1][2] == name and runs[-1][1] == code - 1:
            runs[-1][1] = code
        else:
            runs.append([code, code, name])
    return zlib.compress("".join("%X-%X %s\n" % tuple(run) for run in runs).encode("ascii"), 9)


# ---- Files

def pair_cases(root, settings, makers):
    texts = [("Attention is all", "you need it."), ("", "b"), ("a", ""), ("<mask> x", " y</s>"), ("I'm", "日本 or so")]
    result = []
    for s, maker in enumerate(makers):
        for a, b in texts:
            both = maker.encode(a, b)
            result.append([s, a, b, 0, both.ids, both.type_ids])
    for s, folder in ((len(settings), "gpt2"), (len(settings) + 1, "roberta")):
        kind = transformers.GPT2Tokenizer if folder == "gpt2" else transformers.RobertaTokenizer
        whole = kind.from_pretrained(root / folder)
        longer = "the values of the keys and the query"
        for a, b in ((longer, "a"), ("a", longer), (longer, longer[:20]), (longer[:20], longer)):
            for n in range(N_CUT, N_CUT + 6):
                cut = whole(a, b, truncation="longest_first", max_length=n, return_token_type_ids=True)
                result.append([s, a, b, n, cut["input_ids"], cut["token_type_ids"]])
        for n in range(3, 9):
            cut = whole(texts[0][0], truncation=True, max_length=n, return_token_type_ids=True)
            result.append([s, texts[0][0], None, n, cut["input_ids"], cut["token_type_ids"]])
    return result


def show(root, index):
    settings = json.loads((root / "cases.json").read_text(encoding="utf-8"))["settings"]
    text = list(random_strings(read_alphabet(root), N_STRINGS, SEED))[index]
    print(ascii(text), "(ranges are not compared)" if has_added(text) else "")
    for s, maker in enumerate(make_tokenizers(root, settings)):
        ids, ranges = tokens_of(maker, text)
        print("setting", s)
        for token, begin_end in zip(ids, ranges):
            print("   ", token, *begin_end)
        for some, skip in ((ids, False), (ids, True), (ids[::-1], False)):
            print("   ", ascii(maker.decode(some, skip_special_tokens=skip)))


def read_alphabet(root):
    numbers = zlib.decompress((root / "strings.z").read_bytes())
    count = struct.unpack_from("<I", numbers, 4)[0]
    return "".join(map(chr, struct.unpack_from("<%dI" % count, numbers, 8)))


def more_strings(root, n, seed):
    settings = json.loads((root / "cases.json").read_text(encoding="utf-8"))["settings"]
    return strings_file(read_alphabet(root), make_tokenizers(root, settings), settings, n, seed)


def main(root):
    write_folders(root)
    settings = make_settings(root)
    makers = make_tokenizers(root, settings)
    texts = []
    for line in HAND_PICKED + ["a" * 1000, "ab" * 500, " " * 300, "é" * 200, TEXT.encode("unicode_escape").decode("ascii")]:
        text = line if not line.isascii() else line.encode("ascii").decode("unicode_escape")
        texts.append([text, hash_string(text, makers, settings)])
    cases = {
        "tokenizers": tokenizers.__version__,
        "transformers": transformers.__version__,
        "text": TEXT,
        "special": SPECIAL,
        "settings": settings,
        "pairs": pair_cases(root, settings, makers),
        "texts": texts,
    }
    save(root / "cases.json", json.dumps(cases, separators=(",", ":")).replace('["', '\n["').replace(",{", ",\n{") + "\n")
    (root / "strings.z").write_bytes(strings_file(make_alphabet(), makers, settings, N_STRINGS, SEED))
    (root / "classes.z").write_bytes(classes())


if __name__ == "__main__":
    if sys.argv[2:3] == ["--show"]:
        show(pathlib.Path(sys.argv[1]), int(sys.argv[3]))
    elif sys.argv[2:3] == ["--strings"]:
        pathlib.Path(sys.argv[5]).write_bytes(more_strings(pathlib.Path(sys.argv[1]), int(sys.argv[3]), int(sys.argv[4])))
    else:
        main(pathlib.Path(sys.argv[1]))
