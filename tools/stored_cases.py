#!/usr/bin/env python3
"""Makes the goldens of stored weights: one tiny random BERT as transformers saves it in each type, and in shards.

    python3 tools/stored_cases.py tests/golden/stored      needs torch, transformers, safetensors

Each folder is a model (config.json, vocab.txt, weights) and expected.safetensors: the same weights in f32 as torch
converts them. `double`, `half` and `bfloat` hold values that are hard to convert: ties, subnormal numbers, what
overflows, zeros of both signs, infinities, NaN. `sharded` has an index and several files. The tests need no Python.
"""
import pathlib
import sys

import torch
from safetensors.torch import save_file
from transformers import BertConfig, BertForPreTraining

from fixtures import vocabulary

HARD = [0.0, -0.0, 1.0 + 2.0**-24, 1.0 + 3 * 2.0**-24, -(1.0 + 2.0**-24 + 2.0**-52), 2.0**-149, 2.0**-150, 3 * 2.0**-150,
        2.0**-126 * (1 - 2.0**-25), -2.0**-1022, 3.4028235677973366e38, 3.4028235677973362e38, -1e300, float("inf"),
        float("-inf"), float("nan"), 65504.0, 65519.999, 65520.0, 2.0**-24, 2.0**-25, 0.1]


def make(root, name, dtype, seed, **how):
    torch.manual_seed(seed)
    model = BertForPreTraining(BertConfig(
        hidden_size=8, num_attention_heads=2, num_hidden_layers=2, intermediate_size=11, vocab_size=29,
        max_position_embeddings=9)).double()
    for parameter in model.parameters():
        with torch.no_grad():
            parameter.copy_(torch.randn(parameter.shape, dtype=torch.float64))
    hard = torch.tensor(HARD, dtype=torch.float64)
    with torch.no_grad():
        model.bert.embeddings.position_embeddings.weight.view(-1)[:len(HARD)] = hard
    model = model.to(dtype)
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder, **how)
    (folder / "vocab.txt").write_text("".join(word + "\n" for word in vocabulary(29)))
    tied = ("cls.predictions.decoder.weight", "cls.predictions.decoder.bias")
    save_file({key: value.float().contiguous() for key, value in model.state_dict().items()
               if key not in tied and not key.endswith("position_ids")}, folder / "expected.safetensors")


def main(root):
    make(root, "double", torch.float64, 1)
    make(root, "half", torch.float16, 2)
    make(root, "bfloat", torch.bfloat16, 3)
    make(root, "single", torch.float32, 4)
    make(root, "sharded", torch.float32, 5, max_shard_size="3KB")


main(pathlib.Path(sys.argv[1]))
