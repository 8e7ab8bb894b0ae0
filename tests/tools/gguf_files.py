"""Tiny GGUF files of random weights, as llama.cpp writes them, for test_gguf.py. Needs gguf and numpy.

Facts that these files know on their own: names, keys, the order of rows of queries and keys, the 1 in Gemma's norms.
"""
import gguf
import numpy as np

WORDS, WIDTH, FFN, LAYERS, HEADS, KV, DIM = 300, 16, 32, 3, 4, 2, 8


def byte_tokens():
    """The 256 characters of byte-level BPE, in the order of bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    more = iter(range(256, 512))
    return [chr(b) if b in plain else chr(next(more)) for b in range(256)]


class Made:
    """A GGUF file and what it was made of: weights by the names of transformers."""

    def __init__(self, arch, theta=5000.0, n_kv=KV, dim=None):
        self.arch, self.random, self.weights = arch, np.random.default_rng(1), {}
        self.out = gguf.GGUFWriter(None, arch)
        self.out.add_context_length(64)
        self.out.add_embedding_length(WIDTH)
        self.out.add_feed_forward_length(FFN)
        self.out.add_block_count(LAYERS)
        self.out.add_head_count(HEADS)
        self.out.add_head_count_kv(n_kv)
        self.out.add_key_length(dim or DIM)
        self.out.add_value_length(dim or DIM)
        if arch != "bert":
            (self.out.add_layer_norm_eps if arch in ("modern-bert", "gpt2") else self.out.add_layer_norm_rms_eps)(1e-5)
        if arch not in ("bert", "gpt2"):
            self.out.add_rope_freq_base(theta)
        self.tensor("token_embd.weight", "model.embed_tokens.weight", WORDS, WIDTH)

    def tensor(self, name, theirs, *shape, change=None):
        data = self.random.standard_normal(shape).astype(np.float32)
        self.weights[theirs] = data
        self.out.add_tensor(name, data if change is None else change(data))

    def store(self, name, data, kind):
        """Another type for a tensor."""
        row = self.out.tensors[0][name]
        row.tensor, row.dtype, row.nbytes = data, kind, data.nbytes

    def layer(self, n, inner, theirs, *shape, change=None, part="weight"):
        self.tensor(f"blk.{n}.{inner}.{part}", f"model.layers.{n}.{theirs}.{part}", *shape, change=change)

    def attention(self, n, q=None, k=None, bias=()):
        for inner, rows, columns, change in (("q", HEADS * DIM, WIDTH, q), ("k", KV * DIM, WIDTH, k), ("v", KV * DIM, WIDTH, None),
                                             ("o", WIDTH, HEADS * DIM, None)):
            stored = "attn_output" if inner == "o" else "attn_" + inner
            self.layer(n, stored, f"self_attn.{inner}_proj", rows, columns, change=change)
            if inner in bias:
                self.layer(n, stored, f"self_attn.{inner}_proj", rows, part="bias", change=change)

    def mlp(self, n):
        self.layer(n, "ffn_gate", "mlp.gate_proj", FFN, WIDTH)
        self.layer(n, "ffn_up", "mlp.up_proj", FFN, WIDTH)
        self.layer(n, "ffn_down", "mlp.down_proj", WIDTH, FFN)

    def norms(self, n, names, add=0):
        for inner, theirs in names.items():
            self.layer(n, inner, theirs, WIDTH, change=lambda w: w + np.float32(add))

    def end(self, add=0, tied=True):
        self.tensor("output_norm.weight", "model.norm.weight", WIDTH, change=lambda w: w + np.float32(add))
        if not tied:
            self.tensor("output.weight", "lm_head.weight", WORDS, WIDTH)

    def byte_level(self, pre):
        tokens = [*byte_tokens(), "he", "<end>", "<user>"]
        self.out.add_tokenizer_model("gpt2")
        self.out.add_tokenizer_pre(pre)
        self.out.add_token_list([*tokens, *(f"[PAD{i}]" for i in range(len(tokens), WORDS))])
        self.out.add_token_types([1] * 257 + [3, 4] + [5] * (WORDS - len(tokens)))
        self.out.add_token_merges(["h e"])
        self.out.add_eos_token_id(257)

    def sentencepiece(self, prefix):
        """Of Gemma the scores tell another order of merges than the ids, and a token of the user is two spaces."""
        is_gemma = self.arch.startswith("gemma")
        pieces = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), "▁", "h", "e", "he", "▁he", *(["  "] if is_gemma else [])]
        self.out.add_tokenizer_model("llama")
        self.out.add_tokenizer_pre("default")
        self.out.add_token_list([*pieces, *(f"[PAD{i}]" for i in range(len(pieces), WORDS))])
        self.out.add_token_scores([0.0] * 259 + [-9.0, -8.0, -7.0, -2.0, -1.0] + [-10000.0] * (WORDS - 264))
        self.out.add_token_types([2, 3, 3] + [6] * 256 + [1] * 5 + [4] * is_gemma + [5] * (WORDS - len(pieces)))
        self.out.add_add_space_prefix(prefix)
        self.out.add_bos_token_id(1)
        self.out.add_eos_token_id(2)
        self.out.add_unk_token_id(0)

    def write(self, folder):
        path = folder / f"{self.arch}.gguf"
        self.out.write_header_to_file(path)
        self.out.write_kv_data_to_file()
        self.out.write_tensors_to_file()
        self.out.close()
        return path


def neighbours(n_heads):
    """llama.cpp's order: channels i and i + d/2 of a head, which transformers rotates together, stand side by side."""
    order = [h * DIM + half * DIM // 2 + i for h in range(n_heads) for i in range(DIM // 2) for half in (0, 1)]
    return lambda data: np.ascontiguousarray(data[order])


PRE = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
GEMMA = {"attn_norm": "input_layernorm", "post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm",
         "post_ffw_norm": "post_feedforward_layernorm"}


def llama(arch="llama", bias=("q", "k", "v", "o"), theta=5000.0):
    made = Made(arch, theta)
    for n in range(LAYERS):
        made.attention(n, neighbours(HEADS), neighbours(KV), bias)
        made.mlp(n)
        made.norms(n, PRE)
    made.end()
    made.out.add_rope_dimension_count(DIM)
    made.byte_level("smollm" if arch == "llama" else "llama-bpe")
    return made


def qwen(arch):
    made = Made(arch)
    for n in range(LAYERS):
        made.attention(n, bias=("q", "k", "v") if arch == "qwen2" else ())
        if arch == "qwen3":
            made.layer(n, "attn_q_norm", "self_attn.q_norm", DIM)
            made.layer(n, "attn_k_norm", "self_attn.k_norm", DIM)
        made.mlp(n)
        made.norms(n, PRE)
    made.end(tied=False)
    made.byte_level("qwen2")
    return made


def gemma(arch):
    made = Made(arch)
    for n in range(LAYERS):
        made.attention(n)
        if arch == "gemma3":
            for inner in "qk":
                made.layer(n, f"attn_{inner}_norm", f"self_attn.{inner}_norm", DIM, change=lambda w: w + np.float32(1))
        made.mlp(n)
        made.norms(n, PRE if arch == "gemma" else GEMMA, 1)
    made.end(1)
    if arch != "gemma":
        made.out.add_sliding_window(4)
    made.sentencepiece(False)
    return made


def olmo2():
    made = Made("olmo2")
    for n in range(LAYERS):
        made.attention(n)
        made.layer(n, "attn_q_norm", "self_attn.q_norm", HEADS * DIM)
        made.layer(n, "attn_k_norm", "self_attn.k_norm", KV * DIM)
        made.mlp(n)
        made.norms(n, {k: v for k, v in GEMMA.items() if k.startswith("post")})
    made.end(tied=False)
    made.byte_level("dbrx")
    return made


def phi3():
    made = Made("phi3")
    for n in range(LAYERS):
        made.layer(n, "attn_qkv", "self_attn.qkv_proj", (HEADS + 2 * KV) * DIM, WIDTH)
        made.layer(n, "attn_output", "self_attn.o_proj", WIDTH, HEADS * DIM)
        made.layer(n, "ffn_up", "mlp.gate_up_proj", 2 * FFN, WIDTH)
        made.layer(n, "ffn_down", "mlp.down_proj", WIDTH, FFN)
        made.norms(n, PRE)
    made.end(tied=False)
    made.out.add_sliding_window(7)
    made.out.add_rope_scaling_orig_ctx_len(64)
    made.sentencepiece(True)
    return made


def modern_bert():
    made = Made("modern-bert", 160000.0, HEADS, WIDTH // HEADS)
    made.weights["model.embeddings.tok_embeddings.weight"] = made.weights.pop("model.embed_tokens.weight")
    made.tensor("token_embd_norm.weight", "model.embeddings.norm.weight", WIDTH)
    for n in range(LAYERS):
        made.layer(n, "attn_qkv", "attn.Wqkv", 3 * WIDTH, WIDTH)
        made.layer(n, "attn_output", "attn.Wo", WIDTH, WIDTH)
        made.layer(n, "ffn_up", "mlp.Wi", 2 * FFN, WIDTH)
        made.layer(n, "ffn_down", "mlp.Wo", WIDTH, FFN)
        made.norms(n, {"attn_norm": "attn_norm", "ffn_norm": "mlp_norm"} if n else {"ffn_norm": "mlp_norm"})
    made.tensor("output_norm.weight", "model.final_norm.weight", WIDTH)
    made.out.add_causal_attention(False)
    made.out.add_sliding_window(6)
    made.out.add_sliding_window_pattern(3)
    made.out.add_rope_scaling_type(gguf.RopeScalingType.NONE)
    made.byte_level("modern-bert")
    made.out.add_bos_token_id(258)
    return made


def gpt2():
    """Linear layers as they are multiplied, [out][in], which transformers has as [in][out]."""
    made = Made("gpt2", n_kv=HEADS, dim=WIDTH // HEADS)
    made.weights["transformer.wte.weight"] = made.weights.pop("model.embed_tokens.weight")
    made.tensor("position_embd.weight", "transformer.wpe.weight", 64, WIDTH)
    for n in range(LAYERS):
        for inner, theirs, rows, columns in (("attn_qkv", "attn.c_attn", 3 * WIDTH, WIDTH), ("attn_output", "attn.c_proj", WIDTH, WIDTH),
                                             ("ffn_up", "mlp.c_fc", FFN, WIDTH), ("ffn_down", "mlp.c_proj", WIDTH, FFN)):
            made.tensor(f"blk.{n}.{inner}.weight", f"transformer.h.{n}.{theirs}.weight", columns, rows, change=lambda w: np.ascontiguousarray(w.T))
            made.tensor(f"blk.{n}.{inner}.bias", f"transformer.h.{n}.{theirs}.bias", rows)
        for inner, theirs in (("attn_norm", "ln_1"), ("ffn_norm", "ln_2")):
            for part in ("weight", "bias"):
                made.tensor(f"blk.{n}.{inner}.{part}", f"transformer.h.{n}.{theirs}.{part}", WIDTH)
    for part in ("weight", "bias"):
        made.tensor(f"output_norm.{part}", f"transformer.ln_f.{part}", WIDTH)
    made.byte_level("gpt-2")
    return made


def gptneox(parallel=True):
    """Rows of queries, then of keys, then of values, where transformers has those of each head together; half of a head is rotated."""
    made, part = Made("gptneox", n_kv=HEADS, dim=WIDTH // HEADS), WIDTH // HEADS
    del made.out.kv_data[0]["gptneox.rope.freq_base"], made.out.kv_data[0]["gptneox.attention.layer_norm_rms_epsilon"]
    made.out.add_layer_norm_eps(1e-5)
    made.weights["gpt_neox.embed_in.weight"] = made.weights.pop("model.embed_tokens.weight")
    by_parts = lambda w: np.concatenate([w.reshape(HEADS, 3, part, -1)[:, i].reshape(WIDTH, -1) for i in range(3)]).reshape(w.shape)
    for n in range(LAYERS):
        for inner, theirs, rows, columns in (("attn_qkv", "attention.query_key_value", 3 * WIDTH, WIDTH),
                                             ("attn_output", "attention.dense", WIDTH, WIDTH), ("ffn_up", "mlp.dense_h_to_4h", FFN, WIDTH),
                                             ("ffn_down", "mlp.dense_4h_to_h", WIDTH, FFN)):
            change = by_parts if inner == "attn_qkv" else None
            made.tensor(f"blk.{n}.{inner}.weight", f"gpt_neox.layers.{n}.{theirs}.weight", rows, columns, change=change)
            made.tensor(f"blk.{n}.{inner}.bias", f"gpt_neox.layers.{n}.{theirs}.bias", rows, change=change)
        for inner, theirs in (("attn_norm", "input_layernorm"), ("ffn_norm", "post_attention_layernorm")):
            for kind in ("weight", "bias"):
                made.tensor(f"blk.{n}.{inner}.{kind}", f"gpt_neox.layers.{n}.{theirs}.{kind}", WIDTH)
    for kind in ("weight", "bias"):
        made.tensor(f"output_norm.{kind}", f"gpt_neox.final_layer_norm.{kind}", WIDTH)
    made.tensor("output.weight", "embed_out.weight", WORDS, WIDTH)
    made.out.add_rope_dimension_count(part // 2)
    made.out.add_parallel_residual(parallel)
    made.byte_level("olmo")
    return made


def bloom():
    """Rows as of gptneox; norms and biases everywhere, words tied, no positions."""
    made, part = Made("bloom", n_kv=HEADS, dim=WIDTH // HEADS), WIDTH // HEADS
    keys = made.out.kv_data[0]
    del keys["bloom.rope.freq_base"], keys["bloom.attention.layer_norm_rms_epsilon"], keys["bloom.attention.key_length"]
    del keys["bloom.attention.value_length"], keys["bloom.feed_forward_length"]  # which the converter does not write, or writes as below
    made.out.add_feed_forward_length(4 * WIDTH)
    made.out.add_layer_norm_eps(1e-5)
    made.weights["transformer.word_embeddings.weight"] = made.weights.pop("model.embed_tokens.weight")
    by_parts = lambda w: np.concatenate([w.reshape(HEADS, 3, part, -1)[:, i].reshape(WIDTH, -1) for i in range(3)]).reshape(w.shape)
    for n in range(LAYERS):
        for inner, theirs, rows, columns in (("attn_qkv", "self_attention.query_key_value", 3 * WIDTH, WIDTH),
                                             ("attn_output", "self_attention.dense", WIDTH, WIDTH),
                                             ("ffn_up", "mlp.dense_h_to_4h", 4 * WIDTH, WIDTH), ("ffn_down", "mlp.dense_4h_to_h", WIDTH, 4 * WIDTH)):
            change = by_parts if inner == "attn_qkv" else None
            made.tensor(f"blk.{n}.{inner}.weight", f"transformer.h.{n}.{theirs}.weight", rows, columns, change=change)
            made.tensor(f"blk.{n}.{inner}.bias", f"transformer.h.{n}.{theirs}.bias", rows, change=change)
        for inner, theirs in (("attn_norm", "input_layernorm"), ("ffn_norm", "post_attention_layernorm")):
            for kind in ("weight", "bias"):
                made.tensor(f"blk.{n}.{inner}.{kind}", f"transformer.h.{n}.{theirs}.{kind}", WIDTH)
    for stored, theirs in (("token_embd_norm", "word_embeddings_layernorm"), ("output_norm", "ln_f")):
        for kind in ("weight", "bias"):
            made.tensor(f"{stored}.{kind}", f"transformer.{theirs}.{kind}", WIDTH)
    made.byte_level("bloom")
    return made


BERT_WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "he", "##s", "said", "."]


def bert(distilled=False):
    """Tokens that begin a word have the mark of a space, the others lack their ##."""
    made, prefix = Made("bert", n_kv=HEADS, dim=WIDTH // HEADS), "distilbert." if distilled else "bert."
    made.out.add_layer_norm_eps(1e-12)
    made.weights[prefix + "embeddings.word_embeddings.weight"] = made.weights.pop("model.embed_tokens.weight")
    made.tensor("position_embd.weight", prefix + "embeddings.position_embeddings.weight", 64, WIDTH)
    if not distilled:
        made.tensor("token_types.weight", prefix + "embeddings.token_type_embeddings.weight", 2, WIDTH)
    layer = prefix + ("transformer.layer" if distilled else "encoder.layer")
    names = (("attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin", "ffn.lin1", "ffn.lin2", "sa_layer_norm",
              "output_layer_norm") if distilled else
             ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense", "intermediate.dense", "output.dense",
              "attention.output.LayerNorm", "output.LayerNorm"))
    shapes = [(WIDTH, WIDTH)] * 4 + [(FFN, WIDTH), (WIDTH, FFN), (WIDTH,), (WIDTH,)]
    stored = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_up", "ffn_down", "attn_output_norm", "layer_output_norm")
    for n in range(LAYERS):
        for inner, theirs, shape in zip(stored, names, shapes):
            made.tensor(f"blk.{n}.{inner}.weight", f"{layer}.{n}.{theirs}.weight", *shape)
            made.tensor(f"blk.{n}.{inner}.bias", f"{layer}.{n}.{theirs}.bias", shape[0])
    for part in ("weight", "bias"):
        made.tensor(f"token_embd_norm.{part}", f"{prefix}embeddings.LayerNorm.{part}", WIDTH)
    made.out.add_causal_attention(False)
    made.out.add_tokenizer_model("bert")
    made.out.add_token_list([t if t[0] == "[" else t[2:] if t[:2] == "##" else "▁" + t for t in BERT_WORDS]
                            + [f"[unused{i}]" for i in range(WORDS - len(BERT_WORDS))])
    made.out.add_token_types([3] * 5 + [1] * (WORDS - 5))
    for name, token in (("padding", 0), ("unknown", 1), ("cls", 2), ("seperator", 3), ("mask", 4)):
        made.out.add_uint32(f"tokenizer.ggml.{name}_token_id", token)
    return made
