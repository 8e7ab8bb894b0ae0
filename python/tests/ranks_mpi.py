"""qkv.mpi under mpirun: each rank compares its rows with those of qkv.attention on the whole sequence.

usage: mpirun -n P python ranks_mpi.py
"""
import copy
import os
import sys
import threading
import unittest

import numpy as np
from mpi4py import MPI

import qkv
import qkv.mpi

COMM = MPI.COMM_WORLD
SEED = int(os.environ.get("QKV_TEST_SEED", "19"))


class Ranks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.group = qkv.mpi.Group(COMM)
        cls.rng = np.random.default_rng(SEED)
        cls.addClassCleanup(cls.group.close)

    def arrays(self, heads, kv_heads, len_q, len_k, dim, dtype=np.float32):
        shapes = ((2, heads, len_q, dim), (2, kv_heads, len_k, dim), (2, kv_heads, len_k, dim))
        return [self.rng.standard_normal(shape).astype(dtype) for shape in shapes]

    def cuts(self, length):
        """Uneven pieces, the same on all ranks; the first is empty where there are several."""
        inner = sorted(self.rng.integers(0, length + 1, COMM.size - 1)) if COMM.size > 1 else []
        return [0, *([0] + inner[1:] if inner else []), length]

    def piece(self, array, cuts):
        return array[..., cuts[COMM.rank]:cuts[COMM.rank + 1], :]

    def both(self, len_q, len_k, rules, local=None, **options):
        q, k, v = self.arrays(6, 2, len_q, len_k, 40)
        cuts_q, cuts_k = self.cuts(len_q), self.cuts(len_k)
        whole = qkv.attention(q, k, v, **rules, **options)
        pieces = self.piece(q, cuts_q), self.piece(k, cuts_k), self.piece(v, cuts_k)
        own = dict(rules, **(local(cuts_q) if local else {}))
        return whole, self.group.attention(*pieces, **own, **options), cuts_q

    def test_bits_of_one_process(self):
        for len_q, len_k, rules in ((700, 700, {"causal": True}), (300, 1100, {}), (5, 900, {"causal": "bottom-right"}),
                                    (400, 400, {"window": (50, 10), "softcap": 5.0}), (1, 1, {}),
                                    (333, 650, {"kv_len": np.array([650, 17])})):
            with self.subTest(rules=rules):
                whole, mine, cuts = self.both(len_q, len_k, rules, lse=True)
                np.testing.assert_array_equal(mine[0], self.piece(whole[0], cuts))
                np.testing.assert_array_equal(mine[1], whole[1][..., cuts[COMM.rank]:cuts[COMM.rank + 1]])

    def test_mask_has_the_rows_of_this_rank(self):
        mask = self.rng.random((350, 500)) < 0.7
        whole, mine, cuts = self.both(350, 500, {"mask": mask}, lambda cuts: {"mask": self.piece(mask, cuts)})
        np.testing.assert_array_equal(mine, self.piece(whole, cuts))

    def test_statistics(self):
        whole, mine, cuts = self.both(600, 600, {"causal": True}, stats={"entropy": True, "top": 3})
        for name in ("entropy", "top_weights", "top_keys"):
            axis = slice(cuts[COMM.rank], cuts[COMM.rank + 1])
            np.testing.assert_array_equal(mine.stats[name], whole.stats[name][:, :, axis])

    def test_rings_are_near(self):
        n = 2 * COMM.size * 64
        q, k, v = self.arrays(4, 2, n, n, 32)
        whole = qkv.attention(q, k, v, causal=True)
        cuts = [n // COMM.size * r for r in range(COMM.size + 1)]
        mine = self.group.attention(*(self.piece(a, cuts) for a in (q, k, v)), causal=True, scheme="ring")
        np.testing.assert_allclose(mine, self.piece(whole, cuts), rtol=0, atol=2e-6)
        # In zigzag rank r has the runs r and 2 P - 1 - r.
        runs = np.split(np.arange(n), 2 * COMM.size)
        rows = np.concatenate([runs[COMM.rank], runs[-1 - COMM.rank]])
        mine = self.group.attention(*(a[:, :, rows] for a in (q, k, v)), causal=True, scheme="zigzag")
        np.testing.assert_allclose(mine, whole[:, :, rows], rtol=0, atol=2e-6)

    def test_gradients(self):
        q, k, v = self.arrays(6, 2, 500, 500, 40)
        d_o = self.rng.standard_normal(q.shape).astype(np.float32)
        problem = qkv.Problem(q, k, v, causal=True)
        o, lse, _ = problem.forward()
        whole = problem.backward(d_o, o=o, lse=lse)
        cuts = self.cuts(500)
        rows = slice(cuts[COMM.rank], cuts[COMM.rank + 1])
        mine = self.group.backward(*(self.piece(a, cuts) for a in (q, k, v, d_o)), o=self.piece(o, cuts),
                                   lse=lse[..., rows], causal=True)
        for name in ("d_q", "d_k", "d_v"):
            np.testing.assert_array_equal(getattr(mine, name), self.piece(getattr(whole, name), cuts))

    def test_error_of_one_rank_is_that_of_all(self):
        q, k, v = self.arrays(4, 2, 10, 10, 16)
        last = COMM.size - 1
        wrong = k[..., :8] if COMM.rank == last else k
        with self.assertRaisesRegex(qkv.ShapeError, f"rank {last}: q has 16 channels, k has 8"):
            self.group.attention(q, wrong, v)
        if last:
            other = [a.astype(np.float16) if COMM.rank == last else a for a in (q, k, v)]
            with self.assertRaisesRegex(qkv.QkvError, f"dtype = .* on rank {last}, but .* on rank 0"):
                self.group.attention(*other)
        with self.assertRaisesRegex(qkv.DTypeError, f"rank {last}: q is float64"):
            self.group.attention(*(a.astype(np.float64) if COMM.rank == last else a for a in (q, k, v)))
        with self.assertRaisesRegex(qkv.DTypeError, f"rank {last}: out_dtype"):
            self.group.attention(q, k, v, out_dtype="int8" if COMM.rank == last else None)
        with self.assertRaisesRegex(qkv.QkvError, "scheme"):
            self.group.attention(q, k, v, scheme="star")
        expected = TypeError if COMM.rank == last else qkv.QkvError
        with self.assertRaises(expected):
            self.group.attention(q, k, v, **({"causl": True} if COMM.rank == last else {}))
        self.assertEqual(self.group.attention(q, k, v).shape, q.shape)

    def test_threads_wait_for_each_other(self):
        q, k, v = self.arrays(4, 2, 200, 200, 16)
        want, got = self.group.attention(q, k, v, causal=True), []

        def work():
            for _ in range(20):
                got.append(self.group.attention(q, k, v, causal=True))

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(got), 40)
        for each in got:
            np.testing.assert_array_equal(each, want)

    def test_what_is_refused(self):
        q, k, v = self.arrays(4, 2, 10, 10, 16)
        fixed = np.zeros_like(q)
        fixed.flags.writeable = False
        with self.assertRaisesRegex(qkv.ArgumentError, "rank 0: out is read-only"):
            self.group.attention(q, k, v, out=fixed)
        with self.assertRaisesRegex(qkv.UnsupportedError, "a Group cannot be copied or pickled"):
            copy.copy(self.group)

    def test_closed(self):
        group = qkv.mpi.Group(COMM)
        self.assertEqual((group.rank, group.size), (COMM.rank, COMM.size))
        group.close()
        group.close()
        with self.assertRaisesRegex(qkv.ArgumentError, "closed"):
            group.attention(*self.arrays(4, 2, 10, 10, 16))


if __name__ == "__main__":
    if COMM.rank == 0:
        print(f"seed {SEED}, {COMM.size} ranks: {MPI.Get_library_version().split(',')[0]}", file=sys.stderr)
    run = unittest.main(exit=False, verbosity=2 if COMM.rank == 0 else 0)
    failed = COMM.allreduce(not run.result.wasSuccessful())
    sys.exit(1 if failed else 0)
