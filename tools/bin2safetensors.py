#!/usr/bin/env python3
"""Converts the pickled weights of a model folder to DIR/model.safetensors, once: python3 tools/bin2safetensors.py DIR

Reads DIR/pytorch_model.bin, or the files that DIR/pytorch_model.bin.index.json names, with weights_only, so that nothing in them is
executed. Names, shapes and types stay. Tensors that share all their memory are stored once; the other names become aliases in the metadata,
which qkv follows. The file appears whole or not at all. Needs torch and safetensors.
"""
import json
import os
import pathlib
import sys


def sources(folder):
    """The pickle files of a folder; the index may name files of the same folder only."""
    single, index = folder / "pytorch_model.bin", folder / "pytorch_model.bin.index.json"
    if single.exists():
        return [single]
    if not index.exists():
        sys.exit(f"{folder}: neither pytorch_model.bin nor pytorch_model.bin.index.json is there")
    names = sorted(set(json.loads(index.read_text())["weight_map"].values()))
    for name in names:
        if name != os.path.basename(name) or name in ("", ".", ".."):
            sys.exit(f"{index}: {name!r} is not the name of a file of this folder")
    return [folder / name for name in names]


def read(folder):
    import torch

    state = {}
    for source in sources(folder):
        part = torch.load(source, map_location="cpu", weights_only=True)
        for name, tensor in part.items():
            if not isinstance(name, str) or not isinstance(tensor, torch.Tensor):
                sys.exit(f"{source}: {name!r} is no tensor: this is not a file of weights alone")
            if name in state:
                sys.exit(f"{source}: {name!r} is in another file, too")
            state[name] = tensor
    return state


def without_copies(state):
    """Tensors to store, and {alias: stored name}."""
    tensors, aliases, owners = {}, {}, {}
    for name, tensor in state.items():
        place = (tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype)
        if tensor.numel() and place in owners:
            aliases[name] = owners[place]
            continue
        owners[place] = name
        tensors[name] = tensor.contiguous().clone()  # a part of another tensor gets memory of its own
    return tensors, aliases


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    out, temporary = folder / "model.safetensors", folder / f"model.safetensors.{os.getpid()}.tmp"
    if out.exists():
        sys.exit(f"{out} is there already")
    state = read(folder)
    from safetensors.torch import save_file

    tensors, aliases = without_copies(state)
    try:
        save_file(tensors, temporary, metadata={"format": "pt", **aliases})
        os.replace(temporary, out)
    finally:
        temporary.unlink(missing_ok=True)
    print(f"{out}: {len(tensors)} tensors, {len(aliases)} aliases")


if __name__ == "__main__":
    main()
