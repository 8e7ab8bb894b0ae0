"""The programs of README.md run, one after another, and print what it says."""
import contextlib
import importlib.util
import io
import pathlib
import re
import unittest

README = pathlib.Path(__file__).resolve().parents[1] / "README.md"


class Readme(unittest.TestCase):
    def test_programs(self):
        names, n = {}, 0
        for program, printed in re.findall(r"```python\n(.*?)```\n(?:```\n(.*?)```\n)?", README.read_text(), re.S):
            if program.startswith("# doctest: needs torch") and importlib.util.find_spec("torch") is None:
                continue
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(program, names)
            self.assertEqual(out.getvalue(), printed, program)
            n += 1
        self.assertGreaterEqual(n, 6)


if __name__ == "__main__":
    unittest.main()
