#!/usr/bin/env python3
"""Writes C that compiles where structures have the sizes and the offsets that the declarations of a wheel have for ctypes.

usage: layout.py FOLDER, that of _c.py

None of its types depends on the system (c_long would, c_size_t does by the width of a pointer only): what ctypes says here is what it
says on every system of 64 bits.
"""
import ctypes
import pathlib
import sys

sys.path.insert(0, sys.argv[1])
import _c  # noqa: E402

SIZES = {"c_int": 4, "c_float": 4, "c_double": 8, "c_size_t": 8, "c_char": 1, "c_char_p": 8, "c_void_p": 8}
for name, size in SIZES.items():
    if ctypes.sizeof(getattr(ctypes, name)) != size:
        sys.exit(f"layout.py: {name} has {ctypes.sizeof(getattr(ctypes, name))} bytes here")
kinds = [kind for kind in vars(_c).values()
         if isinstance(kind, type) and issubclass(kind, ctypes.Structure) and kind is not ctypes.Structure]
if len(kinds) < 40:
    sys.exit(f"layout.py: {len(kinds)} structures")
include = pathlib.Path(__file__).resolve().parents[2] / "include"
for path in sorted(include.glob("qkv/*.h")):
    if path.name != "mpi.h":
        print(f'#include "{path.relative_to(include)}"')
for name in SIZES:
    if name != "c_char_p":
        kind = {"c_size_t": "size_t", "c_void_p": "void *"}.get(name, name[2:])
        print(f'_Static_assert(sizeof({kind}) == {SIZES[name]}, "{kind}");')
for kind in kinds:
    print(f'_Static_assert(sizeof({kind.__name__}) == {ctypes.sizeof(kind)}, "{kind.__name__}");')
    for field, *_ in kind._fields_:
        at = getattr(kind, field).offset
        print(f'_Static_assert(offsetof({kind.__name__}, {field.rstrip("_")}) == {at}, "{kind.__name__}.{field}");')
