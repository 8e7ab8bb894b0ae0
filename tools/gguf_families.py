"""What gguf2safetensors.py knows of model families: which field of config.json a key of a GGUF file is, and which tensor.

An architecture is a row of FAMILIES. Every key `ARCHITECTURE.…` and every tensor of a file must be known to config() or to tensors().
What is not is refused: it could change what the model computes. Facts are from llama.cpp's conversion/ (how it writes its files) and src/
(what it computes without a key).
"""
import math

import numpy as np


class Refused(Exception):
    """The file has something that the folder could not say."""


# permuted: rows of q and k are in the order of rotated neighbours. norm: what llama.cpp added to the weights of norms. swa: one layer of so
# many has no window; 0: the family has no layer_types.
LLAMA_BLOCK = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj"}
HEAD_NORMS = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
GEMMA_NORMS = {"post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm",
               "post_ffw_norm": "post_feedforward_layernorm"}
OLMO2_BLOCK = {**{k: v for k, v in LLAMA_BLOCK.items() if not k.endswith("_norm")}, **HEAD_NORMS,
               "post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm"}
PHI3_BLOCK = {"attn_norm": "input_layernorm", "attn_qkv": "self_attn.qkv_proj", "attn_output": "self_attn.o_proj",
              "ffn_norm": "post_attention_layernorm", "ffn_up": "mlp.gate_up_proj", "ffn_down": "mlp.down_proj"}
MODERNBERT_BLOCK = {"attn_norm": "attn_norm", "attn_qkv": "attn.Wqkv", "attn_output": "attn.Wo", "ffn_norm": "mlp_norm", "ffn_up": "mlp.Wi",
                    "ffn_down": "mlp.Wo"}
DECODER_ENDS = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
MODERNBERT_ENDS = {"token_embd": "model.embeddings.tok_embeddings", "token_embd_norm": "model.embeddings.norm",
                   "output_norm": "model.final_norm"}


def family(model_type, class_name, block=LLAMA_BLOCK, ends=DECODER_ENDS, **switches):
    return {"model_type": model_type, "class": class_name, "block": block, "ends": ends, "layers": "model.layers", "permuted": False, "norm": 0.0,
            "swa": 0} | switches


FAMILIES = {
    "llama": family("llama", "LlamaForCausalLM", permuted=True),
    "smollm3": family("smollm3", "SmolLM3ForCausalLM", permuted=True),
    "qwen2": family("qwen2", "Qwen2ForCausalLM"),
    "qwen3": family("qwen3", "Qwen3ForCausalLM", LLAMA_BLOCK | HEAD_NORMS),
    "olmo2": family("olmo2", "Olmo2ForCausalLM", OLMO2_BLOCK),
    "phi3": family("phi3", "Phi3ForCausalLM", PHI3_BLOCK),
    "gemma": family("gemma", "GemmaForCausalLM", norm=1.0),
    "gemma2": family("gemma2", "Gemma2ForCausalLM", LLAMA_BLOCK | GEMMA_NORMS, norm=1.0, swa=2),
    "gemma3": family("gemma3_text", "Gemma3ForCausalLM", LLAMA_BLOCK | GEMMA_NORMS | HEAD_NORMS, norm=1.0, swa=6),
    "modern-bert": family("modernbert", "ModernBertModel", MODERNBERT_BLOCK, MODERNBERT_ENDS, swa=3),
}


class Keys:
    """The keys of one architecture; left() names those that were not asked for."""

    def __init__(self, fields, arch):
        self.prefix = arch + "."
        self.fields = {k[len(self.prefix):]: v for k, v in fields.items() if k.startswith(self.prefix)}
        self.asked = {"vocab_size"}  # rows of token_embd.weight say it

    def get(self, name, default=None):
        self.asked.add(name)
        return self.fields.get(name, default)

    def need(self, name):
        value = self.get(name)
        if value is None:
            raise Refused(f"{self.prefix}{name} is missing")
        return value

    def one_of(self, name, accepted, default):
        value = self.get(name, default)
        if value not in accepted:
            raise Refused(f"{self.prefix}{name} is {value!r}, which is not one of {', '.join(map(repr, accepted))}")
        return value

    def left(self):
        return [f"{self.prefix}{k}" for k in sorted(self.fields.keys() - self.asked)]


def close(value):
    """A float32 of the file as the shortest decimal number that is the same float32: 1e-05, not 9.999999747378752e-06."""
    return float(str(np.float32(value)))


def heads(keys, width):
    n_heads, n_kv = keys.need("attention.head_count"), keys.get("attention.head_count_kv")
    counts = {"attention.head_count": n_heads, "attention.head_count_kv": n_heads if n_kv is None else n_kv}
    for name, value in counts.items():
        if isinstance(value, list):
            if len(set(value)) != 1:
                raise Refused(f"{keys.prefix}{name} differs from layer to layer")
            counts[name] = value[0]
    n_heads, n_kv = counts.values()
    rope_dim = keys.get("rope.dimension_count")
    head_dim = keys.get("attention.key_length") or rope_dim or width // n_heads
    for name, value in (("attention.value_length", keys.get("attention.value_length")), ("rope.dimension_count", rope_dim)):
        if value is not None and value != head_dim:
            raise Refused(f"{keys.prefix}{name} is {value}, but heads have {head_dim} channels")
    return n_heads, n_kv, head_dim


def llama3_scaling(factors, theta, head_dim):
    """rope_freqs.weight divides each frequency. Llama 3 files hold what factor, 1, 4 and 8192 give; others cannot be told from numbers."""
    wavelength = 2 * math.pi * theta ** (np.arange(0, head_dim, 2) / head_dim)
    factor = close(factors.max())
    smooth = np.clip((8192 / wavelength - 1) / 3, 0, 1)
    if factors.shape != wavelength.shape or not np.allclose(factors, 1 / ((1 - smooth) / factor + smooth), rtol=1e-4):
        raise Refused("rope_freqs.weight is not what rope_type llama3 gives with low_freq_factor 1, high_freq_factor 4 and 8192 positions")
    return {"rope_type": "llama3", "factor": factor, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192}


def rope_scaling(keys, theta, head_dim, freqs):
    kind = keys.one_of("rope.scaling.type", ("none", "linear", "yarn"), "none")
    factor, original = keys.get("rope.scaling.factor"), keys.get("rope.scaling.original_context_length")
    keys.get("rope.scaling.finetuned")  # says how a model was made
    names = {"attention_factor": "rope.scaling.yarn_attn_factor", "beta_fast": "rope.scaling.yarn_beta_fast",
             "beta_slow": "rope.scaling.yarn_beta_slow"}
    yarn = {field: close(keys.get(key)) for field, key in names.items() if keys.get(key) is not None}
    keys.one_of("rope.scaling.yarn_ext_factor", (1.0,), 1.0)
    if freqs is not None:
        if kind != "none":
            raise Refused(f"rope_freqs.weight beside {keys.prefix}rope.scaling.type {kind!r}")
        return llama3_scaling(freqs, theta, head_dim)
    if kind == "none":
        return None
    if factor is None:
        raise Refused(f"{keys.prefix}rope.scaling.factor is missing")
    scaling = {"rope_type": kind, "factor": close(factor)}
    return scaling if kind == "linear" else scaling | yarn | ({"original_max_position_embeddings": original} if original else {})


def gemma_fields(keys, arch, out):
    out["hidden_activation" if arch != "gemma" else "hidden_act"] = "gelu_pytorch_tanh"
    if arch == "gemma":
        return
    # llama.cpp has no key for the divisor of scores: the largest model of each takes width / heads, the others head_dim.
    largest = {"gemma2": 46, "gemma3": 62}[arch]
    out["query_pre_attn_scalar"] = out["hidden_size"] // out["num_attention_heads"] if out["num_hidden_layers"] == largest else out["head_dim"]
    out["sliding_window"] = keys.need("attention.sliding_window")
    final = keys.get("final_logit_softcapping", 30.0 if arch == "gemma2" else None)
    out["final_logit_softcapping"] = final and close(final)
    if arch == "gemma2":
        out["attn_logit_softcapping"] = close(keys.get("attn_logit_softcapping", 50.0))
    else:
        out["rope_local_base_freq"] = close(keys.get("rope.freq_base_swa", 10000.0))


def modernbert_fields(keys, out):
    keys.one_of("attention.causal", (False,), False)
    keys.get("pooling_type")  # llama.cpp's choice of a vector; folders of sentence-transformers have a file for it
    window = keys.need("attention.sliding_window")
    local = close(keys.get("rope.freq_base_swa", 10000.0))
    out |= {"local_attention": window, "global_rope_theta": out.pop("rope_theta"), "local_rope_theta": local, "norm_bias": False,
            "hidden_activation": keys.get("hidden_act", "gelu"), "norm_eps": close(keys.need("attention.layer_norm_epsilon"))}
    if (out.pop("num_key_value_heads"), out.pop("head_dim"), out.pop("rope_scaling")) != (
            out["num_attention_heads"], out["hidden_size"] // out["num_attention_heads"], None):
        raise Refused("a modernbert has as many keys as queries, of width / heads channels, and no scaled positions")
    return out


def layer_types(keys, every, n_layers):
    """Of layers with windows: llama.cpp counts the layer without one last in a group, ModernBERT first."""
    pattern = keys.get("attention.sliding_window_pattern", every)
    if isinstance(pattern, list):
        slides = [bool(p) for p in pattern]
    else:
        full = 0 if keys.prefix == "modern-bert." else pattern - 1
        slides = [pattern > 0 and i % pattern != full for i in range(n_layers)]
    if len(slides) != n_layers:
        raise Refused(f"{keys.prefix}attention.sliding_window_pattern has {len(slides)} layers, not {n_layers}")
    return ["sliding_attention" if s else "full_attention" for s in slides]


def config(arch, keys, shapes, freqs):
    """config.json as transformers 4 wrote it, which 5 reads, too."""
    row = FAMILIES[arch]
    width, n_layers = keys.need("embedding_length"), keys.need("block_count")
    n_heads, n_kv, head_dim = heads(keys, width)
    theta = close(keys.get("rope.freq_base", 10000.0))
    out = {"architectures": [row["class"]], "model_type": row["model_type"], "vocab_size": shapes["token_embd.weight"][0],
           "hidden_size": width, "intermediate_size": keys.need("feed_forward_length"), "num_hidden_layers": n_layers,
           "num_attention_heads": n_heads, "num_key_value_heads": n_kv, "head_dim": head_dim,
           "max_position_embeddings": keys.need("context_length"), "rope_theta": theta,
           "rope_scaling": rope_scaling(keys, theta, head_dim, freqs), "tie_word_embeddings": "output.weight" not in shapes,
           "attention_bias": any(f"blk.0.attn_{name}.bias" in shapes for name in ("q", "qkv"))}
    keys.one_of("expert_count", (0,), 0)
    if arch == "modern-bert":
        out = modernbert_fields(keys, out)
    else:
        out["rms_norm_eps"] = close(keys.need("attention.layer_norm_rms_epsilon"))
        out["mlp_bias"] = "blk.0.ffn_up.bias" in shapes
    if arch.startswith("gemma"):
        gemma_fields(keys, arch, out)
    elif arch == "phi3":
        out["sliding_window"] = keys.get("attention.sliding_window") or None
    elif arch == "smollm3":
        out |= {"use_sliding_window": False, "no_rope_layer_interval": 4}
    elif arch.startswith("qwen"):
        out["use_sliding_window"] = False
    if row["swa"]:
        out["layer_types"] = layer_types(keys, row["swa"], n_layers)
    if keys.left():
        raise Refused(f"{keys.left()[0]} is not known here")
    return out


def tensors(arch, made, names):
    """{name in the file: name in transformers} of every tensor that a model of this config.json has; the file must have exactly these."""
    row, wanted = FAMILIES[arch], {}
    for stem, theirs in row["ends"].items():
        if stem != "output" or not made["tie_word_embeddings"]:
            wanted[stem + ".weight"] = theirs + ".weight"
    for layer in range(made["num_hidden_layers"]):
        for inner, theirs in row["block"].items():
            stem, theirs = f"blk.{layer}.{inner}", f"{row['layers']}.{layer}.{theirs}"
            if arch != "modern-bert" or inner != "attn_norm" or layer:
                wanted[stem + ".weight"] = theirs + ".weight"
            if inner in biased(arch, made):
                wanted[stem + ".bias"] = theirs + ".bias"
    for name in sorted(wanted.keys() ^ set(names) - {"rope_freqs.weight"}):
        raise Refused(f"tensor {name!r} is " + ("missing" if name in wanted else f"not known in architecture {arch!r}"))
    return wanted


def biased(arch, made):
    out = []
    if made["attention_bias"]:
        out += ["attn_q", "attn_k", "attn_v"] + (["attn_qkv", "attn_output"] if arch != "qwen2" else [])
    return out + (["ffn_gate", "ffn_up", "ffn_down"] if made.get("mlp_bias") and arch in ("llama", "smollm3") else [])
