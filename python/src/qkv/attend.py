"""qkv.attention: a forward call, short ones without checks that have been made before."""
from __future__ import annotations

import ctypes
import platform
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, overload

import numpy as np

from . import _c
from ._library import lib
from .context import context
from .descriptor import is_long
from .keywords import Rules, listed, refuse_unknown, with_rules
from .problem import Forward, Problem, Stats

if TYPE_CHECKING:
    from torch import Tensor
    from typing_extensions import Unpack

# Arrays whose results are known to be of the same kind.
Array = TypeVar("Array", np.ndarray[Any, Any], "Tensor")

# To check and describe a problem takes longer than a small call. The descriptor of a call of NumPy arrays, whose rules
# are numbers, is kept for calls of the same shapes, strides and rules: with new addresses it is valid again.


class _Case(NamedTuple):
    desc: _c.qkv_attention_desc
    address: int
    shape: tuple[int, ...]


_LARGEST = 512
_F32 = np.dtype(np.float32)
_NEW: Any = object()
_cases: dict[Any, _Case | None] = {}
_forward = lib.again("qkv_attention_forward", [ctypes.c_void_p] * 8)
_empty = np.empty


def _data_of(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


def _quick_data_of() -> Any:
    """A function for the address of an array's elements. `__array_interface__` makes a dictionary for it.

    NumPy's C interface has the address as the first field of an array object (PyArrayObject_fields.data).
    """
    read, offset = ctypes.c_size_t.from_address, object.__basicsize__
    probe = np.arange(3)[1:]

    def data_of(array: np.ndarray[Any, Any]) -> int:
        return read(id(array) + offset).value

    is_cpython = platform.python_implementation() == "CPython"
    return data_of if is_cpython and data_of(probe) == _data_of(probe) else _data_of


_data = _quick_data_of()


def _are_aligned(*arrays: np.ndarray[Any, Any]) -> bool:
    return all(array.flags.aligned for array in arrays)


def _case_of(key: Any, q: Any, k: Any, v: Any, rules: Mapping[str, Any]) -> _Case | None:
    if len(_cases) >= _LARGEST:
        _cases.clear()
    simple = all(isinstance(value, (bool, int, float, str, tuple, type(None))) for value in rules.values())
    if not simple or not q.size or not k.size or not v.size or not _are_aligned(q, k, v):
        return None
    refuse_unknown("attention", rules, more=_OWN)
    problem = Problem(q, k, v, **rules)
    o = np.empty(problem._shape_o(), np.float32)
    addresses, desc = problem.prepared(o)
    case = None
    if addresses == (_data_of(q), _data_of(k), _data_of(v), _data_of(o)) and not is_long(desc):
        if not problem._kept:
            case = _Case(desc, ctypes.addressof(desc), o.shape)
    _cases[key] = case
    return case


def _again(q: Any, k: Any, v: Any, rules: Mapping[str, Any]) -> Any:
    """o of a short call, if it is one that can be kept; else None."""
    if not (q.dtype is _F32 and k.dtype is _F32 and v.dtype is _F32):
        return None
    key = (q.shape, k.shape, v.shape, q.strides, k.strides, v.strides, tuple(rules.items()) if rules else None)
    try:
        case = _cases.get(key, _NEW)
    except TypeError:  # a rule that is an array
        return None
    if case is _NEW:
        case = _case_of(key, q, k, v, rules)
    if case is None:
        return None
    o, ctx = _empty(case.shape, _F32), context()
    status = _forward(ctx.handle, case.address, _data(q), _data(k), _data(v), _data(o), None, None)
    if status:
        if not _are_aligned(q, k, v):  # the library refuses them, and Problem copies them
            return None
        ctx.check(status)
    return o


_OWN = "out", "out_dtype", "lse", "stats"


@overload
def attention(q: Array, k: Any, v: Any, *, out: Any = ..., out_dtype: str | None = ..., lse: Literal[False] = ...,
              stats: None = ..., **rules: Unpack[Rules]) -> Array: ...
@overload
def attention(q: Array, k: Any, v: Any, *, out: Any = ..., out_dtype: str | None = ..., lse: Literal[True],
              stats: None = ..., **rules: Unpack[Rules]) -> tuple[Array, Array]: ...
@overload
def attention(q: Array, k: Any, v: Any, *, out: Any = ..., out_dtype: str | None = ..., lse: bool = ...,
              stats: Stats, **rules: Unpack[Rules]) -> Forward[Array]: ...
@overload
def attention(q: Array, k: Any, v: Any, *, out: Any = ..., out_dtype: str | None = ..., lse: bool,
              stats: None = ..., **rules: Unpack[Rules]) -> Array | tuple[Array, Array]: ...
@overload
def attention(q: Any, k: Any, v: Any, *, out: Any = ..., out_dtype: str | None = ..., lse: bool = ...,
              stats: Stats | None = ..., **rules: Unpack[Rules]) -> Any: ...


@listed
@with_rules(Problem._describe)
def attention(q: Any, k: Any, v: Any, *, out: Any = None, out_dtype: str | None = None, lse: bool = False,
              stats: Stats | None = None, **rules: Unpack[Rules]) -> Any:
    """Scaled dot-product attention: o = softmax(q k^T scale) v, exact, without an array of len_q x len_k.

    >>> o = qkv.attention(q, k, v, causal=True)
    >>> o, lse, stats = qkv.attention(q, k, v, causal=True, stats=["entropy"])

    q, k, v: see qkv.Problem. Returns o, in the shape of q with the channels of v, and of q's kind: a torch tensor for
    tensors, else a NumPy array. A query that sees no key gets o = 0 and lse = -inf. The bits of a row depend on its
    query, its keys and the rules only: not on threads, batch or padding. Memory: nothing that grows with len_q x len_k.

    out           an array that o is written to. Default: a new one.
    out_dtype     "float32", for q of 16 bits. Default: the type of q.
    lse           True: returns (o, lse), where lse is log(sum(exp(scores))) of each row, in nats. Default False.
    stats         names of statistics of each row, such as ["entropy"], or a mapping: see qkv.Problem.forward. Then
                  the tuple Forward, (o, lse, stats), is returned. Default: none.
    """
    if type(q) is type(k) is type(v) is np.ndarray and not lse and stats is out_dtype is out is None:
        o = _again(q, k, v, rules)
        if o is not None:
            return o
    refuse_unknown("attention", rules, more=_OWN)
    made = Problem(q, k, v, **rules).forward(out=out, out_dtype=out_dtype, stats=stats)
    if stats is not None:
        return made
    return (made.o, made.lse) if lse else made.o
