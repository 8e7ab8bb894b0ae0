"""Numbers and texts that C would wrap or cut, empty choices and an explicit 0: refused by name, or honoured."""
import copy
import pathlib
import re
import tempfile
import unittest

import numpy as np

import qkv
import qkv.onnx

LARGE = 2**64 + 1  # 1, if it wraps
X = np.ones((1, 2, 5, 8), np.float32)


def attend(**rules):
    return qkv.attention(X, X, X, **rules)


class Numbers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.problem, cls.heads, cls.model = qkv.Problem(X, X, X), qkv.heads(X[0], X[0]), qkv.load()
        cls.lse = cls.problem.forward().lse

    def calls(self):
        """(name, call) of every integer that goes to C."""
        problem, heads, lse = self.problem, self.heads, self.lse
        shape = {"kv_heads": 1, "dim": 1, "pages": 2}
        cache = qkv.KVCache(**shape)
        made = [
            ("window[0]", lambda n: attend(window=(n, 0))), ("window[1]", lambda n: attend(window=(0, n))),
            ("chunk", lambda n: attend(chunk=n)), ("q_offset", lambda n: attend(q_offset=n)),
            ("kv_len", lambda n: attend(kv_len=n)), ("q_len", lambda n: attend(q_len=n)),
            ("prefix_len", lambda n: attend(causal=True, prefix_len=n)),
            ("seed", lambda n: attend(dropout=0.5, seed=n)),
            ("top", lambda n: attend(stats={"top": n})),
            ("n_classes", lambda n: attend(stats={"classes": [0] * 5, "n_classes": n})),
            ("batch", lambda n: problem.weights(lse, batch=n)), ("head", lambda n: problem.weights(lse, head=n)),
            ("rows", lambda n: problem.weights(lse, rows=(0, n))),
            ("keys", lambda n: problem.weights(lse, keys=(n, n))),
            ("diagonals[0]", lambda n: problem.columns(lse, diagonals=(n, 2))),
            ("diagonals[1]", lambda n: problem.columns(lse, diagonals=(0, n))),
            ("tiles[0]", lambda n: problem.columns(lse, tiles=(n, 2))),
            ("tiles[1]", lambda n: problem.columns(lse, tiles=(2, n))),
            ("len_q", lambda n: qkv.mask_mod(lambda b, h, i, j: i == j, len_q=n, len_k=1)),
            ("batch", lambda n: qkv.mask_mod(lambda b, h, i, j: i == j, len_q=1, len_k=1, batch=n)),
            *((name, lambda n, name=name: qkv.KVCache(**{**shape, name: n}))
              for name in ("sequences", "kv_heads", "dim", "dim_v", "pages", "page_len", "max_len", "ring_len")),
            ("sequence", lambda n: cache.append(n, X[0, :1, :1, :1], X[0, :1, :1, :1])),
            ("sequence", lambda n: cache.truncate(n, 0)), ("length", lambda n: cache.truncate(0, n)),
            ("source", lambda n: cache.fork(n, 0)), ("target", lambda n: cache.fork(0, n)), ("sequence", cache.length),
            ("first_sequence", lambda n: cache.attend(X[:, :, :1, :1], first_sequence=n)),
            ("window", lambda n: cache.attend(X[:, :, :1, :1], window=n)),
            ("q_offset", lambda n: qkv.heads(X[0], X[0], q_offset=n)),
            ("window[0]", lambda n: qkv.heads(X[0], X[0], window=(n, 0))),
            ("layer", lambda n: heads.weights(n, 0)), ("head", lambda n: heads.weights(0, n)),
            ("rows", lambda n: heads.weights(0, 0, rows=(0, n))), ("query", lambda n: heads.looks_at(0, 0, n)),
            ("n", lambda n: self.model.fill("a [MASK]", n=n)),
            *((name, lambda n, name=name: self.model.generate("a", **{name: n}))
              for name in ("max_new", "seed", "top_k", "beams")),
            ("n_threads", qkv.Context), ("n_threads", qkv.set_num_threads),
            ("opset", lambda n: qkv.onnx.attention(X, X, X, opset=n)),
            ("left_window_size", lambda n: qkv.onnx.attention(X, X, X, left_window_size=n)),
        ]
        return made

    def test_what_does_not_fit(self):
        for name, call in self.calls():
            for value in (LARGE, -LARGE):
                with self.subTest(name=name, value=value), self.assertRaises(qkv.ArgumentError) as raised:
                    call(value)
                said = str(raised.exception)
                self.assertIn(name.partition("[")[0], said)
                self.assertIn(str(value), said)
        with self.assertRaisesRegex(qkv.ArgumentError, r"seed = -1 is not in \[0, 18446744073709551615\]"):
            attend(dropout=0.5, seed=-1)
        self.assertEqual(attend(dropout=0.5, seed=2**64 - 1).shape, X.shape)

    def test_what_is_no_whole_number(self):
        for name, call in self.calls():
            for value in (1.5, "1", None):
                if value is None and name not in ("rows", "keys", "n", "top", "batch", "head"):
                    continue
                with self.subTest(name=name, value=value), self.assertRaisesRegex(qkv.QkvError, name.partition("[")[0]):
                    call(value)

    def test_what_is_no_real_number(self):
        heads, problem, lse = self.heads, self.problem, self.lse
        calls = [
            *((name, lambda x, name=name: attend(**{name: x})) for name in ("scale", "softcap", "dropout")),
            ("tiny", lambda x: problem.columns(lse, tiny=x)),
            *((name, lambda x, name=name: qkv.heads(X[0], X[0], **{name: x})) for name in ("scale", "softcap")),
            ("perplexity", lambda x: heads.map(0, 0, perplexity=x)),
            ("temperature", lambda x: self.model.generate("a", temperature=x)),
            ("top_p", lambda x: self.model.generate("a", top_p=x)),
            ("scale", lambda x: qkv.onnx.attention(X, X, X, scale=x)),
            ("softcap", lambda x: qkv.onnx.attention(X, X, X, softcap=x)),
            *((name, lambda x, name=name: heads.picture("/no/x.svg", 0, 0, **{name: x})) for name in ("min", "max")),
        ]
        for name, call in calls:
            for value in ("0.5", 1j, np.complex64(1 + 2j), np.array([0.5]), [0.5], 10**400):
                with self.subTest(name=name, value=value), \
                        self.assertRaisesRegex(qkv.ArgumentError, f"^{name} = .* is not a real number"):
                    call(value)
        np.testing.assert_array_equal(attend(scale=np.array(0.5)), attend(scale=0.5))

    def test_pairs(self):
        for call in (lambda: attend(window=()), lambda: attend(window=3), lambda: attend(window=(1, 2, 3)),
                     lambda: qkv.heads(X[0], X[0], window=()), lambda: self.heads.weights(0, 0, rows=()),
                     lambda: self.problem.weights(self.lse, keys=()), lambda: self.problem.columns(self.lse, tiles=()),
                     lambda: self.problem.columns(self.lse, diagonals=())):
            with self.assertRaisesRegex(qkv.ArgumentError, "must be a pair of numbers"):
                call()
        with self.assertRaisesRegex(qkv.ArgumentError, r"rows is \(3, 2\), and must rise within 0 to 5"):
            self.problem.weights(self.lse, rows=(3, 2))

    def test_an_explicit_zero(self):
        """Where attention refuses or takes 0, heads do not take it for their default."""
        for call in (lambda: attend(softcap=0), lambda: qkv.heads(X[0], X[0], softcap=0),
                     lambda: qkv.heads(X[0], X[0], softcap=1e-60)):
            with self.assertRaisesRegex(qkv.ArgumentError, "softcap"):
                call()
        self.assertEqual(attend(scale=0).shape, X.shape)
        for scale in (0, 0.0, 1e-60, float("nan"), 1e300):
            with self.assertRaisesRegex(qkv.ArgumentError, f"scale is {re.escape(str(scale))}, and must be a finite"):
                qkv.heads(X[0], X[0], scale=scale)
        with self.assertRaisesRegex(qkv.ArgumentError, "causal is 'bottom-right'"):
            qkv.heads(X[0], X[0], causal="bottom-right")

    def test_empty_choices(self):
        with self.assertRaisesRegex(qkv.ArgumentError, "heads is empty"):
            self.heads.page(heads=[])
        with self.assertRaisesRegex(qkv.ShapeError, "queries has 0 texts, and there are 5"):
            qkv.heads(X[0], X[0], queries=[])
        with self.assertRaisesRegex(qkv.ShapeError, "offsets has 1 edges, and must have at least 2"):
            attend(stats={"offsets": [1]})
        for none in ([], {}):  # no statistics but those that every request has
            found = attend(stats=none)
            self.assertIsInstance(found, qkv.Forward)
            self.assertEqual(set(found.stats), {"n_empty_rows", "n_nan_rows"})
        self.assertEqual(set(self.problem.columns(self.lse, want=())), {"n_cells", "n_empty_rows", "n_nan_rows"})
        self.assertEqual(self.model.embed([]).shape, (0, self.model.hidden))
        self.assertEqual(self.model.decode([]), "")

    def test_lists_of_blocks(self):
        """The library reads index as far as offsets say."""
        made = qkv.mask_mod(lambda b, h, i, j: j <= i, len_q=64, len_k=64, block_len=32)
        with self.assertRaises(ValueError):
            made.offsets[0, 0, -1] = 10**6
        parts = {"block_len": 32, "len_q": 64, "len_k": 64, "offsets": made.offsets, "index": made.index,
                 "bits": made.bits}
        self.assertEqual(qkv.BlockMask(**parts).sparsity, made.sparsity)
        wrong = {"block_len": 31, "len_q": -1, "offsets": made.offsets + 1, "index": made.index.astype(float),
                 "bits": made.bits[:, :, :7]}
        for name, value in wrong.items():
            with self.subTest(name=name), self.assertRaisesRegex(qkv.QkvError, name):
                qkv.BlockMask(**{**parts, name: value})
            with self.subTest(name=name), self.assertRaisesRegex(qkv.ArgumentError, f"another {name}"):
                setattr(made, name, value)
        copied = copy.deepcopy(made)  # whose arrays NumPy has made writable
        copied.offsets[0, 0, -1] = 10**6
        with self.assertRaisesRegex(qkv.ShapeError, "offsets are 0 to 1000000, and index has"):
            qkv.attention(*[np.ones((1, 2, 64, 8), np.float32)] * 3, block_mask=copied)
        with self.assertRaisesRegex(qkv.ArgumentError, "block_mask is a dict, and must be a BlockMask"):
            attend(block_mask=parts)
        index = np.array(made.index)
        ours = qkv.BlockMask(**{**parts, "index": index})
        index[:] = 10**6
        np.testing.assert_array_equal(ours.index, made.index)


class Texts(unittest.TestCase):
    def test_what_would_have_no_effect(self):
        with self.assertRaisesRegex(qkv.ArgumentError, "^n_classes is given without classes"):
            attend(stats={"entropy": True, "n_classes": 3})
        with self.assertRaisesRegex(qkv.ArgumentError, "^size is given without an image"):
            qkv.load().look("a text", size=64)

    def test_what_is_no_choice(self):
        """A list has no hash, and an array is neither true nor false."""
        problem = qkv.Problem(X, X, X)
        o, lse, _ = problem.forward()
        flags = np.array([True, False])
        for words, call in (
                ("causal is ", lambda: attend(causal=flags)), ("causal is ", lambda: attend(causal=flags, lse=True)),
                ("causal is ", lambda: qkv.heads(X[0], X[0], causal=flags)),
                ("arithmetic is ", lambda: attend(arithmetic=["f32"])), ("out_dtype is ", lambda: attend(out_dtype=[])),
                ("arithmetic is ", lambda: qkv.onnx.attention(X, X, X, arithmetic=["f32"])),
                ("dtype is ", lambda: qkv.KVCache(kv_heads=1, dim=8, pages=1, dtype=["float32"])),
                ("what is ", lambda: problem.plan(["forward"])), ("weights is ", lambda: qkv.load(weights=["f32"])),
                ("heads is ", lambda: problem.rollout_step(lse, np.ones((1, 5)), heads=["mean"])),
                ("stats has no ", lambda: attend(stats=[["entropy"]]))):
            with self.subTest(words=words), self.assertRaisesRegex(qkv.QkvError, f"^{words}"):
                call()

    def test_what_is_no_context(self):
        for call in (attend, lambda **rules: attend(lse=True, **rules), lambda **rules: qkv.heads(X[0], X[0], **rules),
                     lambda **rules: qkv.onnx.attention(X, X, X, **rules), qkv.load,
                     lambda **rules: qkv.KVCache(kv_heads=1, dim=8, pages=1, **rules)):
            for value in (2, 0, "scalar"):
                with self.assertRaisesRegex(qkv.ArgumentError, "^context is a (int|str), and must be a qkv.Context"):
                    call(context=value)

    def test_nul_bytes(self):
        names = ["a", "b\0c", "d", "e", "f"]
        model = qkv.load()
        with tempfile.TemporaryDirectory() as folder:
            for name, call in (
                ("folder", lambda: qkv.load(f"{folder}\0x")),
                ("isa", lambda: qkv.Context(isa="scalar\0x")),
                (r"tokens\[1\]", lambda: qkv.heads(X[0], X[0], tokens=names)),
                (r"queries\[1\]", lambda: qkv.heads(X[0], X[0], queries=names)),
                ("title", lambda: qkv.heads(X[0], X[0], title="a\0b").page()),
                ("prompt", lambda: model.embed(["a"], prompt="query\0: ")),
            ):
                with self.subTest(name=name):
                    with self.assertRaisesRegex(qkv.ArgumentError, f"{name} is .*would end at its NUL byte"):
                        call()

    def test_texts_with_a_length_may_have_them(self):
        model = qkv.load()
        self.assertNotEqual(model.tokenize("a\0b c").texts, model.tokenize("a").texts)
        self.assertTrue("<title>a ␀ b</title>" in model.look("a \0 b").page().html)

    def test_a_path_of_bytes(self):
        with self.assertRaisesRegex(qkv.FileError, "'/nowhere': no such file or folder"):
            qkv.load(b"/nowhere")
        heads = qkv.heads(X[0], X[0])
        with tempfile.TemporaryDirectory() as folder:
            for n, save in enumerate((heads.save, heads.page().save)):
                with self.subTest(n=n):
                    name = f"{folder}/{n}.html"
                    save(name.encode())
                    self.assertIn("<title>Arrays</title>", pathlib.Path(name).read_text())
                    with self.assertRaisesRegex(qkv.ArgumentError, "path is .*would end at its NUL byte"):
                        save(f"{folder}/a\0.html")


if __name__ == "__main__":
    unittest.main()
