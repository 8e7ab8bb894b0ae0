"""The operator Attention of ONNX, opsets 23, 24 and 25: `attention` for arrays, `Attention` for onnx's own evaluator.

>>> import numpy, qkv.onnx
>>> q, k, v = (numpy.random.rand(1, 8, 100, 64).astype(numpy.float32) for _ in range(3))
>>> Y = qkv.onnx.attention(q, k, v, is_causal=1).Y

`onnx.reference.ReferenceEvaluator(model, new_ops=[qkv.onnx.Attention])` runs a model with it. Only that class needs the
package onnx. docs/onnx.md says where results differ from the specification.
"""
from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, overload

import numpy as np

from . import _c
from ._library import init, lib
from .arrays import View, _dense, densely, empty_like, view
from .checked import choice, integer, real
from .context import Context, Interruptible, context
from .context import given as of_caller
from .errors import DTypeError, ErrorText

_TYPES = {
    "float32": _c.QKV_ONNX_FLOAT, "uint8": _c.QKV_ONNX_UINT8, "int8": _c.QKV_ONNX_INT8, "uint16": _c.QKV_ONNX_UINT16,
    "int16": _c.QKV_ONNX_INT16, "int32": _c.QKV_ONNX_INT32, "int64": _c.QKV_ONNX_INT64, "bool": _c.QKV_ONNX_BOOL,
    "float16": _c.QKV_ONNX_FLOAT16, "float64": _c.QKV_ONNX_DOUBLE, "uint32": _c.QKV_ONNX_UINT32,
    "uint64": _c.QKV_ONNX_UINT64, "bfloat16": _c.QKV_ONNX_BFLOAT16,
}
_NAMES = {number: name for name, number in _TYPES.items()}
_ARITHMETIC = {"auto": _c.QKV_CLASS_AUTO, "f32": _c.QKV_CLASS_F32, "dp": _c.QKV_CLASS_DP, "amx": _c.QKV_CLASS_AMX}
_nothing = ctypes.create_string_buffer(64)


if TYPE_CHECKING:
    from torch import Tensor
    from typing_extensions import TypeVar

    # Y is of the kind of Q where it is NumPy's or torch's.
    Array = TypeVar("Array", default=Any)
    _Known = TypeVar("_Known", np.ndarray[Any, Any], Tensor)

    class Outputs(NamedTuple, Generic[Array]):
        Y: Array
        # None where it was not asked for, which a checker does not make its reader ask.
        present_key: Array | Any
        present_value: Array | Any
        qk_matmul_output: Array | Any
else:  # Python 3.10 has no generic named tuples

    class Outputs(NamedTuple):
        """What the operator returns. What was not asked for is None."""

        Y: Any
        present_key: Any
        present_value: Any
        qk_matmul_output: Any


def _stored(array: Any, name: str) -> View:
    """Where `array` lies, as ONNX stores tensors: in the order of its dimensions, without gaps. Copied if it is not."""
    found = view(array, name)
    if any(size > 1 and stride != dense
           for size, stride, dense in zip(found.shape, found.strides, _dense(found.shape))):
        found = view(densely(array, name), name)
    if found.dtype not in _TYPES:
        raise DTypeError(f"{name} is {found.dtype}, and must be one of {', '.join(_TYPES)}")
    return found


def _fill(tensor: Any, found: View) -> None:
    tensor.type, tensor.rank = _TYPES[found.dtype], len(found.shape)
    tensor.dims[: min(len(found.shape), 4)] = found.shape[:4]
    tensor.data = found.address or ctypes.addressof(_nothing)


def _output(like: Any, tensor: Any) -> tuple[Any, int]:
    """A new array of the tensor's shape and type, and its address."""
    made = empty_like(like, tuple(tensor.dims[: tensor.rank]), _NAMES[tensor.type])
    return made, view(made, "output").address or ctypes.addressof(_nothing)


@overload
def attention(
    Q: _Known, K: Any, V: Any, attn_mask: Any = ..., past_key: Any = ..., past_value: Any = ...,
    nonpad_kv_seqlen: Any = ..., *, is_causal: int = ..., scale: float | None = ..., softcap: float = ...,
    softmax_precision: int | None = ..., q_num_heads: int | None = ..., kv_num_heads: int | None = ...,
    qk_matmul_output_mode: int = ..., left_window_size: int | None = ..., right_window_size: int | None = ...,
    opset: int = ..., present: bool = ..., qk_matmul_output: bool = ..., arithmetic: str = ...,
    context: Context | None = ...,
) -> Outputs[_Known]: ...
@overload
def attention(
    Q: Any, K: Any, V: Any, attn_mask: Any = ..., past_key: Any = ..., past_value: Any = ...,
    nonpad_kv_seqlen: Any = ..., *, is_causal: int = ..., scale: float | None = ..., softcap: float = ...,
    softmax_precision: int | None = ..., q_num_heads: int | None = ..., kv_num_heads: int | None = ...,
    qk_matmul_output_mode: int = ..., left_window_size: int | None = ..., right_window_size: int | None = ...,
    opset: int = ..., present: bool = ..., qk_matmul_output: bool = ..., arithmetic: str = ...,
    context: Context | None = ...,
) -> Outputs[Any]: ...
def attention(
    Q: Any, K: Any, V: Any, attn_mask: Any = None, past_key: Any = None, past_value: Any = None,
    nonpad_kv_seqlen: Any = None, *, is_causal: int = 0, scale: float | None = None, softcap: float = 0.0,
    softmax_precision: int | None = None, q_num_heads: int | None = None, kv_num_heads: int | None = None,
    qk_matmul_output_mode: int = 0, left_window_size: int | None = None, right_window_size: int | None = None,
    opset: int = 25, present: bool = False, qk_matmul_output: bool = False, arithmetic: str = "auto",
    context: Context | None = None,
) -> Outputs[Any]:
    """Attention with the inputs, attributes and outputs of ONNX, by their names.

    Q [batch, q_heads, q_len, dim], K [batch, kv_heads, kv_len, dim], V [batch, kv_heads, kv_len, dim_v]; or with 3
    dimensions [batch, len, heads * dim] and `q_num_heads`, `kv_num_heads`. Arrays are NumPy's, torch's, or have
    `__dlpack__`; float32, float16, bfloat16 or float64. Y has the type of Q and its number of dimensions.

    attn_mask             broadcast to [batch, q_heads, q_len, past + kv_len]: bools, or numbers that are added.
    past_key, past_value  [batch, kv_heads, past, dim or dim_v], both or none.
    nonpad_kv_seqlen      [batch] of int64: keys from there on are padding. Not together with a past, nor from opset 25
                          on with `present`.
    scale                 default 1/sqrt(dim).
    softmax_precision     a number of onnx.TensorProto: 1, 10, 11 or 16.
    left_window_size, right_window_size  -1: unbounded.

    opset decides what is allowed. `present` asks for present_key and present_value, `qk_matmul_output` for the array
    [batch, q_heads, q_len, past + kv_len] of the stage that qk_matmul_output_mode names.
    """
    node, kept = init(_c.qkv_onnx_attention_node, opset=integer(opset, "opset", ctypes.c_int)), []
    given = {"Q": Q, "K": K, "V": V, "attn_mask": attn_mask, "past_key": past_key, "past_value": past_value,
             "nonpad_kv_seqlen": nonpad_kv_seqlen}
    for name, array in given.items():
        if array is not None:
            kept.append(_stored(array, name))
            _fill(getattr(node, name), kept[-1])
    for name, value in (("is_causal", is_causal), ("qk_matmul_output_mode", qk_matmul_output_mode),
                        ("softmax_precision", softmax_precision), ("q_num_heads", q_num_heads),
                        ("kv_num_heads", kv_num_heads), ("left_window_size", left_window_size),
                        ("right_window_size", right_window_size)):
        if value is not None:
            setattr(node, name, integer(value, name))
    for setting, flag in ((scale, _c.QKV_ONNX_SET_SCALE), (left_window_size, _c.QKV_ONNX_SET_LEFT_WINDOW_SIZE),
                          (right_window_size, _c.QKV_ONNX_SET_RIGHT_WINDOW_SIZE)):
        node.flags |= flag if setting is not None else 0
    node.scale, node.softcap = 0.0 if scale is None else real(scale, "scale"), real(softcap, "softcap")
    node.arithmetic = choice(arithmetic, "arithmetic", _ARITHMETIC)
    return _compute(node, Q, present, qk_matmul_output, context)


def _compute(node: Any, like: Any, present: bool, qk_matmul_output: bool, given: Context | None) -> Outputs[Any]:
    shapes, error = init(_c.qkv_onnx_attention_outputs), ErrorText()
    error.check(lib.qkv_onnx_attention_shapes(ctypes.byref(node), ctypes.byref(shapes), error.pointer))
    made: dict[str, Any] = dict.fromkeys(Outputs._fields)
    addresses: list[int | None] = []
    for name, wanted in zip(Outputs._fields, (True, present, present, qk_matmul_output)):
        address = None
        if wanted:
            made[name], address = _output(like, getattr(shapes, name))
        addresses.append(address)
    ctx, call = of_caller(given) or context(), Interruptible()
    call.check(ctx, lib.qkv_onnx_attention(ctx.handle, ctypes.byref(node), *addresses, call.pointer))
    return Outputs(**made)


# ---- onnx's evaluator ---------------------------------------------------------------------------

_INPUTS = 7


def _run(self: Any, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
    # The evaluator fills in defaults of the newest opset: only what the node has counts.
    own = {attribute.name for attribute in self.onnx_node.attribute}
    attributes = {name: value for name, value in attributes.items() if name in own}
    opsets = self.run_params["opsets"]
    names = list(self.onnx_node.output) + [""] * 4
    found = attention(*inputs[:_INPUTS], **attributes, opset=opsets.get("", opsets.get("ai.onnx", 25)),
                      present=bool(names[1] or names[2]), qk_matmul_output=bool(names[3]))
    # An output without a name is an empty array: the evaluator takes no None.
    return tuple(np.empty(0, dtype=found.Y.dtype) if array is None else array
                 for array in found[: len(self.onnx_node.output)])


def _evaluator_class() -> type[Any]:
    from onnx.reference.op_run import OpRun

    text = "ONNX's Attention by qkv, for `onnx.reference.ReferenceEvaluator(model, new_ops=[qkv.onnx.Attention])`."
    return type("Attention", (OpRun,), {"__doc__": text, "__module__": __name__, "op_domain": "", "_run": _run})


def __getattr__(name: str) -> Any:
    if name != "Attention":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = globals()["Attention"] = _evaluator_class()
    return made
