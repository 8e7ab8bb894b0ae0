"""What PyPI tokenizers makes of every code point, as text: see tokenizer_cases.py, which writes it deflated.

    tokenizers 0.23.3           the version
    {"type": …}                 one line for each setting: a normalizer as tokenizer.json has it
                                an empty line
    FIRST[-LAST] WHICH A|B|…    one line for each run of code points, in hex; the runs cover all scalar values in order

WHICH has one digit for each setting, and one more: which of the outcomes A, B, … it has. An outcome is what stands between "a" and "b" when
the words of the text a, code point, b are joined by spaces: code points in hex, "=" for the code point itself, "_" for a space,
"%" for the two or three jamo of a Hangul syllable (Unicode 3.12: 1100 + s / 588, 1161 + s % 588 / 28, 11A7 + s % 28 unless 0).
"=" alone: a letter; "_": white space; nothing: dropped; "_ = _": a word by itself. The code point as a whole text gives the same
words without the spaces around them; that is checked here. The last digit is of another context, under strip_accents alone:
a, U+302E, code point, U+1B44, b. These two marks (combining classes 224 and 9) are kept and sorted, so it shows the place of
the code point in canonical order.
"""
import json
import sys
import zlib

import tokenizers
from tokenizers import normalizers, pre_tokenizers

SETTINGS = [
    {"type": "BertNormalizer", "clean_text": clean, "handle_chinese_chars": cjk, "strip_accents": strip, "lowercase": lower}
    for clean in (True, False)
    for lower in (True, False)
    for strip in (None, True, False)
    for cjk in (True, False)
]


ORDER = {"clean_text": False, "handle_chinese_chars": False, "strip_accents": True, "lowercase": False}


def splitter():
    """A function from a normalised text to its words, joined by spaces."""
    pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    known = {}

    def split(text):
        if text not in known:
            known[text] = " ".join(word for word, _ in pre_tokenizer.pre_tokenize_str(text))
        return known[text]

    return split, known


def jamo(c):
    s = ord(c) - 0xAC00
    if not 0 <= s < 11172:
        return None
    return chr(0x1100 + s // 588) + chr(0x1161 + s % 588 // 28) + (chr(0x11A7 + s % 28) if s % 28 else "")


def spell(outcome, c):
    names = {" ": "_", c: "_" if c == " " else "="}
    if jamo(c):
        outcome = outcome.replace(jamo(c), "%")
        names["%"] = "%"
    return " ".join(names.get(x, "%X" % ord(x)) for x in outcome)


def row_of(c, makers, order, split):
    """WHICH and the outcomes of one code point."""
    found = []
    for maker in makers:
        whole, alone = split(maker.normalize_str("a" + c + "b")), split(maker.normalize_str(c))
        if whole[0] != "a" or whole[-1] != "b" or whole[1:-1].strip(" ") != alone:
            sys.exit("U+%04X: %a between letters, but %a alone" % (ord(c), whole, alone))
        found.append(spell(whole[1:-1], c))
    found.append(spell(split(order.normalize_str("a\u302e" + c + "\u1b44b"))[1:-1], c))
    outcomes = list(dict.fromkeys(found))
    return "".join("0123456789"[outcomes.index(f)] for f in found) + " " + "|".join(outcomes)


def runs():
    """first, last, row for all of Unicode."""
    split, known = splitter()
    makers = [normalizers.BertNormalizer(**{k: v for k, v in s.items() if k != "type"}) for s in SETTINGS]
    order = normalizers.BertNormalizer(**ORDER)
    first, last, row = None, None, None
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000:
            continue
        known.clear()
        now = row_of(chr(code), makers, order, split)
        if row != now or last != code - 1:
            if row is not None:
                yield first, last, row
            first, row = code, now
        last = code
    yield first, last, row


def table():
    lines = ["tokenizers " + tokenizers.__version__] + [json.dumps(s) for s in SETTINGS] + [""]
    for first, last, row in runs():
        lines.append(("%X" % first if first == last else "%X-%X" % (first, last)) + " " + row)
    return zlib.compress("\n".join(lines).encode("ascii") + b"\n", 9)
