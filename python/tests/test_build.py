"""Where a wheel is not for a system, pip says so in one sentence."""
import pathlib
import subprocess
import sys
import unittest

BACKEND = pathlib.Path(__file__).parents[1] / "backend"

SYSTEMS = [
    ("sys.platform = 'darwin'", "and this is darwin."),
    ("sys.platform = 'win32'", "and this is win32."),
    ("platform.machine = lambda: 'riscv64'", "and this processor is riscv64."),
    ("platform.libc_ver = lambda: ('glibc', '2.31')", "and this system has glibc 2.31."),
    ("platform.libc_ver = lambda: ('', '')", "and this system has another C library."),
]


class Elsewhere(unittest.TestCase):
    def test_one_sentence(self):
        for change, end in SYSTEMS:
            with self.subTest(change):
                run = subprocess.run([sys.executable, "-c", f"import platform, sys; {change}; import qkv_build"],
                                     cwd=BACKEND, capture_output=True, text=True, check=False)
                self.assertEqual(run.returncode, 1)
                self.assertEqual(run.stdout, "")
                self.assertEqual(run.stderr, "qkv needs Linux with glibc 2.34 or later on x86_64 or aarch64, "
                                             f"{end}\n")

    def test_here(self):
        code = "import sys, types; sys.modules['scikit_build_core'] = types.ModuleType('m'); " \
               "sys.modules['scikit_build_core.build'] = types.ModuleType('m'); import qkv_build"
        subprocess.run([sys.executable, "-c", code], cwd=BACKEND, check=True)


if __name__ == "__main__":
    unittest.main()
