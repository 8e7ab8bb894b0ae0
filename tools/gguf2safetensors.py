#!/usr/bin/env python3
"""Makes a model folder of a GGUF file, once: python3 tools/gguf2safetensors.py FILE.gguf DIR

DIR gets config.json, generation_config.json, tokenizer.json, tokenizer_config.json and model.safetensors, as transformers and qkv read them.
Tensors in f32, f16 and bf16 keep their type and bits; all others are dequantised to f32 by the functions of PyPI gguf. What llama.cpp
changed when it made the file is undone: the order of rows of queries and keys, the 1 that it added to Gemma's norms, the names. A file that
cannot be told exactly is refused, and nothing is written. Needs gguf and numpy. Architectures: gguf_families.py.
"""
import json
import os
import pathlib
import sys

import numpy as np

import gguf_families as families
import gguf_tokenizer
from gguf_families import Refused

STORED = {"F32": "F32", "F16": "F16", "BF16": "BF16"}  # type of a GGUF tensor: dtype of safetensors; others become F32
NO_IDS = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}  # not the defaults of a class
BYTES = {"F32": 4, "F16": 2, "BF16": 2}


def type_name(tensor):
    return tensor.tensor_type.name


def shape(tensor):
    return [int(n) for n in reversed(tensor.shape)]


def rows(tensor, quants):
    """The tensor, [rows][…], in f32, f16, or as the bytes of bf16."""
    kind = type_name(tensor)
    if kind in STORED:
        return np.asarray(tensor.data).reshape(shape(tensor)[0], -1)
    try:
        return quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32, copy=False).reshape(shape(tensor)[0], -1)
    except NotImplementedError:
        raise Refused(f"tensor {tensor.name!r} is of type {kind}, which gguf does not dequantise") from None


def by_halves(data, n_heads):
    """Rows of each head from (0, d/2, 1, d/2 + 1, …), which llama.cpp rotates as neighbours, to 0 … d − 1."""
    return data.reshape(n_heads, -1, 2, data.shape[1]).swapaxes(1, 2).reshape(data.shape)


def values(tensor, row, config, quants):
    """What stands in model.safetensors."""
    data = rows(tensor, quants)
    part = tensor.name.split(".")[-2]
    if row["permuted"] and part in ("attn_q", "attn_k"):
        data = by_halves(data, config["num_attention_heads" if part == "attn_q" else "num_key_value_heads"])
    if row["norm"] and part.endswith("norm"):
        if type_name(tensor) != "F32":
            raise Refused(f"tensor {tensor.name!r} is of type {type_name(tensor)}; norms of this architecture must be F32")
        data = data - np.float32(row["norm"])
    return data


def write_tensors(path, pairs, row, config, quants):
    """A safetensors file of (tensor, name) pairs, one tensor in memory at a time: 8 bytes of length, the header, the data in its order."""
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for tensor, name in pairs:
        dtype = STORED.get(type_name(tensor), "F32")
        size = BYTES[dtype] * int(np.prod(shape(tensor), dtype=object))
        header[name] = {"dtype": dtype, "shape": shape(tensor), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "xb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor, name in pairs:
            data = np.ascontiguousarray(values(tensor, row, config, quants))
            first, end = header[name]["data_offsets"]
            if data.nbytes != end - first:
                raise Refused(f"tensor {tensor.name!r} has {data.nbytes} bytes, not {end - first}")
            file.write(data.tobytes())
        file.flush()
        os.fsync(file.fileno())


def read(path):
    """The fields and tensors of a GGUF file, and gguf's dequantisation."""
    import gguf

    reader = gguf.GGUFReader(path)
    fields = {name: field.contents() for name, field in reader.fields.items()}
    arch = fields.get("general.architecture")
    if arch not in families.FAMILIES:
        raise Refused(f"general.architecture is {arch!r}, which is not one of {', '.join(map(repr, families.FAMILIES))}")
    if fields.get("split.count", 1) > 1:
        raise Refused(f"this is one of {fields['split.count']} parts; llama-gguf-split --merge joins them")
    return arch, fields, {tensor.name: tensor for tensor in reader.tensors}, gguf.quants


def convert(source, folder):
    arch, fields, stored, quants = read(source)
    if "token_embd.weight" not in stored:
        raise Refused("tensor 'token_embd.weight' is missing")
    row, freqs = families.FAMILIES[arch], stored.get("rope_freqs.weight")
    config = families.config(arch, families.Keys(fields, arch), {name: shape(t) for name, t in stored.items()},
                             freqs if freqs is None else np.asarray(freqs.data, np.float64))
    names = families.tensors(arch, config, stored)
    files = {"config.json": config | NO_IDS | gguf_tokenizer.ids(fields) | {"dtype": "float32"}, "tokenizer.json": gguf_tokenizer.tokenizer(fields),
             "tokenizer_config.json": gguf_tokenizer.tokenizer_config(fields),
             "generation_config.json": gguf_tokenizer.generation_config(fields)}
    folder.mkdir(parents=True, exist_ok=True)
    weights, temporary = folder / "model.safetensors", folder / f"model.safetensors.{os.getpid()}.tmp"
    taken = [name for name in (*files, weights.name) if (folder / name).exists()]
    if taken:
        raise Refused(f"{folder / taken[0]} is there already")
    try:
        write_tensors(temporary, [(stored[theirs], ours) for theirs, ours in names.items()], row, config, quants)
        for name, content in files.items():
            (folder / name).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        os.replace(temporary, weights)
    finally:
        temporary.unlink(missing_ok=True)
    kinds = sorted({type_name(t) for t in stored.values()})
    print(f"{folder}: {config['model_type']}, {len(names)} tensors of {', '.join(kinds)}")


def main():
    if len(sys.argv) != 3 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    try:
        convert(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
    except (Refused, OSError, ValueError) as error:
        sys.exit(f"{sys.argv[1]}: {error}")


if __name__ == "__main__":
    main()
