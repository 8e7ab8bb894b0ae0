#!/usr/bin/env python3
"""Makes tests/golden/tokenizer: what PyPI tokenizers does with text.

    python3 tools/tokenizer_cases.py tests/golden/tokenizer           writes everything (two minutes)
    python3 tools/tokenizer_cases.py tests/golden/tokenizer --show I  prints tokens and ranges of string I of strings.z
    python3 tools/tokenizer_cases.py tests/golden/tokenizer --strings N SEED FILE   N other strings, for golden_strings FILE

Needs the package tokenizers; its version is written into the files. The vocabulary is made here: words, pieces, and
characters of every Unicode category with their ## forms. Files:

    vocab.txt       the vocabulary
    tokenizer.json  the same as the package saves it, lower case on, with TemplateProcessing
    cases.json      {"tokenizers": version, "settings": […], "cases": [[text, which, [ids, …]], …], "pairs": [[a, b, ids, types], …]}
                    ids are without [CLS] and [SEP]; which[s] is the index of the ids of setting s
    unicode.z       every code point under 24 settings (tokenizer_table.py), deflated
    strings.z       20,000 random strings under the twelve settings, deflated: their alphabet and a hash for each (random_strings)
"""
import json
import pathlib
import random
import struct
import sys
import unicodedata
import zlib

import tokenizers
import tokenizer_table
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SETTINGS = [
    {"do_lower_case": lower, "strip_accents": strip, "tokenize_chinese_chars": cjk}
    for lower in (True, False)
    for strip in (None, True, False)
    for cjk in (True, False)
]
WORDS = """una ##ffa ##ble i was watching the door when it opened hello naive cafe don st ##raße ang ##strom istanbul
İstanbul Hello World World's anti ##dis ##est ##ab ##lish ##ment ##arian ##ism ##ing ##s ##ed re ##re open ##open mask
MASK abc def 10 100 ##00 ab ##ab 中 文 日 本 語 ##文""".split()

# Each line is a string; \\u escapes are Python's.
HAND_PICKED = r"""
I was watching the [MASK] when it opened.
I was watching the door when [MASK] opened.
unaffable

   
[mask]
abc[MASK]def
[MASK][MASK] [CLS] x [SEP][PAD][UNK]
[[MASK]] [MASK [MASK]] [ MASK]
H\u00e9llo na\u00efve CAF\u00c9
He\u0301llo e\u0301a \u0301a \u0301
don't DON'T I'Ll
$100^2~ a`b|c
\u4e2d\u6587abc\u65e5\u672c\u8a9e
\ufb01ne
a\u200bb a\u00adb a\u000bb a\u000cb a\u0085b
a\u0000b\ufffdc
a\u00a0b\u3000c\u2028d\u2029e\u202ff\u1680g
\u0391\u0392\u0393 \u039f\u0394\u039f\u03a3
\u0130stanbul stra\u00dfe \u00c5ngstr\u00f6m \u1e9e
\U0002b820x \U0002b91fx \U0002b920x \U0002ceaf
\ud55c\uad6d\uc5b4
\uff46\uff55\uff4c\uff4c\uff57\uff49\uff44\uff54\uff48 \u2163 \U0001f601
antidisestablishmentarianism
\u0928\u092e\u0938\u094d\u0924\u0947
a\u0316\u0301b a\u0301\u0316b a\u0301\u302e\u0316b
a\u0898\u0316b a\u0345\U00016ff0b a\u0301\u1715\u0316
\uf900\u2f800x \U0002fa1fx
\t tab \r\n line \n
\ufeffx\u200e\u202ey\ue000z\U000f0000
""".strip("\n").split("\n")

# Accents, cases, scripts that split, and code points on which Unicode versions disagree.
ODD = (
    "\u00e9\u00c9\u00f1\u00c5\u00df\u1e9e\u0130\u0131\u03c2\u03a3\u0451\u0419\u4e2d\u6587\u65e5\u672c\u8a9e\ud55c\uad6d\uc5b4\u30ab\u3099"
    "\u0301\u0316\u0327\u0345\u0334\u302e\u1715\u1734\u0890\u08e2\u0898\u08ca\U00016ff0\u166d\u061d\u2e5d\ua7cb\u1c89\u0c3c\u1abf\u1df6"
    "\U000111c9\U00011938\U00010d50\U00016ea0\U0002b820\U0002b920\U0001e4ec\U00010f46\U000110cd"
)


def hand_picked():
    for line in HAND_PICKED:
        yield line.encode("ascii").decode("unicode_escape")
    for n in (99, 100, 101, 200):
        yield "a" * n
        yield "\u00c9" * n
        yield "\u4e2d" * n
        yield "x " + "e\u0301" * n + "."
    yield "re" * 50
    yield "re" * 51


def by_category():
    pools = {}
    for code in range(0x110000):
        if not 0xD800 <= code < 0xE000:
            pools.setdefault(unicodedata.category(chr(code)), []).append(chr(code))
    return pools


class Draws:
    """The same numbers as in tests/golden/random_text.h: Knuth's MMIX generator."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (self.state >> 33) % n


ASCII_TEXT = "abcdeXYZ 019 .,!'-"
N_STRINGS, SEED = 20000, 3


def random_strings(vocabulary, alphabet, n, seed):
    """Pieces of the vocabulary, special tokens among them, characters of an alphabet, and now and then any scalar value."""
    draws = Draws(seed)
    for _ in range(n):
        text = ""
        for _ in range(1 + draws.below(12)):
            what = draws.below(100)
            if what < 25:
                text += ASCII_TEXT[draws.below(len(ASCII_TEXT))]
            elif what < 30:
                text += SPECIAL[draws.below(len(SPECIAL))]
            elif what < 60:
                text += vocabulary[draws.below(len(vocabulary))].removeprefix("##")
            elif what < 95:
                text += alphabet[draws.below(len(alphabet))]
            else:
                code = draws.below(0x110000 - 0x800)
                text += chr(code if code < 0xD800 else code + 0x800)
        yield text


def is_sorted(text):
    """Marks are in canonical order, so that the package's ranges are where the bytes are."""
    clean = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    text = clean.normalize_str(text)
    nfd = normalizers.NFD()
    return nfd.normalize_str(text) == "".join(nfd.normalize_str(c) for c in text)


def tokens_of(maker, text):
    """ids, ranges in bytes; of several tokens made from one character the first has its bytes."""
    starts = [0]
    for c in text:
        starts.append(starts[-1] + len(c.encode("utf-8")))
    coded = maker.encode(text, add_special_tokens=False)
    ranges, last = [], 0
    for begin, end in coded.offsets:
        begin = max(starts[begin], last)
        last = max(starts[end], begin)
        ranges.append((begin, last))
    return coded.ids, ranges


def hash_string(text, makers):
    """FNV-1a, a number at a time, of n, ids and ranges under every setting; bit 0 says if ranges are in it."""
    with_ranges = is_sorted(text)
    result = 0x811C9DC5
    for maker in makers:
        ids, ranges = tokens_of(maker, text)
        numbers = [len(ids)] + ids
        if with_ranges:
            numbers += [x for pair in ranges for x in pair]
        for number in numbers:
            result = (result ^ number) * 0x01000193 % (1 << 32)
    return result & ~1 | with_ranges


def strings_file(vocabulary, alphabet, makers, n, seed):
    """u32, little-endian: the seed, how many characters, the characters, how many strings, the hashes."""
    hashes = [hash_string(text, makers) for text in random_strings(vocabulary, alphabet, n, seed)]
    numbers = [seed, len(alphabet)] + [ord(c) for c in alphabet] + [n] + hashes
    return zlib.compress(struct.pack("<%dI" % len(numbers), *numbers), 9)


def read_alphabet(folder):
    """Of the files that are there: the vocabulary and the alphabet of the strings."""
    vocabulary = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")[:-1]
    numbers = zlib.decompress((folder / "strings.z").read_bytes())
    count = struct.unpack_from("<I", numbers, 4)[0]
    return vocabulary, "".join(map(chr, struct.unpack_from("<%dI" % count, numbers, 8)))


def more_strings(folder, n, seed):
    vocabulary, alphabet = read_alphabet(folder)
    return strings_file(vocabulary, alphabet, [make_tokenizer(vocabulary, s) for s in SETTINGS], n, seed)


def show(folder, index):
    vocabulary, alphabet = read_alphabet(folder)
    text = list(random_strings(vocabulary, alphabet, N_STRINGS, SEED))[index]
    print(ascii(text), "" if is_sorted(text) else "(marks change places: ranges are not compared)")
    for setting in SETTINGS:
        print(setting)
        for token, begin_end in zip(*tokens_of(make_tokenizer(vocabulary, setting), text)):
            print("   ", token, ascii(vocabulary[token]), *begin_end)


def normalizer(setting):
    return normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=setting["tokenize_chinese_chars"],
        strip_accents=setting["strip_accents"],
        lowercase=setting["do_lower_case"],
    )


def make_vocabulary(rng, few):
    """Characters of few under every setting, nearly all, alone and continuing."""
    characters = set("abcdefghijklmnopqrstuvwxyzABCDEXYZ0123456789" + "".join(map(chr, range(33, 48))) + "[]^`|~@")
    for setting in SETTINGS:
        for c in few:
            characters.update(normalizer(setting).normalize_str(c).replace(" ", ""))
    tokens = list(SPECIAL)
    for c in sorted(characters):
        if not c.isspace() and rng.random() < 0.97:
            tokens += [c, "##" + c]
    seen = set()
    return [t for t in tokens + WORDS if not (t in seen or seen.add(t))]


def make_tokenizer(vocabulary, setting):
    ids = {token: i for i, token in enumerate(vocabulary)}
    result = Tokenizer(models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100))
    result.normalizer = normalizer(setting)
    result.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    result.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
    )
    result.add_special_tokens(SPECIAL)
    return result


def case_of(text, makers):
    results, which = [], []
    for maker in makers:
        ids = maker.encode(text, add_special_tokens=False).ids
        if ids not in results:
            results.append(ids)
        which.append(results.index(ids))
    return [text, which, results]


def main(folder):
    rng = random.Random(3)
    pools = by_category()
    few = [c for name in sorted(pools) for c in rng.sample(pools[name], min(20, len(pools[name])))] + list(ODD)
    vocabulary = make_vocabulary(rng, few)
    makers = [make_tokenizer(vocabulary, setting) for setting in SETTINGS]
    pairs = []
    for a, b in [("hello", "the door"), ("", ""), ("a", ""), ("[MASK] x", "y. [SEP]"), ("caf\u00e9", "\u4e2d\u6587")]:
        both = makers[0].encode(a, b)
        pairs.append([a, b, both.ids, both.type_ids])
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "vocab.txt", "w", encoding="utf-8", newline="\n") as file:
        file.write("\n".join(vocabulary) + "\n")
    with open(folder / "tokenizer.json", "w", encoding="utf-8") as file:
        file.write(makers[0].to_str(pretty=False))
    with open(folder / "cases.json", "w", encoding="ascii") as file:
        head = {"tokenizers": tokenizers.__version__, "settings": SETTINGS, "pairs": pairs}
        file.write(json.dumps(head)[:-1] + ', "cases": [\n')
        lines = [json.dumps(case_of(text, makers), separators=(",", ":")) for text in hand_picked()]
        file.write(",\n".join(lines) + "\n]}\n")
    (folder / "strings.z").write_bytes(strings_file(vocabulary, "".join(few), makers, N_STRINGS, SEED))
    (folder / "unicode.z").write_bytes(tokenizer_table.table())


if __name__ == "__main__":
    if sys.argv[2:3] == ["--show"]:
        show(pathlib.Path(sys.argv[1]), int(sys.argv[3]))
    elif sys.argv[2:3] == ["--strings"]:
        pathlib.Path(sys.argv[5]).write_bytes(more_strings(pathlib.Path(sys.argv[1]), int(sys.argv[3]), int(sys.argv[4])))
    else:
        main(pathlib.Path(sys.argv[1]))
