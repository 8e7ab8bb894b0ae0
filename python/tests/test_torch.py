"""qkv.torch beside torch's own attention, in float64 where it matters. Skipped where torch is not installed."""
import importlib.util
import unittest

if importlib.util.find_spec("torch") is None:
    raise unittest.SkipTest("torch is not installed: ./dev test --deep torch installs it")

import torch
from torch.nn import functional

import qkv
import qkv.torch as ours
from qkv.torch import formula


def normal(seed, *shape, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def double(value):
    return value.double() if torch.is_tensor(value) and value.is_floating_point() else value


def bound_of(sample, dtype, dropout=0.0):
    """The bound of qkv_attention_forward for o, from the largest elements."""
    q, (k, v), mask = sample.input, sample.args, sample.kwargs.get("attn_mask")
    dim, largest = q.shape[-1], [x.abs().max().item() for x in (q, k, v)]
    scale = sample.kwargs.get("scale") or dim**-0.5
    added = mask.abs().max().item() if mask is not None and mask.dtype != torch.bool else 0
    units = 4 * dim**0.5 * scale * dim * largest[0] * largest[1] + 4 * added + 4 * k.shape[-2] ** 0.5 + 16
    half = {torch.float32: 0, torch.bfloat16: 2**-8, torch.float16: 2**-11}[dtype]
    dp = 0 if dtype != torch.bfloat16 else 2**-7 if dropout else 2**-8
    return (2**-24 * units + half + dp) * largest[2] / (1 - dropout)


def exact_sample(op, sample, seed):
    """(o in float64, kept weights, drawn weights). The weights that dropout keeps are those of our own seed.

    With the identity as value, o is the weights: those of dropout are 0 where it made them 0. Which they are depends on
    the seed and on the places of query and key, not on the value.
    """
    options = {name: double(value) for name, value in sample.kwargs.items()}
    p, (k, v) = options.pop("dropout_p", 0.0), sample.args
    if not p:
        return op(double(sample.input), double(k), double(v), **options), 0, 0
    ones = torch.eye(k.shape[-2], dtype=v.dtype).expand(*v.shape[:-1], -1)
    torch.manual_seed(seed)
    kept = ours.scaled_dot_product_attention(sample.input, k, ones, **sample.kwargs) != 0
    weights = op(double(sample.input), double(k), double(ones), **options)
    full = v.double()
    if options.get("enable_gqa"):
        full = full.repeat_interleave(sample.input.shape[-3] // v.shape[-3], dim=-3)
    drawn = weights > 1e-6  # smaller ones may be 0 in float16 without dropout
    return (weights * kept / (1 - p)) @ full, (kept & drawn).sum().item(), drawn.sum().item()


def textbook_gradients(q, k, v, d_o, toward, attn_mask=None, is_causal=False, scale=None, enable_gqa=False,
                       dropout_p=0.0):
    """The formulas of qkv_attention_backward in float32, with lse moved by `toward` units."""
    shapes = q.shape, k.shape, v.shape
    if enable_gqa:
        k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], dim=-3) for x in (k, v))
    scale = q.shape[-1] ** -0.5 if scale is None else scale

    def scores(q, k):
        s = q @ k.transpose(-1, -2) * scale
        seen = torch.ones(s.shape[-2:], dtype=torch.bool).tril() if is_causal else torch.tensor(True)
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            seen = seen & attn_mask
        elif attn_mask is not None:
            s = s + attn_mask
        return s.masked_fill(~seen, -torch.inf)

    exact = scores(q.double(), k.double())
    o, lse = (exact.softmax(dim=-1).nan_to_num() @ v.double()).float(), exact.logsumexp(dim=-1).float()
    lse = torch.nextafter(lse, torch.full_like(lse, toward * torch.inf)) if toward else lse
    p = (scores(q, k) - lse.masked_fill(lse == -torch.inf, 0)[..., None]).exp()
    d_s = p * (d_o @ v.transpose(-1, -2) - (d_o * o).sum(dim=-1, keepdim=True))
    whole = scale * (d_s @ k), scale * (d_s.transpose(-1, -2) @ q), p.transpose(-1, -2) @ d_o
    if enable_gqa:
        whole = whole[0], *(x.unflatten(-3, (shape[-3], -1)).sum(dim=-3) for x, shape in zip(whole[1:], shapes[1:]))
    return [x.sum_to_size(shape) for x, shape in zip(whole, shapes)]


class Meaning(unittest.TestCase):
    def test_samples_of_torch(self):
        """The samples that torch tests its own operator with, beside float64, and their gradients."""
        from torch.testing._internal.common_methods_invocations import op_db

        op = next(op for op in op_db if op.name == "nn.functional.scaled_dot_product_attention")
        n_samples, passed, kept, drawn = 0, {}, 0, 0
        torch.manual_seed(1)
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            for sample in op.sample_inputs("cpu", dtype, requires_grad=False):
                n_samples += 1
                p = sample.kwargs.get("dropout_p", 0.0)
                exact, n_kept, n_drawn = exact_sample(op, sample, n_samples)
                kept, drawn = kept + n_kept, drawn + n_drawn
                torch.manual_seed(n_samples)
                got = ours.scaled_dot_product_attention(sample.input, *sample.args, **sample.kwargs)
                theirs = op(sample.input, *sample.args, **sample.kwargs)
                self.assertLessEqual((got - exact).abs().max().item(), bound_of(sample, dtype, p))
                self.assertEqual((got.shape, got.dtype), (theirs.shape, theirs.dtype))
                self.gradients_of_a_sample(op, sample)
                kind = "with dropout" if p else "without"
                passed[kind] = passed.get(kind, 0) + 1
        print(f"samples of torch: {sum(passed.values())} of {n_samples} pass: {passed}, "
              f"{kept} of {drawn} weights kept by dropout")
        self.assertEqual(sum(passed.values()), n_samples)
        self.assertGreater(min(passed.values()), 30)
        # every sample with dropout has 0.5
        self.assertLess(abs(kept - drawn / 2), 5 * (drawn / 4) ** 0.5)

    def gradients_of_a_sample(self, op, sample):
        """Within the bound of qkv_attention_backward. With dropout the gradient by v: o is linear in v."""
        given = [x.detach().float().requires_grad_() for x in (sample.input, *sample.args)]
        if sample.kwargs.get("dropout_p"):
            o = ours.scaled_dot_product_attention(*given, **sample.kwargs)
            o.sum().backward()
            total = (given[2].grad * given[2]).sum().item()
            self.assertAlmostEqual(total, o.sum().item(), delta=1e-4 * o.abs().sum().item() + 1e-4)
            return
        exact = [x.detach().double().requires_grad_() for x in given]
        options = {name: value.float() if torch.is_tensor(value) and value.is_floating_point() else value
                   for name, value in sample.kwargs.items()}
        outer = normal(7, *op(*given, **options).shape)
        ours.scaled_dot_product_attention(*given, **options).backward(outer)
        op(*exact, **{name: double(value) for name, value in options.items()}).backward(outer.double())
        plain = [x.detach() for x in given]
        wanted = [x.grad for x in exact]
        errors = [0.0] * 3
        for toward in (0, 1, -1):  # lse as it is, and a unit in the last place away
            made = textbook_gradients(*plain, outer, toward, **options)
            errors = [max(e, (a - b).abs().max().item()) for e, a, b in zip(errors, made, wanted)]
        for mine, error, want in zip(given, errors, wanted, strict=True):
            bound = 4 * error + 16 * 2**-24 * want.abs().max().item()
            self.assertLessEqual((mine.grad - want).abs().max().item(), bound)

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

    def test_of_every_rule(self):
        """Beside torch's own operators in float64, through qkv.torch.formula."""
        segments = torch.tensor([[0] * 4 + [1] * 5 + [2] * 3, [0] * 12], dtype=torch.int32)
        rules = [
            {"window": (3, 1)}, {"is_causal": True, "q_offset": 2}, {"softcap": 3.0}, {"alibi": normal(7, 4)},
            {"is_causal": "bottom-right", "kv_len": torch.tensor([12, 7])}, {"segments": segments}, {"scale": 0.7},
            {"attn_mask": normal(8, 12, 12) > -0.5, "is_causal": True},
            {"attn_mask": normal(8, 2, 1, 12, 1), "sinks": normal(9, 4), "window": (5, None), "softcap": 8.0},
        ]
        for n, options in enumerate(rules):
            with self.subTest(options=options.keys()):
                given = [normal(n, 2, heads, 12, 16).requires_grad_() for heads in (4, 2, 2)]
                needy = [x for x in (options.get("attn_mask"), options.get("sinks"))
                         if x is not None and x.is_floating_point()]
                mine = [*given, *(x.requires_grad_() for x in needy)]
                o, lse = ours.attention(*given, **options)
                w_o, w_lse = normal(98, *o.shape), normal(99, *lse.shape)
                got = torch.autograd.grad((o * w_o).sum() + (lse * w_lse).sum(), mine)
                exact = {name: double(value) for name, value in options.items()}
                left, right = (-1 if bound is None else bound for bound in options.get("window", (None, None)))
                of_queries = exact.get("segments")
                o, lse = formula.attention(
                    *map(double, given), exact.get("attn_mask"), exact.get("sinks"), exact.get("alibi"),
                    exact.get("kv_len"), of_queries, of_queries,
                    ({False: 0, True: 1}.get(options.get("is_causal", False), 2), options.get("q_offset", 0), left,
                     right, options.get("scale", 0.0), options.get("softcap", 0.0), 0.0))
                self.assertEqual(o.dtype, torch.float64)
                want = torch.autograd.grad((o * w_o).sum() + (lse * w_lse).sum(), mine)
                for a, b in zip(got, want, strict=True):
                    torch.testing.assert_close(a, b, atol=5e-5, rtol=5e-5)

    def test_of_gradients(self):
        """create_graph=True, beside float64."""
        given = [normal(n, 1, 2, 6, 8).requires_grad_() for n in range(3)]
        exact = [x.detach().double().requires_grad_() for x in given]

        def second(call, q, k, v):
            d_q, d_v = torch.autograd.grad(call(q, k, v).square().sum(), (q, v), create_graph=True)
            return torch.autograd.grad(d_q.square().sum() + d_v.square().sum(), (q, k, v))

        got = second(lambda *x: ours.attention(*x, is_causal=True)[0], *given)
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            want = second(lambda *x: functional.scaled_dot_product_attention(*x, is_causal=True), *exact)
        for a, b in zip(got, want, strict=True):
            torch.testing.assert_close(a, b.float(), atol=1e-3, rtol=1e-4)
        with self.assertRaisesRegex(qkv.UnsupportedError, "create_graph=True with dropout"):
            second(lambda *x: ours.attention(*x, dropout_p=0.5)[0], *given)

    def test_strides_that_the_gradients_keep(self):
        """Models make q, k and v as [batch, len, heads, dim]: their gradients come in that order, without a copy."""
        given = [normal(n, 2, 9, 4, 16).transpose(1, 2).requires_grad_() for n in range(3)]
        dense = [x.detach().contiguous().requires_grad_() for x in given]
        outer = normal(5, 2, 4, 9, 16)
        for d_o in (outer, outer.transpose(1, 2).contiguous().transpose(1, 2), outer[..., :1].expand(-1, -1, -1, 16)):
            got = torch.autograd.grad(ours.scaled_dot_product_attention(*given), given, d_o)
            want = torch.autograd.grad(ours.scaled_dot_product_attention(*dense), dense, d_o.contiguous())
            for x, a, b in zip(given, got, want, strict=True):
                self.assertTrue(torch.equal(a, b))
                self.assertEqual(a.stride(), x.stride())

    def test_a_call_again_has_its_own_arrays(self):
        """Descriptors are kept by shapes: masks, sinks and seeds are those of each call."""
        q, k, v = (normal(n, 2, 4, 9, 16) for n in range(3))
        for n in range(4):
            mask, sinks, seed = normal(n, 9, 9), normal(n + 9, 4), torch.tensor(n - 2)
            o, lse = ours.attention(q, k, v, mask, sinks=sinks, dropout_p=0.3, seed=seed)
            want = qkv.Problem(q, k, v, mask=mask, sinks=sinks, dropout=0.3, seed=(n - 2) % 2**64).forward()
            self.assertTrue(torch.equal(o, want.o) and torch.equal(lse, want.lse))

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


class Varlen(unittest.TestCase):
    LENGTHS = ((3, 5), (0, 2), (6, 6), (1, 4))

    def packed(self):
        cu_q, cu_k = (torch.tensor([0, *(pair[n] for pair in self.LENGTHS)]).cumsum(0).int() for n in range(2))
        q, k, v = (normal(n, rows, heads, 16).requires_grad_() for n, (rows, heads) in enumerate(((10, 4), (17, 2),
                                                                                                 (17, 2))))
        return q, k, v, cu_q, cu_k

    def test_beside_each_sequence_alone(self):
        q, k, v, cu_q, cu_k = self.packed()
        for options in ({}, {"is_causal": True}, {"is_causal": "bottom-right"}, {"window": (2, 0), "softcap": 4.0},
                        {"sinks": normal(4, 4).requires_grad_()}, {"alibi": normal(5, 4), "scale": 0.3}):
            with self.subTest(options=options.keys()):
                wanted = [q, k, v, *(x for x in options.values() if torch.is_tensor(x) and x.requires_grad)]
                o, lse = ours.varlen_attention(q, k, v, cu_q, cu_k, **options)
                w_o, w_lse = normal(8, *o.shape), normal(9, *lse.shape)
                seen = lse > -torch.inf
                got = torch.autograd.grad((o * w_o).sum() + torch.where(seen, lse, 0).mul(w_lse).sum(), wanted)
                total = 0.0
                for a, b, c, d in zip(cu_q[:-1], cu_q[1:], cu_k[:-1], cu_k[1:], strict=True):
                    one = [x.transpose(0, 1)[None] for x in (q[a:b], k[c:d], v[c:d])]
                    alone = ours.attention(*one, **options)
                    self.assertTrue(torch.equal(alone[0][0].transpose(0, 1), o[a:b]))
                    self.assertTrue(torch.equal(alone[1][0], lse[:, a:b]))
                    part = alone[1][0]
                    total = total + (alone[0][0].transpose(0, 1) * w_o[a:b]).sum() + (
                        torch.where(part > -torch.inf, part, 0) * w_lse[:, a:b]).sum()
                for x, y in zip(got, torch.autograd.grad(total, wanted), strict=True):
                    torch.testing.assert_close(x, y, atol=1e-5, rtol=1e-5)

    def test_kv_len_and_rows_of_no_sequence(self):
        q, k, v, cu_q, cu_k = self.packed()
        more = [torch.cat([x, x[:3]]).detach().requires_grad_() for x in (q, k, v)]
        o, lse = ours.varlen_attention(*more, cu_q, cu_k)
        want, _ = ours.varlen_attention(q, k, v, cu_q, cu_k)
        self.assertTrue(torch.equal(o[:10], want) and o[10:].abs().max() == 0)
        o.sum().backward()
        self.assertEqual(more[0].grad[10:].abs().max(), 0)
        short, _ = ours.varlen_attention(q, k, v, cu_q, cu_k, kv_len=torch.tensor([1, 1, 1, 1]))
        torch.testing.assert_close(short[0], v[0].repeat_interleave(2, dim=0))

    def test_errors(self):
        q, k, v, cu_q, cu_k = self.packed()
        with self.assertRaisesRegex(qkv.ShapeError, "must have 3: rows"):
            ours.varlen_attention(q[None], k, v, cu_q, cu_k)
        with self.assertRaisesRegex(qkv.ShapeError, "cu_seqlens ends with 17, and q has 10 rows"):
            ours.varlen_attention(q, k, v, cu_k, cu_k)
        with self.assertRaisesRegex(qkv.UnsupportedError, "alibi requires a gradient"):
            ours.varlen_attention(q, k, v, cu_q, cu_k, alibi=torch.zeros(4).requires_grad_())
        for name, given in (("cu_seqlens_q", (cu_q.tolist(), cu_k)), ("cu_seqlens_k", (cu_q, cu_k.tolist()))):
            with self.assertRaisesRegex(qkv.DTypeError, f"^{name} is of type list, and must be a tensor"):
                ours.varlen_attention(q, k, v, *given)


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
        for name, mask in (("attn_mask", torch.ones(6, 6).int()), ("key_padding_mask", torch.ones(1, 6).long())):
            with self.assertRaisesRegex(qkv.DTypeError, f"{name} is int.*, and must be bool, where True hides a key"):
                mine(x, x, x, **{name: mask})
        with self.assertRaisesRegex(qkv.UnsupportedError, "need_weights=True"):
            mine(x, x, x, need_weights=True)
        with self.assertRaisesRegex(qkv.UnsupportedError, "add_bias_kv"):
            ours.MultiheadAttention(32, 4, add_bias_kv=True)


def plainly(call):
    return call


def by_jvp(call):
    """The same inside torch.func, where torch's operators compute."""
    return lambda q, *rest, **rules: torch.func.jvp(lambda a: call(a, *rest, **rules)[0], (q,), (q,))


class Errors(unittest.TestCase):
    def test_numbers(self):
        """What is refused of ordinary calls is refused inside torch.func and by the operator: none is wrapped."""
        x, learnt = normal(1, 1, 2, 5, 8), torch.nn.Parameter(torch.tensor(0.5))
        cases = [
            *((qkv.ArgumentError, r"window\[[01]\] = ", {"window": bounds})
              for bounds in ((-5, -7), (-2, None), (None, -2), (2.5, 0), (2**64 + 1, 0), (0, 2**63), ("a", 0))),
            *((qkv.QkvError, "q_offset = ", {"q_offset": n}) for n in (2**64 + 1, 2**63 - 1, 1.5, "1")),
            *((qkv.ArgumentError, "is_causal is ", {"is_causal": n}) for n in (2, 2**32, -1, None)),
            *((qkv.ArgumentError, "scale = ", {"scale": n}) for n in (1j, float("nan"), "1", 1e300)),
            *((qkv.ArgumentError, "softcap = ", {"softcap": n}) for n in (1j, float("nan"), -1.0)),
            *((qkv.UnsupportedError, f"{name} requires a gradient", {name: learnt}) for name in ("scale", "softcap")),
            (qkv.DTypeError, "kv_len is float32, and must hold integers", {"kv_len": torch.tensor([2.0])}),
            (qkv.ShapeError, r"kv_len\[0\] = 40 is not in", {"kv_len": torch.tensor([40])}),
            (qkv.DTypeError, "kv_len is of type int, and must be a tensor", {"kv_len": 3}),
            (qkv.ShapeError, "sinks has shape", {"sinks": torch.zeros(3)}),
            (qkv.ShapeError, "alibi has shape", {"alibi": torch.zeros(1)}),
            (qkv.ShapeError, "segments has shape", {"segments": torch.zeros(1, 1, dtype=torch.int32)}),
            (qkv.ShapeError, "mask has 3 heads", {"attn_mask": torch.zeros(3, 5, 5)}),
            (qkv.ArgumentError, "attn_mask is int32 and has numbers other than 0 and 1",
             {"attn_mask": torch.full((5, 5), 2).int()}),
        ]
        for within in (plainly, by_jvp):
            for kind, words, rules in cases:
                with self.subTest(within=within.__name__, rules=rules), self.assertRaisesRegex(kind, words):
                    within(ours.attention)(x, x, x, **rules)
            self.assertEqual(within(ours.attention)(x, x, x, window=(-1, -1), kv_len=torch.tensor(3))[0].shape, x.shape)
        for seed in (5, torch.tensor(1.5), torch.tensor([1, 2])):
            with self.assertRaisesRegex(qkv.QkvError, "^seed is of "):
                ours.attention(x, x, x, dropout_p=0.5, seed=seed)
        for n in (2, 2**32):  # of which the small call took the lowest 32 bits
            with self.assertRaisesRegex(qkv.ArgumentError, f"is_causal is {n}"):
                ours.scaled_dot_product_attention(x, x, x, is_causal=n)
        for numbers in ((3, 0, -1, -1), (-1, 0, -1, -1), (0, 0, -5, -7)):
            with self.assertRaisesRegex(qkv.ArgumentError, r"causal = |window\[0\] = -5"):
                torch.ops.qkv.attention(x, x, x, *[None] * 9, *numbers, 0.0, 0.0, 0.0)

    def test_shapes(self):
        """torch's operators would broadcast some of them."""
        x, y = normal(1, 1, 4, 5, 8), normal(2, 1, 4, 3, 8)
        for given in ((x, x[:, :3], x[:, :3]), (x, x, x[:, :2]), (x, y, x), (x, x[..., :4], x), (x.half(), x, x),
                      (x, x.double(), x)):
            for within in (plainly, by_jvp):
                with self.subTest(within=within.__name__), self.assertRaises((qkv.ShapeError, qkv.DTypeError)):
                    within(ours.attention)(*given)
        with self.assertRaisesRegex(qkv.DTypeError, "query is torch.int32, and must be of floats"):
            torch.vmap(lambda a: ours.attention(a, a, a)[0])(x[None].int())
        for call in (ours.attention, ours.scaled_dot_product_attention):
            with self.assertRaisesRegex(qkv.DTypeError, "query is of type ndarray, and must be a tensor"):
                call(x.numpy(), x, x)

    def test_masks_of_0_and_1(self):
        """By torch's operators they were added to the scores."""
        x, sees = normal(1, 1, 2, 5, 8), normal(2, 5, 5) > -0.5

        def twice(mask, call):
            q = x.clone().requires_grad_()
            d_q, = torch.autograd.grad(call(q, mask).square().sum(), q, create_graph=True)
            return d_q.detach(), torch.autograd.grad(d_q.square().sum(), q)[0]

        none = [*[None] * 8, 0, 0, -1, -1, 0.0, 0.0, 0.0]
        for call in (lambda q, mask: ours.attention(q, x, x, mask)[0],
                     lambda q, mask: torch.ops.qkv.attention(q, x, x, mask, *none)[0],
                     lambda q, mask: torch.vmap(lambda m: ours.attention(q, x, x, m)[0])(mask[None])[0]):
            for kind in (torch.uint8, torch.int32, torch.int64):
                for got, want in zip(twice(sees.to(kind), call), twice(sees, call)):
                    torch.testing.assert_close(got, want)

    def test_each_names_what_is_wrong(self):
        x = normal(1, 1, 2, 5, 8)
        cases = [
            (qkv.DTypeError, "q is float64", lambda: ours.attention(*[x.double()] * 3)),
            (qkv.ShapeError, "key has 1 dimensions", lambda: ours.attention(x, x[0, 0, 0], x)),
            (qkv.ArgumentError, "scale is 0", lambda: ours.attention(x, x, x, scale=0)),
            (qkv.ShapeError, "mask has 4 keys", lambda: ours.attention(x, x, x, torch.ones(5, 4) > 0)),
            (qkv.ArgumentError, "window is 3, and must be a pair", lambda: ours.attention(x, x, x, window=3)),
            (qkv.ArgumentError, r"window is \(\), and must be", lambda: ours.attention(x, x, x, window=())),
            (qkv.KeywordError, r"attention\(\) has no keyword causal: use is_causal=True",
             lambda: ours.attention(x, x, x, causal=True)),
            (qkv.KeywordError, "mask: use attn_mask=", lambda: ours.attention(x, x, x, mask=None)),
            (qkv.KeywordError, "lse: leave it out, lse is always returned", lambda: ours.attention(x, x, x, lse=True)),
            (qkv.KeywordError, r"varlen_attention\(\) has no keyword causal: use is_causal=True",
             lambda: ours.varlen_attention(x[0], x[0], x[0], torch.tensor([0, 2]), causal=True)),
            (qkv.KeywordError, "sofcap: did you mean softcap", lambda: ours.attention(x, x, x, sofcap=1.0)),
            (qkv.KeywordError, r"attention\(\) has no keyword is_causal: use causal=True",
             lambda: qkv.attention(x, x, x, is_causal=True)),
        ]
        for kind, words, call in cases:
            with self.subTest(words=words), self.assertRaisesRegex(kind, words):
                call()


if __name__ == "__main__":
    unittest.main()
