#!/usr/bin/env python3
"""Random tokenizers and sentence models, each read by Hugging Face's libraries and by qkv.

    python3 tools/random_tokenizers.py [--folders 200] [--seed S] [--first I] [--kinds wordpiece,...] [--texts 60]
                                       [--odd 0.5] [--keep DIR] [--qkv build/release/qkv]
                                       needs torch, transformers 5, tokenizers, sentencepiece, sentence-transformers 6, numpy

A folder is saved by save_pretrained, or written as older versions did, then changed in the ways that people's folders
are: a vocabulary alone, two that disagree, added tokens of every kind, special tokens with other names, fields that
contradict each other; sentence models with prompts, lower case, Dense, several poolings, limits. What qkv makes of
random texts must be what the libraries make of them, ids and vectors (1e-4 of the largest number), or the folder is
refused in words. It prints its seed, a line for each folder, and a total; folder I of a seed is made again by
--seed S --first I --folders 1. A kind is a function with @kind that writes a folder and returns the comparison
(random_tokenizer_kinds.py, random_decoder_kinds.py,
random_sentence_kinds.py); exit 1 if anything differed in silence.
"""
import argparse
import collections
import os
import pathlib
import random
import shutil
import sys
import tempfile
import time
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "critical")
os.environ.setdefault("RUST_BACKTRACE", "0")
warnings.filterwarnings("ignore")

try:
    import random_sentence_kinds
except ImportError:  # without sentencepiece or sentence-transformers: the kinds of tokenizers alone
    random_sentence_kinds = None
import random_decoder_kinds  # adds its kinds to those of random_tokenizer_kinds

try:
    import random_unigram_kinds  # noqa: F401
except ImportError:  # without sentencepiece
    pass
import random_tokenizer_kinds
from random_draw import Draw, odd_leaf

KINDS = random_tokenizer_kinds.KINDS | (random_sentence_kinds.KINDS if random_sentence_kinds else {})


def one(number, options, kinds):
    """The result for folder I: same, refused, lenient (the libraries cannot read it, qkv can), unread (neither can), DIFFERS."""
    draw = Draw(options.seed * 1000003 + number)
    name = draw.choice(kinds)
    folder = pathlib.Path(options.keep or options.scratch) / f"{number}_{name}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    compare = KINDS[name](draw, folder)
    files = sorted(path for path in folder.rglob("*.json") if path.name != "config.json" or path.parent != folder)
    if files and draw.random() < options.odd:
        odd_leaf(draw, draw.choice(files))
    outcome, words = compare(options, draw)
    if not options.keep:
        shutil.rmtree(folder)
    return name, draw.drawn, outcome, words


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folders", type=int, default=200)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--texts", type=int, default=60)
    parser.add_argument("--odd", type=float, default=0, help="share of the folders in which one value of a file is odd")
    parser.add_argument("--keep")
    parser.add_argument("--qkv", default="build/release/qkv")
    options = parser.parse_args()
    print("seed", options.seed)
    total = collections.Counter()
    with tempfile.TemporaryDirectory() as options.scratch:
        for number in range(options.first, options.first + options.folders):
            name, drawn, outcome, words = one(number, options, options.kinds.split(","))
            total[outcome] += 1
            print(f"{number:5} {name:10} {outcome:8} {', '.join(drawn)}{': ' if words else ''}{words}", flush=True)
    print(", ".join(f"{n} {outcome}" for outcome, n in sorted(total.items())))
    sys.exit(1 if total["DIFFERS"] else 0)


if __name__ == "__main__":
    main()
