"""The package on other systems, as far as this one can pretend: names of libraries, and what Python lacks there."""
import hashlib
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import numpy as np

import qkv
import qkv.models

# What follows runs in a process of its own, whose Python says that it is another system. Modules that look at the
# system when they are imported are so before.
PRETENDS = """
import ctypes.util, hashlib, mmap, os, pathlib, platform, sys, tempfile, threading, unittest
import numpy as np, numpy.ctypeslib

sys.platform = sys.argv[1]
ctypes.util.find_library = lambda name: None
if sys.platform == "win32":
    del os.register_at_fork, mmap.MAP_PRIVATE, mmap.MAP_ANONYMOUS
import qkv, qkv.mpi, qkv.onnx
from qkv.arrays import apart

assert pathlib.Path(qkv.__file__).parent == pathlib.Path(sys.argv[2], "qkv"), qkv.__file__
for name in ("qkvview", "qkvmpi"):
    try:
        qkv.heads(*np.ones((2, 2, 5, 8), np.float32)).save("a.png") if name == "qkvview" else qkv.mpi._load()
    except (qkv.UnsupportedError, ImportError) as error:
        print(error, file=sys.stderr)
    else:
        raise SystemExit(f"{name} was found")
large = np.arange(1 << 20, dtype=np.float32)
assert (apart(large) == large).all() and apart(large) is not large
page = qkv.load().look("I saw the [MASK].").page()
page.save(pathlib.Path(sys.argv[2], "page.html"))
assert pathlib.Path(sys.argv[2], "page.html").read_bytes() == page.html.encode()
x = np.random.default_rng(1).standard_normal((3, 2, 50, 16)).astype(np.float32)
print(hashlib.sha256(qkv.attention(*x, causal=True).tobytes()).hexdigest(), len(page.html))
"""
SERIES = qkv.__version__.rpartition(".")[0]  # "0.2" of "0.2.0-dev": the libraries' names have it
NAMES = {"win32": "lib{}.dll", "darwin": f"lib{{}}.{SERIES}.dylib"}


def package_for(system, folder):
    """A copy of this package in a folder, in which libraries of Linux have the names of a system."""
    own = pathlib.Path(qkv.__file__).parent
    made = pathlib.Path(folder, "qkv")
    made.mkdir()
    for path in own.iterdir():
        if path.name not in ("lib", "__pycache__"):
            (made / path.name).symlink_to(path)
    (made / "lib").mkdir()
    for name in ("qkv", "qkvmodel"):
        file = qkv._library.library_file(name)
        (made / "lib" / NAMES[system].format(name)).symlink_to(file)
    beside = own.parent / "qkv.libs"  # of a wheel
    if beside.exists():
        (made.parent / "qkv.libs").symlink_to(beside)


class Elsewhere(unittest.TestCase):
    def test_works_and_refuses_by_name(self):
        x = np.random.default_rng(1).standard_normal((3, 2, 50, 16)).astype(np.float32)
        page = qkv.load().look("I saw the [MASK].").page()
        wanted = f"{hashlib.sha256(qkv.attention(*x, causal=True).tobytes()).hexdigest()} {len(page.html)}\n"
        for system in NAMES:
            with self.subTest(system), tempfile.TemporaryDirectory() as folder:
                package_for(system, folder)
                run = subprocess.run([sys.executable, "-c", PRETENDS, system, folder], cwd=folder, capture_output=True,
                                     text=True, check=False,
                                     env={"PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"})
                self.assertEqual((run.returncode, run.stdout), (0, wanted), run.stderr)
                self.assertRegex(run.stderr, "pictures need libqkvview, and this package was built without it.*page")
                self.assertIn(f"set QKV_MPI_LIBRARY to the path of {NAMES[system].format('qkvmpi')}\n", run.stderr)

    def test_without_libraries(self):
        names = ("win32", r"libqkv\.dll"), ("darwin", r"libqkv\.\*\.dylib"), ("linux", r"libqkv\.so\.\*")
        for system, library in names:
            with self.subTest(system), tempfile.TemporaryDirectory() as folder, \
                    unittest.mock.patch("sys.platform", system), \
                    unittest.mock.patch.object(qkv._library, "_FOLDER", pathlib.Path(folder)):
                with self.assertRaisesRegex(ImportError, f"has no {library}: install the package with pip"):
                    qkv._library._find("qkv")

    def test_paths_with_backslashes(self):
        self.assertFalse(qkv.models._is_embedded(rb"models\default"))
        with unittest.mock.patch("os.sep", "\\"):
            self.assertTrue(qkv.models._is_embedded(rb"models\default"))
            self.assertTrue(qkv.models._is_embedded(b"models/default/"))


if __name__ == "__main__":
    unittest.main()
