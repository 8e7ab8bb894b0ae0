"""A problem of attention: arrays and rules, as the C library's descriptor, and every call that takes it."""
from __future__ import annotations

import ctypes
import platform
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from . import _c
from ._library import init, lib, string
from .arrays import DTYPES, View, empty_like, floats, integers, is_torch, view
from .blocks import BlockMask
from .context import Context, Interruptible, context
from .errors import ArgumentError, DTypeError, ShapeError, UnsupportedError

Layout = Literal["bhld", "blhd"]
Causal = bool | Literal["top-left", "bottom-right"]
Arithmetic = Literal["auto", "f32", "dp", "amx"]
Stats = Sequence[str] | Mapping[str, Any]

_ARITHMETIC = {"auto": _c.QKV_CLASS_AUTO, "f32": _c.QKV_CLASS_F32, "dp": _c.QKV_CLASS_DP, "amx": _c.QKV_CLASS_AMX}
_MASKS = {
    "bool": _c.QKV_MASK_BOOL,
    "uint8": _c.QKV_MASK_BOOL,
    "float32": _c.QKV_MASK_F32,
    "bfloat16": _c.QKV_MASK_BF16,
    "float16": _c.QKV_MASK_F16,
}
_ROW_STATS = ("largest", "entropy", "effective_keys", "mean_distance", "mean_square_distance", "logit_mean",
              "logit_variance", "logit_largest", "n_seen")
_KEY_COLUMNS = ("received", "n_queries", "largest", "largest_query", "entropy")
_COUNTS = ("n_cells", "n_tiny", "n_empty_rows", "n_nan_rows")
# Multiplications of a call that takes long enough to be interrupted: some milliseconds.
_LONG = 1e8
_nothing = ctypes.create_string_buffer(64)


class Forward(NamedTuple):
    """What a forward pass returns: o, lse, and statistics by name (empty if none were asked for)."""

    o: Any
    lse: Any
    stats: dict[str, np.ndarray[Any, Any]]


class Gradients(NamedTuple):
    """What a backward pass returns. d_sinks and d_mask are None if they were not asked for."""

    d_q: Any
    d_k: Any
    d_v: Any
    d_sinks: np.ndarray[Any, Any] | None
    d_mask: np.ndarray[Any, Any] | None


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


class Problem:
    """Queries, keys, values and rules. All calls on it see the same weights.

    q [batch, heads, len_q, dim], k [batch, kv_heads, len_k, dim], v [batch, kv_heads, len_k, dim_v]; without batch, or
    without batch and heads, with 3 or 2 dimensions. With layout "blhd" lengths come before heads. Arrays are NumPy's,
    torch's, or have `__dlpack__` (JAX) or `__array_interface__`; float32, bfloat16 or float16, all the same. They are
    read where they are; only one whose last stride is not 1 is copied.

    A query sees a key only if every rule that is given allows it (`i` counts queries, `j` keys, from 0):

    causal        True or "top-left": j <= i + q_offset. "bottom-right": the last query sees the last key.
    window        (left, right): -left <= j - (i + q_offset) <= right. None or -1 sets no bound.
    q_offset      position of query 0 among the keys, or one for each batch. Default 0.
    mask          broadcast to [batch, heads, len_q, len_k]. Of bool: True lets i see j. Of floats: added to the score.
    kv_len        [batch], or one number: keys from there on are hidden, and never read.
    q_len         [batch], or one number: queries from there on are left out; their rows of o are 0.
    prefix_len    [batch], or one number, with causal: keys before it are seen by all.
    chunk         queries and keys in the same chunk of so many positions see each other.
    segments      [batch, len] of int32, or (of queries, of keys): those of the same number see each other.
    cu_seqlens    [sequences + 1], or (of queries, of keys): sequences packed one after another. Arrays then have 3
                  dimensions, [heads, rows, dim], or [rows, heads, dim] with layout "blhd".
    block_mask    a BlockMask, from qkv.mask_mod.

    Scores are <q, k> times `scale` (default 1/sqrt(dim)); with `softcap` c they become c tanh(s / c). `alibi` [heads]
    adds slope (j - i - q_offset); `sinks` [heads] adds a score without a key to the softmax. `dropout` with `seed`
    makes a share of the weights 0. `arithmetic` of bfloat16: "auto", "f32", "dp", "amx".
    """

    def __init__(
        self, q: Any, k: Any, v: Any = None, *, layout: Layout = "bhld", causal: Causal = False,
        window: tuple[int | None, int | None] | None = None, q_offset: Any = None, scale: float | None = None,
        softcap: float | None = None, mask: Any = None, kv_len: Any = None, q_len: Any = None, prefix_len: Any = None,
        chunk: int | None = None, segments: Any = None, cu_seqlens: Any = None, block_mask: BlockMask | None = None,
        alibi: Any = None, sinks: Any = None, dropout: float = 0.0, seed: int | None = None,
        arithmetic: Arithmetic = "auto", context: Context | None = None,
    ) -> None:
        if layout not in ("bhld", "blhd"):
            raise ArgumentError(f'layout is {layout!r}, and must be "bhld" or "blhd"')
        self._context, self._layout, self._packed = context, layout, cu_seqlens is not None
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
        if arithmetic not in _ARITHMETIC:
            raise ArgumentError(f"arithmetic is {arithmetic!r}, and must be one of {', '.join(_ARITHMETIC)}")
        self._desc.arithmetic = _ARITHMETIC[arithmetic]

    # ---- The descriptor ----

    def _four(self, array: Any, name: str) -> View:
        """[batch, heads, len, dim] of an array of the caller's layout."""
        found = floats(array, name)
        n = len(found.shape)
        if self._packed and n != 3:
            raise ShapeError(f"{name} has {n} dimensions; with cu_seqlens it must have 3")
        if n not in (2, 3, 4):
            raise ShapeError(f"{name} has {n} dimensions, and must have 2 to 4")
        if self._layout == "blhd" and n >= 3:
            found = found.transposed(*range(n - 3), n - 2, n - 3, n - 1)
        return found.expanded(4)

    def _set_arrays(self, q: Any, k: Any, v: Any, cu_seqlens: Any) -> None:
        views = {name: self._four(array, name) for name, array in (("q", q), ("k", k), ("v", v))}
        self._q, self._k, self._v = views["q"], views["k"], views["v"]
        self._n_dims = len(view(q, "q").shape)
        for name in "kv":
            if views[name].dtype != self._q.dtype:
                raise DTypeError(f"q is {self._q.dtype} and {name} is {views[name].dtype}: they must be the same")
        if self._k.shape[3] != self._q.shape[3]:
            raise ShapeError(f"q has {self._q.shape[3]} channels, k has {self._k.shape[3]}: they must be the same")
        if self._v.shape[1:3] != self._k.shape[1:3]:
            raise ShapeError(f"k has heads and keys {self._k.shape[1:3]}, v has {self._v.shape[1:3]}")
        n_batch, len_q, len_k = self._q.shape[0], self._q.shape[2], self._k.shape[2]
        if cu_seqlens is not None:
            pair = [np.asarray(each) for each in _pair(cu_seqlens, "cu_seqlens")]
            cu = [integers(each, np.int64, "cu_seqlens", (pair[0].size,)) for each in pair]
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
            return np.full(n, value, dtype=np.int64)
        return integers(value, np.int64, name, (n,))

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
        n = self._desc.n_batch
        if cu:
            return np.diff(np.ctypeslib.as_array((ctypes.c_int64 * (n + 1)).from_address(cu)))
        return np.full(n, otherwise, dtype=np.int64)

    def _set_positions(self, causal: Causal, window: tuple[int | None, int | None] | None, q_offset: Any,
                       chunk: int | None, prefix: bool) -> None:
        desc = self._desc
        if causal not in (False, True, "top-left", "bottom-right"):
            raise ArgumentError(f'causal is {causal!r}, and must be a bool, "top-left" or "bottom-right"')
        if prefix and not causal:
            raise ArgumentError("prefix_len is given without causal, and every query would see every key")
        if causal == "bottom-right":
            if q_offset is not None:
                raise ArgumentError('causal="bottom-right" chooses the offset: give no q_offset')
            q_offset = (self._lengths("kv_len", desc.cu_seqlens_k, self._all_k)
                        - self._lengths("q_len", desc.cu_seqlens_q, self._all_q))
        if causal:
            desc.flags |= _c.QKV_SET_CAUSAL
        if window is not None:
            desc.flags |= _c.QKV_SET_WINDOW
            left, right = window
            desc.window_left, desc.window_right = (-1 if bound is None else bound for bound in (left, right))
        if q_offset is not None:
            desc.flags |= _c.QKV_SET_Q_OFFSET
            if isinstance(q_offset, (int, np.integer)):
                desc.q_offset = int(q_offset)
            else:
                made = self._of_batch(q_offset, "q_offset")
                self._kept.append(made)
                desc.q_offsets = _pointer(made)
        if chunk is not None:
            desc.flags |= _c.QKV_SET_CHUNK
            desc.chunk = chunk

    def _set_segments(self, segments: Any) -> None:
        if segments is None:
            return
        desc = self._desc
        desc.flags |= _c.QKV_SET_SEGMENTS
        for name, length, values in zip("qk", (desc.len_q, self._all_k), _pair(segments, "segments")):
            one = np.ndim(values) == 1
            made = integers(values, np.int32, "segments", (length,) if one else (desc.n_batch, length))
            self._kept.append(made)
            setattr(desc, f"seg_{name}", _pointer(made))
            setattr(desc, f"seg_{name}_stride", 0 if one else length)

    def _set_mask(self, mask: Any) -> None:
        self._mask_shape: tuple[int, ...] = ()
        if mask is None:
            return
        desc = self._desc
        found = view(mask, "mask")
        if found.dtype not in _MASKS:
            raise DTypeError(f"mask is {found.dtype}, and must be bool, float32, bfloat16 or float16")
        if any(stride < 0 for stride in found.strides):
            found = view(np.ascontiguousarray(mask), "mask")
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
        self._mask_shape = found.shape
        self._kept.append(found.owner)

    def _set_blocks(self, blocks: BlockMask) -> None:
        desc = self._desc
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
        given = value.detach().float().numpy() if is_torch(value) else value
        made = np.ascontiguousarray(given, dtype=np.float32)
        if made.shape != (self._desc.n_heads,):
            raise ShapeError(f"{name} has shape {made.shape}, and must have ({self._desc.n_heads},)")
        self._kept.append(made)
        return _pointer(made)

    def _set_scores(self, scale: float | None, softcap: float | None, alibi: Any, sinks: Any, dropout: float,
                    seed: int | None) -> None:
        desc = self._desc
        if scale is not None:
            desc.flags |= _c.QKV_SET_SCALE
            desc.scale = scale
        if softcap is not None:
            desc.flags |= _c.QKV_SET_SOFTCAP
            desc.softcap = softcap
        if alibi is not None:
            desc.flags |= _c.QKV_SET_ALIBI
            desc.alibi_slopes = self._of_heads(alibi, "alibi")
        if sinks is not None:
            desc.flags |= _c.QKV_SET_SINKS
            desc.sinks = self._of_heads(sinks, "sinks")
        if dropout:
            if seed is None:
                raise ArgumentError("dropout needs a seed: the same seed gives the same weights in every call")
            desc.flags |= _c.QKV_SET_DROPOUT
            desc.dropout, desc.dropout_seed = dropout, seed & (2**64 - 1)

    # ---- Calls ----

    def _run(self, function: Any, *arguments: Any) -> None:
        run(self._context or context(), function, self._desc, *arguments)

    def _shape_o(self) -> tuple[int, ...]:
        shape = list(view(self._given, "q").shape)
        shape[-1] = self._desc.head_dim_v
        return tuple(shape)

    def _rows(self) -> tuple[int, ...]:
        """The shape of lse."""
        desc = self._desc
        if self._packed:
            return desc.n_heads, self._q.shape[2]
        full = (desc.n_batch, desc.n_heads, desc.len_q)
        return full[4 - self._n_dims:]

    def _set_lse_strides(self) -> None:
        length = self._rows()[-1]
        self._desc.lse_stride[:] = (0 if self._packed else self._desc.n_heads * length, length, 1)

    def _output(self, out: Any, out_dtype: str | None) -> tuple[Any, View]:
        dtype = out_dtype or self._q.dtype
        if dtype not in DTYPES:
            raise DTypeError(f"out_dtype is {dtype}, and must be float32 or that of q")
        if out is None:
            out = empty_like(self._given, self._shape_o(), dtype)
            if self._packed or self._desc.flags & _c.QKV_SET_Q_LEN:
                out[...] = 0  # rows that are no query's
        found = view(out, "out")
        if tuple(found.shape) != self._shape_o() or found.dtype != dtype:
            raise ShapeError(f"out is {found.dtype} {found.shape}, and must be {dtype} {self._shape_o()}")
        if found.strides[-1] != 1 and found.shape[-1] > 1:
            raise ShapeError("the last stride of out is not 1")
        made = self._four(out, "out")
        desc = self._desc
        desc.o_stride[:] = (0 if self._packed else made.strides[0], *made.strides[1:3])
        if dtype != self._q.dtype:
            desc.flags |= _c.QKV_SET_O_DTYPE
            desc.o_dtype = DTYPES[dtype]
        return out, made

    def prepared(self, out: Any) -> tuple[tuple[int, ...], _c.qkv_attention_desc]:
        """Where q, k, v and `out` lie for a forward pass into `out`, and the descriptor: it lives as long as this."""
        _, found = self._output(out, None)
        self._set_lse_strides()
        return (self._q.address, self._k.address, self._v.address, found.address), self._desc

    def forward(self, *, out: Any = None, out_dtype: str | None = None, stats: Stats | None = None) -> Forward:
        """o = softmax(scores) v, lse = log(sum(exp(scores))) of each row, and statistics of the weights.

        stats: names of rows' numbers (largest, entropy, effective_keys, mean_distance, mean_square_distance,
        logit_mean, logit_variance, logit_largest, n_seen); or a mapping, which may also have "top": n (lists of the
        keys with the most weight), "classes": [batch, len_k] of uint8 (and "n_classes", else the largest + 1),
        "offsets": edges, "key_weights": [batch, heads, len_k], "tokens": ids of queries and keys, or a pair of them.
        """
        desc = self._desc
        lse = np.zeros(self._rows(), dtype=np.float32)
        o, found = self._output(out, out_dtype)
        self._set_lse_strides()
        results, keep = self._request(stats)
        try:
            self._attend(_address(found), _pointer(lse))
        finally:
            desc.flags &= ~_c.QKV_SET_STATS
            desc.stats = None
        del keep
        return Forward(o, _like(self._given, lse), results)

    def _attend(self, o: int, lse: int) -> None:
        self._run(lib.qkv_attention_forward, _address(self._q), _address(self._k), _address(self._v), o, lse)

    def _request(self, stats: Stats | None) -> tuple[dict[str, np.ndarray[Any, Any]], Any]:
        results: dict[str, np.ndarray[Any, Any]] = {}
        if not stats:
            return results, None
        wanted: dict[str, Any] = dict(stats) if isinstance(stats, Mapping) else dict.fromkeys(stats, True)
        n_classes = wanted.pop("n_classes", None)
        desc, made = self._desc, init(_c.qkv_attention_stats)
        lib.qkv_attention_stats_fill(ctypes.byref(made), ctypes.byref(desc))
        rows = self._rows()
        made.stride[:] = desc.lse_stride
        kept: list[Any] = [made]

        def row(name: str, *more: int, kind: Any = np.float32) -> None:
            results[name] = np.zeros(rows + more, dtype=kind)
            setattr(made, name, _pointer(results[name]))

        for name, value in wanted.items():
            if name in _ROW_STATS:
                if value:
                    row(name, kind=np.int64 if name == "n_seen" else np.float32)
            elif name == "top":
                made.top_k = value
                row("top_keys", value, kind=np.int64)
                row("top_weights", value)
                row("top_scores", value)
            elif name == "classes":
                ids = np.ascontiguousarray(value, dtype=np.uint8)
                made.n_classes = int(ids.max(initial=0)) + 1 if n_classes is None else n_classes
                made.classes, made.classes_stride = _pointer(ids), 0 if ids.ndim == 1 else ids.shape[-1]
                kept.append(self._checked(ids, "classes", self._all_k))
                row("class_mass", made.n_classes)
            elif name == "offsets":
                edges = integers(value, np.int64, "offsets", (len(value),))
                made.offsets, made.n_offsets = _pointer(edges), len(edges) - 1
                kept.append(edges)
                row("offset_mass", made.n_offsets)
            elif name == "key_weights":
                weights = np.ascontiguousarray(value, dtype=np.float32)
                full = (desc.n_batch, desc.n_heads, self._all_k)
                if weights.shape != full:
                    raise ShapeError(f"key_weights has shape {weights.shape}, and must have {full}")
                made.key_weights, made.key_weights_stride[:] = _pointer(weights), (full[1] * full[2], full[2])
                kept.append(weights)
                row("weighted_mass")
            elif name == "tokens":
                for side, length, ids in zip("qk", (desc.len_q, self._all_k), _pair(value, "tokens")):
                    tokens = np.ascontiguousarray(ids, dtype=np.int32)
                    kept.append(self._checked(tokens, "tokens", length))
                    setattr(made, f"tokens_{side}", _pointer(tokens))
                    setattr(made, f"tokens_{side}_stride", 0 if tokens.ndim == 1 else length)
                for each in ("same_token", "duplicate", "induction"):
                    row(each)
            else:
                known = ", ".join((*_ROW_STATS, "top", "classes", "offsets", "key_weights", "tokens"))
                raise ArgumentError(f"stats has no {name!r}; it has {known}")
        heads = (desc.n_batch, desc.n_heads)
        for name in ("n_empty_rows", "n_nan_rows"):
            results[name] = np.zeros(heads, dtype=np.int64)
            setattr(made, name, _pointer(results[name]))
        desc.flags |= _c.QKV_SET_STATS
        desc.stats = ctypes.addressof(made)
        return results, kept

    def _checked(self, ids: np.ndarray[Any, Any], name: str, length: int) -> np.ndarray[Any, Any]:
        allowed = (length,), (self._desc.n_batch, length)
        if ids.shape not in allowed:
            raise ShapeError(f"{name} has shape {ids.shape}, and must have {allowed[0]} or {allowed[1]}")
        return ids

    def backward(self, d_o: Any, *, o: Any, lse: Any, d_lse: Any = None, d_mask: bool = False,
                 out: tuple[Any, Any, Any] | None = None) -> Gradients:
        """Gradients of sum(o * d_o) + sum(lse * d_lse). o and lse are those of forward().

        d_mask: True also returns the gradient of a mask of floats, in the mask's shape with 4 dimensions.
        out: arrays of the shapes and the dtype of q, k and v, whose last stride is 1, for d_q, d_k and d_v.
        """
        desc, grads = self._desc, init(_c.qkv_attention_grads)
        for name, found in (("k", self._k), ("v", self._v)):
            if found.shape[0] != self._q.shape[0]:
                raise UnsupportedError(f"backward with a {name} that all batches share: expand it first")
        _, found_o = self._output(o, view(o, "o").dtype)
        self._set_lse_strides()
        given = self._four(d_o, "d_o")
        if given.shape != found_o.shape or given.dtype != found_o.dtype:
            raise ShapeError(f"d_o is {given.dtype} {given.shape}, and o is {found_o.dtype} {found_o.shape}")
        lib.qkv_attention_grads_fill(ctypes.byref(grads), ctypes.byref(desc))
        grads.d_o = _address(given)
        grads.d_o_stride[:] = (0 if self._packed else given.strides[0], *given.strides[1:3])
        rows = self._lse(lse)
        d_rows = None if d_lse is None else self._lse(d_lse, "d_lse")
        grads.d_lse = None if d_rows is None else _pointer(d_rows)
        outputs = []
        some_unwritten = self._packed or bool(desc.flags & _c.QKV_SET_Q_LEN)
        for n, (name, original) in enumerate((("q", self._q), ("k", self._k), ("v", self._v))):
            made = empty_like(self._given, self._shape_of(original), self._q.dtype) if out is None else out[n]
            if some_unwritten:
                made[...] = 0
            four = self._four(made, f"d_{name}")
            if four.shape != original.shape or four.dtype != self._q.dtype or four.owner is not made:
                raise ShapeError(f"out for d_{name} is {four.dtype} {four.shape}, and must be {self._q.dtype} "
                                 f"{original.shape}, dense in its last dimension")
            setattr(grads, f"d_{name}", _address(four))
            getattr(grads, f"d_{name}_stride")[:] = (0 if self._packed else four.strides[0], *four.strides[1:3])
            outputs.append(made)
        d_sinks = np.zeros(desc.n_heads, dtype=np.float32) if desc.flags & _c.QKV_SET_SINKS else None
        grads.d_sinks = None if d_sinks is None else _pointer(d_sinks)
        of_mask = None
        if d_mask:
            if not self._mask_shape:
                raise ArgumentError("d_mask was asked for, and there is no mask")
            of_mask = np.zeros(self._mask_shape, dtype=np.float32)
            grads.d_mask = _pointer(of_mask)
            grads.d_mask_stride[:] = [0 if size == 1 else stride // 4
                                      for size, stride in zip(of_mask.shape, of_mask.strides)]
        self._differentiate(_address(found_o), _pointer(rows), grads)
        return Gradients(outputs[0], outputs[1], outputs[2], d_sinks, of_mask)

    def _differentiate(self, o: int, lse: int, grads: _c.qkv_attention_grads) -> None:
        self._run(lib.qkv_attention_backward, _address(self._q), _address(self._k), _address(self._v), o, lse,
                  ctypes.byref(grads))

    def _shape_of(self, found: View) -> tuple[int, ...]:
        """The shape of [batch, heads, len, dim] in the caller's layout."""
        batch, heads, length, dim = found.shape
        inner = (length, heads, dim) if self._layout == "blhd" else (heads, length, dim)
        return ((batch, *inner), inner, (length, dim))[4 - self._n_dims]

    def _lse(self, lse: Any, name: str = "lse") -> np.ndarray[Any, Any]:
        made = np.ascontiguousarray(lse.detach().numpy() if is_torch(lse) else lse, dtype=np.float32)
        if made.shape != self._rows():
            raise ShapeError(f"{name} has shape {made.shape}, and must have {self._rows()}")
        return made

    def columns(self, lse: Any, *, want: Sequence[str] = ("received",), row_weights: Any = None,
                diagonals: tuple[int, int] | None = None, tiles: tuple[int, int] | None = None,
                tiny: float | None = None) -> dict[str, np.ndarray[Any, Any]]:
        """Attention seen from the keys, in one more pass over the scores and O(len) memory.

        want         of each key: received, n_queries, largest, largest_query, entropy, [batch, heads, len_k].
        row_weights  of the queries, the shape of lse: received is their sum times the weights.
        diagonals    (first, n): mean weight at distances first, first + 1, … to the left; 1 is the previous key.
        tiles        (rows, columns) of a map of each head: tile_mass, tile_peak, tile_rows.
        tiny         a weight: n_tiny counts smaller ones; n_cells counts all.
        """
        desc, made = self._desc, init(_c.qkv_attention_columns)
        self._set_lse_strides()
        lib.qkv_attention_columns_fill(ctypes.byref(made), ctypes.byref(desc))
        rows, results = self._lse(lse), {}
        heads = (desc.n_batch, desc.n_heads)
        keys = (desc.n_heads, self._k.shape[2]) if self._packed else (*heads, desc.len_k)
        made.stride[:] = (0 if self._packed else desc.n_heads * keys[-1], keys[-1], 1)
        made.first_diagonal, made.n_diagonals = diagonals or (0, 0)

        def array(name: str, shape: tuple[int, ...], kind: Any = np.float32) -> None:
            results[name] = np.zeros(shape, dtype=kind)
            setattr(made, name, _pointer(results[name]))

        for name in want:
            if name not in _KEY_COLUMNS:
                raise ArgumentError(f"columns has no {name!r}; it has {', '.join(_KEY_COLUMNS)}")
            array(name, keys, np.int64 if name in ("n_queries", "largest_query") else np.float32)
        of_rows = None if row_weights is None else self._lse(row_weights, "row_weights")
        if of_rows is not None:
            made.row_weights, made.row_weights_stride[:] = _pointer(of_rows), tuple(desc.lse_stride)
        if diagonals:
            array("diagonal", (*heads, diagonals[1]))
            array("diagonal_rows", (*heads, diagonals[1]), np.int64)
        if tiles:
            made.n_tiles_q, made.n_tiles_k = tiles
            array("tile_mass", (*heads, *tiles))
            array("tile_peak", (*heads, *tiles))
            array("tile_rows", (*heads, tiles[0]), np.int64)
        for name in _COUNTS:
            if name != "n_tiny" or tiny is not None:
                array(name, heads, np.int64)
        made.tiny = tiny or 0.0
        self._run(lib.qkv_attention_columns_pass, _address(self._q), _address(self._k), _pointer(rows),
                  ctypes.byref(made))
        return results

    def weights(self, lse: Any, *, batch: int = 0, head: int = 0, rows: tuple[int, int] | None = None,
                keys: tuple[int, int] | None = None) -> np.ndarray[Any, Any]:
        """Weights of one head: queries rows[0] to rows[1] - 1 and keys keys[0] to keys[1] - 1; None: all."""
        desc = self._desc
        self._set_lse_strides()
        of_rows = self._lse(lse)
        i0, i1 = rows or (0, desc.len_q)
        j0, j1 = keys or (0, desc.len_k)
        p = np.zeros((max(i1 - i0, 0), max(j1 - j0, 0)), dtype=np.float32)
        self._run(lib.qkv_attention_weights, _address(self._q), _address(self._k), _pointer(of_rows), batch, head,
                  i0, i1, j0, j1, _pointer(p), max(j1 - j0, 1))
        return p

    def plan(self, what: Literal["forward", "backward", "decode"] = "forward") -> dict[str, Any]:
        """How a call is computed, and why: kernel, instruction set, class, blocks, threads, workspace."""
        passes = {"forward": _c.QKV_PASS_FORWARD, "backward": _c.QKV_PASS_BACKWARD, "decode": _c.QKV_PASS_DECODE}
        made, ctx = init(_c.qkv_attention_plan), self._context or context()
        made.pass_ = passes[what]
        ctx.check(lib.qkv_attention_explain(ctx.handle, ctypes.byref(self._desc), ctypes.byref(made)))
        values = {name: getattr(made, name) for name, *_ in made._fields_ if name not in ("struct_size", "pass_")}
        return {name: string(value) if isinstance(value, bytes) else value for name, value in values.items()}


def _like(given: Any, array: np.ndarray[Any, Any]) -> Any:
    if is_torch(given):
        import torch

        return torch.from_numpy(array)
    return array


# ---- Calls that have been made before ----
#
# To check and describe a problem takes longer than a small call. The descriptor of a call of NumPy arrays, whose rules
# are numbers, is kept for calls of the same shapes, strides and rules: with new addresses it is valid again.


class _Case(NamedTuple):
    desc: _c.qkv_attention_desc
    address: int
    shape: tuple[int, ...]


_LARGEST = 512
_F32 = np.dtype(np.float32)
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


def _case_of(key: Any, q: Any, k: Any, v: Any, rules: Mapping[str, Any]) -> _Case | None:
    if len(_cases) >= _LARGEST:
        _cases.clear()
    simple = all(isinstance(value, (bool, int, float, str, tuple, type(None))) for value in rules.values())
    if not simple or not q.size or not k.size or not v.size:
        return None
    problem = Problem(q, k, v, **rules)
    o = np.empty(problem._shape_o(), np.float32)
    addresses, desc = problem.prepared(o)
    case = None
    if addresses == (_data_of(q), _data_of(k), _data_of(v), _data_of(o)) and not is_long(desc):
        kept = _c.qkv_attention_desc.from_buffer_copy(desc)
        if not problem._kept:
            case = _Case(kept, ctypes.addressof(kept), o.shape)
    _cases[key] = case
    return case


def _again(q: Any, k: Any, v: Any, rules: Mapping[str, Any]) -> Any:
    """o of a short call, if it is one that can be kept; else None."""
    if not (q.dtype is _F32 and k.dtype is _F32 and v.dtype is _F32):
        return None
    key = (q.shape, k.shape, v.shape, q.strides, k.strides, v.strides, tuple(rules.items()) if rules else None)
    try:
        case = _cases[key]
    except KeyError:
        case = _case_of(key, q, k, v, rules)
    except TypeError:  # a rule that is an array
        return None
    if case is None:
        return None
    o, ctx = _empty(case.shape, _F32), context()
    status = _forward(ctx.handle, case.address, _data(q), _data(k), _data(v), _data(o), None, None)
    if status:
        ctx.check(status)
    return o


def attention(q: Any, k: Any, v: Any, *, out: Any = None, out_dtype: str | None = None, lse: bool = False,
              stats: Stats | None = None, **rules: Any) -> Any:
    """Scaled dot-product attention: o = softmax(q k^T scale) v, exact, without an array of len_q x len_k.

    >>> o = qkv.attention(q, k, v, causal=True)
    >>> o, lse, stats = qkv.attention(q, k, v, causal=True, stats=["entropy"])

    q, k, v and all rules: see Problem. Returns o, in the shape of q with the channels of v, and of q's kind: a torch
    tensor for tensors, else a NumPy array. With lse=True it returns (o, lse), with stats the tuple Forward. A query
    that sees no key gets o = 0 and lse = -inf. The bits of a row depend on its query, its keys and the rules only:
    not on threads, batch or padding. Memory: nothing that grows with len_q x len_k.
    """
    if type(q) is type(k) is type(v) is np.ndarray and not (lse or stats or out_dtype) and out is None:
        o = _again(q, k, v, rules)
        if o is not None:
            return o
    made = Problem(q, k, v, **rules).forward(out=out, out_dtype=out_dtype, stats=stats)
    if stats:
        return made
    return (made.o, made.lse) if lse else made.o
