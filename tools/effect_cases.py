#!/usr/bin/env python3
"""Makes the goldens of ablated heads and of the lens: models of this repository, run by transformers in float64 with hooks.

    python3 tools/effect_cases.py tests/golden/effects.safetensors     needs torch, transformers, safetensors

For each case NAME (CASES below) of a model folder: NAME.ids, NAME.source_ids (of the text that activations are taken from) and, of pairs,
NAME.target_ids and NAME.source_target_ids; NAME.positions and NAME.words, which are looked at; and of the heads of an attention

    NAME.ends, NAME.heads     sets of heads: each head alone, then a few groups
    NAME.KIND.log_p           [sets + 1][places] ln p of the words, first of the model as it is; KIND: zero, mean (over the tokens of the
                              source text), patch
    NAME.zero.logits          [sets + 1][places][words]
    NAME.lens.log_p, .best    [layers + 1][places] ln p of the words and the likeliest words, by the lens

What a head gives is what the output projection reads: a hook replaces its channels there. The tests need no Python.
"""
import pathlib
import sys

import torch
import transformers as t
from safetensors.torch import save_file

from llama_cases import F32, double

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = {
    "bert": (t.BertForPreTraining, "models/default", "self"),
    "gpt2": (t.GPT2LMHeadModel, "tests/golden/decoder/gpt2_2/mild", "self"),
    "bart_encoder": (t.BartForConditionalGeneration, "tests/golden/decoder/bart_1/mild", "self"),
    "bart_decoder": (t.BartForConditionalGeneration, "tests/golden/decoder/bart_2/mild", "decoder"),
    "marian_cross": (t.MarianMTModel, "tests/golden/decoder/marian_3/mild", "cross"),
    "llama": (t.LlamaForCausalLM, "tests/golden/llama/llama_2", "self"),
    "gemma2": (t.Gemma2ForCausalLM, "tests/golden/llama/gemma2_1", "self"),
    "gpt_neox": (t.GPTNeoXForCausalLM, "tests/golden/llama/gpt_neox_1", "self"),
    "opt": (t.OPTForCausalLM, "tests/golden/llama/opt_3", "self"),
}
LENGTH, TARGET_LENGTH, MASK = 11, 6, 4


def projections(model, which):
    """The output projections of an attention, layer by layer."""
    if isinstance(model, t.BertForPreTraining):
        return [layer.attention.output.dense for layer in model.bert.encoder.layer]
    if isinstance(model, t.GPT2LMHeadModel):
        return [layer.attn.c_proj for layer in model.transformer.h]
    if isinstance(model, t.GPTNeoXForCausalLM):
        return [layer.attention.dense for layer in model.gpt_neox.layers]
    if isinstance(model, t.OPTForCausalLM):
        return [layer.self_attn.out_proj for layer in model.model.decoder.layers]
    if not model.config.is_encoder_decoder:
        return [layer.self_attn.o_proj for layer in model.model.layers]
    if which == "self":
        return [layer.self_attn.out_proj for layer in model.get_encoder().layers]
    return [(layer.encoder_attn if which == "cross" else layer.self_attn).out_proj for layer in model.get_decoder().layers]


def n_heads_of(model, which):
    config = model.config
    if not config.is_encoder_decoder:
        return config.num_attention_heads
    return config.encoder_attention_heads if which == "self" else config.decoder_attention_heads


def run(model, ids, target, changes=None):
    """changes: {projection: function of what it reads}. Also returns what every projection read."""
    handles = [module.register_forward_pre_hook(lambda _, x, change=change: (change(x[0]), *x[1:]))
               for module, change in (changes or {}).items()]
    told = {"input_ids": ids[None], "output_hidden_states": True}
    if target is not None:
        told |= {"decoder_input_ids": target[None], "attention_mask": torch.ones(1, len(ids)), "use_cache": False}
    with torch.no_grad():
        out = model(**told)
    for handle in handles:
        handle.remove()
    return out


def logits_of(out):
    return (out.prediction_logits if "prediction_logits" in out else out.logits)[0]


def outputs_of(model, modules, ids, target):
    """What every projection reads, [tokens][hidden]."""
    read = [None] * len(modules)

    def keep(layer):
        def change(x):
            read[layer] = x[0].clone()
            return x
        return change

    run(model, ids, target, {module: keep(layer) for layer, module in enumerate(modules)})
    return read


def ablation(kind, heads, width, layer, outputs):
    def change(x):
        x = x.clone()
        for head in heads:
            of = slice(head * width, (head + 1) * width)
            x[0, :, of] = 0 if kind == "zero" else outputs[layer][:, of] if kind == "patch" else outputs[layer][:, of].mean(0)
        return x
    return change


def last_of(model):
    """What GPT-NeoX and OPT make of the last block's output."""
    if isinstance(model, t.GPTNeoXForCausalLM):
        return model.gpt_neox.final_layer_norm
    decoder = model.model.decoder
    return lambda h: decoder.project_out(decoder.final_layer_norm(h))


def lens(model, out, positions, words):
    """Of each layer: ln p of the words, and the likeliest ones."""
    if isinstance(model, t.BertForPreTraining):
        states, read = out.hidden_states, model.cls.predictions
    elif isinstance(model, t.GPT2LMHeadModel):
        states, last = out.hidden_states, len(out.hidden_states) - 1
        states = [model.transformer.ln_f(h) if l < last else h for l, h in enumerate(states)]
        read = model.lm_head
    elif isinstance(model, (t.GPTNeoXForCausalLM, t.OPTForCausalLM)):
        states, last = out.hidden_states, len(out.hidden_states) - 1
        end = last_of(model)
        states = [end(h) if l < last else h for l, h in enumerate(states)]
        read = model.lm_head
    elif not model.config.is_encoder_decoder:
        states, last = out.hidden_states, len(out.hidden_states) - 1
        states = [model.model.norm(h) if l < last else h for l, h in enumerate(states)]
        cap = getattr(model.config, "final_logit_softcapping", None)
        read = lambda h: cap * torch.tanh(model.lm_head(h) / cap) if cap else model.lm_head(h)
    else:
        states, read = out.decoder_hidden_states, lambda h: model.lm_head(h) + model.final_logits_bias
    with torch.no_grad():
        logits = torch.stack([read(h)[0][positions] for h in states])
    log_p = logits.log_softmax(-1)
    return log_p.gather(-1, words.expand(len(states), -1)[..., None])[..., 0], logits.argmax(-1)


def make_ids(model, generator):
    vocab = model.config.vocab_size
    ids = torch.randint(5, vocab - 1, (2, LENGTH), generator=generator)
    if isinstance(model, t.BertForPreTraining):
        ids[:, 0], ids[:, -1], ids[:, 4] = 2, 3, MASK
        ids[0, 7] = MASK
    if not model.config.is_encoder_decoder:
        return ids, [None, None], torch.tensor([4, 7]) if model.config.model_type == "bert" else torch.arange(LENGTH - 1)
    target = torch.randint(1, getattr(model.config, "decoder_vocab_size", vocab) - 1, (2, TARGET_LENGTH), generator=generator)
    target[:, 0] = model.config.decoder_start_token_id
    return ids, target, torch.arange(TARGET_LENGTH)


def make_case(name, model, which, generator):
    (ids, source), (target, source_target), positions = make_ids(model, generator)
    modules, n_heads = projections(model, which), n_heads_of(model, which)
    n = len(modules) * n_heads
    sets = [[head] for head in range(n)] + [[], [0, n - 1], list(range(n)), [n - 1, n_heads // 2, n_heads // 2]]
    base = run(model, ids, target)
    words = logits_of(base)[positions].argmax(-1) if model.config.model_type == "bert" else torch.randint(
        1, logits_of(base).shape[-1], (len(positions),), generator=generator)
    outputs = outputs_of(model, modules, source, source_target)
    width = outputs[0].shape[-1] // n_heads
    tensors = {"ids": ids, "source_ids": source, "positions": positions, "words": words, "heads": torch.tensor(sum(sets, [])),
               "ends": torch.tensor([len(s) for s in sets]).cumsum(0)}
    if target is not None:
        tensors |= {"target_ids": target, "source_target_ids": source_target}
    for kind in ("zero", "mean", "patch"):
        logits = [logits_of(base)[positions]]
        for heads in sets:
            layers = {head // n_heads for head in heads}
            changes = {modules[layer]: ablation(kind, [h % n_heads for h in heads if h // n_heads == layer], width, layer, outputs)
                       for layer in layers}
            logits.append(logits_of(run(model, ids, target, changes))[positions])
        logits = torch.stack(logits)
        tensors[f"{kind}.log_p"] = logits.log_softmax(-1).gather(-1, words.expand(len(logits), -1)[..., None])[..., 0]
        if kind == "zero":
            tensors["zero.logits"] = logits[:1 + len(sets)]
    tensors["lens.log_p"], tensors["lens.best"] = lens(model, base, positions, words)
    return {f"{name}.{key}": x for key, x in tensors.items()}


def main():
    tensors = {}
    for seed, name in enumerate(CASES):
        kind, folder, which = CASES[name]
        model = kind.from_pretrained(ROOT / folder, attn_implementation="eager").double().eval()
        with double():
            tensors |= make_case(name, model, which, torch.Generator().manual_seed(77 + seed))
    tensors = {name: (x.to(F32) if x.is_floating_point() else x.to(torch.int32)).contiguous().clone() for name, x in tensors.items()}
    save_file(tensors, pathlib.Path(sys.argv[1]), metadata={"torch": torch.__version__, "transformers": t.__version__})


if __name__ == "__main__":
    main()
