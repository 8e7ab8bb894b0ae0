"""mypy reads what callers write: results have types, and keywords that are not there are found before a run."""
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

if importlib.util.find_spec("mypy") is None:
    raise unittest.SkipTest("mypy is not installed")

import numpy as np

import qkv

TORCH = "class Tensor: ...\n\ndef ones(*size: int) -> Tensor: ...\n"
# Of the package itself only what is declared counts: tools/deep/python.sh reads all of it.
OPTIONS = """[mypy]
strict = True
follow_imports = silent
ignore_missing_imports = True
[mypy-numpy.*]
ignore_errors = True
"""
NAMES = "typed_attention.py", "typed_torch.py"
HERE = pathlib.Path(__file__).resolve().parent


class Types(unittest.TestCase):
    def test_programs_of_callers(self):
        with tempfile.TemporaryDirectory() as folder:
            # A copy: mypy refuses a folder of installed packages as a source.
            shutil.copytree(qkv.__path__[0], f"{folder}/path/qkv", ignore=shutil.ignore_patterns("lib", "model"))
            # Of other packages NumPy alone, and torch as far as it goes here: to read all of them takes minutes.
            pathlib.Path(folder, "path/numpy").symlink_to(np.__path__[0])
            pathlib.Path(folder, "path/torch").mkdir()
            pathlib.Path(folder, "path/torch/__init__.pyi").write_text(TORCH)
            pathlib.Path(folder, "mypy.ini").write_text(OPTIONS)
            options = ["--config-file", f"{folder}/mypy.ini", "--no-site-packages", f"--cache-dir={folder}/cache"]
            found = subprocess.run([sys.executable, "-m", "mypy", *options, *NAMES], cwd=HERE, capture_output=True,
                                   text=True, env={**os.environ, "MYPYPATH": f"{folder}/path"})
        self.assertEqual((found.returncode, found.stderr), (0, ""), found.stdout + found.stderr)


if __name__ == "__main__":
    unittest.main()
