"""Tensors that are not what their memory says, in every argument of every call: right numbers, or an error by name."""
import importlib.util
import unittest
import warnings

if importlib.util.find_spec("torch") is None:
    raise unittest.SkipTest("torch is not installed: ./dev test --deep torch installs it")

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.nn import functional
from torch.nn.attention.bias import causal_lower_right, causal_upper_left
from torch.utils._pytree import tree_map_only

import qkv
import qkv.torch as ours

LEN_Q, LEN_K, DIM = 4, 7, 8


def normal(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def textbook(q, k, v, mask=None):
    s = q.double() @ k.double().mT / DIM**0.5
    if mask is not None:
        s = s.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else s + mask.double()
    return s.softmax(-1).nan_to_num(0) @ v.double()  # a query that sees nothing gets 0


# ---- Kinds of tensors: each makes one that stands for x -------------------------------------------


class Named(torch.Tensor):
    """A subclass that only adds something: its memory is its elements."""


class Lazy(torch.Tensor):
    """As torch's causal bias: what it means is in its function, and its memory is not set."""

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        return super().__torch_function__(function, types, arguments, keywords or {})


class Wrapper(torch.Tensor):
    """Holds another tensor, and sees every operator."""

    @staticmethod
    def __new__(cls, inner):
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), keywords=None):
        real = tree_map_only(Wrapper, lambda x: x.inner, (arguments, keywords or {}))
        return tree_map_only(torch.Tensor, Wrapper, function(*real[0], **real[1]))


def lazy(x):
    return torch.full_like(x, 7 if x.is_floating_point() else 0).as_subclass(Lazy)


def negated(x):
    """x, whose memory is -x."""
    if not x.is_floating_point():
        return x
    made = torch.complex(torch.zeros_like(x), -x).conj().imag
    assert made.is_neg()
    return made


def zeros(x):
    return torch._efficientzerotensor(x.shape, dtype=x.dtype)


KINDS = {
    "named": lambda x: x.as_subclass(Named),
    "parameter": lambda x: torch.nn.Parameter(x, requires_grad=False),
    "lazy": lazy,
    "wrapper": Wrapper,
    "negated": negated,
    "zero": zeros,
    "meta": lambda x: x.to("meta"),
    "sparse": lambda x: x.to_sparse(),
    "complex": lambda x: torch.complex(x, x).conj() if x.is_floating_point() else x.to(torch.complex64),
}
# What it stands for: x, or other numbers that are also right.
MEANS = {"zero": torch.zeros_like}


def numbers(o):
    o = o.inner if isinstance(o, Wrapper) else o
    return torch.from_numpy(o) if isinstance(o, np.ndarray) else o.as_subclass(torch.Tensor)


def in_mode(q, k, v, mask):
    with ours.replaced():
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def strictly(q, k, v, mask):
    with ours.replaced(strict=True):
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def by_operator(q, k, v, mask):
    return torch.ops.qkv.attention(q, k, v, mask, *[None] * 8, 0, 0, -1, -1, 0.0, 0.0, 0.0)[0]


CALLS = {
    "qkv.attention": lambda q, k, v, mask: qkv.attention(q, k, v, mask=mask),
    "sdpa": ours.scaled_dot_product_attention,
    "attention": lambda *x: ours.attention(*x)[0],
    "operator": by_operator,
    "sdpa operator": torch.ops.qkv.scaled_dot_product_attention,
    "replaced": in_mode,
    "strict": strictly,
}
if importlib.util.find_spec("transformers") is not None:
    import qkv.transformers

    CALLS["transformers"] = lambda q, k, v, mask: qkv.transformers.attention(
        torch.nn.Identity(), q, k, v, mask[None, None] if mask.dim() == 2 else mask)[0].transpose(1, 2)


class Kinds(unittest.TestCase):
    def setUp(self):
        self.given = [normal(1, 1, 2, LEN_Q, DIM), normal(2, 1, 2, LEN_K, DIM), normal(3, 1, 2, LEN_K, DIM)]
        self.masks = normal(4, LEN_Q, LEN_K), normal(5, LEN_Q, LEN_K) > -1

    def test_every_argument(self):
        counts = {"right": 0, "refused": 0}
        for of_mask in self.masks:
            for call in CALLS:
                for kind in KINDS:
                    for place in range(4):
                        with self.subTest(call=call, kind=kind, place=place), warnings.catch_warnings():
                            warnings.simplefilter("ignore")
                            counts[self.check(call, kind, place, of_mask)] += 1
        self.assertGreater(counts["right"], 200)
        self.assertGreater(counts["refused"], 100)

    def check(self, call, kind, place, of_mask):
        given = [*self.given, of_mask]
        means = list(given)
        means[place] = MEANS.get(kind, lambda x: x)(given[place])
        try:
            given[place] = KINDS[kind](given[place])
            o = CALLS[call](*given)
        except (qkv.QkvError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
            self.assertTrue(str(error))
            if isinstance(error, qkv.QkvError):
                self.assertRegex(str(error), r"(query|key|value|attn_mask|mask|q|k|v|dtype|layout|subclass|device)\b")
            if call != "strict":
                self.assertNotIn(kind, ("named", "parameter", "negated", "zero"), error)
            return "refused"
        if call == "replaced" and kind in ("lazy", "meta"):  # torch has computed it, by what it makes of them
            return "refused"
        torch.testing.assert_close(numbers(o).double(), textbook(*means), rtol=1e-5, atol=1e-5)
        return "right"

    def test_fake(self):
        with FakeTensorMode() as mode:
            fake = [mode.from_tensor(x) for x in self.given]
            o = ours.scaled_dot_product_attention(*fake)
            self.assertEqual((type(o).__name__, o.shape), ("FakeTensor", (1, 2, LEN_Q, DIM)))
        with self.assertRaisesRegex(qkv.UnsupportedError, "k is a FakeTensor"):
            qkv.attention(self.given[0], fake[1], self.given[2])

    def test_mixed_devices(self):
        """Where one is on the meta device, an o without elements would be memory that is not set."""
        for place in range(3):
            given = list(self.given)
            given[place] = given[place].to("meta")
            for call in (ours.scaled_dot_product_attention, lambda *x: by_operator(*x, None)):
                with self.assertRaises((qkv.DTypeError, RuntimeError)):
                    call(*given)

    def test_inside_torch_func(self):
        q, k, v = self.given
        with self.assertRaisesRegex(qkv.UnsupportedError, "q is a value inside torch.func"):
            torch.vmap(lambda x: torch.from_numpy(np.asarray(qkv.attention(x, k, v))))(torch.stack([q, q]))

    def test_other_arrays(self):
        """Lengths, slopes, sinks, lists: what is not q, k, v or a mask."""
        q, k, v = self.given
        sinks = torch.tensor([0.5, -0.5])
        want = qkv.attention(q, k, v, sinks=sinks)
        torch.testing.assert_close(qkv.attention(q, k, v, sinks=negated(sinks)), want)
        segments = tuple(torch.zeros(n, dtype=torch.int32) for n in (LEN_Q, LEN_K))
        for name, value in (("sinks", sinks), ("alibi", sinks), ("kv_len", torch.tensor([5])), ("segments", segments)):
            other = tuple(lazy(x) for x in value) if isinstance(value, tuple) else lazy(value)
            with self.subTest(name=name), self.assertRaisesRegex(qkv.UnsupportedError, f"{name} is a Lazy"):
                qkv.attention(q, k, v, **{name: other})


class CausalBias(unittest.TestCase):
    def test_is_a_rule(self):
        q, k, v = normal(1, 1, 2, LEN_Q, DIM), normal(2, 1, 2, LEN_K, DIM), normal(3, 1, 2, LEN_K, DIM)
        ones = torch.ones(LEN_Q, LEN_K)
        for bias, mask in ((causal_upper_left(LEN_Q, LEN_K), ones.tril().bool()),
                           (causal_lower_right(LEN_Q, LEN_K), ones.tril(LEN_K - LEN_Q).bool())):
            want = textbook(q, k, v, mask)
            for name in ("sdpa", "attention", "replaced", "strict"):
                with self.subTest(call=name):
                    torch.testing.assert_close(CALLS[name](q, k, v, bias).double(), want, rtol=1e-5, atol=1e-5)
            for name in ("qkv.attention", "operator"):
                with self.subTest(call=name), self.assertRaisesRegex(qkv.UnsupportedError, "mask is a CausalBias"):
                    CALLS[name](q, k, v, bias)
        with self.assertRaisesRegex(qkv.ArgumentError, "give one of them"):
            ours.scaled_dot_product_attention(q, k, v, bias, is_causal=True)
        with self.assertRaisesRegex(qkv.ShapeError, "CausalBias of 4 queries and 7 keys"):
            ours.scaled_dot_product_attention(q, k[..., :6, :], v[..., :6, :], bias)

    def test_bottom_right_again(self):
        """The second call of the same shapes took its offset from memory that had been given back."""
        q, k, v = normal(1, 1, 2, LEN_Q, DIM), normal(2, 1, 2, LEN_K, DIM), normal(3, 1, 2, LEN_K, DIM)
        want = ours.attention(q, k, v, is_causal="bottom-right")[0]
        others = [np.full(1, 10**12 + n) for n in range(2000)]
        torch.testing.assert_close(ours.attention(q, k, v, is_causal="bottom-right")[0], want, rtol=0, atol=0)
        self.assertEqual(len(others), 2000)

    def test_defaults_of_torch(self):
        q, k, v = normal(1, 1, 2, LEN_Q, DIM), normal(2, 1, 2, LEN_K, DIM), normal(3, 1, 2, LEN_K, DIM)
        x = [each.requires_grad_() for each in (q, k, v, normal(4, LEN_Q, LEN_K), normal(5, 2))]
        w = normal(6, 1, 2, LEN_Q, DIM)

        def made():
            o, lse = ours.attention(*x[:4], sinks=x[4])
            plain = [each.detach() for each in x[:3]]
            found = o, lse, *torch.autograd.grad((o, lse), x, (w, w[..., 0])), *qkv.attention(*plain, lse=True)
            return [*(each.detach() for each in found), ours.scaled_dot_product_attention(*plain)]

        want = made()
        self.addCleanup(torch.set_default_dtype, torch.float32)
        for kind in (torch.float64, torch.float16):
            torch.set_default_dtype(kind)
            for a, b in zip(made(), want, strict=True):
                torch.testing.assert_close(a, b, rtol=0, atol=0)
        torch.set_default_dtype(torch.float32)
        with torch.device("meta"):
            got = made()
        for a, b in zip(got, want, strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=0)

    def test_gradients_of_rules_are_not_lost(self):
        x, of_heads = normal(1, 1, 2, LEN_Q, DIM), normal(5, 2).requires_grad_()
        for name in ("sinks", "alibi"):
            with self.assertRaisesRegex(qkv.UnsupportedError, f"^{name} requires a gradient"):
                qkv.attention(x, x, x, **{name: of_heads})
            with torch.no_grad():
                qkv.attention(x, x, x, **{name: of_heads})

    def test_a_soft_cap_of_0(self):
        q = normal(1, 1, 2, LEN_Q, DIM)
        with self.assertRaisesRegex(qkv.ArgumentError, "softcap is 0"):
            ours.attention(q, q, q, softcap=0)

    def test_tangent_of_a_mask(self):
        q, k, v = normal(1, 1, 2, LEN_Q, DIM), normal(2, 1, 2, LEN_K, DIM), normal(3, 1, 2, LEN_K, DIM)
        with forward_ad.dual_level():
            mask = forward_ad.make_dual(normal(4, LEN_Q, LEN_K), normal(5, LEN_Q, LEN_K))
            with self.assertRaises((qkv.UnsupportedError, NotImplementedError)):
                in_mode(q, k, v, mask)
            with self.assertRaisesRegex(qkv.UnsupportedError, "mask is a dual tensor"):
                qkv.attention(q, k, v, mask=mask)
