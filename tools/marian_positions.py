#!/usr/bin/env python3
"""Makes tests/golden/marian_positions.bin: sinusoids of transformers' MarianSinusoidalPositionalEmbedding.

    python3 tools/marian_positions.py tests/golden        needs torch and transformers; the test needs no Python

The file is little-endian: for each table int32 n_positions, int32 dim and float32 [n_positions][dim].
"""
import pathlib
import struct
import sys

from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

SIZES = [(5, 1), (3, 2), (40, 3), (9, 8), (30, 17), (12, 64)]

with open(pathlib.Path(sys.argv[1]) / "marian_positions.bin", "wb") as out:
    for n, dim in SIZES:
        table = MarianSinusoidalPositionalEmbedding(n, dim).create_weight()
        assert table.shape == (n, dim)
        out.write(struct.pack("<ii", n, dim) + table.float().contiguous().numpy().tobytes())
