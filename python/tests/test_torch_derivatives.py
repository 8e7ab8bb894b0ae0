"""Derivatives of every kind through every differentiable call, beside the textbook in torch's operators and float64.

A call gives the right numbers or an error that names it; never other numbers, and never a derivative that is lost.
"""
import importlib.util
import unittest
import warnings

if importlib.util.find_spec("torch") is None:
    raise unittest.SkipTest("torch is not installed: ./dev test --deep torch installs it")

import torch
from torch.autograd import forward_ad
from torch.nn import functional

import qkv
import qkv.torch as ours

HEADS, LEN_Q, LEN_K, DIM = 4, 5, 7, 8
SINKS, ALIBI = torch.tensor([0.3, -1.0, 0.0, 2.0]), torch.tensor([0.1, 0.2, 0.4, 0.8])
CUTS = torch.tensor([0, 2, 5], dtype=torch.int32)
REFUSALS = qkv.UnsupportedError, NotImplementedError


def normal(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def textbook(q, k, v, added=None, *, seen=None, softcap=None, sinks=None, alibi=None, q_offset=0):
    """softmax(q k / sqrt(dim)) v with an explicit matrix, of [..., heads, len, dim]."""
    group = q.shape[-3] // k.shape[-3]
    k, v = (x.repeat_interleave(group, dim=-3) for x in (k, v))
    s = q @ k.mT / q.shape[-1] ** 0.5
    if softcap:
        s = softcap * torch.tanh(s / softcap)
    if alibi is not None:
        distance = torch.arange(k.shape[-2]) - torch.arange(q.shape[-2])[:, None] - q_offset
        s = s + alibi[:, None, None] * distance
    if added is not None:
        s = s + added
    if seen is not None:
        s = s.masked_fill(~seen, -torch.inf)
    if sinks is None:
        return s.softmax(-1) @ v
    whole = torch.cat([s, sinks[:, None, None].expand(*s.shape[:-1], 1)], -1)
    return whole.softmax(-1)[..., :-1] @ v


LOWER = torch.ones(LEN_Q, LEN_K).tril().bool()
BOTTOM = torch.ones(LEN_Q, LEN_K).tril(LEN_K - LEN_Q).bool()
SOME = LOWER | (normal(9, LEN_Q, LEN_K) > 0.5)


def by_operator(q, k, v):
    return torch.ops.qkv.scaled_dot_product_attention(q, k, v, None, 0.0, True)


def in_mode(q, k, v, *added):
    with ours.replaced():
        return functional.scaled_dot_product_attention(q, k, v, *added, enable_gqa=True)


def packed(x):
    return x[0].transpose(0, 1)


def varlen(q, k, v):
    cuts = torch.tensor([0, 3, LEN_K], dtype=torch.int32)
    return ours.varlen_attention(packed(q), packed(k), packed(v), CUTS, cuts)[0].transpose(0, 1)[None]


def varlen_textbook(q, k, v):
    cuts = (0, 2, 0, 3), (2, 5, 3, LEN_K)
    parts = [textbook(q[..., a:b, :], k[..., c:d, :], v[..., c:d, :]) for a, b, c, d in cuts]
    return torch.cat(parts, -2)


# name: (the call, the textbook, whether a mask that is added is its last argument)
ENTRIES = {
    "sdpa": (lambda q, k, v: ours.scaled_dot_product_attention(q, k, v, enable_gqa=True), textbook, False),
    "sdpa causal": (lambda q, k, v: ours.scaled_dot_product_attention(q, k, v, is_causal=True),
                    lambda q, k, v: textbook(q, k, v, seen=LOWER), False),
    "sdpa bools": (lambda q, k, v: ours.scaled_dot_product_attention(q, k, v, SOME),
                   lambda q, k, v: textbook(q, k, v, seen=SOME), False),
    "sdpa added": (ours.scaled_dot_product_attention, textbook, True),
    "attention": (lambda q, k, v, m: ours.attention(q, k, v, m, softcap=2.0, sinks=SINKS, alibi=ALIBI, q_offset=2,
                                                    is_causal=True)[0],
                  lambda q, k, v, m: textbook(q, k, v, m, softcap=2.0, sinks=SINKS, alibi=ALIBI, q_offset=2,
                                              seen=torch.ones(LEN_Q, LEN_K).tril(2).bool()), True),
    "attention bottom-right": (lambda q, k, v: ours.attention(q, k, v, is_causal="bottom-right")[0],
                               lambda q, k, v: textbook(q, k, v, seen=BOTTOM), False),
    "attention lse": (lambda q, k, v: ours.attention(q, k, v)[1],
                      lambda q, k, v: (q @ k.repeat_interleave(2, -3).mT / DIM**0.5).logsumexp(-1), False),
    "operator": (by_operator, lambda q, k, v: textbook(q, k, v, seen=LOWER), False),
    "replaced": (in_mode, textbook, False),
    "replaced added": (in_mode, textbook, True),
    "varlen": (varlen, varlen_textbook, False),
}

if importlib.util.find_spec("transformers") is not None:
    import qkv.transformers
    from qkv.rules import RuleMask, Visibility

    class Module(torch.nn.Module):
        is_causal = True

    def of_transformers(q, k, v, mask=None, **more):
        return qkv.transformers.attention(Module(), q, k, v, mask, **more)[0].transpose(1, 2)

    RULES = Visibility(1, LEN_Q, LEN_K, causal=True, q_offset=2, window=(3, -1))
    ENTRIES.update({
        "transformers": (of_transformers, lambda q, k, v: textbook(q, k, v, seen=LOWER), False),
        "transformers rules": (lambda q, k, v: of_transformers(q, k, v, RuleMask(RULES), s_aux=SINKS),
                               lambda q, k, v: textbook(q, k, v, seen=RULES.dense(), sinks=SINKS), False),
        "transformers bools": (lambda q, k, v: of_transformers(q, k, v, SOME[None, None], softcap=2.0),
                               lambda q, k, v: textbook(q, k, v, seen=SOME, softcap=2.0), False),
        "transformers added": (lambda q, k, v, m: of_transformers(q, k, v, m[None, None]), textbook, True),
        "transformers bias": (lambda q, k, v, m: of_transformers(q, k, v, RuleMask(RULES),
                                                                 position_bias=m.expand(1, HEADS, -1, -1)),
                              lambda q, k, v, m: textbook(q, k, v, m, seen=RULES.dense()), True),
    })


# ---- Kinds of derivatives: of f at inputs x, in directions t and by weights w of the result -------


def weighted(f, w):
    return lambda *x: (f(*x) * w).sum()


def leaves(x):
    return [each.detach().clone().requires_grad_() for each in x]


def first(f, x, t, w):
    x = leaves(x)
    return torch.autograd.grad(weighted(f, w)(*x), x, allow_unused=True)


def again(f, x, t, w):
    """The gradient of a gradient times t, by all inputs."""
    x = leaves(x)
    grads = torch.autograd.grad(weighted(f, w)(*x), x, create_graph=True, allow_unused=True)
    return torch.autograd.grad(sum((g * u).sum() for g, u in zip(grads, t) if g is not None), x, allow_unused=True)


def named(f, x, t, w):
    """A gradient penalty of one input, by another that is named."""
    x = leaves(x)
    grad = torch.autograd.grad(weighted(f, w)(*x), x[0], create_graph=True)[0]
    return torch.autograd.grad(grad.square().sum(), x[1])


def named_backward(f, x, t, w):
    x = leaves(x)
    grad = torch.autograd.grad(weighted(f, w)(*x), x[0], create_graph=True)[0]
    grad.square().sum().backward(inputs=[x[1]])
    return [x[1].grad]


def batched(f, x, t, w):
    """Several gradients at once, by the vmap that torch.autograd has for itself."""
    x = leaves(x)
    of_result = torch.stack([w, -2 * w, w.square()])
    return torch.autograd.grad(f(*x), x, of_result, is_grads_batched=True, allow_unused=True)


def batched_again(f, x, t, w):
    x = leaves(x)

    def of_row(row):
        return weighted(f, w)(torch.cat([row, x[0][..., 1:, :]], -2), *x[1:])

    return [torch.autograd.functional.hessian(of_row, x[0][..., :1, :].detach(), vectorize=True)]


def jvp(f, x, t, w):
    return torch.func.jvp(f, tuple(x), tuple(t))


def dual(f, x, t, w):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(f(*(forward_ad.make_dual(each, u) for each, u in zip(x, t))))


def dual_last(f, x, t, w):
    """Only the last input is dual: the value, or a mask that is added."""
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(f(*x[:-1], forward_ad.make_dual(x[-1], t[-1])))


def func_grad(f, x, t, w):
    return torch.func.grad(weighted(f, w), argnums=tuple(range(len(x))))(*x)


def hvp(f, x, t, w):
    """Forward over reverse."""
    zeros = [torch.zeros_like(u) for u in t[1:]]
    return torch.func.jvp(torch.func.grad(weighted(f, w)), tuple(x), (t[0], *zeros))


def hvp_twice(f, x, t, w):
    return torch.autograd.functional.hvp(lambda q: weighted(f, w)(q, *x[1:]), x[0], t[0])[1:]


def mapped(f, x, t, w):
    many = torch.stack([x[0], t[0], x[0] + t[0]])
    return [torch.vmap(lambda q: f(q, *x[1:]))(many)]


def forward_jacobian(f, x, t, w):
    return [torch.func.jacfwd(lambda row: f(torch.cat([row, x[0][..., 1:, :]], -2), *x[1:]))(x[0][..., :1, :])]


KINDS = (first, again, named, named_backward, batched, batched_again, jvp, dual, dual_last, func_grad, hvp, hvp_twice,
         mapped, forward_jacobian)
FORWARD = jvp, dual, dual_last, hvp, forward_jacobian
SECOND = again, named, named_backward, batched, batched_again, hvp, hvp_twice
# (entry, kind) that may be refused by name: all others are numbers.
MAY_REFUSE = {("varlen", kind.__name__) for kind in (*FORWARD, *SECOND, func_grad, mapped)}
MAY_REFUSE |= {(name, kind.__name__) for name in ENTRIES if name.startswith("replaced") for kind in FORWARD}


class Derivatives(unittest.TestCase):
    def check(self, name, kind):
        call, formula, added = ENTRIES[name]
        q, k, v = normal(1, 1, HEADS, LEN_Q, DIM), normal(2, 1, 2, LEN_K, DIM), normal(3, 1, 2, LEN_K, DIM)
        x = [q, k, v, normal(4, LEN_Q, LEN_K)] if added else [q, k, v]
        t = [normal(10 + n, *each.shape) for n, each in enumerate(x)]
        twice = [[each.double() for each in of] for of in (x, t)]
        w = normal(20, *formula(*twice[0]).shape)
        want = kind(lambda *y: formula(*y), *twice, w.double())
        try:
            got = kind(call, x, t, w)
        except REFUSALS as error:
            self.assertIn((name, kind.__name__), MAY_REFUSE, error)
            return False
        for a, b in zip(got, want, strict=True):
            if b is None:
                continue
            self.assertIsNotNone(a)
            torch.testing.assert_close(a.double(), b, rtol=2e-5, atol=2e-5 * max(1.0, b.abs().max().item()))
        return True

    def test_every_kind(self):
        n_numbers = 0
        for kind in KINDS:
            for name in ENTRIES:
                with self.subTest(entry=name, kind=kind.__name__), warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # vmap says that it calls the operator for each
                    n_numbers += self.check(name, kind)
        self.assertGreater(n_numbers, len(KINDS) * len(ENTRIES) * 3 // 4)

    def test_module(self):
        module = ours.MultiheadAttention(16, 4, batch_first=True)
        x, t = normal(1, 2, 6, 16), normal(2, 2, 6, 16)
        o, tangent = torch.func.jvp(lambda a: module(a, a, a)[0], (x,), (t,))
        plus, minus = (module(x + h * t, x + h * t, x + h * t)[0] for h in (1e-2, -1e-2))
        torch.testing.assert_close(o, module(x, x, x)[0], rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(tangent, (plus - minus) / 2e-2, rtol=1e-2, atol=1e-3)

    def test_rows_that_see_nothing(self):
        q, k, v = (normal(n, 1, 2, 3, 4) for n in range(3))
        seen = torch.tensor([[True, True, True], [False, False, False], [True, False, True]])
        for made in torch.func.jvp(lambda a: ours.attention(a, k, v, seen)[0], (q,), (normal(7, 1, 2, 3, 4),)):
            self.assertTrue(made.isfinite().all())
            self.assertTrue((made[:, :, 1] == 0).all())
        added = torch.zeros(3, 3).masked_fill(~seen, -torch.inf)
        calls = [lambda a, mask: ours.attention(a, k, v, mask)[0]]
        if importlib.util.find_spec("transformers") is not None:
            calls.append(lambda a, mask: of_transformers(a, k, v, mask[None, None]))
        for call in calls:
            by_bools, by_numbers = (
                again(lambda a, mask=mask, call=call: call(a, mask), [q], [k], v) for mask in (seen, added)
            )
            torch.testing.assert_close(by_numbers, by_bools, rtol=1e-6, atol=1e-6)

    def test_what_autograd_brings(self):
        k, v, w = (normal(n, 1, 2, 3, 4) for n in range(3))
        q, = leaves([normal(3, 1, 2, 3, 4)])
        o, lse = ours.attention(q, k, v)
        want = torch.autograd.grad(o, q, w, retain_graph=True)[0]
        got = torch.autograd.grad(o, q, torch._neg_view(w), retain_graph=True)[0]
        torch.testing.assert_close(got, -want, rtol=0, atol=0)
        want = torch.autograd.grad(lse, q, w[..., 0], retain_graph=True)[0]
        got = torch.autograd.grad(lse, q, torch._neg_view(w[..., 0].contiguous()), retain_graph=True)[0]
        torch.testing.assert_close(got, -want, rtol=0, atol=0)
        got = torch.autograd.grad(o, q, torch._efficientzerotensor(o.shape))[0]
        torch.testing.assert_close(got, torch.zeros_like(q), rtol=0, atol=0)

    @unittest.skipIf(importlib.util.find_spec("transformers") is None, "transformers is not installed")
    def test_models_with_padding(self):
        import transformers

        torch.manual_seed(3)
        config = transformers.LlamaConfig(vocab_size=9, hidden_size=16, intermediate_size=16, num_hidden_layers=2,
                                          num_attention_heads=4, num_key_value_heads=2, initializer_range=0.3)
        model = transformers.LlamaForCausalLM(config).eval()
        x, padding = normal(1, 2, 4, 16), torch.tensor([[0, 1, 1, 1], [1, 1, 1, 1]])
        made = {}
        for name in ("eager", "qkv"):
            model.set_attn_implementation(name)

            def last(x):
                return model(inputs_embeds=x, attention_mask=padding, use_cache=False).logits[:, -1].logsumexp(-1)

            made[name] = [*torch.func.jvp(last, (x,), (x,)), torch.func.grad(lambda x: last(x).sum())(x),
                          torch.autograd.functional.jacobian(last, x, vectorize=True)]
        torch.testing.assert_close(made["qkv"], made["eager"], rtol=1e-4, atol=1e-5)

    def test_16_bits(self):
        q, k, v, t = (normal(n, 1, 2, 3, 8).bfloat16() for n in range(4))
        o, tangent = torch.func.jvp(lambda a: ours.attention(a, k, v)[0], (q,), (t,))
        want = torch.func.jvp(lambda a: textbook(a, k.double(), v.double()), (q.double(),), (t.double(),))
        self.assertEqual((o.dtype, tangent.dtype), (torch.bfloat16, torch.bfloat16))
        torch.testing.assert_close(tangent.double(), want[1], rtol=2e-2, atol=2e-2)

    def test_refused_by_name(self):
        q, t = normal(1, 1, 2, 3, 8), normal(2, 1, 2, 3, 8)
        with self.assertRaisesRegex(qkv.UnsupportedError, "forward mode and torch.func with dropout"):
            torch.func.jvp(lambda a: ours.attention(a, q, q, dropout_p=0.5, seed=torch.tensor(3))[0], (q,), (t,))
        with forward_ad.dual_level():
            pair = forward_ad.make_dual(q, t)
            with self.assertRaisesRegex(qkv.UnsupportedError, "q is a dual tensor"):
                qkv.attention(pair, q, q)
            with self.assertRaisesRegex(qkv.UnsupportedError, "key is a dual tensor"):
                torch.ops.qkv.attention(q, pair, q, *[None] * 9, 0, 0, -1, -1, 0.0, 0.0, 0.0)


