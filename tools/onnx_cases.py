#!/usr/bin/env python3
"""Writes tests/onnx/onnx_cases.bin: the node tests of ONNX for Attention, with their data.

usage: tools/onnx_cases.py [--list]        needs onnx 1.23.2, numpy 2.4.6, ml_dtypes 0.6.0

The package onnx makes the arrays when it is asked for its cases; its reference is numpy. Variants "_expanded" run the
same arrays through the function body, and are left out. All numbers are little endian; bytes are padded with 0 to 8:
    "QKVONNX1", versions of onnx, numpy and ml_dtypes as text of 64 bytes, number of cases
    a case: name of 96 bytes; opset, flags, is_causal, q_num_heads, kv_num_heads, qk_matmul_output_mode,
            softmax_precision, left_window_size, right_window_size as int64; scale, softcap as double;
            11 tensors: Q, K, V, attn_mask, past_key, past_value, nonpad_kv_seqlen,
            Y, present_key, present_value, qk_matmul_output
    a tensor: type (0: none), rank, 4 dimensions as int64, then its elements
"""
import pathlib
import struct
import sys

import ml_dtypes
import numpy as np
import onnx
from onnx.backend.test.loader import load_model_tests

INPUTS = ["Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"]
OUTPUTS = ["Y", "present_key", "present_value", "qk_matmul_output"]
FLAGS = {"scale": 1, "left_window_size": 2, "right_window_size": 4}
INTEGERS = ["is_causal", "q_num_heads", "kv_num_heads", "qk_matmul_output_mode", "softmax_precision",
            "left_window_size", "right_window_size"]


def padded(data, size=None):
    size = size or -(-len(data) // 8) * 8
    assert len(data) <= size
    return data + bytes(size - len(data))


def tensor(array):
    if array is None:
        return struct.pack("<6q", 0, 0, 0, 0, 0, 0)
    array = np.ascontiguousarray(array)
    dims = list(array.shape) + [0] * (4 - array.ndim)
    kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
    return struct.pack("<6q", kind, array.ndim, *dims) + padded(array.tobytes())


def case(test):
    node, (inputs, outputs) = test.model.graph.node[0], test.data_sets[0]
    assert node.op_type == "Attention" and len(test.model.graph.node) == 1 and len(test.data_sets) == 1
    given = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    assert not set(given) - set(INTEGERS) - {"scale", "softcap"}, given
    flags = sum(bit for name, bit in FLAGS.items() if name in given)
    arrays = dict(zip([name for name, there in zip(INPUTS, node.input) if there], inputs))
    arrays |= dict(zip([name for name, there in zip(OUTPUTS, node.output) if there], outputs))
    out = padded(test.name.removeprefix("test_attention_").encode(), 96)
    out += struct.pack("<2q", test.model.opset_import[0].version, flags)
    out += struct.pack("<7q", *(given.get(name, 0) for name in INTEGERS))
    out += struct.pack("<2d", given.get("scale", 0.0), given.get("softcap", 0.0))
    return out + b"".join(tensor(arrays.get(name)) for name in INPUTS + OUTPUTS)


def main():
    tests = [test for test in load_model_tests(kind="node")
             if test.name.startswith("test_attention_") and not test.name.endswith("_expanded")]
    if "--list" in sys.argv:
        print("\n".join(test.name for test in tests))
        return
    versions = f"onnx {onnx.__version__}, numpy {np.__version__}, ml_dtypes {ml_dtypes.__version__}"
    data = b"QKVONNX1" + padded(versions.encode(), 64) + struct.pack("<q", len(tests)) + b"".join(map(case, tests))
    path = pathlib.Path(__file__).resolve().parent.parent / "tests/onnx/onnx_cases.bin"
    path.write_bytes(data)
    print(f"{path.name}: {len(tests)} cases, {len(data)} bytes; {versions}")


if __name__ == "__main__":
    main()
