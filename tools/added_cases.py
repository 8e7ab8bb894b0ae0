#!/usr/bin/env python3
"""Makes tests/golden/added: folders of tokenizers, and what transformers makes of texts with them.

    python3 tools/added_cases.py tests/golden/added      needs transformers 5, tokenizers, sentencepiece

cases.z is deflated JSON, a list of folders, which are those of random_tokenizers.py for fixed seeds:
    {"files": {name: content}, "spm": a folder of tests/golden that has the .spm files, or null,
     "texts": [text or [text, second], …], "ids": [[…], …], "ranges": [[begin, end, …] or null, …]}
Ranges are in bytes, of tokens of WordPiece, where they are as here: of texts without marks that are dropped alone.
"""
import json
import pathlib
import sys
import zlib

import transformers as t

import random_tokenizer_kinds as kinds

PLAIN = set(kinds.ASCII + "éÉßñ中文日本語" + "".join(kinds.WORDS).upper() + "".join(kinds.WORDS))
FOLDERS = {"wordpiece": range(100, 130), "bpe": range(200, 216), "marian": range(300, 308)}
N_TEXTS = 24


def ranges_of(maker, text):
    """Bytes; of several tokens that are made of one character the first has its bytes."""
    if not isinstance(text, str) or not set(text) <= PLAIN or not maker.is_fast:
        return None
    starts = [0]
    for c in text:
        starts.append(starts[-1] + len(c.encode()))
    result, last = [], 0
    for begin, end in maker(text, return_offsets_mapping=True)["offset_mapping"]:
        if begin == end:
            result += [-1, -1]  # inserted, or nothing is left of it
            continue
        begin = max(starts[begin], last)
        last = max(starts[end], begin)
        result += [begin, last]
    return result


def case(name, seed):
    """None where transformers fails on the folder or on a text."""
    found = kinds.read_by_transformers(name, seed, N_TEXTS)
    if found is None:
        return None
    draw, maker, files, texts, ids = found
    ranges = [ranges_of(maker, text) if name == "wordpiece" else None for text in texts]
    spm = next((note for note in draw.drawn if note.startswith("marian")), None) if name == "marian" else None
    return dict(files=files, spm=spm, drawn=", ".join(draw.drawn), texts=texts, ids=ids, ranges=ranges)


def main(folder):
    cases = [made for name, seeds in FOLDERS.items() for seed in seeds if (made := case(name, seed))]
    head = {"transformers": t.__version__, "folders": cases}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cases.z").write_bytes(zlib.compress(json.dumps(head, ensure_ascii=False).encode(), 9))
    print(len(cases), "folders", (folder / "cases.z").stat().st_size, "bytes")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
