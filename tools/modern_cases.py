#!/usr/bin/env python3
"""Makes tests/golden/modern: tokenizers of decoder models and of ModernBERT, and what transformers makes of texts with them.

    python3 tools/modern_cases.py tests/golden/modern      needs transformers 5, tokenizers
    python3 tools/modern_cases.py tests/golden/unigram     the same of Unigram and of MPNet's class; needs sentencepiece, too

cases.z is deflated JSON, a list of folders, which are those of random_tokenizers.py for fixed seeds:
    {"files": {name: content}, "texts": [text or [text, second], …], "ids": [[…], …],
     "made": [[text of the ids, the same without special tokens, text of the ids backwards], …]}
Decoding is that of the library's tokenizer: transformers may clean up spaces after it.

nfc.z, of modern alone, is {"pairs": [text, its NFC, …]} of texts that NFC changes: each scalar value alone, after a letter, before a mark.
"""
import json
import pathlib
import sys
import zlib

import transformers as t
from tokenizers import normalizers

import random_decoder_kinds
import random_tokenizer_kinds as kinds

FOLDERS = {"modern": {"modern": range(400, 424), "metaspace": range(500, 520)},
           "unigram": {"small_unigram": range(600, 630), "mpnet": range(700, 712)}}
N_TEXTS = 20
MARKS = "\u0300\u0301\u0308\u030a\u0323\u0327\u0338\u0342\u0345\u0653\u093c\u0b57\u0bbe\u0cd5\u1161\u11a8\u3099\u309a\U00011930"


def case(name, seed):
    """None where transformers fails on the folder or on a text."""
    found = kinds.read_by_transformers(name, seed, N_TEXTS)
    if found is None:
        return None
    draw, maker, files, texts, ids = found
    decode = maker._tokenizer.decode
    made = [[decode(x, skip_special_tokens=False), decode(x), decode(x[::-1], skip_special_tokens=False)] for x in ids]
    return dict(files=files, drawn=", ".join(draw.drawn), texts=texts, ids=ids, made=made)


def nfc():
    normalize = normalizers.NFC().normalize_str
    pairs = []
    for code in range(1, 0x110000):
        if 0xd800 <= code < 0xe000:
            continue
        for text in [chr(code), "a" + chr(code) + "\u0301"] + [chr(code) + mark for mark in MARKS]:
            if normalize(text) != text:
                pairs += [text, normalize(text)]
    return pairs


def main(folder):
    if folder.name == "unigram":
        import random_unigram_kinds  # noqa: F401: adds its kinds
    cases = [made for name, seeds in FOLDERS[folder.name].items() for seed in seeds if (made := case(name, seed))]
    folder.mkdir(parents=True, exist_ok=True)
    head = {"transformers": t.__version__, "folders": cases}
    (folder / "cases.z").write_bytes(zlib.compress(json.dumps(head, ensure_ascii=False).encode(), 9))
    if folder.name == "modern":
        pairs = json.dumps({"pairs": nfc()}, ensure_ascii=False).encode()
        (folder / "nfc.z").write_bytes(zlib.compress(pairs, 9))
    print(len(cases), "folders", [path.stat().st_size for path in folder.iterdir()], "bytes")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
