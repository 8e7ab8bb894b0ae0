"""qkv.torch.distributed over processes of gloo, beside qkv.torch.attention on the whole sequence."""
import importlib.util
import os
import tempfile
import unittest

if importlib.util.find_spec("torch") is None:
    raise unittest.SkipTest("torch is not installed: ./dev test --deep torch installs it")

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torch.autograd import forward_ad

import qkv
import qkv.torch
import qkv.torch.distributed as distributed

SEED = int(os.environ.get("QKV_TEST_SEED", "23"))
CASES = [
    {"is_causal": True},
    {},
    {"is_causal": True, "window": (60, 0), "softcap": 4.0},
    {"scale": 0.3, "window": (None, 20)},
]


def cuts_of(rng, length, size):
    inner = sorted(int(x) for x in rng.integers(0, length + 1, size - 1))
    return [0, *inner, length]


def check_case(rng, rank, size, dtype, rules, len_q, len_k, bound, bias=None):
    """bias: numbers by distance, whose gradient is the same on all ranks."""
    own, all_of = ({} if bias is None else {"distance_bias": (bias.clone().requires_grad_(), 7)} for _ in range(2))
    shapes = (2, 6, len_q, 24), (2, 2, len_k, 24), (2, 2, len_k, 40)
    q, k, v = (torch.from_numpy(rng.standard_normal(shape)).to(dtype) for shape in shapes)
    d_o = torch.from_numpy(rng.standard_normal((2, 6, len_q, 40))).to(dtype)
    d_lse = torch.from_numpy(rng.standard_normal((2, 6, len_q))).float()
    whole = [x.clone().requires_grad_() for x in (q, k, v)]
    o, lse = qkv.torch.attention(*whole, **rules, **all_of)
    torch.autograd.backward((o, lse), (d_o, torch.where(lse.isfinite(), d_lse, 0)))
    of_q, of_k = (cuts_of(rng, n, size) for n in (len_q, len_k))
    rows, keys = (slice(cuts[rank], cuts[rank + 1]) for cuts in (of_q, of_k))
    mine = [x[:, :, at].clone().requires_grad_() for x, at in zip((q, k, v), (rows, keys, keys))]
    got, got_lse = distributed.ring_attention(*mine, **rules, **own)
    d_own = torch.where(lse.isfinite(), d_lse, 0)[:, :, rows]
    torch.autograd.backward((got, got_lse), (d_o[:, :, rows], d_own))
    torch.testing.assert_close(got, o[:, :, rows], rtol=0, atol=bound)
    torch.testing.assert_close(got_lse, lse[:, :, rows], rtol=1e-6, atol=2e-6)
    for found, x, at in zip(mine, whole, (rows, keys, keys)):
        scale = max(1.0, x.grad.abs().max().item())
        torch.testing.assert_close(found.grad, x.grad[:, :, at], rtol=0, atol=bound * scale)
    if bias is not None:
        found, wanted = own["distance_bias"][0].grad, all_of["distance_bias"][0].grad
        torch.testing.assert_close(found, wanted, rtol=0, atol=bound * 4 * wanted.abs().max().item())
        gathered = [torch.empty_like(found) for _ in range(size)]
        dist.all_gather(gathered, found)
        unittest.TestCase().assertTrue(all(torch.equal(each, found) for each in gathered))


def check_errors(rank, size):
    x = torch.zeros(1, 2, 4, 8)
    last = size - 1
    test = unittest.TestCase()
    with test.assertRaisesRegex(qkv.ShapeError, f"rank {last}: query has 3 dimensions"):
        distributed.ring_attention(x[0] if rank == last else x, x, x)
    with test.assertRaisesRegex(qkv.ArgumentError, "is_causal is 'bottom-right', and must be a bool"):
        distributed.ring_attention(x, x, x, is_causal="bottom-right" if rank == last else False)
    if size > 1:
        with test.assertRaisesRegex(qkv.ArgumentError, f"rank {last}: rules is"):
            distributed.ring_attention(x, x, x, scale=2.0 if rank == last else 1.0)
        with test.assertRaisesRegex(qkv.ArgumentError, f"rank {last}: dtype is torch.bfloat16, and rank 0 has "):
            distributed.ring_attention(*[x.bfloat16() if rank == last else x] * 3)
        with test.assertRaisesRegex(qkv.DTypeError, f"rank {last}: q is float32 and k is float16"):
            distributed.ring_attention(x, x.half() if rank == last else x, x)
        with test.assertRaisesRegex(qkv.DTypeError, f"rank {last}: .*int32"):
            distributed.ring_attention(*[x.int() if rank == last else x] * 3)
        with test.assertRaisesRegex(qkv.ArgumentError, f"rank {last}: requires_grad is False, and rank 0"):
            distributed.ring_attention(x.clone().requires_grad_(rank != last), x, x)
        with torch.set_grad_enabled(rank != last), \
                test.assertRaisesRegex(qkv.ArgumentError, f"rank {last}: requires_grad is False, and rank 0"):
            distributed.ring_attention(x.clone().requires_grad_(), x, x)
        with test.assertRaisesRegex(qkv.ArgumentError, f"rank {last}: distance_bias is"):
            distributed.ring_attention(x, x, x, distance_bias=(torch.full((1, 3), float(rank == last)), 1))
    with test.assertRaisesRegex(qkv.ShapeError, f"rank {last}: distance_bias has shape"):
        distributed.ring_attention(x, x, x, distance_bias=(torch.zeros(3, 3), 1) if rank == last else None)
    test.assertEqual(distributed.ring_attention(x, x, x)[0].shape, x.shape)


def check_derivatives(size):
    """Gradients of gradients and tangents are refused, on each rank alike: they would be lost."""
    x, t = torch.ones(1, 2, 4, 8), torch.ones(1, 2, 4, 8)
    test = unittest.TestCase()
    if size == 1:  # a pass that ends on one rank alone would leave others waiting
        q = x.clone().requires_grad_()
        with test.assertRaisesRegex(qkv.UnsupportedError, "create_graph=True through ring_attention"):
            torch.autograd.grad(distributed.ring_attention(q, x, x)[0].sum(), q, create_graph=True)
    with forward_ad.dual_level(), test.assertRaisesRegex(qkv.UnsupportedError, "key is a dual tensor"):
        distributed.ring_attention(x, forward_ad.make_dual(x, t), x)
    with test.assertRaisesRegex(qkv.UnsupportedError, "query is a value inside torch.func"):
        torch.func.grad(lambda q: distributed.ring_attention(q, x, x)[0].sum())(x)


def ranks_main(rank, size, path):
    torch.set_num_threads(1)
    qkv.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=size)
    rng = np.random.default_rng([SEED, size])
    for rules in CASES:
        check_case(rng, rank, size, torch.float32, rules, 300, 300, 2e-6)
        check_case(rng, rank, size, torch.bfloat16, rules, 200, 200, 2e-2)
    for heads, rules in ((6, {}), (1, {"is_causal": True}), (6, {"is_causal": True, "window": (60, 0)})):
        bias = torch.from_numpy(rng.standard_normal((heads, 30))).float()
        check_case(rng, rank, size, torch.float32, rules, 300, 300, 2e-6, bias)
        check_case(rng, rank, size, torch.bfloat16, rules, 200, 200, 2e-2, bias)
    check_case(rng, rank, size, torch.float32, {}, 3, 500, 2e-6)
    check_case(rng, rank, size, torch.float32, {}, 40, 2, 2e-6)
    check_errors(rank, size)
    check_derivatives(size)
    dist.destroy_process_group()


class Ring(unittest.TestCase):
    def test_ranks(self):
        for size in (1, 2, 3):
            with self.subTest(size=size, seed=SEED), tempfile.TemporaryDirectory() as folder:
                processes.spawn(ranks_main, args=(size, os.path.join(folder, "meet")), nprocs=size)


if __name__ == "__main__":
    unittest.main()
