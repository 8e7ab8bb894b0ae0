"""Operators of qkv.torch beside torch's own checks of operators: opcheck, torch.compile, autocast."""
import importlib.util
import unittest

if importlib.util.find_spec("torch") is None:
    raise unittest.SkipTest("torch is not installed: ./dev test --deep torch installs it")

import torch
from torch.nn import functional

import qkv.torch as ours

OTHERS = "alibi", "seed", "kv_len", "segments_q", "segments_k", "cu_seqlens_q", "cu_seqlens_k"


def normal(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def arguments(q, k, v, *, mask=None, sinks=None, causal=0, q_offset=0, window=(-1, -1), scale=0.0, softcap=0.0,
              dropout=0.0, **others):
    """Those of torch.ops.qkv.attention."""
    tensors = q, k, v, mask, sinks, *(others.get(name) for name in OTHERS)
    return *tensors, causal, q_offset, *window, scale, softcap, dropout


def cases():
    """Rules of every kind, by name."""
    q, k, v = (normal(n, 2, 4, 9, 16) for n in range(3))
    packed = [normal(n, 4, 9, 16) for n in range(3)]
    cu = torch.tensor([0, 4, 9], dtype=torch.int32)
    segments = torch.tensor([[0, 0, 0, 1, 1, 1, 2, 2, 2]] * 2, dtype=torch.int32)
    return {
        "plain": arguments(q, k, v),
        "causal, mask, sinks": arguments(q, k, v, mask=normal(4, 9, 9), sinks=normal(5, 4), causal=1),
        "bools": arguments(q, k, v, mask=normal(4, 2, 1, 9, 9) > -1),
        "scores": arguments(q, k[:, :2], v[:, :2], scale=0.1, softcap=4.0, alibi=normal(6, 4)),
        "positions": arguments(q, k, v, causal=1, q_offset=2, window=(3, -1), kv_len=torch.tensor([9, 5])),
        "segments": arguments(q, k, v, segments_q=segments, segments_k=segments),
        "dropout": arguments(q, k, v, seed=torch.tensor(5), dropout=0.5),
        "packed": arguments(*packed, cu_seqlens_q=cu, cu_seqlens_k=cu, causal=2),
    }


def with_gradients(given):
    """The arguments, with new q, k, v, mask and sinks that need gradients."""
    return [x.clone().requires_grad_() if n < 5 and torch.is_tensor(x) and x.is_floating_point() else x
            for n, x in enumerate(given)]


class Operators(unittest.TestCase):
    def test_opcheck_of_attention(self):
        for name, given in cases().items():
            with self.subTest(name):
                torch.library.opcheck(torch.ops.qkv.attention, given)
                torch.library.opcheck(torch.ops.qkv.attention, tuple(with_gradients(given)))

    def test_opcheck_of_the_gradients(self):
        for name, given in cases().items():
            with self.subTest(name):
                o, lse = torch.ops.qkv.attention(*given)
                mask, sinks = given[3], given[4]
                want = mask is not None and mask.dtype != torch.bool, sinks is not None
                torch.library.opcheck(torch.ops.qkv.attention_backward, (o, lse, *given[:3], o, lse, *given[3:], *want))

    def test_opcheck_of_torch_s_signature(self):
        q, k, v = (normal(n, 2, 4, 9, 16) for n in range(3))
        for options in ({}, {"is_causal": True}, {"attn_mask": normal(4, 9, 9)}, {"scale": 0.5}):
            with self.subTest(options.keys()):
                for given in ((q, k, v), [x.clone().requires_grad_() for x in (q, k, v)]):
                    torch.library.opcheck(torch.ops.qkv.scaled_dot_product_attention, tuple(given), options)

    def test_all_ways_have_the_same_bits(self):
        """The direct call, the operators, autograd's function, and the operator under torch.inference_mode."""
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            for length in (8, 40, 300):
                q, k, v = (normal(n, 1, 2, length, 16).to(dtype) for n in range(3))
                want, _ = torch.ops.qkv.attention(*arguments(q, k, v, causal=1))
                strided = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v)]
                needy = [x.clone().requires_grad_() for x in (q, k, v)]
                with torch.inference_mode():
                    new = [x.clone() for x in (q, k, v)]
                    inferred = torch.ops.qkv.scaled_dot_product_attention(*new, is_causal=True)
                for got in (ours.scaled_dot_product_attention(q, k, v, is_causal=True),
                            ours.scaled_dot_product_attention(*strided, is_causal=True),
                            ours.scaled_dot_product_attention(*needy, is_causal=True).detach(),
                            torch.ops.qkv.scaled_dot_product_attention(q, k, v, is_causal=True),
                            torch.ops.qkv.scaled_dot_product_attention(*needy, is_causal=True).detach(), inferred):
                    self.assertTrue(torch.equal(got, want))
                    self.assertEqual(got.stride(), want.stride())

    def test_the_operator_has_gradients(self):
        given = [normal(n, 1, 2, 8, 16).requires_grad_() for n in range(3)]
        torch.ops.qkv.scaled_dot_product_attention(*given).sum().backward()
        exact = [x.detach().double().requires_grad_() for x in given]
        functional.scaled_dot_product_attention(*exact).sum().backward()
        for a, b in zip(given, exact, strict=True):
            torch.testing.assert_close(a.grad, b.grad.float(), atol=1e-5, rtol=1e-5)

    def test_views_that_are_not_dense(self):
        """A negation that is still to do, gaps, and rows that overlap."""
        z = torch.complex(normal(1, 1, 2, 8, 16), normal(2, 1, 2, 8, 16))
        lazy = z.conj().imag
        self.assertTrue(lazy.is_neg())
        wide = normal(3, 1, 2, 8, 40)
        for x in (lazy, wide[..., 3:19], wide[..., ::2][..., :16], normal(4, 1, 2, 1, 16).expand(1, 2, 8, 16)):
            for call in (ours.scaled_dot_product_attention, torch.ops.qkv.scaled_dot_product_attention):
                want = call(*[x.clone()] * 3)
                self.assertTrue(torch.equal(call(x, x, x), want))


def layer(q, k, v):
    return ours.scaled_dot_product_attention(q * 2, k, v, is_causal=True).relu()


class Compile(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()

    def same(self, function, *given, backend="aot_eager", dynamic=None):
        compiled = torch.compile(function, fullgraph=True, backend=backend, dynamic=dynamic)
        plain = [x.clone().requires_grad_() for x in given]
        mine = [x.clone().requires_grad_() for x in given]
        a, b = function(*plain), compiled(*mine)
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-6)
        a.sum().backward()
        b.sum().backward()
        for x, y in zip(plain, mine, strict=True):
            torch.testing.assert_close(x.grad, y.grad, atol=1e-6, rtol=1e-6)
        torch.testing.assert_close(compiled(*given), a.detach(), atol=1e-6, rtol=1e-6)
        return compiled

    def test_a_whole_graph(self):
        q, k, v = (normal(n, 2, 4, 9, 16) for n in range(3))
        self.same(layer, q, k, v)
        mask = normal(4, 9, 9)
        self.same(lambda q, k, v, mask: ours.attention(q, k, v, mask, is_causal=True, window=(5, None), softcap=9.0)[0],
                  q, k, v, mask)
        cu = torch.tensor([0, 4, 9])
        self.same(lambda q, k, v: ours.varlen_attention(q, k, v, cu, is_causal="bottom-right")[0],
                  *(normal(n, 9, 4, 16) for n in range(3)))

    def test_inductor(self):
        self.same(layer, *(normal(n, 2, 4, 9, 16) for n in range(3)), backend="inductor")

    def test_symbolic_shapes(self):
        compiled = self.same(layer, *(normal(n, 2, 4, 9, 16) for n in range(3)), dynamic=True)
        from torch._dynamo.utils import counters

        counters.clear()
        for length in (7, 31, 12):
            given = [normal(n, 3, 4, length, 16) for n in range(3)]
            self.assertTrue(torch.equal(compiled(*given), layer(*given)))
        self.assertLessEqual(counters["stats"]["unique_graphs"], 1)  # one for calls without gradients

    def test_dropout_draws_anew(self):
        q, k, v = (normal(n, 2, 4, 9, 16) for n in range(3))

        def call(q, k, v):
            return ours.scaled_dot_product_attention(q, k, v, dropout_p=0.5)

        compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
        torch.manual_seed(3)
        first, second = compiled(q, k, v), compiled(q, k, v)
        self.assertFalse(torch.equal(first, second))
        torch.manual_seed(3)
        self.assertTrue(torch.equal(first, compiled(q, k, v)))
        torch.manual_seed(3)
        self.assertTrue(torch.equal(first, call(q, k, v)))
        value = v.clone().requires_grad_()
        o = compiled(q, k, value)
        o.sum().backward()  # o is linear in v: its gradient by v, times v, is o's sum
        self.assertAlmostEqual((value.grad * v).sum().item(), o.sum().item(), delta=1e-3)

    def test_export(self):
        class Model(torch.nn.Module):
            def forward(self, q, k, v):
                return layer(q, k, v)

        given = tuple(normal(n, 2, 4, 9, 16) for n in range(3))
        length = torch.export.Dim("length", min=2)
        shapes = [{2: length}] * 3
        program = torch.export.export(Model(), given, dynamic_shapes=tuple(shapes))
        longer = tuple(normal(n, 2, 4, 20, 16) for n in range(3))
        torch.testing.assert_close(program.module()(*longer), layer(*longer))


class Autocast(unittest.TestCase):
    def test_types(self):
        q, k, v = (normal(n, 2, 4, 9, 16) for n in range(3))
        low = [x.bfloat16() for x in (q, k, v)]
        want = ours.scaled_dot_product_attention(*low)
        for call in (ours.scaled_dot_product_attention, torch.ops.qkv.scaled_dot_product_attention,
                     torch.compile(ours.scaled_dot_product_attention, fullgraph=True, backend="aot_eager")):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                got = call(q, k, v)
            self.assertTrue(torch.equal(got, want))
            self.assertEqual(got.dtype, torch.bfloat16)

    def test_gradients_are_of_the_given_type(self):
        given = [normal(n, 2, 4, 9, 16).requires_grad_() for n in range(3)]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            o = ours.scaled_dot_product_attention(*given)
        o.float().sum().backward()
        self.assertTrue(all(x.grad.dtype == torch.float32 for x in given))


if __name__ == "__main__":
    unittest.main()
