"""Arrays and rules of attention, as the C library's descriptor."""
from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _c
from ._library import lib
from .arrays import DTYPES, View, densely, floats, integers, numbers, of_zeros_and_ones, reals, view
from .blocks import BlockMask
from .checked import choice, integer, real
from .checked import window as bounds_of
from .context import Context, Interruptible
from .context import given as of_caller
from .errors import ArgumentError, DTypeError, NoCopies, ShapeError, UnsupportedError
from .keywords import OF_PROBLEM, Arithmetic, Causal, Layout, Rules, Window, refuse_unknown, with_rules

if TYPE_CHECKING:
    from typing_extensions import Unpack

_ARITHMETIC = {"auto": _c.QKV_CLASS_AUTO, "f32": _c.QKV_CLASS_F32, "dp": _c.QKV_CLASS_DP, "amx": _c.QKV_CLASS_AMX}
_MASKS = {
    "bool": _c.QKV_MASK_BOOL,
    "uint8": _c.QKV_MASK_BOOL,
    "float32": _c.QKV_MASK_F32,
    "bfloat16": _c.QKV_MASK_BF16,
    "float16": _c.QKV_MASK_F16,
}
# Multiplications of a call that takes long enough to be interrupted: some milliseconds.
_LONG = 1e8
_nothing = ctypes.create_string_buffer(64)


def _address(found: View) -> int:
    return found.address or ctypes.addressof(_nothing)


def _pointer(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


def _pair(value: Any, name: str) -> tuple[Any, Any]:
    if isinstance(value, tuple):
        if len(value) != 2:
            raise ShapeError(f"{name} is a tuple of {len(value)}, and must be one array or (of queries, of keys)")
        return value
    return value, value


def is_long(desc: _c.qkv_attention_desc) -> bool:
    """Whether a call takes long enough to be interrupted."""
    work = float(desc.n_batch) * desc.n_heads * desc.len_q * desc.len_k * (desc.head_dim + desc.head_dim_v)
    return work >= _LONG


def run(ctx: Context, function: Any, desc: _c.qkv_attention_desc, *arguments: Any) -> None:
    """Calls `function(ctx, desc, *arguments, call)`, with Ctrl-C if it takes long."""
    if not is_long(desc):
        ctx.check(function(ctx.handle, ctypes.byref(desc), *arguments, None))
        return
    call = Interruptible()
    call.check(ctx, function(ctx.handle, ctypes.byref(desc), *arguments, call.pointer))


class Descriptor(NoCopies):
    """qkv_attention_desc of q, k, v and rules, which are those of Problem. What it points to lives as long as this."""

    def _describe(
        self, q: Any, k: Any, v: Any, *, layout: Layout = "bhld", causal: Causal = False, window: Window | None = None,
        q_offset: Any = None, scale: float | None = None, softcap: float | None = None, mask: Any = None,
        kv_len: Any = None, q_len: Any = None, prefix_len: Any = None, chunk: int | None = None, segments: Any = None,
        cu_seqlens: Any = None, block_mask: BlockMask | None = None, alibi: Any = None,
        distance_bias: Any = None, sinks: Any = None, dropout: float = 0.0, seed: int | None = None,
        arithmetic: Arithmetic = "auto", context: Context | None = None,
    ) -> None:
        if layout not in ("bhld", "blhd"):
            raise ArgumentError(f'layout is {layout!r}, and must be "bhld" or "blhd"')
        self._context, self._layout, self._packed = of_caller(context), layout, cu_seqlens is not None
        self._kept: list[Any] = []
        self._given = q
        self._desc = _c.qkv_attention_desc()
        self._set_arrays(q, k, k if v is None else v, cu_seqlens)
        self._set_lengths(kv_len, q_len, prefix_len)
        self._set_positions(causal, window, q_offset, chunk, prefix_len is not None)
        self._set_segments(segments)
        self._set_mask(mask)
        if block_mask is not None:
            self._set_blocks(block_mask)
        self._set_scores(scale, softcap, alibi, sinks, dropout, seed)
        self._set_distances(distance_bias)
        self._desc.arithmetic = choice(arithmetic, "arithmetic", _ARITHMETIC)

    @with_rules(_describe)
    def __init__(self, q: Any, k: Any, v: Any = None, **rules: Unpack[Rules]) -> None:
        refuse_unknown("Problem", rules, others=OF_PROBLEM)
        self._describe(q, k, v, **rules)

    def _four(self, array: Any, name: str) -> View:
        """[batch, heads, len, dim] of an array of the caller's layout."""
        return self._in_four(floats(array, name), name)

    def _in_four(self, found: View, name: str) -> View:
        n = len(found.shape)
        if self._packed and n != 3:
            raise ShapeError(f"{name} has {n} dimensions; with cu_seqlens it must have 3")
        if n not in (2, 3, 4):
            raise ShapeError(f"{name} has {n} dimensions, and must have 2 to 4")
        if self._layout == "blhd" and n >= 3:
            found = found.transposed(*range(n - 3), n - 2, n - 3, n - 1)
        return found.expanded(4)

    def _set_arrays(self, q: Any, k: Any, v: Any, cu_seqlens: Any) -> None:
        given = floats(q, "q")
        self._shape_q, self._n_dims = given.shape, len(given.shape)
        views = {"q": self._in_four(given, "q"), "k": self._four(k, "k"), "v": self._four(v, "v")}
        self._q, self._k, self._v = views["q"], views["k"], views["v"]
        for name in "kv":
            if views[name].dtype != self._q.dtype:
                raise DTypeError(f"q is {self._q.dtype} and {name} is {views[name].dtype}: they must be the same")
        if self._k.shape[3] != self._q.shape[3]:
            raise ShapeError(f"q has {self._q.shape[3]} channels, k has {self._k.shape[3]}: they must be the same")
        if self._v.shape[1:3] != self._k.shape[1:3]:
            raise ShapeError(f"k has heads and keys {self._k.shape[1:3]}, v has {self._v.shape[1:3]}")
        n_batch, len_q, len_k = self._q.shape[0], self._q.shape[2], self._k.shape[2]
        if cu_seqlens is not None:
            pair = [numbers(each, "cu_seqlens") for each in _pair(cu_seqlens, "cu_seqlens")]
            # Copies: nothing but this check keeps calls inside the rows.
            cu = [integers(each, np.int64, "cu_seqlens", (pair[0].size,)).copy() for each in pair]
            if cu[0].size < 1:
                raise ShapeError("cu_seqlens is empty, and must have sequences + 1 numbers")
            n_batch = cu[0].size - 1
            for each, rows, name in ((cu[0], len_q, "q"), (cu[1], len_k, "k")):
                if each[-1] > rows:
                    raise ShapeError(f"cu_seqlens ends with {each[-1]}, and {name} has {rows} rows")
            len_q, len_k = (int(np.diff(each).max(initial=0)) for each in cu)
            self._rows_q, self._rows_k = int(cu[0][-1]), int(cu[1][-1])
            self._kept += cu
        desc = self._desc
        desc.struct_size = ctypes.sizeof(desc)
        lib.qkv_attention_desc_fill(ctypes.byref(desc), n_batch, self._q.shape[1], self._k.shape[1], len_q, len_k,
                                    self._q.shape[3], self._v.shape[3])
        self._all_q, self._all_k = self._whole(len_q, len_k)
        desc.dtype = DTYPES[self._q.dtype]
        for name in "qkv":
            found = views[name]
            if found.shape[0] not in (1, self._q.shape[0]):
                raise ShapeError(f"q has {self._q.shape[0]} batches, {name} has {found.shape[0]}")
            once = self._packed or found.shape[0] == 1
            getattr(desc, f"{name}_stride")[:] = (0 if once else found.strides[0], *found.strides[1:3])
        if cu_seqlens is not None:
            desc.flags |= _c.QKV_SET_CU_SEQLENS
            desc.cu_seqlens_q, desc.cu_seqlens_k = _pointer(cu[0]), _pointer(cu[1])

    def _whole(self, len_q: int, len_k: int) -> tuple[int, int]:
        """Queries and keys that rules are about: those of the arrays, unless these are pieces of others."""
        return len_q, len_k

    def _of_batch(self, value: Any, name: str) -> np.ndarray[Any, Any]:
        n = self._desc.n_batch
        if isinstance(value, (int, np.integer)):
            return np.full(n, integer(value, name), dtype=np.int64)
        value = numbers(value, name)
        if not value.ndim:
            return np.full(n, integers(value, np.int64, name, ()), dtype=np.int64)
        # A copy: causal="bottom-right" follows from lengths, and must go on to fit them.
        return integers(value, np.int64, name, (n,)).copy()

    def _set_lengths(self, kv_len: Any, q_len: Any, prefix_len: Any) -> None:
        for name, value, flag in (("kv_len", kv_len, _c.QKV_SET_KV_LEN), ("q_len", q_len, _c.QKV_SET_Q_LEN),
                                  ("prefix_len", prefix_len, _c.QKV_SET_PREFIX_LEN)):
            if value is not None:
                made = self._of_batch(value, name)
                self._kept.append(made)
                setattr(self, f"_{name}", made)
                setattr(self._desc, name, _pointer(made))
                self._desc.flags |= flag

    def _lengths(self, name: str, cu: int | None, otherwise: int) -> np.ndarray[Any, Any]:
        given: np.ndarray[Any, Any] | None = getattr(self, f"_{name}", None)
        if given is not None:
            return given
        return self._packed_lengths(cu) if cu else np.full(self._desc.n_batch, otherwise, dtype=np.int64)

    def _packed_lengths(self, cu: int) -> np.ndarray[Any, Any]:
        return np.diff(np.ctypeslib.as_array((ctypes.c_int64 * (self._desc.n_batch + 1)).from_address(cu)))

    def _set_positions(self, causal: Causal, window: Window | None, q_offset: Any, chunk: int | None,
                       prefix: bool) -> None:
        desc = self._desc
        if getattr(causal, "ndim", 0) or causal not in (False, True, "top-left", "bottom-right"):
            raise ArgumentError(f'causal is {causal!r}, and must be a bool, "top-left" or "bottom-right"')
        if prefix and not causal:
            raise ArgumentError("prefix_len is given without causal, and every query would see every key")
        if causal == "bottom-right":
            if q_offset is not None:
                raise ArgumentError('causal="bottom-right" chooses the offset: give no q_offset')
            q_offset = (self._lengths("kv_len", desc.cu_seqlens_k, self._all_k)
                        - self._lengths("q_len", desc.cu_seqlens_q, self._all_q))
            if (q_offset == q_offset[:1]).all() and len(q_offset):
                q_offset = int(q_offset[0])
        if causal:
            desc.flags |= _c.QKV_SET_CAUSAL
        if window is not None:
            desc.flags |= _c.QKV_SET_WINDOW
            desc.window_left, desc.window_right = bounds_of(window)
        if q_offset is not None:
            desc.flags |= _c.QKV_SET_Q_OFFSET
            if isinstance(q_offset, (int, np.integer)) or not numbers(q_offset, "q_offset").ndim:
                desc.q_offset = integer(q_offset, "q_offset")
            else:
                made = self._of_batch(q_offset, "q_offset")
                self._kept.append(made)
                desc.q_offsets = _pointer(made)
        if chunk is not None:
            desc.flags |= _c.QKV_SET_CHUNK
            desc.chunk = integer(chunk, "chunk")

    def _set_segments(self, segments: Any) -> None:
        if segments is None:
            return
        desc = self._desc
        desc.flags |= _c.QKV_SET_SEGMENTS
        for name, length, values in zip("qk", (desc.len_q, self._all_k), _pair(segments, "segments")):
            values = numbers(values, "segments")
            one = values.ndim == 1
            made = integers(values, np.int32, "segments", (length,) if one else (desc.n_batch, length)).copy()
            self._kept.append(made)
            setattr(desc, f"seg_{name}", _pointer(made))
            setattr(desc, f"seg_{name}_stride", 0 if one else length)

    def _set_mask(self, mask: Any) -> None:
        self._mask: View | None = None
        self._mask_shape: tuple[int, ...] = ()
        if mask is None:
            return
        desc = self._desc
        found = view(mask, "mask")
        if found.dtype.startswith(("int", "uint")) and found.dtype not in _MASKS:
            mask = of_zeros_and_ones(mask, "mask")
            found = view(mask, "mask")
        if found.dtype not in _MASKS:
            raise DTypeError(f"mask is {found.dtype}, and must be bool, float32, bfloat16, float16, or integers of 0 "
                             "and 1")
        if any(stride < 0 for stride in found.strides):
            found = view(densely(mask, "mask"), "mask")
        if len(found.shape) > 4:
            raise ShapeError(f"mask has {len(found.shape)} dimensions, and must have at most 4")
        found = found.expanded(4)
        full = (desc.n_batch, desc.n_heads, desc.len_q, self._all_k)
        for size, whole, name in zip(found.shape, full, ("batches", "heads", "queries", "keys")):
            if size not in (1, whole):
                raise ShapeError(f"mask has {size} {name}, and must have 1 or {whole}")
        desc.flags |= _c.QKV_SET_MASK
        desc.mask, desc.mask_type = _address(found), _MASKS[found.dtype]
        desc.mask_stride[:] = [0 if size == 1 else stride for size, stride in zip(found.shape, found.strides)]
        self._mask, self._mask_shape = found, found.shape
        self._kept.append(found.owner)

    def _set_blocks(self, blocks: BlockMask) -> None:
        if not isinstance(blocks, BlockMask):
            raise ArgumentError(f"block_mask is a {type(blocks).__name__}, and must be a BlockMask: see qkv.mask_mod")
        desc, blocks = self._desc, blocks.sealed()
        blocks.check(desc.n_batch, desc.n_heads, self._all_q, self._all_k)
        desc.flags |= _c.QKV_SET_BLOCK_MASK
        desc.block_len = blocks.block_len
        desc.block_offsets, desc.block_index = _pointer(blocks.offsets), _pointer(blocks.index)
        batches, heads, per_head = blocks.offsets.shape
        desc.block_offsets_stride[:] = (0 if batches == 1 else heads * per_head, 0 if heads == 1 else per_head)
        if blocks.bits is not None:
            if desc.flags & _c.QKV_SET_MASK:
                raise UnsupportedError("a mask beside a block_mask with partial blocks: put it into the mask_mod")
            desc.flags |= _c.QKV_SET_MASK
            desc.mask, desc.mask_type = _pointer(blocks.bits), _c.QKV_MASK_BITS
            strides = blocks.bits.strides
            desc.mask_stride[:] = (0 if batches == 1 else strides[0], 0 if heads == 1 else strides[1], strides[2], 1)
        self._kept.append(blocks)

    def _of_heads(self, value: Any, name: str) -> int:
        made = reals(value, name).copy()
        if made.shape != (self._desc.n_heads,):
            raise ShapeError(f"{name} has shape {made.shape}, and must have ({self._desc.n_heads},)")
        self._kept.append(made)
        return _pointer(made)

    def _set_distances(self, given: Any) -> None:
        if given is None:
            return
        if not isinstance(given, tuple) or len(given) != 2:
            raise ArgumentError("distance_bias is no tuple of two, and must be (numbers [heads or 1, n], before)")
        desc, made = self._desc, reals(given[0], "distance_bias").copy()
        if made.ndim != 2 or made.shape[0] not in (1, desc.n_heads) or made.shape[1] < 1:
            raise ShapeError(f"distance_bias has shape {made.shape}, and must have (1 or {desc.n_heads}, n)")
        n = made.shape[1]
        desc.flags |= _c.QKV_SET_DISTANCE_BIAS
        desc.distance_before = integer(given[1], "before of distance_bias", least=0, most=n - 1)
        desc.distance_after = n - 1 - desc.distance_before
        desc.distance_bias, desc.distance_bias_stride = _pointer(made), 0 if made.shape[0] == 1 else n
        self._distances_shape = made.shape
        self._kept.append(made)

    def _set_scores(self, scale: float | None, softcap: float | None, alibi: Any, sinks: Any, dropout: float,
                    seed: int | None) -> None:
        desc = self._desc
        if scale is not None:
            desc.flags |= _c.QKV_SET_SCALE
            desc.scale = real(scale, "scale")
        if softcap is not None:
            desc.flags |= _c.QKV_SET_SOFTCAP
            desc.softcap = real(softcap, "softcap")
        if alibi is not None:
            desc.flags |= _c.QKV_SET_ALIBI
            desc.alibi_slopes = self._of_heads(alibi, "alibi")
        if sinks is not None:
            desc.flags |= _c.QKV_SET_SINKS
            desc.sinks = self._of_heads(sinks, "sinks")
        dropout = real(dropout, "dropout")
        if dropout:
            if seed is None:
                raise ArgumentError("dropout needs a seed: the same seed gives the same weights in every call")
            desc.flags |= _c.QKV_SET_DROPOUT
            desc.dropout, desc.dropout_seed = dropout, integer(seed, "seed", ctypes.c_uint64)
