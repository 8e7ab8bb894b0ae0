"""qkv.attention and Problem beside a reference in float64, on random problems. The seed is printed."""
import os
import unittest

import numpy as np
import reference

import qkv

SEED = int(os.environ.get("QKV_SEED", "20261124"))
print(f"QKV_SEED={SEED}")


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def random_rules(rng, n_batch, n_heads, len_q, len_k):
    rules = {}

    def maybe(share=0.3):
        return rng.random() < share

    if maybe(0.5):
        rules["causal"] = rng.choice([True, "top-left", "bottom-right"])
        rules["causal"] = True if rules["causal"] == "True" else str(rules["causal"])
    if maybe() and rules.get("causal") != "bottom-right":
        rules["q_offset"] = int(rng.integers(-5, 20)) if maybe(0.5) else rng.integers(-5, 20, n_batch)
    if maybe():
        rules["window"] = (int(rng.integers(0, 30)), None) if maybe(0.5) else (int(rng.integers(0, 30)), 4)
    if maybe():
        rules["kv_len"] = rng.integers(0, len_k + 1, n_batch)
    if maybe():
        rules["q_len"] = rng.integers(0, len_q + 1, n_batch)
    if maybe() and rules.get("causal"):
        rules["prefix_len"] = rng.integers(0, len_k + 1, n_batch)
    if maybe(0.2):
        rules["chunk"] = int(rng.integers(1, 40))
    if maybe(0.2):
        rules["segments"] = (rng.integers(0, 3, (n_batch, len_q)), rng.integers(0, 3, (n_batch, len_k)))
    if maybe():
        shape = [1 if maybe(0.5) else size for size in (n_batch, n_heads, len_q)] + [len_k]
        rules["mask"] = rng.random(shape) < 0.7 if maybe(0.5) else normal(rng, *shape)
    if maybe(0.2):
        rules["scale"] = float(rng.uniform(0.01, 0.5))
    if maybe(0.2):
        rules["softcap"] = float(rng.uniform(1, 20))
    if maybe(0.2):
        rules["alibi"] = rng.uniform(0, 0.5, n_heads).astype(np.float32)
    if maybe(0.2):
        before, after = (int(rng.integers(0, most)) for most in (len_q + 5, len_k + 5))
        rules["distance_bias"] = normal(rng, n_heads if maybe(0.7) else 1, before + 1 + after), before
    if maybe(0.2):
        rules["sinks"] = normal(rng, n_heads)
    return rules


def random_problem(rng):
    n_batch, kv_heads, groups = (int(rng.integers(1, top)) for top in (4, 4, 4))
    len_q, len_k, dim, dim_v = (int(rng.integers(1, top)) for top in (70, 300, 80, 80))
    q = normal(rng, n_batch, kv_heads * groups, len_q, dim)
    k, v = normal(rng, n_batch, kv_heads, len_k, dim), normal(rng, n_batch, kv_heads, len_k, dim_v)
    return q, k, v, random_rules(rng, n_batch, kv_heads * groups, len_q, len_k)


class BesideReference(unittest.TestCase):
    def test_random_problems(self):
        for n in range(300):
            rng = np.random.default_rng([SEED, n])
            q, k, v, rules = random_problem(rng)
            problem = qkv.Problem(q, k, v, **rules)
            o, lse, stats = problem.forward(stats=["entropy", "largest", "n_seen"])
            want_o, want_lse, p = reference.attention(q, k, v, **rules)
            rows = np.arange(q.shape[2])[None, :] < np.reshape(rules.get("q_len", q.shape[2]), (-1, 1))
            rows = np.broadcast_to(rows[:, None], lse.shape)
            with self.subTest(n=n, rules=list(rules)):
                np.testing.assert_allclose(o[rows], want_o[rows], atol=2e-5, rtol=0)
                np.testing.assert_allclose(lse[rows], want_lse[rows], atol=2e-5, rtol=1e-6)
                self.assertFalse(np.any(o[~rows]))
                seen = reference.sees(*q.shape[:3], k.shape[2], rules)
                np.testing.assert_array_equal(stats["n_seen"][rows], seen.sum(axis=-1)[rows])
                np.testing.assert_allclose(stats["largest"][rows], p.max(axis=-1)[rows], atol=1e-5)
                b, h = int(rng.integers(q.shape[0])), int(rng.integers(q.shape[1]))
                got = problem.weights(lse, batch=b, head=h)
                np.testing.assert_allclose(got[rows[b, h]], p[b, h][rows[b, h]], atol=2e-5)
                received = problem.columns(lse)["received"]
                np.testing.assert_allclose(received, (p * rows[..., None]).sum(axis=2), atol=2e-4)

    def test_gradients(self):
        for n in range(60):
            rng = np.random.default_rng([SEED, 1000, n])
            q, k, v, rules = random_problem(rng)
            for name in ("softcap", "sinks", "q_len"):
                rules.pop(name, None)
            problem = qkv.Problem(q, k, v, **rules)
            o, lse, _ = problem.forward()
            d_o, d_lse = normal(rng, *o.shape), normal(rng, *lse.shape)
            got = problem.backward(d_o, o=o, lse=lse, d_lse=d_lse)
            want = reference.backward(q, k, v, d_o.astype(float), d_lse.astype(float), **rules)
            for name, ours, theirs in zip(("d_q", "d_k", "d_v"), got, want, strict=False):
                with self.subTest(n=n, name=name, rules=list(rules)):
                    np.testing.assert_allclose(ours, theirs, atol=2e-4 * max(1, np.abs(theirs).max()), rtol=0)

    def test_gradient_of_a_mask_is_the_slope(self):
        rng = np.random.default_rng([SEED, 2000])
        q, k, v = normal(rng, 2, 2, 5, 8), normal(rng, 2, 2, 7, 8), normal(rng, 2, 2, 7, 8)
        mask = normal(rng, 1, 2, 5, 7)
        problem = qkv.Problem(q, k, v, mask=mask, sinks=np.zeros(2, np.float32))
        o, lse, _ = problem.forward()
        d_o = normal(rng, *o.shape)
        got = problem.backward(d_o, o=o, lse=lse, d_mask=True)
        self.assertEqual(got.d_mask.shape, mask.shape)
        self.assertEqual(got.d_sinks.shape, (2,))
        step = 1e-4
        for at in ((0, 0, 0, 0), (0, 1, 4, 6), (0, 1, 2, 3)):
            sums = []
            for sign in (1, -1):
                moved = mask.astype(float)
                moved[at] += sign * step
                want, _, _ = reference.attention(q, k, v, mask=moved, sinks=np.zeros(2))
                sums.append((want * d_o).sum())
            self.assertAlmostEqual(got.d_mask[at], (sums[0] - sums[1]) / (2 * step), delta=1e-4)

    def test_gradient_of_a_distance_bias_is_the_slope(self):
        rng = np.random.default_rng([SEED, 2001])
        q, k, v = normal(rng, 2, 2, 5, 8), normal(rng, 2, 2, 7, 8), normal(rng, 2, 2, 7, 8)
        for heads in (1, 2):
            numbers = normal(rng, heads, 6)
            problem = qkv.Problem(q, k, v, distance_bias=(numbers, 2), q_offset=1)
            o, lse, _ = problem.forward()
            d_o = normal(rng, *o.shape)
            got = problem.backward(d_o, o=o, lse=lse, d_distance_bias=True)
            self.assertEqual(got.d_distance_bias.shape, numbers.shape)
            self.assertIsNone(problem.backward(d_o, o=o, lse=lse).d_distance_bias)
            step = 1e-4
            for at in np.ndindex(*numbers.shape):
                sums = []
                for sign in (1, -1):
                    moved = numbers.astype(float)
                    moved[at] += sign * step
                    want, _, _ = reference.attention(q, k, v, distance_bias=(moved, 2), q_offset=1)
                    sums.append((want * d_o).sum())
                self.assertAlmostEqual(got.d_distance_bias[at], (sums[0] - sums[1]) / (2 * step), delta=1e-4)
        for wrong, said in (((numbers[0], 2), "shape"), ((numbers, 6), "not in"), (numbers, "no tuple of two"),
                            ((normal(rng, 3, 6), 2), "shape"), ((numbers, -1), "not in")):
            with self.assertRaisesRegex(qkv.QkvError, said):
                qkv.Problem(q, k, v, distance_bias=wrong)
        with self.assertRaisesRegex(qkv.ArgumentError, "there is no distance_bias"):
            problem = qkv.Problem(q, k, v)
            o, lse, _ = problem.forward()
            problem.backward(d_o, o=o, lse=lse, d_distance_bias=True)


class Rollout(unittest.TestCase):
    def test_a_step(self):
        rng = np.random.default_rng(SEED)
        q, k, v = normal(rng, 2, 4, 30, 16), normal(rng, 2, 2, 30, 16), normal(rng, 2, 2, 30, 8)
        problem, x = qkv.Problem(q, k, v, causal=True, softcap=3.0), rng.random((2, 30)).astype(np.float32)
        lse = problem.forward().lse
        p = np.array([[problem.weights(lse, batch=b, head=h) for h in range(4)] for b in range(2)], np.float64)
        for heads, a in (("mean", p.mean(1)), ("max", p.max(1)), ("min", p.min(1))):
            a = a + np.eye(30)
            want = np.einsum("bi,bij->bj", x.astype(np.float64), a / a.sum(2, keepdims=True))
            with self.subTest(heads=heads):
                np.testing.assert_allclose(problem.rollout_step(lse, x, heads=heads), want, atol=1e-5)
        with self.assertRaisesRegex(qkv.ShapeError, r"x has shape \(30,\), and must have \(2, 30\)"):
            problem.rollout_step(lse, x[0])
        with self.assertRaisesRegex(qkv.ArgumentError, "heads is 'sum'"):
            problem.rollout_step(lse, x, heads="sum")
        alone = qkv.Problem(q[0], k[0], v[0], causal=True, softcap=3.0)
        np.testing.assert_array_equal(alone.rollout_step(alone.forward().lse, x[0]), problem.rollout_step(lse, x)[0])
        with self.assertRaises(qkv.ShapeError):
            other = qkv.Problem(q[:, :, :20], k, v)
            other.rollout_step(other.forward().lse, x[:, :20])


class Empty(unittest.TestCase):
    def test_no_queries_and_no_keys(self):
        rng = np.random.default_rng([SEED, 2500])
        q, k = normal(rng, 2, 4, 5, 16), normal(rng, 2, 4, 7, 16)
        o = qkv.attention(q[:, :, :0], k, k)
        self.assertEqual(o.shape, (2, 4, 0, 16))
        o, lse = qkv.attention(q, k[:, :, :0], k[:, :, :0], lse=True)
        self.assertTrue((o == 0).all() and (lse == -np.inf).all())
        none = np.empty((2, 4, 0, 16), np.float32)
        problem = qkv.Problem(none, none, none, causal=True)
        o, lse, _ = problem.forward()
        found = problem.backward(o, o=o, lse=lse)
        self.assertEqual((o.shape, lse.shape, found.d_k.shape), (none.shape, (2, 4, 0), none.shape))


class Layouts(unittest.TestCase):
    def setUp(self):
        rng = np.random.default_rng([SEED, 3000])
        self.q, self.k, self.v = (normal(rng, 2, 4, 50, 16) for _ in range(3))
        self.o = qkv.attention(self.q, self.k, self.v, causal=True)

    def same(self, a, b):
        self.assertEqual(np.ascontiguousarray(a).tobytes(), np.ascontiguousarray(b).tobytes())

    def test_lengths_before_heads(self):
        turned = [np.ascontiguousarray(x.transpose(0, 2, 1, 3)) for x in (self.q, self.k, self.v)]
        self.same(qkv.attention(*turned, causal=True, layout="blhd").transpose(0, 2, 1, 3), self.o)
        self.same(qkv.attention(*(x.transpose(0, 2, 1, 3) for x in turned), causal=True), self.o)

    def test_the_shortest_call_has_the_bits_of_all_others(self):
        for causal in (False, True, "top-left", "bottom-right"):
            o = qkv.attention(self.q, self.k, self.v, causal=causal)
            self.same(o, qkv.Problem(self.q, self.k, self.v, causal=causal).forward().o)
        self.same(qkv.attention(self.q, self.k[:, :, :20], self.v[:, :, :20], causal="bottom-right"),
                  qkv.attention(self.q, self.k[:, :, :20], self.v[:, :, :20], causal=True, q_offset=-30))

    def test_fewer_dimensions(self):
        self.same(qkv.attention(self.q[0], self.k[0], self.v[0], causal=True), self.o[0])
        self.same(qkv.attention(self.q[1, 2], self.k[1, 2], self.v[1, 2], causal=True), self.o[1, 2])

    def test_channels_that_are_not_dense_are_copied(self):
        wide = np.zeros((2, 4, 50, 32), np.float32)
        wide[..., ::2] = self.q
        self.same(qkv.attention(wide[..., ::2], self.k[:, :, ::-1][:, :, ::-1], self.v, causal=True), self.o)

    def test_packed(self):
        cu = np.array([0, 10, 10, 50])
        rows = [np.concatenate([x[0, :, :10], x[1, :, :40]], axis=1) for x in (self.q, self.k, self.v)]
        o, lse = qkv.attention(*rows, cu_seqlens=cu, causal=True, lse=True)
        alone, alone_lse = qkv.attention(*(x[1, :, :40] for x in (self.q, self.k, self.v)), causal=True, lse=True)
        self.same(o[:, 10:], alone)
        self.same(lse[:, 10:], alone_lse)
        turned = [np.ascontiguousarray(x.transpose(1, 0, 2)) for x in rows]
        self.same(qkv.attention(*turned, cu_seqlens=cu, causal=True, layout="blhd").transpose(1, 0, 2), o)
        problem = qkv.Problem(*rows, cu_seqlens=cu, causal=True)
        got = problem.backward(np.ones_like(o), o=o, lse=lse)
        alone = qkv.Problem(*(x[1, :, :40] for x in (self.q, self.k, self.v)), causal=True)
        part = alone.backward(np.ones_like(o[:, 10:]), o=o[:, 10:], lse=lse[:, 10:])
        for ours, theirs in zip(got[:3], part[:3], strict=True):
            self.same(ours[:, 10:], theirs)

    def test_weights_of_a_packed_sequence(self):
        """All of them are those of its own length, which need not be that of the longest one."""
        x = np.random.default_rng(6).standard_normal((4, 12, 16)).astype(np.float32)
        cu, cu_k = [0, 3, 3, 10], [0, 4, 6, 11]
        packed = qkv.Problem(x, x, x, cu_seqlens=(cu, cu_k))
        lse = packed.forward().lse
        for b in range(3):
            q, k = x[:, cu[b]:cu[b + 1]], x[:, cu_k[b]:cu_k[b + 1]]
            alone = qkv.Problem(q, k, k)
            got = packed.weights(lse, batch=b, head=2)
            np.testing.assert_array_equal(got, alone.weights(alone.forward().lse, head=2))
            self.assertEqual(got.shape, (q.shape[1], k.shape[1]))
        with self.assertRaisesRegex(qkv.ArgumentError, r"queries is \(0, 5\), and must rise within 0 to 3"):
            packed.weights(lse, batch=0, queries=(0, 5))

    def test_keys_that_batches_share(self):
        one = qkv.attention(self.q, self.k[:1], self.v[:1])
        self.same(one[1], qkv.attention(self.q[1], self.k[0], self.v[0]))

    def test_output_of_the_caller(self):
        out = np.full((2, 50, 4, 16), 7, np.float32).transpose(0, 2, 1, 3)
        self.assertIs(qkv.attention(self.q, self.k, self.v, causal=True, out=out), out)
        self.same(out, self.o)

    def test_halves(self):
        half = [x.astype(np.float16) for x in (self.q, self.k, self.v)]
        o = qkv.attention(*half)
        self.assertEqual(o.dtype, np.float16)
        exact, _, _ = reference.attention(*half)
        np.testing.assert_allclose(o, exact, atol=2e-3)
        wide = qkv.attention(*half, out_dtype="float32")
        self.assertEqual(wide.dtype, np.float32)
        np.testing.assert_allclose(wide, exact, atol=1e-5)

    def test_dlpack(self):
        class Foreign:
            """An array that has nothing but __dlpack__."""

            def __init__(self, array):
                self.array = array

            def __dlpack__(self):
                return self.array.__dlpack__()

        o = qkv.attention(*(Foreign(x) for x in (self.q, self.k.transpose(0, 1, 2, 3), self.v)), causal=True)
        self.same(o, self.o)

    def test_read_only(self):
        for x in (self.q, self.k, self.v):
            x.setflags(write=False)
        self.same(qkv.attention(self.q, self.k, self.v, causal=True), self.o)


class Rules(unittest.TestCase):
    def setUp(self):
        rng = np.random.default_rng([SEED, 4000])
        self.q, self.k, self.v = normal(rng, 2, 4, 70, 16), normal(rng, 2, 2, 300, 16), normal(rng, 2, 2, 300, 16)

    def test_mask_mod_has_the_bits_of_its_mask(self):
        functions = {
            "documents": (lambda b, h, i, j: i // 50 == j // 50, 1, 1),
            "per head": (lambda b, h, i, j: (j - i) % (h + 2) == 0, 1, 4),
            "per batch": (lambda b, h, i, j: j < 100 * (b + 1), 2, 1),
            "causal": (lambda b, h, i, j: j <= i + 230, 1, 1),
            "nothing": (lambda b, h, i, j: i + j < 0, 1, 1),
            "all": (lambda b, h, i, j: i + j >= 0, 1, 1),
        }
        i, j = np.arange(70)[:, None], np.arange(300)[None, :]
        for name, (f, batch, heads) in functions.items():
            for block_len in (32, 128):
                with self.subTest(name=name, block_len=block_len):
                    blocks = qkv.mask_mod(f, len_q=70, len_k=300, batch=batch, heads=heads, block_len=block_len)
                    mask = np.array([[np.broadcast_to(f(b, h, i, j), (70, 300)) for h in range(heads)]
                                     for b in range(batch)])
                    o = qkv.attention(self.q, self.k, self.v, block_mask=blocks)
                    self.assertEqual(o.tobytes(), qkv.attention(self.q, self.k, self.v, mask=mask).tobytes())
        self.assertEqual(qkv.mask_mod(functions["nothing"][0], len_q=70, len_k=300).sparsity, 1)
        self.assertIsNone(qkv.mask_mod(functions["all"][0], len_q=70, len_k=300).bits)

    def test_masks_of_zeros_and_ones(self):
        of_tokens = np.ones((2, 1, 1, 300), np.int64)
        of_tokens[1, ..., 200:] = 0
        want = qkv.attention(self.q, self.k, self.v, mask=of_tokens.astype(bool))
        self.assertEqual(want.tobytes(), qkv.attention(self.q, self.k, self.v, kv_len=[300, 200]).tobytes())
        for kind in (np.int64, np.int32, np.int16, np.int8, np.uint8, np.uint64, ">i8"):
            for mask in (of_tokens.astype(kind), np.broadcast_to(of_tokens.astype(kind), (2, 4, 70, 300))):
                with self.subTest(kind=kind):
                    got = qkv.attention(self.q, self.k, self.v, mask=mask)
                    self.assertEqual(got.tobytes(), want.tobytes())
        empty = qkv.attention(self.q[:, :, :0], self.k, self.v, mask=np.ones((0, 300), np.int64))
        self.assertEqual(empty.shape, (2, 4, 0, 16))

    def test_dropout(self):
        def run(seed):
            return qkv.attention(self.q, self.k, self.v, dropout=0.5, seed=seed)

        self.assertEqual(run(1).tobytes(), run(1).tobytes())
        self.assertNotEqual(run(1).tobytes(), run(2).tobytes())
        mean = np.mean([run(seed) for seed in range(200)], axis=0)
        np.testing.assert_allclose(mean, qkv.attention(self.q, self.k, self.v), atol=0.15)

    def test_statistics_of_classes_offsets_and_tokens(self):
        classes = np.arange(300) % 3
        tokens = np.arange(300) % 7
        asked = {"classes": classes, "offsets": [-1000, 0, 1, 1000], "tokens": (tokens[:70], tokens), "top": 4,
                 "key_weights": np.ones((2, 4, 300)), "effective_keys": True}
        o, lse, stats = qkv.attention(self.q, self.k, self.v, stats=asked)
        _, _, p = reference.attention(self.q, self.k, self.v)
        i, j = np.arange(70)[:, None], np.arange(300)[None, :]
        close = {"atol": 1e-5}
        for c in range(3):
            np.testing.assert_allclose(stats["class_mass"][..., c], p[..., classes == c].sum(axis=-1), **close)
        np.testing.assert_allclose(stats["offset_mass"][..., 1], (p * (i == j)).sum(axis=-1), **close)
        np.testing.assert_allclose(stats["weighted_mass"], p.sum(axis=-1), **close)
        same = (tokens[None, :] == tokens[:70, None]) & (i != j)
        np.testing.assert_allclose(stats["same_token"], (p * same).sum(axis=-1), **close)
        np.testing.assert_array_equal(stats["top_keys"], np.argsort(-p, axis=-1, kind="stable")[..., :4])
        np.testing.assert_allclose(stats["effective_keys"], 1 / (p * p).sum(axis=-1), rtol=1e-4)
        self.assertEqual(o.tobytes(), qkv.attention(self.q, self.k, self.v).tobytes())

    def test_map_and_diagonals(self):
        problem = qkv.Problem(self.q, self.k, self.v, causal="bottom-right")
        _, lse, _ = problem.forward()
        got = problem.columns(lse, want=["entropy", "largest_query"], tiles=(7, 3), diagonals=(0, 10), tiny=1e-3)
        _, _, p = reference.attention(self.q, self.k, self.v, causal="bottom-right")
        tiles = p.reshape(2, 4, 7, 10, 3, 100)
        np.testing.assert_allclose(got["tile_mass"], tiles.sum(axis=(3, 5)) / 10, atol=1e-5)
        np.testing.assert_allclose(got["tile_peak"], tiles.max(axis=(3, 5)), atol=1e-5)
        np.testing.assert_array_equal(got["largest_query"], p.argmax(axis=2))
        own = np.array([p[..., i, i + 230] for i in range(70)]).mean(axis=0)
        np.testing.assert_allclose(got["diagonal"][..., 0], own, atol=1e-5)
        self.assertEqual(int(got["n_cells"][0, 0]), sum(i + 231 for i in range(70)))

    def test_plan(self):
        plan = qkv.Problem(self.q, self.k, self.v).plan()
        self.assertIn(plan["kernel"], ("attend_small", "attend_block", "attend_small, attend_block"))
        self.assertTrue(plan["kernel_reason"])
        self.assertGreaterEqual(plan["workspace_bytes"], 0)
        packed = qkv.Problem(self.q[0], self.k[0], self.v[0], cu_seqlens=([0, 30, 70], [0, 100, 300]))
        self.assertTrue(packed.plan()["kernel"])


class Errors(unittest.TestCase):
    def test_each_names_what_is_wrong(self):
        x = np.zeros((1, 2, 5, 8), np.float32)
        cases = [
            (qkv.DTypeError, "q is float64", lambda: qkv.attention(x.astype(float), x, x)),
            (qkv.DTypeError, "k is float16", lambda: qkv.attention(x, x.astype(np.float16), x)),
            (qkv.ShapeError, "8 channels, k has 7", lambda: qkv.attention(x, x[..., :7], x)),
            (qkv.ShapeError, "5 dimensions", lambda: qkv.attention(x[None], x[None], x[None])),
            (qkv.ShapeError, r"v has \(1, 5\)", lambda: qkv.attention(x, x, x[:, :1])),
            (qkv.ShapeError, r"kv_len\[0\] = 6", lambda: qkv.attention(x, x, x, kv_len=6)),
            (qkv.ShapeError, "mask has 4 keys", lambda: qkv.attention(x, x, x, mask=np.ones((5, 4), bool))),
            (qkv.ArgumentError, "mask is int64 and has 2: integers are 0 or 1, which sees",
             lambda: qkv.attention(x, x, x, mask=np.full((5, 5), 2))),
            (qkv.DTypeError, "mask is float64", lambda: qkv.attention(x, x, x, mask=np.ones((5, 5)))),
            (qkv.DTypeError, "kv_len is float64", lambda: qkv.attention(x, x, x, kv_len=[2.5])),
            (qkv.ShapeError, "int32 cannot hold", lambda: qkv.attention(x, x, x, segments=np.full((1, 5), 2**40))),
            (qkv.ArgumentError, "dropout needs a seed", lambda: qkv.attention(x, x, x, dropout=0.1)),
            (qkv.ArgumentError, "softcap", lambda: qkv.attention(x, x, x, softcap=-1.0)),
            (qkv.ArgumentError, "causal is 'left'", lambda: qkv.attention(x, x, x, causal="left")),
            (qkv.ArgumentError, "no 'entropie'", lambda: qkv.attention(x, x, x, stats=["entropie"])),
            (qkv.ArgumentError, "prefix_len is given without", lambda: qkv.attention(x, x, x, prefix_len=2)),
            (qkv.ShapeError, "cu_seqlens ends with 9", lambda: qkv.attention(x[0], x[0], x[0], cu_seqlens=[0, 9])),
            (qkv.ShapeError, "must be float32", lambda: qkv.attention(x, x, x, out=np.zeros((1, 2, 5, 7), np.float32))),
            (qkv.ArgumentError, "isa", lambda: qkv.Context(isa="sse9")),
            (TypeError, "has no keyword casual: did you mean causal", lambda: qkv.attention(x, x, x, casual=True)),
        ]
        for kind, words, call in cases:
            with self.subTest(words=words), self.assertRaisesRegex(kind, words):
                call()

    def test_statuses_have_names(self):
        x = np.zeros((1, 2, 5, 8), np.float32)
        with self.assertRaises(qkv.QkvError) as raised:
            qkv.attention(x, x, x, kv_len=6)
        self.assertEqual(raised.exception.status, "QKV_ERR_SHAPE")
        self.assertIsInstance(raised.exception, ValueError)


if __name__ == "__main__":
    unittest.main()
