#!/usr/bin/env python3
"""Makes tests/golden/int8.safetensors: models of tests/golden/llama whose linear layers are the products of docs/numerics.md.

    python3 tools/int8_cases.py tests/golden      needs torch, transformers, safetensors

Weights and inputs of every linear layer are rounded to 8 bits in groups of 64, exactly as the library does it; all else is
in float64. Where a head shares the table of words, their vectors are the rounded ones. For each model and the sequences of
its expected.safetensors: NAME.hidden, the last hidden states, and, of those with a head for the next token, NAME.logits.
An input that float64 and f32 round to neighbouring integers would show as a difference of a quantum.
"""
import pathlib
import sys

import torch
import transformers as t
from safetensors.torch import load_file, save_file

from llama_cases import F32, MODELS, double

NAMES = ["llama_1", "llama_2", "qwen2_1", "qwen3_1", "gemma2_1", "olmo2_1", "phi3_1", "gpt_neox_1", "modernbert_1"]
GROUP = 64


def rounded(values):
    """Scales [rows][groups] and integers [rows][groups][64] of the rows of a matrix."""
    rows = torch.nn.functional.pad(values.to(F32), (0, -values.shape[-1] % GROUP)).unflatten(-1, (-1, GROUP))
    largest = rows.abs().amax(-1)
    none = largest < 2.0 ** -100
    factor = torch.where(none, torch.zeros_like(largest), 127 / largest)
    scale = torch.where(none, torch.zeros_like(largest), largest / 127)
    return scale, torch.round(rows * factor[..., None]).double()


def product(layer, x):
    """x Wᵀ + b; the product of two scales is a float."""
    scale_w, q_w = rounded(layer.weight)
    scale_x, q_x = rounded(x)
    sums = torch.einsum("...gk,ngk->...ng", q_x, q_w)
    y = (sums * (scale_x[..., None, :] * scale_w).double()).sum(-1)
    return y if layer.bias is None else y + layer.bias


def main(root):
    torch.set_num_threads(1)
    made = {}
    for name in NAMES:
        folder = pathlib.Path(root) / "llama" / name
        kind, config = MODELS[name]
        ids = load_file(folder / "expected.safetensors")
        state = {key.replace("embed_out.", "lm_head."): value.double() for key, value in load_file(folder / "model.safetensors").items()}
        with double(), torch.no_grad():
            config._attn_implementation = "eager"
            torch.set_default_dtype(torch.float64)
            model = kind(config).double().eval()
            torch.set_default_dtype(F32)
            missing = model.load_state_dict(state, strict=False).missing_keys
            assert all(key in ("lm_head.weight", "decoder.weight") for key in missing), missing
            model.tie_weights()
            if config.tie_word_embeddings:
                words = model.get_input_embeddings()
                scale, q = rounded(words.weight)
                dense = (scale[..., None] * q.to(F32)).flatten(1)[:, :words.weight.shape[1]]
                words.weight = torch.nn.Parameter(dense.double())  # the head keeps what it is rounded from
            for module in model.modules():
                if isinstance(module, torch.nn.Linear):
                    module.forward = lambda x, layer=module: product(layer, x)
            outs = [model(input_ids=part[None].long(), output_hidden_states=True) for part in ids["ids"].split(ids["lengths"].tolist())]
        made[name + ".hidden"] = torch.cat([out.hidden_states[-1][0] for out in outs]).to(F32)
        if "modernbert" not in name:
            made[name + ".logits"] = torch.cat([out.logits[0] for out in outs]).to(F32)
    save_file(made, pathlib.Path(root) / "int8.safetensors",
              metadata={"made_with": f"torch {torch.__version__}, transformers {t.__version__}"})


if __name__ == "__main__":
    main(sys.argv[1])
