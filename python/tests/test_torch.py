"""qkv.torch beside torch's own attention, in float64 where it matters. Skipped where torch is not installed."""
import importlib.util
import unittest

if importlib.util.find_spec("torch") is None:
    raise unittest.SkipTest("torch is not installed: ./dev test --deep torch installs it")

import torch
from torch.nn import functional

import qkv
import qkv.torch as ours


def normal(seed, *shape, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def double(value):
    return value.double() if torch.is_tensor(value) and value.is_floating_point() else value


def bound_of(sample, dtype):
    """The bound of qkv_attention_forward for o, from the largest elements."""
    q, (k, v), mask = sample.input, sample.args, sample.kwargs.get("attn_mask")
    dim, largest = q.shape[-1], [x.abs().max().item() for x in (q, k, v)]
    scale = sample.kwargs.get("scale") or dim**-0.5
    added = mask.abs().max().item() if mask is not None and mask.dtype != torch.bool else 0
    units = 4 * dim**0.5 * scale * dim * largest[0] * largest[1] + 4 * added + 4 * k.shape[-2] ** 0.5 + 16
    half = {torch.float32: 0, torch.bfloat16: 2**-8, torch.float16: 2**-11}[dtype]
    return (2**-24 * units + half + (2**-8 if dtype == torch.bfloat16 else 0)) * largest[2]


class Meaning(unittest.TestCase):
    def test_samples_of_torch(self):
        """The samples that torch tests its own operator with, beside float64, or left out by reason."""
        from torch.testing._internal.common_methods_invocations import op_db

        op = next(op for op in op_db if op.name == "nn.functional.scaled_dot_product_attention")
        counts, left_out = {}, {}
        torch.manual_seed(1)
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            for sample in op.sample_inputs("cpu", dtype, requires_grad=False):
                if sample.kwargs.get("dropout_p"):
                    left_out["dropout draws other weights"] = left_out.get("dropout draws other weights", 0) + 1
                    continue
                exact = op(double(sample.input), *map(double, sample.args),
                           **{name: double(value) for name, value in sample.kwargs.items()})
                got = ours.scaled_dot_product_attention(sample.input, *sample.args, **sample.kwargs)
                theirs = op(sample.input, *sample.args, **sample.kwargs)
                self.assertLessEqual((got - exact).abs().max().item(), bound_of(sample, dtype))
                self.assertEqual((got.shape, got.dtype), (theirs.shape, theirs.dtype))
                counts[dtype] = counts.get(dtype, 0) + 1
        print(f"samples of torch: {counts}, left out: {left_out}")
        self.assertGreater(min(counts.values()), 5)

    def test_masks_dimensions_and_types(self):
        q, k, v = normal(1, 2, 4, 33, 16), normal(2, 2, 4, 40, 16), normal(3, 2, 4, 40, 24)
        masks = [None, normal(4, 33, 40) > -1, normal(5, 2, 1, 33, 40), normal(6, 1, 4, 1, 40)]
        for mask in masks:
            got = ours.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            theirs = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            torch.testing.assert_close(got, theirs, atol=1e-5, rtol=1e-5)
        for drop in (1, 2):
            part = [x.flatten(0, drop - 1)[0] if drop == 1 else x[0, 0] for x in (q, k, v)]
            torch.testing.assert_close(ours.scaled_dot_product_attention(*part, is_causal=True),
                                       functional.scaled_dot_product_attention(*part, is_causal=True))
        five = [x.reshape(2, 2, 2, *x.shape[2:]) for x in (q, k, v)]
        got = ours.scaled_dot_product_attention(*five, attn_mask=masks[1])
        torch.testing.assert_close(got, functional.scaled_dot_product_attention(*five, attn_mask=masks[1]))
        grouped = ours.scaled_dot_product_attention(q, k[:, :2], v[:, :2])
        theirs = functional.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True)
        torch.testing.assert_close(grouped, theirs)

    def test_what_torch_lacks(self):
        q, k, v = normal(1, 2, 4, 33, 16), normal(2, 2, 4, 40, 16), normal(3, 2, 4, 40, 24)
        mask, sinks = normal(4, 33, 40), normal(5, 4)
        o, lse = ours.attention(q, k, v, mask, is_causal=True, window=(9, None), q_offset=7, softcap=5.0, sinks=sinks)
        want = qkv.Problem(q, k, v, mask=mask, causal=True, window=(9, None), q_offset=7, softcap=5.0,
                           sinks=sinks).forward()
        self.assertTrue(torch.equal(o, want.o) and torch.equal(lse, want.lse))


class Gradients(unittest.TestCase):
    def test_beside_float64(self):
        for n, rules in enumerate(({}, {"is_causal": True}, {"scale": 0.05})):
            shapes = (2, 4, 33, 16), (2, 4, 40, 16), (2, 4, 40, 24)
            mine = [normal(10 * n + s, *shape).requires_grad_() for s, shape in enumerate(shapes)]
            exact = [x.detach().double().requires_grad_() for x in mine]
            o = ours.scaled_dot_product_attention(*mine, **rules)
            theirs = functional.scaled_dot_product_attention(*exact, **rules)
            weight = normal(99, *o.shape)
            (o * weight).sum().backward()
            (theirs * weight.double()).sum().backward()
            for a, b in zip(mine, exact, strict=True):
                torch.testing.assert_close(a.grad, b.grad.float(), atol=2e-5, rtol=2e-5)

    def test_of_masks_sinks_and_lse(self):
        q, k, v = normal(1, 2, 4, 9, 16), normal(2, 2, 4, 12, 16), normal(3, 2, 4, 12, 16)
        mask, sinks = normal(4, 1, 4, 9, 12).requires_grad_(), normal(5, 4).requires_grad_()
        o, lse = ours.attention(q, k, v, mask, sinks=sinks)
        w_o, w_lse = normal(6, *o.shape), normal(7, *lse.shape)
        ((o * w_o).sum() + (lse * w_lse).sum()).backward()
        exact_mask = mask.detach().double().requires_grad_()
        exact_sinks = sinks.detach().double().requires_grad_()
        scores = q.double() @ k.double().transpose(-1, -2) / 4 + exact_mask
        whole = torch.cat([scores, exact_sinks[None, :, None, None].expand(2, 4, 9, 1)], dim=-1)
        exact_lse = whole.logsumexp(dim=-1)
        exact_o = (scores - exact_lse[..., None]).exp() @ v.double()
        ((exact_o * w_o.double()).sum() + (exact_lse * w_lse.double()).sum()).backward()
        torch.testing.assert_close(mask.grad, exact_mask.grad.float(), atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(sinks.grad, exact_sinks.grad.float(), atol=1e-4, rtol=1e-5)

    def test_dropout_is_the_same_in_both_passes(self):
        q, k, v = (normal(n, 1, 2, 20, 8) for n in range(3))
        seed = torch.tensor(7)
        value = v.clone().requires_grad_()
        o, _ = ours.attention(q, k, value, dropout_p=0.5, seed=seed)
        o.sum().backward()
        # o is linear in v: its gradient by v, times v, is o's sum
        self.assertAlmostEqual((value.grad * v).sum().item(), o.sum().item(), delta=1e-3)
        torch.manual_seed(3)
        first = ours.scaled_dot_product_attention(q, k, v, dropout_p=0.5)
        torch.manual_seed(3)
        self.assertTrue(torch.equal(first, ours.scaled_dot_product_attention(q, k, v, dropout_p=0.5)))
        self.assertFalse(torch.equal(first, ours.scaled_dot_product_attention(q, k, v, dropout_p=0.5)))

    def test_plain_functions_refuse_what_needs_a_gradient(self):
        q = normal(1, 1, 1, 4, 8).requires_grad_()
        with self.assertRaisesRegex(qkv.UnsupportedError, "q requires a gradient"):
            qkv.attention(q, q, q)


class Modules(unittest.TestCase):
    def pair(self, **options):
        torch.manual_seed(2)
        theirs = torch.nn.MultiheadAttention(32, 4, **options).eval()
        mine = ours.MultiheadAttention(32, 4, **options).eval()
        mine.load_state_dict(theirs.state_dict())
        return mine, theirs

    def test_multi_head_attention(self):
        left = torch.zeros(2, 7, dtype=torch.bool)
        left[0, 5:] = True
        causal = torch.ones(5, 7, dtype=torch.bool).triu(1)
        calls = [{}, {"key_padding_mask": left}, {"attn_mask": causal},
                 {"attn_mask": causal, "key_padding_mask": left},
                 {"attn_mask": normal(3, 5, 7), "key_padding_mask": left.float() * -2},
                 {"attn_mask": normal(4, 8, 5, 7), "key_padding_mask": left}]
        for options in ({"batch_first": True}, {}, {"bias": False}, {"kdim": 24, "vdim": 40}):
            mine, theirs = self.pair(**options)
            widths = 32, options.get("kdim", 32), options.get("vdim", 32)
            given = [normal(n, 2, length, width) for n, (length, width) in enumerate(zip((5, 7, 7), widths))]
            if not options.get("batch_first"):
                given = [x.transpose(0, 1) for x in given]
            for call in calls:
                want, _ = theirs(*given, need_weights=True, **call)  # torch's path without its fast ones
                torch.testing.assert_close(mine(*given, **call)[0], want, atol=1e-5, rtol=1e-5)
        mine, theirs = self.pair()
        text = normal(9, 6, 32)
        rule = torch.ones(6, 6, dtype=torch.bool).triu(1)
        want, _ = theirs(text, text, text, attn_mask=rule)
        torch.testing.assert_close(mine(text, text, text, is_causal=True)[0], want, atol=1e-5, rtol=1e-5)

    def test_gradients_of_parameters(self):
        mine, theirs = self.pair(batch_first=True)
        x = normal(1, 2, 6, 32)
        mine(x, x, x)[0].square().sum().backward()
        theirs(x, x, x)[0].square().sum().backward()
        for a, b in zip(mine.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(a.grad, b.grad, atol=1e-4, rtol=1e-4)

    def test_what_is_refused(self):
        mine, _ = self.pair()
        x = normal(1, 6, 32)
        with self.assertRaisesRegex(qkv.UnsupportedError, "need_weights=True"):
            mine(x, x, x, need_weights=True)
        with self.assertRaisesRegex(qkv.UnsupportedError, "add_bias_kv"):
            ours.MultiheadAttention(32, 4, add_bias_kv=True)


class Errors(unittest.TestCase):
    def test_each_names_what_is_wrong(self):
        x = normal(1, 1, 2, 5, 8)
        cases = [
            (qkv.DTypeError, "q is float64", lambda: ours.attention(*[x.double()] * 3)),
            (qkv.ShapeError, "key has 1 dimensions", lambda: ours.attention(x, x[0, 0, 0], x)),
            (qkv.ArgumentError, "scale is 0", lambda: ours.attention(x, x, x, scale=0)),
            (qkv.ShapeError, "mask has 4 keys", lambda: ours.attention(x, x, x, torch.ones(5, 4) > 0)),
        ]
        for kind, words, call in cases:
            with self.subTest(words=words), self.assertRaisesRegex(kind, words):
                call()


if __name__ == "__main__":
    unittest.main()
