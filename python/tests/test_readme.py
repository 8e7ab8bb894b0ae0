"""The programs of README.md and of docs/transformers.md run, one after another, and print what the pages say."""
import contextlib
import importlib.util
import io
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = re.compile(r"```python\n(.*?)```\n(?:```\n(.*?)```\n)?", re.S)


def is_missing(program):
    """Whether a program needs a library that is not installed; torch is needed by transformers, too."""
    needs = re.match(r"# doctest: needs (\w+)", program)
    return bool(needs) and any(importlib.util.find_spec(name) is None for name in ("torch", needs[1]))


class Pages(unittest.TestCase):
    def run_programs(self, page):
        names, n = {}, 0
        for program, printed in PROGRAM.findall((ROOT / page).read_text()):
            if is_missing(program):
                continue
            out = io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
                exec(program, names)
            self.assertEqual(out.getvalue(), printed, program)
            n += 1
        return n

    def test_readme(self):
        self.assertGreaterEqual(self.run_programs("python/README.md"), 6)

    def test_transformers(self):
        n = self.run_programs("docs/transformers.md")
        self.assertEqual(n, 0 if is_missing("# doctest: needs transformers") else 4)


if __name__ == "__main__":
    unittest.main()
