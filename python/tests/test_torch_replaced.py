"""qkv.torch.replaced(): what it computes, what it leaves to torch, and that nothing of torch stays changed."""
import importlib.util
import threading
import unittest

if importlib.util.find_spec("torch") is None:
    raise unittest.SkipTest("torch is not installed: ./dev test --deep torch installs it")

import torch
from torch.nn import functional
from torch.nn.functional import scaled_dot_product_attention as imported_before
from torch.utils._python_dispatch import TorchDispatchMode

import qkv
import qkv.torch as ours


def normal(seed, *shape, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def three(*shape, **options):
    return [normal(n, *(shape or (2, 4, 9, 16)), **options) for n in range(3)]


class Seen(TorchDispatchMode):
    """Names of the operators of aten that run."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.add(func._schema.name)
        return func(*args, **(kwargs or {}))


def attention_of_torch(names):
    return {name for name in names if "attention" in name and not name.startswith("qkv::")
            or "transformer_encoder" in name or name == "aten::_softmax"}


class Calls(unittest.TestCase):
    def test_every_name_is_replaced(self):
        q, k, v = three()
        want = ours.scaled_dot_product_attention(q, k, v, is_causal=True)
        with ours.replaced() as r:
            for call in (functional.scaled_dot_product_attention, imported_before,
                         torch._C._nn.scaled_dot_product_attention, torch.ops.aten.scaled_dot_product_attention,
                         torch.ops.aten.scaled_dot_product_attention.default):
                self.assertTrue(torch.equal(call(q, k, v, is_causal=True), want))
        self.assertEqual((r.calls, r.fallbacks), (5, {}))
        with Seen() as seen:
            imported_before(q, k, v)
        self.assertTrue(attention_of_torch(seen.names))

    def test_modules(self):
        """Their results, and no operator of torch's attention below them."""
        torch.manual_seed(1)
        x, padding = normal(1, 2, 7, 32), torch.zeros(2, 7, dtype=torch.bool)
        padding[1, 5:] = True
        causal = torch.nn.Transformer.generate_square_subsequent_mask(7)
        encoder = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        modules = {
            "multi-head": (torch.nn.MultiheadAttention(32, 4, batch_first=True),
                           lambda m: m(x, x, x, key_padding_mask=padding, need_weights=False)[0], 1),
            "multi-head, causal": (torch.nn.MultiheadAttention(32, 4, batch_first=True), lambda m: m(
                x, x, x, attn_mask=causal, is_causal=True, need_weights=False)[0], 1),
            "without a batch": (torch.nn.MultiheadAttention(32, 4, add_zero_attn=True, add_bias_kv=True),
                                lambda m: m(x[0], x[0], x[0], need_weights=False)[0], 1),
            "layer": (encoder, lambda m: m(x, src_key_padding_mask=padding), 1),
            "encoder": (torch.nn.TransformerEncoder(encoder, 2), lambda m: m(x, src_key_padding_mask=padding), 2),
            "decoder": (torch.nn.TransformerDecoderLayer(32, 4, 64, batch_first=True),
                        lambda m: m(x, x, tgt_mask=causal, tgt_is_causal=True), 2),
        }
        for name, (module, call, n_calls) in modules.items():
            for grad in (False, True):
                with self.subTest(name, grad=grad), torch.set_grad_enabled(grad):
                    module.eval()
                    want = call(module)
                    with Seen() as seen, ours.replaced(strict=True) as r:
                        got = call(module)
                    if name in ("layer", "encoder"):  # torch's fast path leaves padded rows at 0
                        got, want = got[~padding], want[~padding]
                    torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)
                    self.assertEqual((r.calls, r.fallbacks), (n_calls, {}))
                    self.assertEqual(attention_of_torch(seen.names), set())

    def test_weights_keep_their_meaning(self):
        module, x = torch.nn.MultiheadAttention(32, 4, batch_first=True), normal(1, 2, 7, 32)
        want = module(x, x, x, need_weights=True, average_attn_weights=False)
        with ours.replaced() as r:
            got = module(x, x, x, need_weights=True, average_attn_weights=False)
        self.assertTrue(torch.equal(got[0], want[0]) and torch.equal(got[1], want[1]))
        self.assertEqual((r.calls, r.fallbacks), (0, {"weights": 1}))

    def test_gradients(self):
        given = [x.requires_grad_() for x in three()]
        exact = [x.detach().double().requires_grad_() for x in given]
        with ours.replaced(strict=True) as r:
            functional.scaled_dot_product_attention(*given, is_causal=True).square().sum().backward()
        functional.scaled_dot_product_attention(*exact, is_causal=True).square().sum().backward()
        for a, b in zip(given, exact, strict=True):
            torch.testing.assert_close(a.grad, b.grad.float(), atol=1e-5, rtol=1e-5)
        self.assertEqual(r.calls, 1)

    def test_compiled(self):
        """The mode is part of what is compiled: outside of it the same function is compiled anew, with torch's."""
        graphs = []

        def backend(graph, given):
            graphs.append({str(node.target) for node in graph.graph.nodes if node.op == "call_function"})
            return graph

        module = torch.nn.MultiheadAttention(32, 4, batch_first=True).eval()
        x = normal(1, 2, 7, 32)

        def call(q, k, v):
            heads = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return heads, module(x, x, x, need_weights=False)[0]

        q, k, v = three()
        torch._dynamo.reset()
        compiled = torch.compile(call, fullgraph=True, backend=backend)
        with ours.replaced() as r:
            want = call(q, k, v)
            self.assertEqual(r.calls, 2)
            for _ in range(2):
                for a, b in zip(compiled(q, k, v), want, strict=True):
                    torch.testing.assert_close(a, b)
        self.assertEqual(r.fallbacks, {})
        self.assertGreaterEqual(r.calls, 4)
        compiled(q, k, v)
        self.assertEqual(len(graphs), 2)
        self.assertTrue(any("qkv" in name for name in graphs[0]), graphs[0])
        self.assertFalse(any("scaled_dot" in name for name in graphs[0]), graphs[0])
        self.assertFalse(any("qkv" in name for name in graphs[1]), graphs[1])


class Fallbacks(unittest.TestCase):
    def reason(self, call, want):
        """One call that torch computes, by its reason; strict raises it."""
        expected = call()
        with ours.replaced() as r:
            got = call()
        self.assertEqual((r.calls, r.fallbacks), (0, {want: 1}))
        torch.testing.assert_close(got, expected, equal_nan=True)
        with self.assertRaisesRegex(qkv.UnsupportedError, want), ours.replaced(strict=True):
            call()

    def test_reasons(self):
        attend = functional.scaled_dot_product_attention
        q, k, v = three()
        double = [x.double() for x in (q, k, v)]
        self.reason(lambda: attend(*double), "dtype float64")
        self.reason(lambda: attend(q, k, v, scale=0.0), "scale 0")
        self.reason(lambda: torch.func.vmap(attend)(q, k, v), "functorch transform")
        self.reason(lambda: torch.func.grad(lambda q: attend(q, k, v).sum())(q), "functorch transform")
        nested = [torch.nested.nested_tensor([x[0], x[1]]) for x in (q, k, v)]
        self.reason(lambda: attend(*nested).to_padded_tensor(0), "nested tensor")
        self.reason(lambda: attend(q[:, :1], k, v), "heads of key or value differ")
        self.reason(lambda: torch.zeros(attend(*(x.to("meta") for x in (q, k, v))).shape), "device meta")

        class Sub(torch.Tensor):
            pass

        self.reason(lambda: torch.Tensor(attend(q.as_subclass(Sub), k, v).as_subclass(torch.Tensor)),
                    "tensor subclass Sub")

    def test_fused_operators_that_are_called_by_name(self):
        x, w = normal(1, 2, 7, 32), normal(2, 96, 32)
        self.reason(lambda: torch._native_multi_head_attention(
            x, x, x, 32, 4, w, w[:, 0], w[:32], w[:32, 0], None, False)[0],
            "the fused operator _native_multi_head_attention")

    def test_forward_mode(self):
        from torch.autograd import forward_ad

        q, k, v = three()

        def call():
            with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH), forward_ad.dual_level():
                dual = forward_ad.make_dual(q, k)
                return forward_ad.unpack_dual(functional.scaled_dot_product_attention(dual, k, v)).tangent

        self.reason(call, "forward-mode gradient")

    def test_double_backward(self):
        given = [x.requires_grad_() for x in three(1, 2, 5, 8)]
        exact = [x.detach().double().requires_grad_() for x in given]

        def second(q, k, v):
            o = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            d_q, d_k = torch.autograd.grad(o.square().sum(), (q, k), create_graph=True)
            return torch.autograd.grad(d_q.square().sum() + d_k.sin().sum(), (q, k, v))

        with ours.replaced() as r:
            got = second(*given)
        self.assertEqual((r.calls, r.fallbacks), (1, {"double backward": 1}))
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            want = second(*exact)
        for a, b in zip(got, want, strict=True):
            torch.testing.assert_close(a, b.float(), atol=1e-4, rtol=1e-4)
        with self.assertRaisesRegex(qkv.UnsupportedError, "double backward"), ours.replaced(strict=True):
            second(*given)

    def test_errors_stay_torch_s(self):
        q, k, v = three()
        mask = torch.ones(9, 9, dtype=torch.bool)
        for call, reason in ((lambda: imported_before(q, k, v, mask, is_causal=True), "attn_mask with is_causal"),
                             (lambda: imported_before(q, k[:, :2], v[:, :2]), "heads of key or value differ"),
                             (lambda: imported_before(q, k.double(), v), "dtype float64"),
                             (lambda: imported_before(q, k, v, mask.long()), "attn_mask of int64"),
                             (lambda: imported_before(q, k, v, dropout_p=2.0), "dropout")):
            with self.assertRaises(RuntimeError) as plain:
                call()
            with self.assertRaises(RuntimeError) as inside, ours.replaced() as r:
                call()
            self.assertEqual(str(inside.exception), str(plain.exception))
            self.assertRegex(next(iter(r.fallbacks)), reason)


class Scope(unittest.TestCase):
    def modes(self):
        return torch._C._len_torch_function_stack(), torch.backends.mha.get_fastpath_enabled()

    def test_nested_and_after_exceptions(self):
        q, k, v = three()
        before = self.modes()
        with self.assertRaisesRegex(RuntimeError, "mine"), ours.replaced() as outer:
            imported_before(q, k, v)
            with ours.replaced() as inner:
                imported_before(q, k, v)
                imported_before(*(x.double() for x in (q, k, v)))
            imported_before(q, k, v)
            with outer:  # the same one again
                imported_before(q, k, v)
            raise RuntimeError("mine")
        self.assertEqual(self.modes(), before)
        self.assertEqual((inner.calls, inner.fallbacks), (1, {"dtype float64": 1}))
        # what the inner one leaves, the outer one sees
        self.assertEqual((outer.calls, outer.fallbacks), (3, {"dtype float64": 1}))

    def test_other_modes_go_on(self):
        q, k, v = three()
        with torch.device("cpu"), ours.replaced() as r, torch.device("cpu"):
            imported_before(q, k, v)
        self.assertEqual(r.calls, 1)

    def test_only_this_thread(self):
        """Another thread keeps torch's attention and its fast path while this one is inside."""
        layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval()
        x, q = normal(1, 2, 7, 32), three()
        names, inside, done = set(), threading.Event(), threading.Event()

        def other():
            inside.wait()
            with Seen() as seen, torch.no_grad():
                layer(x)
                imported_before(*q)
            names.update(seen.names)
            done.set()

        thread = threading.Thread(target=other)
        thread.start()
        with ours.replaced() as r, torch.no_grad():
            inside.set()
            done.wait()
            layer(x)
        thread.join()
        self.assertEqual((r.calls, r.fallbacks), (1, {}))
        self.assertIn("aten::_transformer_encoder_layer_fwd", names)


if __name__ == "__main__":
    unittest.main()
