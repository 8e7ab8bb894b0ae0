#!/usr/bin/env python3
"""Golden files of tests/golden/gguf, for test_gguf.c: python3 tools/gguf_cases.py DIR. Needs gguf and numpy of PyPI.

blocks.safetensors: random blocks of each type ("Q4_K.blocks", [n][bytes]) and what gguf.quants makes of them ("Q4_K.values").
The first blocks have factors that are infinite, NaN, subnormal, zero and negative. tiny.gguf: a Llama of one layer with a type for
each matrix, queries, keys and values fused in one tensor. tiny.safetensors: its weights as a model folder has them, by
gguf.quants and a permutation of its own.
"""
import json
import pathlib
import sys

import gguf
import numpy as np

TYPES = ["F32", "F16", "BF16", "F64", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS",
         "MXFP4"]
HALVES = {"Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2),
          "Q5_K": (0, 2), "Q6_K": (208,), "IQ4_NL": (0,), "IQ4_XS": (0,)}  # where a block has its factors
ODD = [0x7C00, 0x7E00, 0x0001, 0x0000, 0xBC00]
WIDTH, FFN, HEADS, KV, DIM = 32, 64, 2, 1, 16


def write_safetensors(path, tensors):
    names = {"F": {4: "F32", 2: "F16", 8: "F64"}, "u": {1: "U8"}}
    header, at = {}, 0
    for name, data in tensors.items():
        kind = names["u" if data.dtype.kind == "u" else "F"][data.dtype.itemsize]
        header[name] = {"dtype": kind, "shape": list(data.shape), "data_offsets": [at, at + data.nbytes]}
        at += data.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(np.ascontiguousarray(t).tobytes() for t in tensors.values()))


def blocks(name, random):
    kind = gguf.GGMLQuantizationType[name]
    size, width = gguf.GGML_QUANT_SIZES[kind]
    n = len(ODD) + 2 if size == 256 else 16
    data = random.integers(0, 256, (n, width), np.uint8)
    for at in HALVES.get(name, ()):
        factors = random.standard_normal(n).astype(np.float16)
        data[:, at:at + 2] = factors.view(np.uint8).reshape(n, 2)
        for row, bits in enumerate(ODD):
            data[row, at:at + 2] = np.array([bits], np.uint16).view(np.uint8)
    if name == "MXFP4":
        data[:4, 0] = [0, 1, 2, 255]
    with np.errstate(all="ignore"):
        if name == "F64":
            values = data.view(np.float64).astype(np.float32)
        elif name == "F32":
            values = data.view(np.float32)
        elif name == "F16":
            values = data.view(np.float16).astype(np.float32)
        else:
            values = gguf.quants.dequantize(data, kind).astype(np.float32)
    return data, values.reshape(n, size)


def fuse(parts):
    """Rows of each head of q and k from halves to neighbours, then q, k and v one below the other."""
    out = []
    for name, n_heads in (("q", HEADS), ("k", KV), ("v", 0)):
        data = parts[name]
        if n_heads:
            data = data.reshape(n_heads, 2, DIM // 2, -1).swapaxes(1, 2).reshape(data.shape)
        out.append(data)
    return np.concatenate(out)


def tiny(folder, random):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/tools"))
    from gguf_files import byte_tokens

    tokens = [*byte_tokens(), "he", "<end>", "<user>"]
    out, kept = gguf.GGUFWriter(None, "llama"), {}
    for add, value in ((out.add_context_length, 64), (out.add_embedding_length, WIDTH), (out.add_feed_forward_length, FFN), (out.add_block_count, 1),
                       (out.add_head_count, HEADS), (out.add_head_count_kv, KV), (out.add_layer_norm_rms_eps, 1e-5),
                       (out.add_rope_freq_base, 5000.0), (out.add_rope_dimension_count, DIM)):
        add(value)

    def put(name, data, kind, ours):
        """Stores the tensor; what it is then is kept by our name, or given back."""
        if kind == "F32":
            out.add_tensor(name, data)
        else:
            packed = gguf.quants.quantize(data, gguf.GGMLQuantizationType[kind])
            out.add_tensor(name, packed, raw_dtype=gguf.GGMLQuantizationType[kind])
            data = gguf.quants.dequantize(packed, gguf.GGMLQuantizationType[kind]).astype(np.float32).reshape(data.shape)
        if ours:
            kept[ours] = data
        return data

    def draw(*shape):
        return random.standard_normal(shape).astype(np.float32)

    put("token_embd.weight", draw(len(tokens), WIDTH), "Q8_0", "model.embed_tokens.weight")
    put("output_norm.weight", draw(WIDTH), "F32", "model.norm.weight")
    layer, block = "model.layers.0.", "blk.0."
    parts = {"q": draw(HEADS * DIM, WIDTH), "k": draw(KV * DIM, WIDTH), "v": draw(KV * DIM, WIDTH)}
    fused = put(block + "attn_qkv.weight", fuse(parts), "Q5_0", None)
    for inner, n_heads, first in (("q", HEADS, 0), ("k", KV, HEADS * DIM), ("v", 0, (HEADS + KV) * DIM)):
        data = fused[first:first + (n_heads or KV) * DIM]
        if n_heads:
            data = data.reshape(n_heads, DIM // 2, 2, -1).swapaxes(1, 2).reshape(data.shape)
        kept[f"{layer}self_attn.{inner}_proj.weight"] = data
    put(block + "attn_output.weight", draw(WIDTH, HEADS * DIM), "Q4_1", layer + "self_attn.o_proj.weight")
    put(block + "ffn_gate.weight", draw(FFN, WIDTH), "Q4_0", layer + "mlp.gate_proj.weight")
    put(block + "ffn_up.weight", draw(FFN, WIDTH), "Q5_1", layer + "mlp.up_proj.weight")
    put(block + "ffn_down.weight", draw(WIDTH, FFN), "Q8_0", layer + "mlp.down_proj.weight")
    put(block + "attn_norm.weight", draw(WIDTH), "F32", layer + "input_layernorm.weight")
    put(block + "ffn_norm.weight", draw(WIDTH), "F32", layer + "post_attention_layernorm.weight")
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("smollm")
    out.add_token_list(tokens)
    out.add_token_types([1] * 257 + [3, 4])
    out.add_token_merges(["h e"])
    out.add_eos_token_id(257)
    out.write_header_to_file(folder / "tiny.gguf")
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    write_safetensors(folder / "tiny.safetensors", kept)


def main():
    folder, random, tensors = pathlib.Path(sys.argv[1]), np.random.default_rng(7), {}
    folder.mkdir(parents=True, exist_ok=True)
    for name in TYPES:
        data, values = blocks(name, random)
        tensors[name + ".blocks"], tensors[name + ".values"] = data, values
    tiny(folder, random)
    tensors = dict(sorted(tensors.items(), key=lambda item: (-item[1].dtype.itemsize, item[0])))
    write_safetensors(folder / "blocks.safetensors", tensors)


if __name__ == "__main__":
    main()
