"""distance_bias of qkv.torch.attention beside a mask of len_q x len_k, in float64. Skipped where torch is not there."""
import importlib.util
import unittest

if importlib.util.find_spec("torch") is None:
    raise unittest.SkipTest("torch is not installed: ./dev test --deep torch installs it")

import torch

import qkv
import qkv.torch as ours
from qkv.torch import formula


def normal(seed, *shape, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def dense(numbers, before, len_q, len_k, offset=0):
    """The textbook: number before + d, d = j - i - offset, cut to the numbers that are there; pair by pair."""
    made = torch.zeros(numbers.shape[0], len_q, len_k, dtype=numbers.dtype)
    for i in range(len_q):
        for j in range(len_k):
            made[:, i, j] = numbers[:, min(max(j - i - offset + before, 0), numbers.shape[1] - 1)]
    return made


# Shape of q, shape of k, heads of the bias, numbers, before, and other keywords.
CASES = [
    ((2, 3, 7, 8), (2, 3, 7, 8), 3, 13, 6, {}),
    ((2, 4, 5, 8), (2, 2, 9, 8), 4, 5, 2, {}),
    ((1, 3, 9, 8), (1, 3, 9, 8), 1, 4, 3, {"is_causal": True}),
    ((2, 3, 4, 8), (2, 3, 9, 8), 3, 7, 5, {"is_causal": "bottom-right", "scale": 1.0}),
    ((1, 2, 6, 8), (1, 2, 6, 8), 2, 9, 4, {"window": (2, 1), "softcap": 3.0}),
    ((1, 2, 3, 8), (1, 2, 8, 8), 2, 9, 4, {"q_offset": 5}),
    ((3, 6, 8), (3, 6, 8), 3, 11, 5, {}),
    ((2, 2, 3, 5, 8), (2, 2, 3, 5, 8), 3, 9, 4, {}),
]


def offset_of(q, k, more):
    return k.shape[-2] - q.shape[-2] if more.get("is_causal") == "bottom-right" else more.get("q_offset", 0)


def reference(q, k, v, added, sinks=None, kv_len=None, is_causal=False, q_offset=0, window=None, scale=None,
              softcap=None):
    """(o, lse) by formula.attention, with every rule as it has them, in float64."""
    left, right = window or (-1, -1)
    causal = 2 if is_causal == "bottom-right" else int(is_causal)
    numbers = causal, q_offset, left, right, scale or 0.0, softcap or 0.0, 0.0
    return formula.attention(q, k, v, added, sinks, None, kv_len, None, None, numbers)


class Distances(unittest.TestCase):
    def test_beside_a_mask_of_all_pairs(self):
        for n, (of_q, of_k, heads, count, before, more) in enumerate(CASES):
            for with_mask in (None, torch.bool, torch.float32):
                q, k, v = normal(n, *of_q), normal(n + 50, *of_k), normal(n + 100, *of_k)
                numbers = normal(n + 150, heads, count)
                mask = None if with_mask is None else normal(n + 200, q.shape[-2], k.shape[-2])
                mask = mask > -0.8 if with_mask is torch.bool else mask
                leaves = [x.requires_grad_() for x in (q, k, v, numbers)]
                leaves += [mask.requires_grad_()] if with_mask is torch.float32 else []
                o, lse = ours.attention(q, k, v, mask, distance_bias=(numbers, before), **more)
                d_o, d_lse = normal(n + 250, *o.shape), normal(n + 300, *lse.shape) * 0.1
                got = torch.autograd.grad((o, lse), leaves, (d_o, d_lse))
                exact = [x.detach().double().requires_grad_() for x in leaves]
                added = dense(exact[3], before, q.shape[-2], k.shape[-2], offset_of(q, k, more))
                if with_mask is torch.bool:
                    added = added.masked_fill(~mask, -torch.inf)
                elif with_mask is not None:
                    added = added + exact[4]
                lead = q.shape[:-3]
                flat = [x.flatten(0, -4) if x.dim() > 4 else x for x in exact[:3]]
                eo, elses = reference(*flat, added, **more)
                eo, elses = eo.reshape(o.shape), elses.reshape(lse.shape)
                seen = torch.isfinite(elses)
                with self.subTest(case=n, mask=with_mask, lead=lead):
                    self.assertTrue(torch.allclose(o.double(), eo, atol=3e-6))
                    self.assertTrue(torch.equal(seen, torch.isfinite(lse)))
                    self.assertTrue(torch.allclose(lse.double()[seen], elses[seen], atol=3e-6))
                    d_exact = torch.where(seen, d_lse.double(), 0.0)
                    wanted = torch.autograd.grad((eo, torch.where(seen, elses, 0.0)), exact, (d_o.double(), d_exact))
                    for name, a, b in zip(("q", "k", "v", "bias", "mask"), got, wanted):
                        largest = max(1.0, b.abs().max().item())
                        self.assertLess((a.double() - b).abs().max().item(), 2e-5 * largest, name)

    def test_lengths_sinks_and_other_types(self):
        q, k, v, numbers = normal(1, 2, 4, 6, 16), normal(2, 2, 2, 9, 16), normal(3, 2, 2, 9, 16), normal(4, 4, 7)
        sinks, kv_len = normal(5, 4).requires_grad_(), torch.tensor([5, 9])
        for causal in (False, True, "bottom-right"):
            o, lse = ours.attention(q, k, v, distance_bias=(numbers, 4), sinks=sinks, kv_len=kv_len, is_causal=causal)
            for b, n in enumerate(kv_len.tolist()):
                offset = n - q.shape[-2] if causal == "bottom-right" else 0
                added = dense(numbers.double(), 4, 6, n, offset)
                eo, else_ = reference(*(x.double() for x in (q[b:b + 1], k[b:b + 1, :, :n], v[b:b + 1, :, :n])), added,
                                      sinks=sinks.double(), is_causal=causal)
                self.assertTrue(torch.allclose(o[b].double(), eo[0], atol=3e-6), causal)
                self.assertTrue(torch.allclose(lse[b].double(), else_[0], atol=3e-6), causal)
        (d_sinks,) = torch.autograd.grad(o.sum(), sinks)
        self.assertEqual(d_sinks.shape, sinks.shape)
        for dtype in (torch.bfloat16, torch.float16):
            o, _ = ours.attention(q.to(dtype), k.to(dtype), v.to(dtype), distance_bias=(numbers, 4))
            rounded = [x.to(dtype).double() for x in (q, k, v)]
            eo, _ = reference(*rounded, dense(numbers.double(), 4, 6, 9))
            self.assertEqual(o.dtype, dtype)
            self.assertLess((o.double() - eo).abs().max().item(), 0.05)

    def test_where_torch_sees_the_call(self):
        (q, k, v), numbers = (normal(n, 2, 3, 5, 8) for n in range(3)), normal(9, 3, 7)

        def call(bias, x=q, y=k, z=v):
            return ours.attention(x, y, z, distance_bias=(bias, 3))[0]

        plain = call(numbers)
        mapped = torch.func.vmap(lambda x: call(numbers, x, x, x))(q)
        self.assertTrue(torch.allclose(mapped, torch.stack([call(numbers, x, x, x) for x in q]), atol=3e-6))
        _, moved = torch.func.jvp(call, (numbers,), (torch.ones_like(numbers),))
        self.assertLess(moved.abs().max().item(), 1e-5)  # the same number added to every score changes nothing
        gradient = torch.func.grad(lambda x: call(x).square().sum())(numbers)
        wanted = torch.autograd.grad(call(numbers.requires_grad_()).square().sum(), numbers)
        self.assertTrue(torch.allclose(gradient, wanted[0], atol=1e-4))
        self.assertTrue(torch.equal(plain, call(numbers.detach())))

    def test_dropout_is_that_of_the_seed(self):
        q, k, numbers = normal(1, 1, 2, 8, 8), normal(2, 1, 2, 8, 8), normal(4, 2, 9)
        v = torch.eye(8).expand(1, 2, 8, 8)
        seed = torch.tensor(7)
        o = ours.attention(q, k, v, distance_bias=(numbers, 4), dropout_p=0.5, seed=seed)[0]
        p = ours.attention(q, k, v, distance_bias=(numbers, 4))[0]
        self.assertTrue(torch.allclose(o, torch.where(o != 0, 2 * p, 0.0), atol=1e-6))
        self.assertTrue(0 < (o == 0).sum() < o.numel())
        again = ours.attention(q, k, v, distance_bias=(numbers, 4), dropout_p=0.5, seed=seed)[0]
        self.assertTrue(torch.equal(o, again))

    def test_errors(self):
        q, numbers = normal(1, 1, 2, 4, 8), normal(2, 2, 5)
        for given, kind, words in [
            (numbers, qkv.ArgumentError, "distance_bias is no pair"),
            ((numbers[0], 2), qkv.ShapeError, r"distance_bias has shape \(5,\), and must have \(1 or 2, n\)"),
            ((normal(3, 3, 5), 2), qkv.ShapeError, r"must have \(1 or 2, n\)"),
            ((numbers, 5), qkv.ArgumentError, "before of distance_bias is 5, and must be an integer from 0 to 4"),
            ((numbers, True), qkv.ArgumentError, "before of distance_bias is True"),
        ]:
            with self.assertRaisesRegex(kind, words):
                ours.attention(q, q, q, distance_bias=given)
        with self.assertRaisesRegex(qkv.UnsupportedError, "distance_bias together with alibi"):
            ours.attention(q, q, q, distance_bias=(numbers, 2), alibi=torch.ones(2))
        o = ours.attention(q, q, q, distance_bias=(numbers.requires_grad_(), 2))[0]
        with self.assertRaisesRegex(qkv.UnsupportedError, "create_graph=True with distance_bias"):
            torch.autograd.grad(o.sum(), numbers, create_graph=True)
        with self.assertRaisesRegex(TypeError, "distance_bias"):
            ours.attention(q, q, q, position_bias=numbers)


if __name__ == "__main__":
    unittest.main()
