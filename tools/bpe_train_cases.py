#!/usr/bin/env python3
"""Makes tests/golden/bpe_train: byte-level BPE vocabularies that PyPI tokenizers trains.

    python3 tools/bpe_train_cases.py tests/golden/bpe_train           writes cases.z
    python3 tools/bpe_train_cases.py tests/golden/bpe_train --check   loads gpt2/ and bart/, which golden_bpe_train wrote, in PyPI tokenizers
                                                                      and transformers: the ids must be those of cases.z

Needs the packages tokenizers and transformers.

    cases.z     deflated JSON: [{"style": "gpt2" | "bart", "size": N, "texts": [[text, count], …], "merges": [[a, b], …],
                "strings": [[string, [id, …]], …]}, …]; ids without what stands around a text
    gpt2, bart  what our trainer writes for the first case of the style: golden_bpe_train compares bytes, --check says that they are right
"""
import json
import pathlib
import random
import sys
import zlib

import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from bpe_cases import HAND_PICKED, TEXT

ROOT = pathlib.Path(__file__).parent.parent
SPECIAL = {"gpt2": ["<|endoftext|>"], "bart": ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]}
ALPHABETS = ["ab", "aA 'st", "é中\u0301\u200d😀 \n", "x\u00a0\u3000\t 1²Ⅳ"]


def odd_text(rng, n):
    """Letters of many scripts, runs of one letter, white space of every kind, what is no character yet."""
    out = []
    for _ in range(n):
        kind = rng.randrange(6)
        if kind == 0:
            out.append(chr(rng.choice([0x41, 0x3B1, 0x430, 0x5D0, 0x905, 0x4E00, 0xAC00, 0x1F600, 0x10FF00]) + rng.randrange(12)))
        elif kind == 1:
            out.append(rng.choice("aab") * rng.randrange(1, 9))
        elif kind == 2:
            out.append(rng.choice([" ", "  ", "\n", "\t", "\u00a0", "\u2028", "\u3000", "\r\n"]))
        elif kind == 3:
            out.append(rng.choice(["'s", "'ll", "n't", "--", "...", '"', "\\", "\u0000", "\u007f", "\u00ad", "\ufffd"]))
        elif kind == 4:
            out.append(str(rng.randrange(100)))
        else:
            out.append(rng.choice(["the", " the", " other", "they", " theft", "aaaa", "abab", "baba"]))
    return "".join(out)


def cases():
    rng = random.Random(11)
    grammar = (ROOT / "models/default/grammar.txt").read_text()
    yield "gpt2", 400, [(TEXT, 1)]
    yield "bart", 420, [(TEXT, 1)]
    yield "gpt2", 1500, [(line, 1) for line in grammar.split("\n") if line]
    yield "bart", 3000, [(grammar, 1), (TEXT, 3)]
    yield "bart", 5000, [(odd_text(rng, 40), rng.randrange(1, 4)) for _ in range(60)]
    for alphabet in ALPHABETS:
        yield "gpt2", 330, [("".join(rng.choice(alphabet) for _ in range(rng.randrange(1, 50))), 1) for _ in range(30)]
    yield "gpt2", 300, [("a" * n, 2) for n in range(1, 40)]
    yield "gpt2", 257, [("nothing is merged", 5)]
    yield "bart", 300, [("once each", 1)]


def train(style, size, texts):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=2, show_progress=False,
                                  special_tokens=[AddedToken(t, lstrip=t == "<mask>", normalized=False) for t in SPECIAL[style]],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator([text for text, count in texts for _ in range(count)], trainer)
    model = json.loads(tokenizer.to_str())["model"]
    merges = [m if isinstance(m, list) else m.split(" ") for m in model["merges"]]
    made = SPECIAL[style] + sorted(pre_tokenizers.ByteLevel.alphabet()) + ["".join(m) for m in merges]
    assert made == sorted(model["vocab"], key=model["vocab"].get), "ids are not places in our order"
    return tokenizer, merges


def make(folder):
    rng = random.Random(5)
    strings = [eval('"' + s + '"') if "\\" in s else s for s in HAND_PICKED] + [odd_text(rng, 12) for _ in range(20)]
    out = []
    for style, size, texts in cases():
        tokenizer, merges = train(style, size, texts)
        out.append({"style": style, "size": size, "texts": texts, "merges": merges,
                    "strings": [[s, tokenizer.encode(s, add_special_tokens=False).ids] for s in strings]})
    (folder / "cases.z").write_bytes(zlib.compress(json.dumps(out, ensure_ascii=False).encode(), 9))


def check(folder):
    stored = json.loads(zlib.decompress((folder / "cases.z").read_bytes()))
    for style in SPECIAL:
        case = next(case for case in stored if case["style"] == style)
        tokenizer = Tokenizer.from_file(str(folder / style / "tokenizer.json"))
        auto = transformers.AutoTokenizer.from_pretrained(folder / style)
        around = ([0], [2]) if style == "bart" else ([], [])
        for string, ids in case["strings"]:
            assert tokenizer.encode(string, add_special_tokens=False).ids == ids, string
            assert tokenizer.encode(string).ids == around[0] + ids + around[1], string
            assert auto(string)["input_ids"] == around[0] + ids + around[1], string
            assert tokenizer.decode(tokenizer.encode(string).ids, skip_special_tokens=False).count(string) == 1 or "<" in string, string
        print(style, type(auto).__name__, len(auto), auto.special_tokens_map)


if __name__ == "__main__":
    out_folder = pathlib.Path(sys.argv[1])
    check(out_folder) if "--check" in sys.argv[2:] else make(out_folder)
