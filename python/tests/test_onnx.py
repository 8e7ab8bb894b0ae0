"""qkv.onnx: the node tests of onnx through its evaluator, and what needs no onnx."""
import importlib.util
import sys
import unittest
import warnings

import numpy as np

import qkv
import qkv.onnx

HAS_ONNX = importlib.util.find_spec("onnx") is not None
needs_onnx = unittest.skipUnless(HAS_ONNX, "onnx is not installed")


def normal(seed, *shape, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def textbook(q, k, v, bias=0.0, scale=None, softcap=0.0):
    """Heads of K and V repeated, in float64. All scores of a row hidden: zeros."""
    q, k, v = (np.asarray(x, dtype=np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    s = q @ k.swapaxes(2, 3) * (q.shape[3] ** -0.5 if scale is None else scale)
    s = softcap * np.tanh(s / softcap) if softcap else s
    s = s + bias
    largest = s.max(axis=-1, keepdims=True)
    p = np.exp(s - np.where(np.isneginf(largest), 0, largest))
    return p / np.maximum(p.sum(axis=-1, keepdims=True), 1e-300) @ v


def node_tests():
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [test for test in load_model_tests(kind="node")
                if test.name.startswith("test_attention_") and not test.name.endswith("_expanded")]


def model_of(inputs, outputs, opset=25, **attributes):
    """A model of one node Attention. inputs: name -> array, or None for one that is left out."""
    from onnx import helper

    def info(name, array):
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

    names = [name if array is not None else "" for name, array in inputs.items()]
    node = helper.make_node("Attention", names, outputs, **attributes)
    graph = helper.make_graph([node], "one", [info(n, a) for n, a in inputs.items() if a is not None],
                              [helper.make_tensor_value_info(name, 1, None) for name in outputs if name])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


@needs_onnx
class NodeTests(unittest.TestCase):
    def share(self, got, expected):
        """The largest share of onnx's tolerance; 2^-6 for bfloat16, whose expected data are up to 0.95 % off."""
        rtol = 2**-6 if expected.dtype.name == "bfloat16" else 1e-3
        self.assertEqual((got.dtype, got.shape), (expected.dtype, expected.shape))
        got, expected = got.astype(np.float64), expected.astype(np.float64)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
        same = (got == expected) | np.isnan(got)
        difference = np.abs(np.where(same, 0, got) - np.where(same, 0, expected))
        return float(np.max(difference / (1e-7 + rtol * np.where(same, 0, np.abs(expected))), initial=0)), rtol

    def test_all_cases_through_the_evaluator(self):
        from onnx.reference import ReferenceEvaluator

        calls, largest, tests = 0, 0.0, node_tests()
        self.assertGreaterEqual(len(tests), 93)
        for test in tests:
            with self.subTest(test.name):
                evaluator = ReferenceEvaluator(test.model, new_ops=[qkv.onnx.Attention])
                self.assertEqual(type(evaluator.rt_nodes_[0]).__module__, "qkv.onnx")
                for inputs, outputs in test.data_sets:
                    feeds = dict(zip([i.name for i in test.model.graph.input], inputs))
                    found = evaluator.run(None, feeds)
                    self.assertEqual(len(found), len(outputs))
                    shares = [self.share(got, expected) for got, expected in zip(found, outputs)]
                    share, rtol = max(shares)
                    print(f"{test.name:75} {share:.3g} of rtol {rtol:.3g}")
                    self.assertLessEqual(share, 1)
                    calls, largest = calls + 1, max(largest, share)
        print(f"{calls} of {len(tests)} cases within onnx's tolerance, at most {largest:.3f} of it")
        self.assertEqual(calls, len(tests))

    def test_outputs_that_the_node_names(self):
        from onnx.reference import ReferenceEvaluator

        arrays = {"Q": normal(1, 1, 4, 3, 8), "K": normal(2, 1, 2, 5, 8), "V": normal(3, 1, 2, 5, 6), "attn_mask": None,
                  "past_key": normal(4, 1, 2, 7, 8), "past_value": normal(5, 1, 2, 7, 6)}
        feeds = {name: array for name, array in arrays.items() if array is not None}
        whole = qkv.onnx.attention(**arrays, is_causal=1, present=True, qk_matmul_output=True)
        for outputs in (["Y"], ["Y", "pk", "pv"], ["Y", "", "", "qk"], ["Y", "pk", "pv", "qk"]):
            model = model_of(arrays, outputs, is_causal=1)
            found = ReferenceEvaluator(model, new_ops=[qkv.onnx.Attention]).run([n for n in outputs if n], feeds)
            expected = [array for array, name in zip(whole, outputs) if name]
            for got, want in zip(found, expected, strict=True):
                np.testing.assert_array_equal(got, want)

    def test_errors_come_through_the_evaluator(self):
        from onnx.reference import ReferenceEvaluator

        arrays = {"Q": normal(1, 1, 4, 3, 8), "K": normal(2, 1, 2, 5, 8), "V": normal(3, 1, 2, 5, 6)}
        for opset, attributes, says in ((24, {"left_window_size": 2}, "opset = 24 is less than 25"),
                                        (25, {"q_num_heads": 4, "kv_num_heads": 2}, "have rank 4"),
                                        (25, {"right_window_size": -2}, "right_window_size = -2")):
            model = model_of(arrays, ["Y"], opset, **attributes)
            with self.assertRaisesRegex(qkv.ArgumentError, says):
                ReferenceEvaluator(model, new_ops=[qkv.onnx.Attention]).run(None, arrays)


class Arrays(unittest.TestCase):
    def test_signed_values_beside_float64(self):
        q, k, v = normal(1, 2, 6, 33, 40) * 3, normal(2, 2, 2, 90, 40), normal(3, 2, 2, 90, 24)
        mask = normal(4, 6, 33, 90)
        for scale, softcap in ((None, 0.0), (0.3, 5.0), (-0.2, 0.0)):
            got = qkv.onnx.attention(q, k, v, mask, scale=scale, softcap=softcap)
            np.testing.assert_allclose(got.Y, textbook(q, k, v, mask, scale, softcap), atol=2e-5)
            double = qkv.onnx.attention(*(x.astype(np.float64) for x in (q, k, v, mask)), scale=scale, softcap=softcap)
            self.assertEqual(double.Y.dtype, np.float64)
            exact = textbook(q, k, v, mask, None if scale is None else float(np.float32(scale)), softcap)
            np.testing.assert_allclose(double.Y, exact, atol=1e-13)
        self.assertIsNone(got.present_key)
        self.assertIsNone(got.qk_matmul_output)

    def test_three_dimensions_and_past(self):
        q, k, v = normal(1, 2, 4, 5, 8), normal(2, 2, 2, 6, 8), normal(3, 2, 2, 6, 4)
        past = {"past_key": normal(4, 2, 2, 3, 8), "past_value": normal(5, 2, 2, 3, 4)}
        four = qkv.onnx.attention(q, k, v, **past, is_causal=1, present=True, qk_matmul_output=True)
        flat = [np.ascontiguousarray(x.swapaxes(1, 2)).reshape(2, x.shape[2], -1) for x in (q, k, v)]
        three = qkv.onnx.attention(*flat, **past, is_causal=1, present=True, qk_matmul_output=True, q_num_heads=4,
                                   kv_num_heads=2)
        self.assertEqual(three.Y.shape, (2, 5, 16))
        np.testing.assert_array_equal(three.Y.reshape(2, 5, 4, 4).swapaxes(1, 2), four.Y)
        for got, want in zip(three[1:], four[1:]):
            np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(four.present_key, np.concatenate([past["past_key"], k], axis=2))

    def test_arrays_with_gaps_are_read_right(self):
        q, k, v = normal(1, 2, 4, 10, 8), normal(2, 2, 4, 12, 8), normal(3, 2, 4, 12, 8)
        mask = normal(4, 10, 24)[:, ::2] > 0
        got = qkv.onnx.attention(q[:, ::2, ::-1], k[:, ::2], v[:, ::2], mask)
        want = qkv.onnx.attention(*(np.ascontiguousarray(x) for x in (q[:, ::2, ::-1], k[:, ::2], v[:, ::2], mask)))
        np.testing.assert_array_equal(got.Y, want.Y)
        swapped = qkv.onnx.attention(q.astype(">f4"), k.astype(">f4"), v.astype(">f4"))
        np.testing.assert_array_equal(swapped.Y, qkv.onnx.attention(q, k, v).Y)

    def test_types_and_masks(self):
        q, k, v = (normal(seed, 1, 2, 4, 8) for seed in (1, 2, 3))
        for dtype in (np.uint8, np.int8, np.int16, np.int32, np.int64, np.uint64, np.float64):
            mask = np.arange(16).reshape(4, 4).astype(dtype)
            np.testing.assert_allclose(qkv.onnx.attention(q, k, v, mask).Y, textbook(q, k, v, mask), atol=1e-6)
        mixed = qkv.onnx.attention(q.astype(np.float16), k.astype(np.float16), v.astype(np.float64), present=True)
        self.assertEqual((mixed.Y.dtype, mixed.present_value.dtype), (np.float16, np.float64))

    @unittest.skipUnless(importlib.util.find_spec("torch"), "torch is not installed")
    def test_tensors_of_torch(self):
        import torch

        q, k, v = (normal(seed, 1, 2, 4, 8) for seed in (1, 2, 3))
        got = qkv.onnx.attention(*map(torch.from_numpy, (q, k, v)), is_causal=1)
        self.assertTrue(torch.is_tensor(got.Y))
        np.testing.assert_array_equal(got.Y.numpy(), qkv.onnx.attention(q, k, v, is_causal=1).Y)

    def test_errors_name_input_value_and_rule(self):
        q, k, v = normal(1, 2, 4, 5, 8), normal(2, 2, 2, 6, 8), normal(3, 2, 2, 6, 4)
        one = np.ones((1, 1, 1, 1, 1), dtype=np.float32)
        for kind, says, arrays, options in (
            (qkv.ShapeError, r"K has the shape \[1\]\[2\]\[6\]\[8\]: dims\[0\] = 1 is not 2", (q, k[:1], v), {}),
            (qkv.ShapeError, r"Q.rank = 5 is not in \[0, 4\]", (one, k, v), {}),
            (qkv.ArgumentError, "opset = 22 is less than 23", (q, k, v), {"opset": 22}),
            (qkv.ArgumentError, "opset = 9999999999 is not in", (q, k, v), {"opset": 9999999999}),
            (qkv.ArgumentError, "is_causal = 2 is not in", (q, k, v), {"is_causal": 2}),
            (qkv.ArgumentError, "is_causal = 'yes' is not a whole number", (q, k, v), {"is_causal": "yes"}),
            (qkv.ArgumentError, "left_window_size = -3", (q, k, v), {"left_window_size": -3}),
            (qkv.ArgumentError, "nonpad_kv_seqlen is given, but opset = 23", (q, k, v),
             {"nonpad_kv_seqlen": np.array([1, 2]), "opset": 23}),
            (qkv.ArgumentError, "opset 25 does not allow both", (q, k, v),
             {"nonpad_kv_seqlen": np.array([1, 2]), "present": True}),
            (qkv.ArgumentError, "past_key is given without past_value", (q, k, v), {"past_key": k}),
            (qkv.ArgumentError, "arithmetic is 'fast'", (q, k, v), {"arithmetic": "fast"}),
            (qkv.DTypeError, "K.type is FLOAT16, and that of Q is FLOAT", (q, k.astype(np.float16), v), {}),
            (qkv.DTypeError, "Q is complex64", (q.astype(np.complex64), k, v), {}),
            (qkv.UnsupportedError, "opset = 40 is greater than", (q, k, v), {"opset": 40}),
        ):
            with self.subTest(says), self.assertRaisesRegex(kind, says):
                qkv.onnx.attention(*arrays, **options)

    def test_onnx_is_imported_only_for_its_class(self):
        import subprocess

        program = "import sys, qkv.onnx, numpy as n; qkv.onnx.attention(*[n.ones((1, 1, 2, 4), n.float32)] * 3); " \
                  "assert 'onnx' not in sys.modules; assert not hasattr(qkv.onnx, 'Other')"
        subprocess.run([sys.executable, "-c", program], check=True)


if __name__ == "__main__":
    unittest.main()
