"""Executes the notebooks, and compares what they print with what they say. Cells tagged "varies" print times."""
import base64
import importlib.util
import pathlib
import re
import unittest

FOLDER = pathlib.Path(__file__).parents[1] / "notebooks"
NEEDS = {"attention_step_by_step": (), "heads_of_a_long_text": ("torch", "transformers"), "replacing_torch": ("torch",),
         "what_an_image_shows": ()}


def missing(*names):
    return [name for name in ("nbclient", "ipykernel", *names) if importlib.util.find_spec(name) is None]


def printed(cell):
    return "".join(o["text"] for o in cell.outputs if o.output_type == "stream" and o.name == "stdout")


def pictures(cell):
    """How many pictures a cell shows."""
    found = [o["data"]["image/png"] for o in cell.outputs if "image/png" in o.get("data", {})]
    return sum(base64.b64decode(each).startswith(b"\x89PNG") for each in found)


class Notebooks(unittest.TestCase):
    def test_all_are_named(self):
        self.assertEqual({path.stem for path in FOLDER.glob("*.ipynb")}, set(NEEDS))

    def run_one(self, name):
        lacking = missing(*NEEDS[name])
        if lacking:
            self.skipTest(f"{', '.join(lacking)} not installed")
        import nbclient
        import nbformat
        from pace import PATIENCE

        path = FOLDER / f"{name}.ipynb"
        written, run = nbformat.read(path, 4), nbformat.read(path, 4)
        nbclient.NotebookClient(run, timeout=int(PATIENCE), startup_timeout=int(PATIENCE), iopub_timeout=int(PATIENCE),
                                kernel_name="python3").execute()
        pages = 0
        for before, after in zip(written.cells, run.cells):
            if after.cell_type != "code":
                continue
            with self.subTest(cell=before.source[:60]):
                if "varies" in before.metadata.get("tags", []):
                    self.assertTrue(printed(after))
                else:
                    self.assertEqual(printed(after), printed(before))
                errors = [o.text for o in after.outputs if o.output_type == "stream" and o.name == "stderr"]
                self.assertFalse([text for text in errors if "Error" in text], errors)
            # GitHub shows no page, but pictures; what is neither says nothing to a reader.
            self.assertEqual(pictures(after), pictures(before), before.source)
            for output in after.outputs:
                self.assertNotEqual(set(output.get("data", {})), {"text/plain"}, before.source)
                shown = output.get("data", {}).get("text/html", "")
                if "<iframe" in shown:
                    pages += 1
                    self.assertIn('sandbox="allow-scripts', shown)
                    self.assertIsNone(re.search(r'(src|href)=(&quot;|")https?:', shown))
                    self.assertLessEqual(len(shown), 2_000_000)
        stored = sum(pictures(cell) for cell in written.cells if cell.cell_type == "code")
        self.assertEqual((pages, stored), (1, 1))

    def test_attention_step_by_step(self):
        self.run_one("attention_step_by_step")

    def test_heads_of_a_long_text(self):
        self.run_one("heads_of_a_long_text")

    def test_what_an_image_shows(self):
        self.run_one("what_an_image_shows")

    def test_replacing_torch(self):
        self.run_one("replacing_torch")


if __name__ == "__main__":
    unittest.main()
