#!/usr/bin/env python3
"""Makes .npz files that our reader must read, and one that our writer must equal.

    python3 tools/npz_cases.py tests/files/store_data fuzz/corpus/npz    needs numpy
    python3 tools/npz_cases.py --check F.npz...                         numpy reads what we wrote

numpy.savez and savez_compressed, and what Python's zipfile writes where it cannot go back (descriptors behind the data),
with zip64 where nothing needs it, with names of another language, empty. Every array holds 0, 1, 2 … as its own type.
"""
import io
import pathlib
import sys
import zipfile

import numpy as np


class Unseekable(io.RawIOBase):
    def __init__(self):
        self.bytes = b""

    def writable(self):
        return True

    def write(self, piece):
        self.bytes += bytes(piece)
        return len(piece)


def array(dtype, *shape):
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def npy(value):
    out = io.BytesIO()
    np.save(out, value)
    return out.getvalue()


def bytes_of(save, **arrays):
    out = io.BytesIO()
    save(out, **arrays)
    return out.getvalue()


def with_descriptors(method):
    out = Unseekable()
    with zipfile.ZipFile(out, "w", method) as zipped:
        zipped.writestr("q.npy", npy(array("f4", 2, 3)))
        zipped.writestr("k.npy", npy(array("i4", 5)))
    return out.bytes


def with_others():
    """A folder, a text, an empty file: np.load does not call them arrays, or gives their bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as zipped:
        zipped.mkdir("sub")
        zipped.writestr("sub/q.npy", npy(array("f4", 2, 3)))
        zipped.writestr("README.txt", "an .npz of some project")
        zipped.writestr("../up.npy", npy(array("f4", 1)))
        zipped.writestr("größe.npy", npy(array("f8", 2)))
        zipped.writestr("empty.npy", b"")
    return out.getvalue()


FILES = {
    "savez.npz": bytes_of(np.savez, q=array("f4", 2, 3), ids=array("i8", 4), seen=array("i8", 3) > 0,
                          half=array("f2", 2, 1, 2), none=array("f4", 0, 3), scalar=array("f4")),
    "deflated.npz": bytes_of(np.savez_compressed, q=array("f4", 20, 30), f=np.asfortranarray(array("f8", 2, 3)),
                             big=array(">i2", 7), none=array("f4", 0)),
    "described.npz": with_descriptors(zipfile.ZIP_STORED),
    "described_deflated.npz": with_descriptors(zipfile.ZIP_DEFLATED),
    "others.npz": with_others(),
    "no_entries.npz": bytes_of(np.savez),
}


def main(words):
    if words[0] == "--check":
        for path in words[1:]:
            with np.load(path) as arrays:
                print(path, *(f"{name}:{arrays[name].dtype}{list(arrays[name].shape)}" for name in arrays.files))
        return
    for folder in map(pathlib.Path, words):
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in FILES.items():
            (folder / (name if folder.name != "npz" else name[:-4])).write_bytes(data)


main(sys.argv[1:])
