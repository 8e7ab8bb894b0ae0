#!/usr/bin/env python3
"""Writes tests/files/store_data: files of PyPI safetensors and numpy that our readers must read and our writers must equal.

Made with safetensors 0.8.0 and numpy 2.x. Every array holds (i mod 7) - 3 at index i, as its own type (bool: i mod 3 == 0;
unsigned: i mod 7), so that the tests need no copy of the data.
"""
import pathlib

import numpy as np
from safetensors.numpy import save

here = pathlib.Path(__file__).resolve().parent.parent / "tests" / "unit" / "store_data"


def values(shape, dtype):
    i = np.arange(int(np.prod(shape)))
    kind = np.dtype(dtype).kind
    v = i % 3 == 0 if kind == "b" else i % 7 if kind == "u" else i % 7 - 3
    return v.astype(dtype).reshape(shape)


def safetensors_files():
    mixed = {
        "weights": values((2, 3), "<f4"),
        "a double": values((4,), "<f8"),
        "half": values((3, 1), "<f2"),
        "long": values((2, 2), "<i8"),
        "int": values((3,), "<i4"),
        "short": values((2,), "<i2"),
        "byte": values((5,), "i1"),
        "ulong": values((2,), "<u8"),
        "uint": values((2,), "<u4"),
        "ushort": values((2,), "<u2"),
        "ubyte": values((3,), "u1"),
        "flag": values((7,), "?"),
        "scalar": values((), "<f4"),
        "none": values((0, 4), "<f4"),
        "Türe 門": values((1,), "<f4"),
        'quote " backslash \\ tab \t bell \a': values((1,), "<f4"),
    }
    (here / "mixed.safetensors").write_bytes(save(mixed))
    one = {"b": values((2, 2), "<f4"), "a": values((3,), "<f4")}
    (here / "metadata.safetensors").write_bytes(save(one, metadata={"format": "pt"}))
    (here / "empty.safetensors").write_bytes(save({}))


def npy_files():
    for name, array in {
        "f4": values((2, 3), "<f4"),
        "f8": values((2, 3), "<f8"),
        "f2": values((2, 3), "<f2"),
        "f4_big": values((2, 3), ">f4"),
        "f4_fortran": np.asfortranarray(values((2, 3, 4), "<f4")),
        "bool": values((4,), "?"),
        "i8": values((3,), "<i8"),
        "i4_big": values((3,), ">i4"),
        "i2": values((3,), "<i2"),
        "i1": values((3,), "i1"),
        "u8": values((3,), "<u8"),
        "u4": values((3,), "<u4"),
        "u2": values((3,), "<u2"),
        "u1": values((3,), "u1"),
        "scalar": values((), "<f4"),
        "none": values((3, 0), "<f4"),
    }.items():
        np.save(here / f"{name}.npy", array)
    for version in ((2, 0), (3, 0)):
        with open(here / f"version{version[0]}.npy", "wb") as file:
            np.lib.format.write_array(file, values((2, 3), "<f4"), version=version)


here.mkdir(parents=True, exist_ok=True)
safetensors_files()
npy_files()
