"""Arrays of callers in every form that NumPy and DLPack have: their numbers are read, or they are refused by name."""
import tempfile
import unittest

import numpy as np

import qkv
import qkv.onnx


def normal(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


class ByDLPack:
    """An array that has nothing but __dlpack__. old: it knows DLPack from before 1.0 only, as JAX's do."""

    def __init__(self, array, old=False):
        self.array, self.old = array, old

    def __dlpack__(self, **options):
        if self.old and options:
            raise TypeError("got an unexpected keyword argument 'max_version'")
        return self.array.__dlpack__(**options)


class ByInterface:
    """An array that has nothing but __array_interface__."""

    def __init__(self, array):
        self.__array_interface__, self.array = array.__array_interface__, array


class Calls:
    """The same arguments, as `form` makes arrays of them, for every call of the package that takes arrays."""

    q, k, v, d_o = (normal(1, 4, 33, 16, seed=n) for n in range(4))
    mask, sinks, of_keys = normal(33, 33), normal(4), abs(normal(1, 4, 33))
    ids = np.arange(33) % 5

    def __init__(self):
        self.problem = qkv.Problem(self.q, self.k, self.v)
        self.o, self.lse, _ = self.problem.forward()

    def stats(self, **asked):
        return qkv.attention(self.q, self.k, self.v, stats=asked).stats

    def all(self):
        q, k, v = self.q, self.k, self.v
        packed = q[0], k[0], v[0]

        def rule(name, values):
            return name, values, lambda x: qkv.attention(q, k, v, **{name: x})

        def cached(x):
            cache = qkv.KVCache(kv_heads=4, dim=16, pages=2)
            cache.append(0, x, v[0])
            return cache.attend(q)

        def mod(x):
            blocks = qkv.mask_mod(lambda b, h, i, j: x, len_q=33, len_k=33)
            return qkv.attention(q, k, v, block_mask=blocks)

        half = self.problem.forward()
        model = qkv.load()
        return [
            ("q", q, lambda x: qkv.attention(x, k, v)),
            ("k", k, lambda x: qkv.attention(q, x, v)),
            ("v", v, lambda x: qkv.attention(q, k, x)),
            ("q", q.astype(np.float16), lambda x: qkv.attention(x, k.astype(np.float16), v.astype(np.float16))),
            ("mask", self.mask, lambda x: qkv.attention(q, k, v, mask=x)),
            ("mask", self.mask > 0, lambda x: qkv.attention(q, k, v, mask=x)),
            rule("alibi", abs(self.sinks)), rule("sinks", self.sinks), rule("kv_len", np.array([20])),
            rule("q_len", np.array([20])), rule("q_offset", np.array([3])), rule("segments", self.ids),
            ("prefix_len", np.array([7]), lambda x: qkv.attention(q, k, v, causal=True, prefix_len=x)),
            ("cu_seqlens", np.array([0, 12, 33]), lambda x: qkv.attention(*packed, cu_seqlens=x)),
            ("d_o", self.d_o, lambda x: self.problem.backward(x, o=self.o, lse=self.lse).d_q),
            ("o", self.o, lambda x: self.problem.backward(self.d_o, o=x, lse=self.lse).d_q),
            ("lse", self.lse, lambda x: self.problem.backward(self.d_o, o=self.o, lse=x).d_q),
            ("d_lse", self.lse, lambda x: self.problem.backward(self.d_o, o=self.o, lse=self.lse, d_lse=x).d_q),
            ("lse", self.lse, lambda x: self.problem.weights(x)),
            ("row_weights", self.of_keys,
             lambda x: self.problem.columns(self.lse, row_weights=x)["received"]),
            ("key_weights", self.of_keys, lambda x: self.stats(key_weights=x)["weighted_mass"]),
            ("classes", self.ids, lambda x: self.stats(classes=x)["class_mass"]),
            ("tokens", self.ids, lambda x: self.stats(tokens=x)["same_token"]),
            ("offsets", np.array([-40, 0, 40]), lambda x: self.stats(offsets=x)["offset_mass"]),
            ("k", k[0], cached),
            ("o", self.o, lambda x: qkv.merge([(x, half.lse), (half.o, half.lse)])[0]),
            ("lse", self.lse, lambda x: qkv.merge([(half.o, x), (half.o, half.lse)])[0]),
            ("q", q[0], lambda x: qkv.heads(x, k[0]).weights(0, 0)),
            ("added", normal(4, 33, 33), lambda x: qkv.heads(q[0], k[0], added=x).weights(0, 0)),
            ("sinks", self.sinks, lambda x: qkv.heads(q[0], k[0], sinks=x).weights(0, 0)),
            ("Q", q, lambda x: qkv.onnx.attention(x, k, v).Y),
            ("attn_mask", self.mask, lambda x: qkv.onnx.attention(q, k, v, x).Y),
            ("what the mask_mod returned", self.mask > 0, mod),
            ("ids", np.array([200, 300]), lambda x: np.array(model.decode(x))),
        ]


class Forms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.calls = Calls().all()

    def test_the_other_byte_order(self):
        for n, (name, values, call) in enumerate(self.calls):
            with self.subTest(n=n, name=name):
                other = values.astype(values.dtype.newbyteorder(">"))
                np.testing.assert_array_equal(call(other), call(values))

    def test_nothing_but_dlpack(self):
        """In any order of memory."""
        for n, (name, values, call) in enumerate(self.calls):
            for array in (values, np.asfortranarray(values), values[::-1].copy()[::-1]):
                with self.subTest(n=n, name=name, strides=array.strides):
                    np.testing.assert_array_equal(call(ByDLPack(array)), call(values))

    def test_what_is_not_aligned(self):
        """As arrays of a file are that begin at an odd byte."""
        for n, (name, values, call) in enumerate(self.calls):
            with self.subTest(n=n, name=name):
                moved = np.zeros(values.nbytes + 1, np.uint8)[1:].view(values.dtype).reshape(values.shape)
                moved[...] = values
                want = call(values)  # which qkv.attention keeps for calls of the same shapes
                for _ in range(2):
                    np.testing.assert_array_equal(call(moved), want)
                np.testing.assert_array_equal(call(values), want)

    def test_one_in_reverse(self):
        """A dimension of 1 has a negative stride there, and no copy of NumPy takes it away."""
        for shape in ((1, 4, 33, 16), (2, 1, 33, 16), (2, 4, 1, 16), (2, 4, 33, 1)):
            x = normal(*shape)
            for axis in range(4):
                turned = np.flip(x, axis)
                with self.subTest(shape=shape, axis=axis):
                    want = qkv.attention(turned.copy(), turned.copy(), turned.copy(), lse=True)
                    for form in (turned, ByDLPack(turned)) if shape[axis] == 1 else (turned,):
                        out = np.flip(np.zeros(shape, np.float32), axis) if shape[axis] == 1 else None
                        got = qkv.attention(form, form, form, out=out, lse=True)
                        for each, other in zip(got, want):
                            np.testing.assert_array_equal(each, other)
                    np.testing.assert_array_equal(qkv.attention(turned, turned, turned), want[0])

    def test_masked_arrays_are_refused(self):
        for n, (name, values, call) in enumerate(self.calls):
            with self.subTest(n=n, name=name), self.assertRaisesRegex(qkv.DTypeError, f"^{name} is a masked array"):
                call(np.ma.masked_greater(values, 0))

    def test_what_becomes_a_masked_array(self):
        class Column:
            def __array__(self, dtype=None, copy=None):
                return np.ma.masked_greater(normal(4), 0)

        x = normal(1, 4, 5, 8)
        for rules in ({"sinks": Column()}, {"mask": Column()}):
            with self.assertRaisesRegex(qkv.DTypeError, f"^{next(iter(rules))} is a masked array"):
                qkv.attention(x, x, x, **rules)

    def test_masked_arrays_in_lists_and_as_numbers(self):
        """NumPy joins the arrays of a list without their masks, and reads one number from behind its mask."""
        x, hidden = normal(1, 4, 5, 8), np.ma.array(3, mask=True)
        cases = [
            ("q", lambda: qkv.attention([np.ma.masked_greater(row, 0) for row in x], x, x)),
            ("sinks", lambda: qkv.attention(x, x, x, sinks=[np.ma.array(0.5, mask=True)] * 4)),
            ("segments", lambda: qkv.attention(x, x, x, segments=[[hidden] * 5])),
            ("added", lambda: qkv.heads(x[0], x[0], added=(np.ma.masked_greater(normal(5, 5), 0),) * 4)),
            ("tokens", lambda: qkv.attention(x, x, x, stats={"tokens": [hidden] * 5})),
            ("Q", lambda: qkv.onnx.attention([np.ma.masked_greater(row, 0) for row in x], x, x)),
            *((name, lambda name=name: qkv.attention(x, x, x, **{name: hidden}))
              for name in ("chunk", "kv_len", "q_len", "q_offset", "scale", "softcap", "dropout")),
            ("window", lambda: qkv.attention(x, x, x, window=(hidden, 0))),
            ("seed", lambda: qkv.attention(x, x, x, dropout=0.5, seed=hidden)),
        ]
        for name, call in cases:
            with self.subTest(name=name), self.assertRaisesRegex(qkv.DTypeError, rf"^{name}\S* is a masked array"):
                call()
        np.testing.assert_array_equal(qkv.attention(list(x), (x[0],), x), qkv.attention(x, x, x))

    def test_arrays_without_dimensions(self):
        """One number for all of a batch."""
        x = normal(2, 4, 5, 8)
        for name, rules in (("kv_len", {}), ("q_len", {}), ("q_offset", {}), ("prefix_len", {"causal": True})):
            with self.subTest(name=name):
                np.testing.assert_array_equal(qkv.attention(x, x, x, **{name: np.array(3)}, **rules),
                                              qkv.attention(x, x, x, **{name: 3}, **rules))
                with self.assertRaisesRegex(qkv.QkvError, f"^{name} (is|=) "):
                    qkv.attention(x, x, x, **{name: np.array(3.5)}, **rules)
        with self.assertRaisesRegex(qkv.ShapeError, r"alibi has shape \(\), and must have \(1,\)"):
            qkv.attention(x[:, :1], x[:, :1], x[:, :1], alibi=np.array(1.0))

    def test_one_number_for_a_list(self):
        x, model = normal(1, 4, 5, 8), qkv.load()
        for name, call in (("offsets", lambda n: qkv.attention(x, x, x, stats={"offsets": n})), ("ids", model.decode)):
            for value in (5, np.array(5)):
                with self.subTest(name=name), self.assertRaisesRegex(qkv.ShapeError, rf"^{name} has shape \(\)"):
                    call(value)

    def test_what_is_no_real_number(self):
        q = normal(1, 4, 5, 8)
        problem = qkv.Problem(q, q, q)
        o, lse, _ = problem.forward()
        for kind in ("complex64", "U4", "O", "m8[s]"):
            for name, call in (
                    ("sinks", lambda x: qkv.attention(q, q, q, sinks=x[0, :, 0])),
                    ("alibi", lambda x: qkv.attention(q, q, q, alibi=x[0, :, 0])),
                    ("distance_bias", lambda x: qkv.attention(q, q, q, distance_bias=(x[0, :1], 0))),
                    ("key_weights", lambda x: qkv.attention(q, q, q, stats={"key_weights": x})),
                    ("lse", lambda x: problem.backward(q, o=o, lse=x)),
                    ("d_lse", lambda x: problem.backward(q, o=o, lse=lse, d_lse=x)),
                    ("row_weights", lambda x: problem.columns(lse, row_weights=x))):
                with self.subTest(kind=kind, name=name), \
                        self.assertRaisesRegex(qkv.DTypeError, f"^{name} is .*, and must hold real numbers"):
                    call(np.ones((1, 4, 5), dtype="i4").astype(kind))

    def test_dlpack_before_and_since_1_0(self):
        q, k, v = normal(3, 1, 2, 5, 8)
        want = qkv.attention(q, k, v)
        for old in (False, True):
            np.testing.assert_array_equal(qkv.attention(*(ByDLPack(x, old) for x in (q, k, v))), want)
        q.flags.writeable = False  # which only 1.0 can say
        np.testing.assert_array_equal(qkv.attention(ByDLPack(q), k, v), want)

    def test_integers_that_do_not_fit(self):
        x = normal(1, 2, 5, 8)
        for name, values, kind in (("classes", [0, 1, 2, 300, 4], "uint8"), ("tokens", [0, 1, 2, 2**40, 4], "int32")):
            with self.assertRaisesRegex(qkv.ShapeError, f"{name} has {values[3]}, which {kind} cannot hold"):
                qkv.attention(x, x, x, stats={name: np.array(values)})
        with self.assertRaisesRegex(qkv.DTypeError, "tokens is float64, and must hold integers"):
            qkv.attention(x, x, x, stats={"tokens": np.full(5, 1.5)})
        with self.assertRaisesRegex(qkv.ShapeError, "ids has 4294967496, which int32 cannot hold"):
            qkv.load().decode(np.array([2**32 + 200]))
        marks = np.arange(5) % 2 == 1
        mass = qkv.attention(x, x, x, stats={"classes": marks}).stats["class_mass"]
        self.assertEqual(mass.shape, (1, 2, 5, 2))


class Kept(unittest.TestCase):
    """A Problem reads arrays where they are: what was moved since is refused, and lists are its own."""

    def test_arrays_that_have_moved(self):
        for name in ("q", "k", "v", "mask"):
            given = {n: normal(1, 2, 40, 8, seed=3) for n in ("q", "k", "v")}
            given["mask"] = np.zeros((1, 2, 40, 40), np.float32)
            problem = qkv.Problem(**given)
            o, lse, _ = problem.forward()
            given[name].shape = -1  # the same memory
            problem.forward()
            given[name].resize(given[name].size // 2, refcheck=False)
            for call, arguments, more in (
                (problem.forward, (), {}), (problem.columns, (lse,), {}), (problem.weights, (lse,), {}),
                (problem.backward, (o,), {"o": o, "lse": lse}),
            ):
                with self.assertRaisesRegex(qkv.ArgumentError, f"^{name} was resized or given other memory"):
                    call(*arguments, **more)

    def test_heads_whose_arrays_have_moved(self):
        q, k = normal(2, 40, 8), normal(2, 40, 8, seed=1)
        heads = qkv.heads(q, k)
        heads.weights(0, 0)
        k.resize(3, refcheck=False)
        for call in (lambda: heads.weights(0, 0), heads.numbers, heads.page, heads.sharpest,
                     lambda: heads.looks_at(0, 0, 0), lambda: heads.map(0, 0)):
            with self.assertRaisesRegex(qkv.ArgumentError, "^k was resized or given other memory since the heads"):
                call()

    def test_lists_of_lengths(self):
        q, k, v = (normal(1, 2, 40, 8, seed=n) for n in range(3))
        segments = np.arange(40, dtype=np.int32) // 7
        for name, values in (("sinks", normal(2)), ("alibi", normal(2)), ("segments", segments)):
            problem = qkv.Problem(q, k, v, **{name: values})
            want = problem.forward().o
            values[:] = 0
            values.resize(1, refcheck=False)
            np.testing.assert_array_equal(problem.forward().o, want)
        length = np.array([30])
        problem = qkv.Problem(q, k, v, kv_len=length, causal="bottom-right")
        want = problem.forward().o
        length[0] = 5
        np.testing.assert_array_equal(problem.forward().o, want)
        edges = np.array([0, 10, 20])
        packed = qkv.Problem(q[0], k[0], v[0], cu_seqlens=edges)
        want = packed.forward().o
        edges[:] = (0, 10, 2**40)
        np.testing.assert_array_equal(packed.forward().o, want)


class Outputs(unittest.TestCase):
    """A result is in `out`, or an exception says why it is not."""

    def setUp(self):
        self.q, self.k, self.v = (normal(1, 4, 33, 16, seed=n) for n in range(3))
        self.problem = qkv.Problem(self.q, self.k, self.v)
        self.o, self.lse, _ = self.problem.forward()

    def calls(self):
        """Each call that writes to an array of the caller's, and what is to be in it."""
        made = qkv.KVCache(kv_heads=4, dim=16, pages=1)
        made.append(0, self.k[0], self.v[0])
        d_q, d_k, d_v, *_ = self.problem.backward(self.o, o=self.o, lse=self.lse)

        def backward(n):
            def call(out):
                given = [np.zeros_like(self.q) for _ in range(3)]
                given[n] = out
                self.problem.backward(self.o, o=self.o, lse=self.lse, out=tuple(given))
            return call

        return [
            ("out", self.o, lambda out: qkv.attention(self.q, self.k, self.v, out=out)),
            ("out", self.o, lambda out: self.problem.forward(out=out, stats=["entropy"])),
            ("out", made.attend(self.q), lambda out: made.attend(self.q, out=out)),
            *((f"out for d_{name}", want, backward(n)) for n, (name, want) in enumerate(zip("qkv", (d_q, d_k, d_v)))),
        ]

    def test_what_can_be_written_is_written(self):
        shape = self.q.shape
        for name, want, call in self.calls():
            wide = np.zeros((1, 4, 40, 32), np.float32)
            turned = np.zeros((33, 4, 1, 16), np.float32)
            pages = np.zeros(shape, np.float32)
            for array, out in ((wide[:, :, :33, :16],) * 2, (turned.transpose(2, 1, 0, 3),) * 2,
                               (pages, ByInterface(pages)), (pages, ByDLPack(pages))):
                with self.subTest(name=name, out=out):
                    array[...] = 7
                    call(out)
                    np.testing.assert_array_equal(array, want)
            self.assertFalse(wide[:, :, :33, 16:].any())

    def test_what_cannot_is_refused(self):
        shape = self.q.shape
        back = np.full(shape, 7, np.float32)
        fixed = back.copy()
        fixed.flags.writeable = False
        spaced, moved = np.full((1, 4, 33, 32), 7, np.float32), np.zeros(self.q.nbytes + 1, np.uint8)[1:]
        with tempfile.TemporaryFile() as file:
            file.write(back.tobytes())
            file.flush()
            mapped = np.memmap(file, np.float32, "r", shape=shape)
        cases = [
            (qkv.StrideError, "has strides .* none may be negative", back[:, :, ::-1]),
            (qkv.StrideError, "has strides .* the last one must be 1", spaced[..., ::2]),
            (qkv.StrideError, "is not aligned", np.zeros(shape, [("x", np.float32), ("y", np.uint8)])["x"]),
            (qkv.StrideError, "is not aligned", moved.view(np.float32).reshape(shape)),
            (qkv.DTypeError, "is >f4, and must have the byte order", back.astype(">f4")),
            (qkv.DTypeError, "is a masked array", np.ma.masked_array(back)),
            (qkv.DTypeError, "is a list, and must be an array", back.tolist()),
            (qkv.ShapeError, "must be float32", np.zeros((1, 4, 32, 16), np.float32)),
            (qkv.ShapeError, "must be float32", np.zeros(shape, np.float16)),
            (qkv.ArgumentError, "is read-only", fixed),
            (qkv.ArgumentError, "is read-only", mapped),
            (qkv.ArgumentError, "is read-only", np.frombuffer(back.tobytes(), np.float32).reshape(shape)),
            (qkv.ArgumentError, "is read-only", ByInterface(fixed)),
            (qkv.ArgumentError, "is of the type ByDLPack, and does not say", ByDLPack(fixed)),
            (qkv.ArgumentError, "is of the type ByDLPack, and does not say", ByDLPack(back, old=True)),
            (qkv.StrideError, "overlap|less than", np.lib.stride_tricks.as_strided(back, strides=(0, 0, 64, 4))),
        ]
        for name, _, call in self.calls():
            for kind, words, out in cases:
                with self.subTest(name=name, words=words):
                    with self.assertRaisesRegex(kind, words) as raised:
                        call(out)
                    if "overlap" not in words:
                        self.assertTrue(str(raised.exception).startswith(name), raised.exception)
        self.assertTrue((back == 7).all() and (spaced == 7).all() and (fixed == 7).all())

    def test_rows_of_no_query(self):
        """They are 0, also in an array of the caller's."""
        out = np.full(self.q.shape, 7, np.float32)
        qkv.attention(self.q, self.k, self.v, q_len=20, out=out)
        np.testing.assert_array_equal(out, qkv.attention(self.q, self.k, self.v, q_len=20))
        self.assertFalse(out[:, :, 20:].any())
        packed = np.full(self.q[0].shape, 7, np.float32)
        qkv.attention(self.q[0], self.k[0], self.v[0], cu_seqlens=[0, 5, 30], out=packed)
        self.assertFalse(packed[:, 30:].any())

    def test_how_many(self):
        with self.assertRaisesRegex(qkv.ShapeError, "out has 2 arrays, and must have 3"):
            self.problem.backward(self.o, o=self.o, lse=self.lse, out=(self.q, self.k))


if __name__ == "__main__":
    unittest.main()
