"""Decoding from a cache, and merging, beside attention over all keys."""
import unittest

import numpy as np
import reference

import qkv


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


class Cache(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(5)

    def test_token_after_token(self):
        k, v = normal(self.rng, 2, 90, 16), normal(self.rng, 2, 90, 24)
        q = normal(self.rng, 1, 6, 90, 16)
        cache = qkv.KVCache(kv_heads=2, dim=16, dim_v=24, pages=8, page_len=16)
        want, want_lse, _ = reference.attention(q, k[None], v[None], causal=True)
        cache.append(0, k[:, :50], v[:, :50])
        o, lse = cache.attend(q[:, :, :50], lse=True)
        np.testing.assert_allclose(o, want[:, :, :50], atol=1e-5)
        np.testing.assert_allclose(lse, want_lse[:, :, :50], atol=1e-5)
        for at in range(50, 90):
            cache.append(0, k[:, at:at + 1], v[:, at:at + 1])
            np.testing.assert_allclose(cache.attend(q[:, :, at:at + 1]), want[:, :, at:at + 1], atol=1e-5)
        self.assertEqual(cache.length(), 90)
        narrow, _, _ = reference.attention(q[:, :, -1:], k[None], v[None], window=(9, None), q_offset=89)
        np.testing.assert_allclose(cache.attend(q[:, :, -1:], window=10), narrow, atol=1e-5)

    def test_sequences_that_begin_alike(self):
        k, v, q = normal(self.rng, 1, 40, 8), normal(self.rng, 1, 40, 8), normal(self.rng, 2, 1, 1, 8)
        cache = qkv.KVCache(sequences=2, kv_heads=1, dim=8, pages=4, page_len=16)
        cache.append(0, k, v)
        cache.fork(0, 1)
        self.assertEqual(cache.free_pages, 1)
        cache.truncate(1, 20)
        o = cache.attend(q)
        for b, length in enumerate((40, 20)):
            want, _, _ = reference.attention(q[b:b + 1], k[None, :, :length], v[None, :, :length])
            np.testing.assert_allclose(o[b:b + 1], want, atol=1e-5)

    def test_int8_and_a_ring(self):
        k, v, q = normal(self.rng, 1, 100, 32), normal(self.rng, 1, 100, 32), normal(self.rng, 1, 1, 1, 32)
        cache = qkv.KVCache(kv_heads=1, dim=32, pages=2, page_len=16, ring_len=32, dtype="int8")
        for at in range(100):
            cache.append(0, k[:, at:at + 1], v[:, at:at + 1])
        want, _, _ = reference.attention(q, k[None, :, 80:], v[None, :, 80:])
        np.testing.assert_allclose(cache.attend(q, window=20), want, atol=0.05)

    def test_every_rule_of_attention(self):
        q, k, v = normal(self.rng, 2, 4, 3, 16), normal(self.rng, 2, 2, 70, 16), normal(self.rng, 2, 2, 70, 16)
        cache = qkv.KVCache(sequences=2, kv_heads=2, dim=16, pages=10, page_len=16)
        for b in range(2):
            cache.append(b, k[b], v[b])
        segments = np.zeros((2, 3), np.int32), self.rng.integers(0, 2, (2, 70)).astype(np.int32)
        segments[1][:, -1] = 0
        rules = [
            {"causal": False}, {"window": 20}, {"chunk": 16}, {"softcap": 3.0, "scale": 0.4}, {"prefix_len": 5},
            {"sinks": np.array([0.5, -1, 2, 0], np.float32)}, {"alibi": np.array([0.5, 0.25, 0.125, 1], np.float32)},
            {"mask": self.rng.random((2, 1, 3, 70)) < 0.5}, {"mask": normal(self.rng, 4, 3, 70)},
            {"segments": segments}, {"q_len": np.array([3, 1])},
            {"block_mask": qkv.mask_mod(lambda b, h, i, j: (j // 32 + i) % 2 == 0, len_q=3, len_k=70, block_len=32)},
        ]
        for each in rules:
            with self.subTest(rule=sorted(each)):
                o, lse, stats = cache.attend(q, stats=["entropy", "largest"], **each)
                same = {"causal": True, **each}
                if "window" in each:
                    same["window"] = (each["window"] - 1, None)
                want = qkv.Problem(q, k, v, q_offset=67, **same).forward(stats=["entropy", "largest"])
                np.testing.assert_allclose(o, want.o, atol=1e-5)
                np.testing.assert_allclose(lse, want.lse, atol=1e-5)
                for name in ("entropy", "largest"):
                    np.testing.assert_allclose(stats[name], want.stats[name], atol=1e-5)
                self.assertEqual(cache.attend(q, **each).tobytes(), o.tobytes())
        with self.assertRaisesRegex(qkv.UnsupportedError, "dropout"):
            cache.attend(q, dropout=0.5, seed=1)
        with self.assertRaisesRegex(qkv.ArgumentError, "no kv_len"):
            cache.attend(q, kv_len=3)

    def test_errors(self):
        cache = qkv.KVCache(kv_heads=2, dim=8, pages=1, page_len=16)
        with self.assertRaisesRegex(qkv.ShapeError, "n = 17"):
            cache.append(0, np.zeros((2, 17, 8), np.float32), np.zeros((2, 17, 8), np.float32))
        with self.assertRaisesRegex(qkv.ShapeError, "v is float32"):
            cache.append(0, np.zeros((2, 1, 8), np.float32), np.zeros((2, 2, 8), np.float32))
        with self.assertRaisesRegex(qkv.ArgumentError, "sequence = 3 is not in"):
            cache.length(3)
        with self.assertRaisesRegex(qkv.ArgumentError, "dtype is 'float8'"):
            qkv.KVCache(kv_heads=2, dim=8, pages=1, dtype="float8")
        self.assertEqual(cache.length(), 0)


class Merge(unittest.TestCase):
    def test_parts_of_the_keys(self):
        rng = np.random.default_rng(6)
        q, k, v = normal(rng, 2, 4, 30, 16), normal(rng, 2, 2, 90, 16), normal(rng, 2, 2, 90, 16)
        parts = [qkv.attention(q, k[:, :, a:b], v[:, :, a:b], lse=True) for a, b in ((0, 20), (20, 20), (20, 90))]
        o, lse = qkv.merge(parts)
        want, want_lse, _ = reference.attention(q, k, v)
        np.testing.assert_allclose(o, want, atol=1e-5)
        np.testing.assert_allclose(lse, want_lse, atol=1e-5)
        strided = [(np.asfortranarray(a), np.asfortranarray(b)) for a, b in parts]
        self.assertEqual(qkv.merge(strided)[0].tobytes(), o.tobytes())

    def test_errors(self):
        o, lse = np.zeros((3, 8), np.float32), np.zeros(3, np.float32)
        with self.assertRaisesRegex(qkv.ShapeError, "part's o"):
            qkv.merge([(o, lse), (o[:2], lse[:2])])
        with self.assertRaisesRegex(qkv.ShapeError, "part's lse"):
            qkv.merge([(o, lse[:2])])
        with self.assertRaises(qkv.ArgumentError):
            qkv.merge([])


if __name__ == "__main__":
    unittest.main()
