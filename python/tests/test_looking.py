"""Heads as someone looks at them: an array of all weights, two texts, tables, pictures, files, what is seen first."""
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import numpy as np

import qkv
from qkv import picture

NAMES = "the door opened and the dog ran out of it .".split()


def shown(**rules):
    rng = np.random.default_rng(3)
    q, k = (rng.standard_normal((n, len(NAMES), 16)).astype(np.float32) for n in (4, 2))
    return qkv.heads(q, k, tokens=NAMES, **rules)


def manifest(page):
    return json.loads(re.search(r'id="qkv-manifest">(.*?)</script>', page.html, re.DOTALL).group(1))


class Array(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.heads = qkv.load().look("I saw the door when it opened.")
        cls.array = cls.heads.array()
        cls.whole = np.asarray(cls.array)

    def test_it_is_all_weights(self):
        n = len(self.heads.tokens)
        self.assertEqual((self.array.shape, self.whole.shape), ((4, 4, n, n),) * 2)
        self.assertEqual(self.whole.dtype, np.float32)
        for layer, head in np.ndindex(4, 4):
            np.testing.assert_array_equal(self.whole[layer, head], self.heads.weights(layer, head))

    def test_indices_are_those_of_numpy(self):
        for index in (0, -1, (1, 2), (-1, -2), (1, 2, 3, 4), (1, 2, -1, -3), (..., 3), (slice(1, 3), -1),
                      (slice(None), slice(None), -1, slice(2, 7, 2)), (2, ..., slice(None, None, -1)), ...,
                      (slice(None), 1, slice(4, 4)), (0, slice(3, 1))):
            with self.subTest(index=index):
                got, want = self.array[index], self.whole[index]
                np.testing.assert_array_equal(got, want)
                self.assertEqual(np.shape(got), np.shape(want))
        np.testing.assert_array_equal(self.array[[3, 1], 0, [0, -1]], self.whole[[3, 1]][:, 0, [0, -1]])

    def test_a_loop_over_layers(self):
        self.assertEqual(len(list(self.array)), 4)
        for got, want in zip(self.array, self.whole, strict=True):
            np.testing.assert_array_equal(got, want)
        some = qkv.Weights([0, 5], 1, ["a"], ["b"], lambda layer, *_: np.full((1, 1), layer, np.float32))
        self.assertEqual([float(layer[0, 0, 0]) for layer in some], [0, 5])

    def test_names_of_tokens(self):
        door, it = self.heads.tokens.index("door"), self.heads.tokens.index("it")
        np.testing.assert_array_equal(self.array[:, :, "it", "door"], self.whole[:, :, it, door])
        np.testing.assert_array_equal(self.array[0, 1, ["it", 0], "door"], self.whole[0, 1, [it, 0], door])

    def test_only_what_is_read_is_computed(self):
        asked = []
        made = qkv.Weights([0, 5], 3, ["a"] * 900, ["b"] * 1000, lambda layer, head, rows, keys: asked.append(
            (layer, head, rows, keys)) or np.ones((rows[1] - rows[0], keys[1] - keys[0]), np.float32))
        self.assertEqual(made[5, 1, 7, 2:4].tolist(), [1, 1])
        self.assertEqual(asked, [(5, 1, (7, 8), (2, 4))])

    def test_errors(self):
        doubled = shown().array()
        for words, index in (
            ("query 'the' stands at 0, 4: give one of these", (0, 0, "the")),
            ("there is no key 'dogs': near are 'dog'", (0, 0, 0, "dogs")),
            (r"there is no layer 1: there are \[0\]", 1),
            (r"head 4 is not in \[-4, 3\]", (0, 4)), (r"query -12 is not in", (0, 0, -12)),
            ("5 indices, and there are 4 axes: layer, head, query, key", (0, 0, 0, 0, 0)),
            ("head = 'dog' is not a whole number", (0, "dog")), ("query = 1.5 is not a whole number", (0, 0, 1.5)),
            ("query is an array of bools", (0, 0, np.ones(11, bool))),
        ):
            with self.subTest(words=words), self.assertRaisesRegex(qkv.ArgumentError, words):
                doubled[index]


class TwoTexts(unittest.TestCase):
    def test_tokens_are_paired(self):
        model = qkv.load()
        first, second = model.look("The doctor opened the door."), model.look("The woman saw when it opened the door.")
        made = first.compare(second)
        self.assertEqual([a for a, b in made.tokens if a == b], "[CLS] the opened the door . [SEP]".split())
        self.assertNotIn("when", [b for _, b in made.tokens])
        for i, j in made.pairs:
            self.assertEqual((first.tokens[i], second.tokens[j]) in made.tokens, True)
        one, other = made.weights(1, 2)
        rows = np.array(made.pairs)
        np.testing.assert_array_equal(one, first.weights(1, 2)[np.ix_(rows[:, 0], rows[:, 0])])
        np.testing.assert_array_equal(other, second.weights(1, 2)[np.ix_(rows[:, 1], rows[:, 1])])
        np.testing.assert_array_equal(made.difference(1, 2), other - one)

    def test_one_word_for_another(self):
        model = qkv.load()
        made = model.look("The doctor opened the door.").compare(model.look("The woman opened the door."))
        self.assertEqual([pair for pair in made.tokens if pair[0] != pair[1]], [("doctor", "woman")])
        table = made.rows()
        self.assertEqual(len(table), 16)
        distances = [row["distance"] for row in table]
        self.assertEqual(distances, sorted(distances, reverse=True))
        row = table[0]
        change = made.difference(row["layer"], row["head"])
        self.assertEqual(abs(row["change"]), np.abs(change).max())
        one, other = (each.astype(np.float64) for each in made.weights(row["layer"], row["head"]))
        self.assertAlmostEqual(row["distance"], 0.5 * np.abs(one - other).sum(1).mean(), delta=1e-6)

    def test_a_text_beside_itself(self):
        heads = shown(causal=True)
        made = heads.compare(heads)
        self.assertEqual(made.pairs, [(n, n) for n in range(len(NAMES))])
        self.assertEqual({row["distance"] for row in made.rows()}, {0.0})

    def test_errors(self):
        with self.assertRaisesRegex(qkv.ShapeError, "shows one model on two texts"):
            shown().compare(qkv.load().look("the door"))
        with self.assertRaisesRegex(qkv.ArgumentError, "other is a str, and must be Heads"):
            shown().compare("the door")
        ones = np.ones((1, 2, 4), np.float32)
        with self.assertRaisesRegex(qkv.ArgumentError, "no token in common"):
            qkv.heads(ones, ones, tokens=["a", "b"]).compare(qkv.heads(*[ones[:, :1]] * 2, tokens=["c"]))


class Methods(unittest.TestCase):
    def test_table(self):
        heads = shown()
        table = heads.table()
        self.assertEqual(len(table), 4)
        if importlib.util.find_spec("pandas"):
            self.assertEqual(list(table.columns[:3]), ["layer", "head", "label"])
        else:
            self.assertEqual(table, heads.rows())

    def test_queries_and_its_older_name(self):
        heads = shown()
        np.testing.assert_array_equal(heads.weights(0, 1, queries=(2, 5)), heads.weights(0, 1, rows=(2, 5)))
        with self.assertRaisesRegex(qkv.ArgumentError, "rows is the older name of queries"):
            heads.weights(0, 1, queries=(2, 5), rows=(2, 5))
        with self.assertRaisesRegex(qkv.ArgumentError, r"queries is \(2, 99\), and must rise within 0 to 11"):
            heads.weights(0, 1, queries=(2, 99))
        x = np.random.default_rng(0).standard_normal((1, 1, 6, 8), dtype=np.float32)
        problem = qkv.Problem(x, x, x)
        lse = problem.forward().lse
        part = problem.weights(lse, queries=(2, 5))
        np.testing.assert_array_equal(part, problem.weights(lse)[2:5])
        np.testing.assert_array_equal(part, problem.weights(lse, rows=(2, 5)))
        with self.assertRaisesRegex(qkv.ArgumentError, "rows is the older name of queries"):
            problem.weights(lse, queries=(2, 5), rows=(2, 5))

    def test_map(self):
        made = shown().map(0, 3, n_runs=1, n_iters=300)
        self.assertEqual((made.queries.shape, made.keys.shape), ((11, 2), (11, 2)))
        again = qkv.load().look("I saw the door.").map(2, 1, n_runs=1, n_iters=300)
        self.assertTrue(np.isfinite(again.queries).all())
        with self.assertRaisesRegex(qkv.ArgumentError, r"map has no option 'sed' \(did you mean 'seed'\?\)"):
            shown().map(0, 0, sed=3)


class Axes:
    """As much of matplotlib's axes as plot() asks for."""

    class Axis:
        ticks = labels = None

        def set_label_text(self, text):
            self.text = text

        def set_ticks(self, ticks, labels=None):
            self.ticks, self.labels = list(ticks), labels

    def __init__(self):
        self.xaxis, self.yaxis = self.Axis(), self.Axis()

    def imshow(self, image, **options):
        self.image, self.options = image, options

    def tick_params(self, **options):
        pass

    def set_title(self, title):
        self.title = title


class Pictures(unittest.TestCase):
    def test_plot(self):
        heads, ax = shown(), Axes()
        self.assertIs(heads.plot(0, 2, ax=ax, cmap="viridis"), ax)
        np.testing.assert_array_equal(ax.image, heads.weights(0, 2))
        self.assertEqual((ax.options["cmap"], ax.title, ax.xaxis.text), ("viridis", "layer 0, head 2", "key"))
        self.assertEqual((ax.xaxis.labels, ax.yaxis.labels), (NAMES, NAMES))
        with self.assertRaisesRegex(qkv.ArgumentError, "ax is a str, and must be axes of matplotlib"):
            heads.plot(0, 2, ax="left")

    def test_plot_of_matplotlib(self):
        if importlib.util.find_spec("matplotlib") is None:
            with self.assertRaisesRegex(qkv.UnsupportedError, r"plot\(\) needs matplotlib"):
                shown().plot(0, 0)
            return
        import matplotlib

        matplotlib.use("agg")
        tokens = ["$x$", *NAMES[1:]]
        ax = qkv.heads(*np.ones((2, 2, 11, 8), np.float32), tokens=tokens).plot(0, 1)
        ax.figure.canvas.draw()
        self.assertEqual(ax.get_xticklabels()[1].get_text(), "door")

    def test_cairo_is_loaded_for_pictures_only(self):
        program = """if True:
            import pathlib, sys, qkv
            loaded = lambda: "libcairo" in pathlib.Path("/proc/self/maps").read_text()
            heads = qkv.load().look("The door opened.")
            heads.page()
            assert not loaded(), "before the first picture"
            try:
                heads.save(sys.argv[1])
            except qkv.UnsupportedError as error:
                print(error)
            else:
                assert loaded()
        """
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-c", program, f"{folder}/a.svg"], check=True)

    def test_no_cairo(self):
        """Says what to install, and what needs nothing; the same again afterwards."""
        def missing(name):
            raise OSError("libpangocairo-1.0.so.0: cannot open shared object file: No such file or directory")

        heads = qkv.heads(*np.ones((2, 2, 5, 8), np.float32))
        mine = pathlib.Path("libqkvview.so.0.1")
        for file, variables, said in (
            (mine, {}, r"pictures need cairo and pango of the system \(libpangocairo-1\.0\.so\.0: .*\): "
                       r"apt install libpangocairo-1\.0-0 \(Debian.*page\(\) needs nothing"),
            (mine, {"QKV_VIEW_LIBRARY": "/a.so"}, "QKV_VIEW_LIBRARY is '/a.so', which cannot be loaded: libpangocairo"),
            (None, {}, "pictures need libqkvview, and this package was built without it"),
        ):
            with self.subTest(said), tempfile.TemporaryDirectory() as folder, \
                    unittest.mock.patch.dict(picture._loaded, clear=True), \
                    unittest.mock.patch.dict("os.environ", {"QKV_VIEW_LIBRARY": "", **variables}), \
                    unittest.mock.patch.object(picture, "library_file", lambda name, file=file: file), \
                    unittest.mock.patch("ctypes.util.find_library", lambda name: None), \
                    unittest.mock.patch("ctypes.CDLL", missing):
                for _ in range(2):
                    with self.assertRaisesRegex(qkv.UnsupportedError, said):
                        heads.save(f"{folder}/a.png")
                heads.save(f"{folder}/a.html")
                self.assertEqual([path.name for path in pathlib.Path(folder).iterdir()], ["a.html"])

    def test_endings_decide(self):
        heads = shown()
        with tempfile.TemporaryDirectory() as folder:
            for name in ("a.html", "B.HTM"):
                heads.save(pathlib.Path(folder, name))
                self.assertEqual(pathlib.Path(folder, name).read_text(), heads.page().html)
            heads.save(f"{folder}/two.html", heads=[(0, 1), (0, 3)])
            self.assertEqual(len(manifest(qkv.Page(pathlib.Path(folder, "two.html").read_text(), 2, 0))["heads"]), 2)
            for name, begins in (("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF")):
                for chosen in (None, [(0, 2)]):
                    path = pathlib.Path(folder, name)
                    path.unlink(missing_ok=True)
                    try:
                        heads.save(path, heads=chosen)
                    except qkv.UnsupportedError as error:
                        self.assertRegex(str(error), "pictures need (libqkvview|cairo and pango)")
                        self.assertFalse(path.exists())
                    else:
                        self.assertTrue(path.read_bytes().startswith(begins))
            before = sorted(path.name for path in pathlib.Path(folder).iterdir())
            for words, refused in (
                ("path is '.*a.gif', and ends with '.gif': it must be .html", lambda: heads.save(f"{folder}/a.gif")),
                ("path is '.*/a', and has no ending", lambda: heads.save(f"{folder}/a")),
                ("path is 3, and must be the name of a file", lambda: heads.save(3)),
                ("a.png', and a page is HTML", lambda: heads.page().save(f"{folder}/a.png")),
                ("effects=True: a picture has no effects", lambda: heads.save(f"{folder}/a.svg", effects=True)),
                ("heads has 2, and a picture shows one head", lambda: heads.save(f"{folder}/b.png",
                                                                                heads=[(0, 1), (0, 2)])),
            ):
                with self.subTest(words=words), self.assertRaisesRegex(qkv.ArgumentError, words):
                    refused()
            self.assertEqual(sorted(path.name for path in pathlib.Path(folder).iterdir()), before)


class FirstView(unittest.TestCase):
    def query(self, heads, chosen=None):
        return manifest(heads.page(chosen))["query"]

    def test_a_query_that_sees_one_key_is_not_shown(self):
        for rules in ({"causal": True}, {"causal": True, "window": (3, 0)}, {"window": (4, 0)}):
            heads = shown(**rules)
            with self.subTest(rules=rules):
                first = manifest(heads.page())
                lead = first["heads"][0]["head"]
                p = heads.weights(0, lead).copy()
                p[0] = 0
                np.fill_diagonal(p, 0)
                self.assertEqual(first["query"], np.unravel_index(p.argmax(), p.shape)[0])
                self.assertGreater(self.query(heads, [(0, 1)]), 0)

    def test_others_are_shown_as_before(self):
        for rules in ({}, {"causal": True, "window": (0, 0)}, {"causal": True, "q_offset": 2}):
            with self.subTest(rules=rules):
                self.assertEqual(self.query(shown(**rules)) in (-1, 0), True)


if __name__ == "__main__":
    unittest.main()
