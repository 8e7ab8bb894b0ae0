"""Where qkv cannot be built, pip says why."""
import pathlib
import subprocess
import sys
import unittest

BACKEND = pathlib.Path(__file__).parents[1] / "backend"

WHEELS = "There, ./dev wheel --all makes wheels for older ones, for musl, Windows and macOS."
SYSTEMS = [
    ("sys.platform = 'darwin'", f"and this is darwin. {WHEELS}"),
    ("sys.platform = 'win32'", f"and this is win32. {WHEELS}"),
    ("platform.machine = lambda: 'riscv64'", "and this processor is riscv64."),
    ("platform.libc_ver = lambda: ('glibc', '2.31')", f"and this system has glibc 2.31. {WHEELS}"),
    ("platform.libc_ver = lambda: ('', '')", f"and this system has another C library. {WHEELS}"),
]


class Elsewhere(unittest.TestCase):
    def test_says_why(self):
        for change, end in SYSTEMS:
            with self.subTest(change):
                run = subprocess.run([sys.executable, "-c", f"import platform, sys; {change}; import qkv_build"],
                                     cwd=BACKEND, capture_output=True, text=True, check=False)
                self.assertEqual(run.returncode, 1)
                self.assertEqual(run.stdout, "")
                self.assertEqual(run.stderr, "qkv is built on Linux with glibc 2.34 or later on x86_64 or aarch64, "
                                             f"{end}\n")

    def test_here(self):
        code = "import sys, types; sys.modules['scikit_build_core'] = types.ModuleType('m'); " \
               "sys.modules['scikit_build_core.build'] = types.ModuleType('m'); import qkv_build"
        subprocess.run([sys.executable, "-c", code], cwd=BACKEND, check=True)


if __name__ == "__main__":
    unittest.main()
