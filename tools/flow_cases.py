#!/usr/bin/env python3
"""Makes the goldens of attention rollout and of value-weighted norms: models of other goldens, run by transformers in float64.

    python3 tools/flow_cases.py tests/golden            needs torch, transformers, safetensors

flow/NAME.safetensors has, of one text (of pairs, a text and a target),

ids, decoder_ids    what the model reads
norms.KIND.L        [heads][keys]: |f(x_j)| with f(x) = (x W_V + b_V) W_O of a head (Kobayashi et al. 2020), from the outputs of the layer's
                    own value projection. KIND is self, decoder or cross, L a layer from 0
rollout.KIND.FUSE   [n][n]: attention rollout (Abnar and Zuidema 2020), from the weights that transformers returns. FUSE is mean, max or min

The tests need no Python; versions are in the files' metadata.
"""
import pathlib
import sys

import torch
import transformers as t
from safetensors.torch import save_file

from llama_cases import double

MODELS = {"bert_new": "bert_new", "llama_2": "llama/llama_2", "gemma2_1": "llama/gemma2_1", "olmo2_1": "llama/olmo2_1",
          "mistral_1": "llama/mistral_1", "modernbert_1": "llama/modernbert_1", "gpt_neox_1": "llama/gpt_neox_1", "gptj_1": "llama/gptj_1",
          "bloom_2": "llama/bloom_2", "opt_2": "llama/opt_2", "gpt2_1": "decoder/gpt2_1/mild", "bart_1": "decoder/bart_1/mild",
          "t5_2": "decoder/t5_2/mild"}
# The projection of values, how it is fused with others, and the output's: names behind that of a layer.
NAMES = {"bert": ("attention.self.value", "attention.output.dense"), "gpt2": ("attn.c_attn", "attn.c_proj"),
         "bloom": ("self_attention.query_key_value", "self_attention.dense"), "gpt_neox": ("attention.query_key_value", "attention.dense"),
         "gptj": ("attn.v_proj", "attn.out_proj"), "opt": ("self_attn.v_proj", "self_attn.out_proj"), "modernbert": ("attn.Wqkv", "attn.Wo"),
         "bart": ("self_attn.v_proj", "self_attn.out_proj"), "t5": ("layer.0.SelfAttention.v", "layer.0.SelfAttention.o")}
CROSS = {"bart": ("encoder_attn.v_proj", "encoder_attn.out_proj"), "t5": ("layer.1.EncDecAttention.v", "layer.1.EncDecAttention.o")}
N, M = 17, 9


def load(folder):
    config = t.AutoConfig.from_pretrained(folder)
    kind = (t.AutoModelForSeq2SeqLM if config.is_encoder_decoder else
            t.AutoModelForMaskedLM if config.model_type in ("bert", "modernbert") else t.AutoModelForCausalLM)
    return kind.from_pretrained(folder, attn_implementation="eager").double().eval()


def layers_of(stack):
    """The blocks of a stack, whatever the family calls them."""
    lists = [m for m in stack.modules() if isinstance(m, torch.nn.ModuleList) and len(m) == len(list(m.children()))]
    return max(lists, key=lambda m: sum(p.numel() for p in m.parameters()))


def stacks_of(model):
    if not model.config.is_encoder_decoder:
        return {"self": layers_of(model)}
    inner = model.base_model
    return {"self": layers_of(inner.encoder), "decoder": layers_of(inner.decoder)}


def values_of(kind, made, n_heads, width):
    """[heads][n][head_dim] of what a projection made, [1][n][...]; query heads that share values have the same."""
    made = made[0]
    if kind in ("gpt2", "modernbert"):
        made = made[:, 2 * made.shape[1] // 3:]
    if kind in ("bloom", "gpt_neox"):
        made = made.view(len(made), n_heads, 3, -1)[:, :, 2].flatten(1)
    heads = made.view(len(made), -1, width // n_heads).transpose(0, 1)
    return heads.repeat_interleave(n_heads // len(heads), dim=0)


def norms_of(kind, made, output, n_heads):
    weight = output.weight.T if isinstance(output, t.pytorch_utils.Conv1D) else output.weight
    values = values_of(kind, made, n_heads, weight.shape[1])
    parts = weight.view(len(weight), n_heads, -1)
    return torch.stack([(values[h] @ parts[:, h].T).norm(dim=1) for h in range(n_heads)])


def rolled(weights, fuse):
    rows = torch.eye(weights[0].shape[-1], dtype=torch.float64)
    for layer in weights:
        of = {"mean": lambda p: p.mean(0), "max": lambda p: p.amax(0), "min": lambda p: p.amin(0)}[fuse](layer[0])
        sums = of + torch.eye(len(of), dtype=torch.float64)
        rows = (sums / sums.sum(1, keepdim=True)) @ rows
    return rows


def made_of(model):
    kind, made, hooks = model.config.model_type, {}, []
    own = NAMES.get(kind, ("self_attn.v_proj", "self_attn.o_proj"))
    parts = [(name, layers, own) for name, layers in stacks_of(model).items()]
    if kind in CROSS:
        parts.append(("cross", stacks_of(model)["decoder"], CROSS[kind]))
    for name, layers, names in parts:
        for n, layer in enumerate(layers):
            hooks.append(layer.get_submodule(names[0]).register_forward_hook(
                lambda _, __, out, key=(name, n): made.__setitem__(key, out)))
    words = model.config.vocab_size
    ids = [torch.tensor([[3 + (i * i * 7 + i * 5) % (words - 3) for i in range(n)]]) for n in (N, M)]
    pair = model.config.is_encoder_decoder
    more = dict(decoder_input_ids=ids[1]) if pair else {}
    out = model(input_ids=ids[0], output_attentions=True, **more)
    weights = {"self": out.encoder_attentions, "decoder": out.decoder_attentions, "cross": out.cross_attentions} if pair else {
        "self": out.attentions}
    floats = {f"rollout.{name}.{fuse}": rolled(weights[name], fuse) for name in weights if name != "cross" for fuse in ("mean", "max", "min")}
    for name, layers, names in parts:
        for n, layer in enumerate(layers):
            floats[f"norms.{name}.{n}"] = norms_of(kind, made[name, n], layer.get_submodule(names[1]), weights[name][n].shape[1])
    assert all(value.dtype == torch.float64 for value in floats.values())
    return {"ids": ids[0][0].int(), **({"decoder_ids": ids[1][0].int()} if pair else {})}, floats


def main(root):
    t.logging.set_verbosity_error()
    t.logging.disable_progress_bar()
    torch.set_num_threads(1)
    versions = f"torch {torch.__version__}, transformers {t.__version__}"
    (pathlib.Path(root) / "flow").mkdir(exist_ok=True)
    for name, folder in MODELS.items():
        model = load(pathlib.Path(root) / folder)
        with double(), torch.no_grad():
            ints, floats = made_of(model)
        made = ints | {key: value.to(torch.float64).numpy().astype("float32") for key, value in floats.items()}
        made = {key: torch.as_tensor(value).contiguous() for key, value in made.items()}
        save_file(made, pathlib.Path(root) / "flow" / f"{name}.safetensors", metadata={"made_with": versions})


if __name__ == "__main__":
    main(*sys.argv[1:])
