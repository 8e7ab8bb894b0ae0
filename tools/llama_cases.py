#!/usr/bin/env python3
"""Makes the goldens of Llama and its kin, of GPT-NeoX, GPT-J, BLOOM, OPT and of ModernBERT: tiny random models, run by transformers in float64.

    python3 tools/llama_cases.py tests/golden/llama [NAME...]   needs torch, transformers, safetensors

Each folder is a model (config.json, model.safetensors, and a vocab.txt, which is enough to open it) and

expected.safetensors   a batch of sequences one after another and what float64 arithmetic makes of the f32 weights: lengths, ids, hidden.L
    (L counts from 0, the embeddings; the last one is normed; what OPT projects of it is `projected`), weights.L ([heads][rows][keys] of one sequence after another), logits of
    every token, target_tokens, target_ids, loss.plain, label_smoothing, loss.lm and of loss.lm every gradient: grad.NAME. ModernBERT has
    mlm (logits of the targets) and loss.mlm instead.
generate.json          as decoder_cases.py makes it

RMSNorm, rotary positions and softmax of transformers are in f32 even in a float64 model. Here float32 *is* float64 while a model is made
and runs, so that all of them are double. Every switch of a family is on at least once; configs named in OLD are rewritten as transformers
4 wrote them. The tests need no Python; versions are in the files' metadata.
"""
import contextlib
import copy
import json
import pathlib
import sys

import torch
import transformers as t
from safetensors.torch import save_file

from decoder_cases import GREEDY, generated, make_prompts, write_json
from fixtures import randomize, vocabulary

F32 = torch.float32
SIZES = dict(vocab_size=53, hidden_size=24, intermediate_size=29, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=0)
LLAMA3 = dict(rope_type="llama3", rope_theta=500.0, factor=8.0, original_max_position_embeddings=32, low_freq_factor=1.0,
              high_freq_factor=4.0)
YARN = dict(rope_type="yarn", rope_theta=100.0, factor=4.0, original_max_position_embeddings=16, beta_fast=4.0, beta_slow=1.0,
            mscale=0.7, mscale_all_dim=1.3)


def of(kind, config, **fields):
    return getattr(t, kind), getattr(t, config)(**(SIZES | fields))


def neox(**fields):
    sizes = {k: v for k, v in SIZES.items() if k != "num_key_value_heads"}
    return t.GPTNeoXForCausalLM, t.GPTNeoXConfig(**(sizes | fields))


def opt(**fields):
    sizes = {k: v for k, v in SIZES.items() if k not in ("num_key_value_heads", "intermediate_size")}
    return t.OPTForCausalLM, t.OPTConfig(**(sizes | dict(ffn_dim=29, dropout=0.0) | fields))


def gptj(**fields):
    sizes = dict(vocab_size=53, n_embd=24, n_inner=29, n_layer=3, n_head=4, n_positions=64, bos_token_id=1, eos_token_id=2, pad_token_id=0)
    return t.GPTJForCausalLM, t.GPTJConfig(**(sizes | fields))


def bloom(**fields):
    sizes = dict(vocab_size=53, hidden_size=24, n_layer=3, n_head=4, bos_token_id=1, eos_token_id=2, pad_token_id=0)
    return t.BloomForCausalLM, t.BloomConfig(**(sizes | fields))


MODELS = {
    "llama_1": of("LlamaForCausalLM", "LlamaConfig", attention_bias=True, mlp_bias=True, rope_parameters=LLAMA3),
    "llama_2": of("LlamaForCausalLM", "LlamaConfig", num_attention_heads=6, num_key_value_heads=2, head_dim=10, rms_norm_eps=1e-3,
                  hidden_act="gelu", tie_word_embeddings=True,
                  rope_parameters=dict(rope_type="linear", rope_theta=300.0, factor=2.5)),
    "llama_3": of("LlamaForCausalLM", "LlamaConfig", num_key_value_heads=4, rope_parameters=YARN),
    "llama_4": of("LlamaForCausalLM", "LlamaConfig", num_key_value_heads=1, pad_token_id=None,
                  rope_parameters={**{k: v for k, v in YARN.items() if "mscale" not in k}, "truncate": False}),
    # Texts of more than 8 tokens turn by other frequencies; kept keys stay as they were turned.
    "llama_5": of("LlamaForCausalLM", "LlamaConfig", max_position_embeddings=8,
                  rope_parameters=dict(rope_type="dynamic", rope_theta=50.0, factor=4.0)),
    "mistral_1": of("MistralForCausalLM", "MistralConfig", sliding_window=4, head_dim=8),
    "qwen2_1": of("Qwen2ForCausalLM", "Qwen2Config", sliding_window=4, use_sliding_window=True, max_window_layers=1,
                  rope_parameters=dict(rope_type="dynamic", rope_theta=1e4, factor=2.0)),
    "qwen3_1": of("Qwen3ForCausalLM", "Qwen3Config", head_dim=10, attention_bias=True, sliding_window=5, use_sliding_window=True,
                  layer_types=["sliding_attention", "full_attention", "sliding_attention"]),
    "gemma_1": of("GemmaForCausalLM", "GemmaConfig", head_dim=10, num_key_value_heads=1),
    "gemma2_1": of("Gemma2ForCausalLM", "Gemma2Config", head_dim=10, query_pre_attn_scalar=24, sliding_window=4,
                   attn_logit_softcapping=2.0, final_logit_softcapping=5.0, attention_bias=True),
    "gemma3_text_1": of("Gemma3ForCausalLM", "Gemma3TextConfig", head_dim=8, query_pre_attn_scalar=24, sliding_window=4,
                        attn_logit_softcapping=2.0, final_logit_softcapping=5.0, sliding_window_pattern=3,
                        rope_parameters={"full_attention": dict(rope_type="linear", factor=4.0, rope_theta=5000.0),
                                         "sliding_attention": dict(rope_type="default", rope_theta=100.0)}),
    "smollm3_1": of("SmolLM3ForCausalLM", "SmolLM3Config", no_rope_layer_interval=2, attention_bias=True, mlp_bias=True,
                    use_sliding_window=True, sliding_window=4),
    "olmo2_1": of("Olmo2ForCausalLM", "Olmo2Config", attention_bias=True),
    "phi3_1": of("Phi3ForCausalLM", "Phi3Config", sliding_window=6),
    # Side by side, 2 of 6 channels turn; one after the other, all of them; 4 of 8, without biases of attention.
    "gpt_neox_1": neox(rope_parameters=dict(rope_type="default", rope_theta=500.0, partial_rotary_factor=0.4)),
    "gpt_neox_2": neox(use_parallel_residual=False, tie_word_embeddings=True, layer_norm_eps=1e-3,
                       rope_parameters=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=1.0)),
    "gpt_neox_3": neox(hidden_size=32, attention_bias=False, hidden_act="gelu_new",
                       rope_parameters=dict(YARN, partial_rotary_factor=0.5)),
    # Neighbours among 4 of 6 channels; all 8, tied; 2 of 7, as wide as the file does not say.
    "gptj_1": gptj(rotary_dim=4),
    "gptj_2": gptj(n_embd=32, rotary_dim=8, tie_word_embeddings=True, layer_norm_epsilon=1e-3, activation_function="gelu"),
    "gptj_3": gptj(n_embd=21, n_head=3, rotary_dim=2, n_inner=None),
    # 4 heads; 6, which is no power of two, added to norms; 3, a head of their own.
    "bloom_1": bloom(),
    "bloom_2": bloom(n_head=6, apply_residual_connection_post_layernorm=True, layer_norm_epsilon=1e-3),
    "bloom_3": bloom(n_head=3, tie_word_embeddings=False),
    # Norms before parts; after them, with narrower words; narrower words before a last norm, a head of their own; no last norm, no biases.
    "opt_1": opt(),
    "opt_2": opt(do_layer_norm_before=False, word_embed_proj_dim=10),
    "opt_3": opt(word_embed_proj_dim=30, tie_word_embeddings=False, activation_function="gelu"),
    "opt_4": opt(enable_bias=False, _remove_final_layer_norm=True, num_attention_heads=3),
    "modernbert_1": of("ModernBertForMaskedLM", "ModernBertConfig", cls_token_id=1, sep_token_id=2, num_hidden_layers=4, local_attention=6, attention_bias=True,
                       mlp_bias=True, global_attn_every_n_layers=3),
    "modernbert_2": of("ModernBertForMaskedLM", "ModernBertConfig", cls_token_id=1, sep_token_id=2, num_hidden_layers=2, local_attention=4,
                       layer_types=["sliding_attention", "full_attention"]),
}
OLD = {"gpt_neox_1", "llama_2", "llama_3", "qwen2_1", "gemma3_text_1", "modernbert_1"}
SMOOTHING = {"qwen3_1": 0.1}
LENGTHS = [7, 12, 1, 7, 3, 17, 2]
RUNS = [dict(GREEDY, use_cache=False, **options) for options in ({}, dict(num_beams=3))]


@contextlib.contextmanager
def double():
    """Where transformers asks for float32, it gets float64."""
    kept = torch.float32, torch.float, torch.Tensor.float
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double
    try:
        yield
    finally:
        torch.float32, torch.float, torch.Tensor.float = kept


def make_model(kind, config, generator):
    config = copy.deepcopy(config)
    config._attn_implementation = "eager"
    torch.set_default_dtype(torch.float64)
    model = kind(config).double().eval()
    torch.set_default_dtype(F32)
    randomize(model, generator, norms=("norm.weight", "layernorm.weight", "layer_norm.weight", "ln_1.weight", "ln_f.weight"),
              tables=("embed", "wte"), gain=1.0)
    if "gemma" in config.model_type:
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if name.endswith("norm.weight"):
                    parameter.sub_(1)  # times 1 + w
                if name.endswith("embed_tokens.weight"):
                    parameter.copy_((parameter / 4).to(F32).double())  # times √width
    return model


def as_old(saved):
    """rope_parameters as transformers 4 spelled them. Of layers of two kinds transformers 5 does not read type."""
    rope = saved.pop("rope_parameters")
    if saved["model_type"] == "gpt_neox":
        saved["rotary_pct"], saved["rotary_emb_base"] = rope.pop("partial_rotary_factor"), rope["rope_theta"]
    if "full_attention" in rope:
        full, sliding = rope["full_attention"], rope["sliding_attention"]
        names = ("rope_theta", "rope_local_base_freq") if saved["model_type"] == "gemma3_text" else (
            "global_rope_theta", "local_rope_theta")
        saved[names[0]], saved[names[1]] = full.pop("rope_theta"), sliding.pop("rope_theta")
        rope, name = full, "rope_type"
    else:
        name = "type"
        saved["rope_theta"] = rope.pop("rope_theta")
    kind = rope.pop("rope_type")
    saved["rope_scaling"] = None if kind == "default" else {name: kind, **rope}
    if saved["model_type"] in ("gemma3_text", "modernbert"):
        del saved["layer_types"]
    saved["torch_dtype"] = saved.pop("dtype", "float32")


def save_model(folder, name, model, config):
    state = {k: v.to(F32).contiguous() for k, v in model.state_dict().items()}
    tied = config.tie_word_embeddings
    if "gpt_neox" in name:
        state = {k.replace("lm_head.", "embed_out."): v for k, v in state.items()}  # as save_pretrained does
    words = "decoder.weight" if "modernbert" in name else "embed_out.weight" if "gpt_neox" in name else "lm_head.weight"
    if tied:
        state.pop(words, None)
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    saved = json.loads(config.to_json_string(use_diff=False))
    saved = {k: v for k, v in saved.items() if k in config.to_diff_dict() or k in SIZES}
    saved["dtype"] = "float32"
    if "modernbert" in name:
        del saved["num_key_value_heads"]  # which it takes, and has none of
    if name in OLD:
        as_old(saved)
    (folder / "config.json").write_text(json.dumps(saved, indent=2, sort_keys=True) + "\n")
    (folder / "vocab.txt").write_text("\n".join(vocabulary(config.vocab_size)) + "\n")


def make_batch(config, generator):
    """Ids, places whose words are told, and these words."""
    batch = []
    for b, n in enumerate(LENGTHS):
        least = 0 if config.model_type in ("gpt_neox", "gptj", "bloom", "opt") else 1  # whether padding's row learns
        ids = torch.randint(least, config.vocab_size - 1, (n,), generator=generator)
        if config.model_type == "modernbert":
            at = torch.arange(min(b % 3, n - 1), n, 4)
            batch.append((ids, at, torch.randint(0, config.vocab_size, at.shape, generator=generator)))
        else:
            batch.append((ids, torch.arange(n - 1), ids[1:]))
    return batch


def last_hidden(model, outs, batch):
    """Of models whose last hidden states are projected: what is projected."""
    decoder = getattr(model.model, "decoder", None)
    if decoder is None or decoder.project_out is None:
        return
    for out, (ids, _, _) in zip(outs, batch):
        seen = []
        with decoder.project_out.register_forward_pre_hook(lambda _, read: seen.append(read[0])):
            model(input_ids=ids[None], use_cache=False)
        out.projected = out.hidden_states[-1]
        out.hidden_states = (*out.hidden_states[:-1], *seen)


def expected(name, model, batch):
    outs = [model(input_ids=ids[None], output_hidden_states=True, output_attentions=True) if "modernbert" in name else
            model(input_ids=ids[None], output_hidden_states=True, output_attentions=True, use_cache=False) for ids, _, _ in batch]
    if "opt" in name:
        last_hidden(model, outs, batch)
    starts = torch.tensor([0] + [len(ids) for ids, _, _ in batch]).cumsum(0)
    ints = {"lengths": starts.diff(), "ids": torch.cat([b[0] for b in batch]),
            "target_tokens": torch.cat([starts[i] + b[1] for i, b in enumerate(batch)]), "target_ids": torch.cat([b[2] for b in batch])}
    floats = {}
    for layer in range(len(outs[0].hidden_states)):
        floats[f"hidden.{layer}"] = torch.cat([o.hidden_states[layer][0] for o in outs])
    if hasattr(outs[0], "projected"):
        floats["projected"] = torch.cat([o.projected[0] for o in outs])
    for layer in range(len(outs[0].attentions)):
        floats[f"weights.{layer}"] = torch.cat([o.attentions[layer].flatten() for o in outs])
    logits = torch.cat([o.logits[0] for o in outs])
    assert logits.dtype == torch.float64 and floats["weights.0"].dtype == torch.float64
    wanted = logits[ints["target_tokens"]]
    smoothing = SMOOTHING.get(name, 0.0)
    loss = torch.nn.functional.cross_entropy(wanted, ints["target_ids"], label_smoothing=smoothing)
    if "modernbert" in name:
        floats["loss.mlm"] = loss
        floats["mlm"] = wanted
        ints["types"] = torch.zeros_like(ints["ids"])
    else:
        floats["logits"] = logits
        floats["loss.plain"] = torch.nn.functional.cross_entropy(wanted, ints["target_ids"])
        floats["loss.lm"] = loss
        floats["label_smoothing"] = torch.tensor(smoothing)
    loss.backward()
    for parameter_name, parameter in model.named_parameters():
        stored = parameter_name.replace("lm_head.", "embed_out.") if "gpt_neox" in name else parameter_name
        floats[f"grad.{stored}"] = parameter.grad
    tensors = {n: tensor.to(torch.int32) for n, tensor in ints.items()}
    return tensors | {n: tensor.detach().to(F32).clone() for n, tensor in floats.items()}


def main(root, *names):
    t.logging.set_verbosity_error()
    t.logging.disable_progress_bar()
    versions = f"torch {torch.__version__}, transformers {t.__version__}"
    torch.set_num_threads(1)
    for name in names or MODELS:
        kind, config = MODELS[name]
        generator = torch.Generator().manual_seed(sum(map(ord, name)))
        folder = pathlib.Path(root) / name
        folder.mkdir(parents=True, exist_ok=True)
        with double():
            model = make_model(kind, config, generator)
            made = expected(name, model, make_batch(config, generator))
        save_model(folder, name, model, config)
        save_file(made, folder / "expected.safetensors", metadata={"made_with": versions})
        if "modernbert" in name:
            continue
        model.generation_config = t.GenerationConfig(bos_token_id=1, eos_token_id=2, pad_token_id=0)
        runs = [dict(options, use_cache=True) for options in RUNS] if name == "llama_5" else RUNS
        with double(), torch.no_grad():
            short = generated(model, make_prompts(model, 6, generator), runs, 16, 2)
        write_json(folder / "generate.json", {"made_with": versions, **short})


if __name__ == "__main__":
    main(*sys.argv[1:])
