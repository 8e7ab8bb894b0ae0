#!/usr/bin/env python3
"""Converts DIR/pytorch_model.bin, a pickle file, to DIR/model.safetensors, once: python3 tools/bin2safetensors.py DIR

Loads with weights_only, so nothing in the file is executed. Tensors that share memory are stored once; the other names
become aliases in the metadata, which qkv follows. Needs torch and safetensors.
"""
import pathlib
import sys

import torch
from safetensors.torch import save_file


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    state = torch.load(folder / "pytorch_model.bin", map_location="cpu", weights_only=True)
    tensors, aliases, owners = {}, {"format": "pt"}, {}
    for name, tensor in state.items():
        place = (tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype)
        if tensor.numel() and place in owners:
            aliases[name] = owners[place]
            continue
        owners[place] = name
        tensors[name] = tensor.contiguous().clone()
    save_file(tensors, folder / "model.safetensors", metadata=aliases)
    print(f"{folder / 'model.safetensors'}: {len(tensors)} tensors, {len(aliases) - 1} aliases")


main()
