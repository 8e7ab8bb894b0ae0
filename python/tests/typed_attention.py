"""What mypy sees of qkv: read by test_typing.py, and not run."""
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import assert_type

import qkv
import qkv.onnx
import qkv.transformers
from qkv.seen import Seen

x: NDArray[np.float32] = np.ones((1, 2, 5, 8), np.float32)
flag: bool = bool(x.size)
unknown: Any = x

# attention: by lse and stats
Array = np.ndarray[Any, Any]
assert_type(qkv.attention(x, x, x, causal="bottom-right", window=(3, None), softcap=30.0), Array)
assert_type(qkv.attention(x, x, x, lse=True), tuple[Array, Array])
assert_type(qkv.attention(x, x, x, stats=["entropy"]), qkv.Forward[Array])
assert_type(qkv.attention(x, x, x, stats={"top": 3}).o, Array)
assert_type(qkv.attention(x, x, x, lse=True, stats=["entropy"]).stats, dict[str, Array])
assert_type(qkv.attention(x, x, x, lse=flag), Array | tuple[Array, Array])
assert_type(qkv.attention(unknown, x, x), Any)

# rules have names and types
qkv.attention(x, x, x, is_causal=True)  # type: ignore[call-overload]
qkv.attention(x, x, x, causal="left")  # type: ignore[call-overload]
qkv.Problem(x, x, x, casual=True)  # type: ignore[call-overload]
qkv.Problem(x, x, x, chunk="8")  # type: ignore[call-overload]
rules: qkv.Rules = {"causal": True, "window": (3, 0)}
qkv.attention(x, x, x, **rules)

# a problem is of the arrays that it was made of
problem = qkv.Problem(x, x, x, causal=True)
o, lse, stats = problem.forward()
assert_type((o, lse, stats), tuple[Array, Array, dict[str, Array]])
assert_type(problem.backward(x, o=o, lse=lse).d_k, Array)
assert_type(problem.weights(lse, head=1), NDArray[np.float32])
assert_type(qkv.Problem(unknown, x).forward().o, Any)


def same(given: qkv.Problem) -> qkv.Forward:
    return given.forward()


cache = qkv.KVCache(kv_heads=2, dim=8, pages=1)
assert_type(cache.attend(x), Array)
assert_type(cache.attend(x, lse=True), tuple[Array, Array])
cache.attend(x, kv_len=3)  # type: ignore[call-overload]
assert_type(qkv.merge([(x, x), (x, x)]), tuple[Array, Array])

# looking
heads = qkv.heads(x[0], x[0], causal=True)
assert_type(heads, qkv.Heads)
assert_type(heads.array(), qkv.Weights)
assert_type(heads.compare(heads), qkv.Compared)
assert_type(heads.array()[0, 1], NDArray[np.float32])
assert_type(heads.array()[0, 1, "door", 3], np.float32)
assert_type(heads.weights(0, 0), NDArray[np.float32])
assert_type(heads.numbers(), dict[str, NDArray[np.float64]])
assert_type(heads.compare(heads).tokens, list[tuple[str, str]])
assert_type(heads.compare(heads).distance(0, 0), NDArray[np.float64])
assert_type(heads.map(0, 0), qkv.Map)
assert_type(heads.map(0, 0).keys, NDArray[np.float64])
heads.page(["0.1", (0, 2)])
heads.page([3])  # type: ignore[list-item]
assert_type(heads.sharpest(), qkv.Sharpest)
qkv.heads(x[0], x[0], is_causal=True)  # type: ignore[call-arg]
assert_type(qkv.inspect(unknown), AbstractContextManager[Seen])
qkv.inspect(unknown, layer=3)  # type: ignore[call-arg]
with qkv.inspect(unknown, keep="qk") as seen:
    assert_type(seen, Seen)
    assert_type(seen.rows(), list[dict[str, Any]])
qkv.inspect(unknown, keep="all")  # type: ignore[arg-type]
with qkv.transformers.ablated(unknown, ["3.7", (0, 2)], by="mean"):
    pass
qkv.transformers.ablated(unknown, [3])  # type: ignore[list-item]
qkv.transformers.ablated(unknown, ["3.7"], by="none")  # type: ignore[arg-type]

# models
model = qkv.load()
assert_type(model.tokenize("a").ids, NDArray[np.int32])
assert_type(model.embed(["a"]), NDArray[np.float32])
assert_type(model.fill("a")[0][0].token, str)
assert_type(model.look("a").page().heads, list[tuple[int, int]])
assert_type(model.generate("a").ids, list[int])

# ONNX
assert_type(qkv.onnx.attention(x, x, x, present=True).Y, Array)
assert_type(qkv.onnx.attention(unknown, x, x).Y, Any)
