"""Decoding from stored keys and values, and merging of results."""
from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from . import _c
from ._library import init, lib
from .arrays import DTYPES, View, densely, empty_like, floats
from .checked import choice, integer
from .context import Context, context, given
from .descriptor import _address, _pointer
from .errors import ArgumentError, NoCopies, ShapeError
from .keywords import OF_CACHE, CacheRules, refuse_unknown, with_rules
from .problem import Forward, Problem, Stats, _like

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .attend import Array

_STORED = {**DTYPES, "int8": _c.QKV_I8}


class KVCache(NoCopies):
    """Keys and values of several sequences that grow, in pages. Sequences that begin alike share pages.

    >>> cache = qkv.KVCache(sequences=1, kv_heads=8, dim=128, pages=1024)
    >>> cache.append(0, k, v)                    # [kv_heads, n, dim]
    >>> o = cache.attend(q)                      # q [sequences, heads, n, dim]

    dtype: "float32", "bfloat16", "float16" or "int8", in which they are stored. page_len: tokens of a page, a multiple
    of 16. ring_len: only the last so many tokens are kept. The memory is allocated here, and never grows. Calls of
    several threads on one cache wait for each other.
    """

    def __init__(self, *, sequences: int = 1, kv_heads: int, dim: int, dim_v: int | None = None, pages: int,
                 page_len: int = 64, dtype: str = "float32", max_len: int = 0, ring_len: int = 0,
                 context: Context | None = None) -> None:
        self._handle: int | None = None
        stored = choice(dtype, "dtype", _STORED)
        dim_v = dim if dim_v is None else dim_v
        sizes = {"sequences": sequences, "kv_heads": kv_heads, "dim": dim, "dim_v": dim_v, "pages": pages,
                 "page_len": page_len, "max_len": max_len, "ring_len": ring_len}
        for name, size in sizes.items():
            sizes[name] = integer(size, name, least=1 if name == "page_len" else None)
        self._context, self._dims = given(context), (sizes["kv_heads"], sizes["dim"], sizes["dim_v"])
        self._n_sequences = sizes["sequences"]
        options = init(_c.qkv_kv_cache_options, dtype=stored, n_sequences=sizes["sequences"],
                       n_kv_heads=sizes["kv_heads"], head_dim=sizes["dim"], head_dim_v=sizes["dim_v"],
                       page_len=sizes["page_len"], n_pages=sizes["pages"], max_len=sizes["max_len"],
                       ring_len=sizes["ring_len"])
        made, ctx = ctypes.c_void_p(), self._ctx()
        ctx.check(lib.qkv_kv_cache_create(ctx.handle, ctypes.byref(options), ctypes.byref(made)))
        self._handle = made.value
        # The library's cache serves one call at a time.
        self._lock = threading.RLock()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            lib.qkv_kv_cache_free(self._handle)

    def _ctx(self) -> Context:
        return self._context or context()

    def _sequence(self, value: Any, name: str = "sequence") -> int:
        return integer(value, name, least=0, most=self._n_sequences - 1)

    def append(self, sequence: int, k: Any, v: Any) -> None:
        """Appends tokens: k [kv_heads, n, dim], v [kv_heads, n, dim_v]. They are rounded to the cache's type."""
        sequence = self._sequence(sequence)
        views = [floats(k, "k"), floats(v, "v")]
        n = views[0].shape[1] if len(views[0].shape) == 3 else -1
        for found, dim, name in zip(views, self._dims[1:], "kv"):
            if found.shape != (self._dims[0], n, dim) or found.dtype != views[0].dtype:
                raise ShapeError(f"{name} is {found.dtype} {found.shape}, and must be ({self._dims[0]}, n, {dim})")
        strides = [(ctypes.c_int64 * 2)(*found.strides[:2]) for found in views]
        with self._lock:
            ctx = self._ctx()
            ctx.check(lib.qkv_kv_cache_append(ctx.handle, self._handle, sequence, n, DTYPES[views[0].dtype],
                                              _address(views[0]), ctypes.addressof(strides[0]),
                                              _address(views[1]), ctypes.addressof(strides[1])))

    def truncate(self, sequence: int, length: int) -> None:
        """Shortens a sequence, and frees the pages that it no longer needs."""
        sequence, length = self._sequence(sequence), integer(length, "length", least=0)
        with self._lock:
            ctx = self._ctx()
            ctx.check(lib.qkv_kv_cache_truncate(ctx.handle, self._handle, sequence, length))

    def fork(self, source: int, target: int) -> None:
        """Makes the empty sequence `target` a copy of `source`. Pages are shared until one of them writes."""
        source, target = self._sequence(source, "source"), self._sequence(target, "target")
        with self._lock:
            ctx = self._ctx()
            ctx.check(lib.qkv_kv_cache_fork(ctx.handle, self._handle, source, target))

    def length(self, sequence: int = 0) -> int:
        """Tokens of a sequence, with those that a ring no longer stores."""
        return int(lib.qkv_kv_cache_len(self._handle, self._sequence(sequence)))

    @property
    def free_pages(self) -> int:
        return int(lib.qkv_kv_cache_free_pages(self._handle))

    @property
    def nbytes(self) -> int:
        return int(lib.qkv_kv_cache_bytes(self._handle))

    @overload
    def attend(self, q: Array, *, first_sequence: int = ..., causal: bool = ..., window: int | None = ...,
               out: Any = ..., lse: Literal[False] = ..., stats: None = ..., **rules: Unpack[CacheRules]) -> Array: ...
    @overload
    def attend(self, q: Array, *, first_sequence: int = ..., causal: bool = ..., window: int | None = ...,
               out: Any = ..., lse: Literal[True], stats: None = ...,
               **rules: Unpack[CacheRules]) -> tuple[Array, Array]: ...
    @overload
    def attend(self, q: Array, *, first_sequence: int = ..., causal: bool = ..., window: int | None = ...,
               out: Any = ..., lse: bool = ..., stats: Stats, **rules: Unpack[CacheRules]) -> Forward[Array]: ...
    @overload
    def attend(self, q: Any, *, first_sequence: int = ..., causal: bool = ..., window: int | None = ...,
               out: Any = ..., lse: bool = ..., stats: Stats | None = ..., **rules: Unpack[CacheRules]) -> Any: ...

    @with_rules(Problem._describe, CacheRules)
    def attend(self, q: Any, *, first_sequence: int = 0, causal: bool = True, window: int | None = None,
               out: Any = None, lse: bool = False, stats: Stats | None = None, **rules: Any) -> Any:
        """Attention of the newest tokens: q [sequences, heads, n, dim], the last n tokens of each sequence.

        causal: a token does not see those after it. window: it sees so many tokens, its own among them. Other rules,
        statistics and what is returned are those of qkv.attention, but for dropout and cu_seqlens: o, or (o, lse), or
        with stats the tuple Forward. Bits do not depend on pages, batch, n or threads.
        """
        refuse_unknown("attend", rules, more=("first_sequence", "causal", "window", "out", "lse", "stats"),
                       others=OF_CACHE)
        if isinstance(window, (tuple, list)):
            raise ArgumentError(f"window is {window!r}, and must be a number of tokens here, a query's own among them")
        if window is not None:
            rules["window"] = (integer(window, "window", least=1) - 1, None)
        with self._lock:  # the view of the stored keys is the cache's own
            made = _Decoding(q, self, first_sequence, causal=causal, context=self._context, **rules)
            found = made.forward(out=out, stats=stats)
        if stats is not None:
            return found
        return (found.o, found.lse) if lse else found.o


class _Decoding(Problem):
    """Queries of the newest tokens. Keys and values are a cache's: only their shapes are known here."""

    def __init__(self, q: Any, cache: KVCache, first_sequence: int, **rules: Any) -> None:
        given = floats(q, "q")
        if len(given.shape) != 4:
            raise ShapeError(f"q has shape {given.shape}, and must have [sequences, heads, n, dim]")
        batch, _, n, dim = given.shape
        if dim != cache._dims[1]:
            raise ShapeError(f"q has {dim} channels, the cache has {cache._dims[1]}")
        for name in ("kv_len", "q_offset", "layout", "cu_seqlens"):
            if name in rules:
                raise ArgumentError(f"attend has no {name}: the cache knows the lengths of its sequences")
        first_sequence = cache._sequence(first_sequence, "first_sequence")
        self._cache, ctx = cache, cache._ctx()
        self._of_cache, lengths = init(_c.qkv_kv_view), ctypes.c_void_p()
        ctx.check(lib.qkv_kv_cache_view_fill(ctx.handle, cache._handle, first_sequence, batch,
                                             ctypes.byref(self._of_cache), ctypes.byref(lengths)))
        self._tokens = np.array([cache.length(first_sequence + b) for b in range(batch)], dtype=np.int64)
        super().__init__(q, None, None, kv_len=self._tokens, q_offset=self._tokens - n, **rules)

    def _set_arrays(self, q: Any, k: Any, v: Any, cu_seqlens: Any) -> None:
        kv_heads, dim, dim_v = self._cache._dims
        self._q, self._n_dims = self._four(q, "q"), 4
        self._shape_q = self._q.shape
        batch, heads, n, _ = self._q.shape
        len_k = int(self._tokens.max(initial=0))
        self._all_q, self._all_k = n, len_k
        self._k = self._v = View(0, (batch, kv_heads, len_k, dim), (0, 0, 0, 1), self._q.dtype, None)
        desc = self._desc
        desc.struct_size = ctypes.sizeof(desc)
        lib.qkv_attention_desc_fill(ctypes.byref(desc), batch, heads, kv_heads, n, len_k, dim, dim_v)
        desc.dtype, desc.q_stride[:] = DTYPES[self._q.dtype], self._q.strides[:3]

    def _attend(self, desc: _c.qkv_attention_desc, o: int, lse: int) -> None:
        self._run(lib.qkv_attention_decode, desc, _address(self._q), ctypes.addressof(self._of_cache), o, lse)


def _check_parts(parts: Any) -> None:
    """What merge takes is a sequence of pairs. An array has rows, which would be taken for them."""
    what = "(o, lse), as qkv.attention(…, lse=True) returns it"
    if not isinstance(parts, (list, tuple)):
        raise ArgumentError(f"parts is a {type(parts).__name__}, and must be a list, each part of it {what}")
    if not parts:
        raise ArgumentError("merge needs at least one part")
    for n, part in enumerate(parts):
        if not isinstance(part, (list, tuple)) or len(part) not in (2, 3):
            size = f" of {len(part)}" if isinstance(part, (list, tuple)) else ""
            raise ArgumentError(f"parts[{n}] is a {type(part).__name__}{size}, and must be {what}")


def merge(parts: Sequence[tuple[Array, Array] | Forward[Array]]) -> tuple[Array, Array]:
    """Results over disjoint sets of keys as that over their union: (o, lse) of each part, of the same shapes.

    o [..., len_q, dim], lse [..., len_q]. lse = log(sum_p exp(lse_p)), o = sum_p exp(lse_p - lse) o_p.
    """
    _check_parts(parts)
    outputs = [floats(part[0], "o") for part in parts]
    rows = [floats(part[1], "lse") for part in parts]
    shape, ctx = outputs[0].shape, context()
    for found, of_rows in zip(outputs, rows):
        if found.shape != shape or found.dtype != outputs[0].dtype:
            raise ShapeError(f"a part's o is {found.dtype} {found.shape}, the first is {outputs[0].dtype} {shape}")
        if of_rows.shape != shape[:-1] or of_rows.dtype != "float32":
            raise ShapeError(f"a part's lse is {of_rows.dtype} {of_rows.shape}, and must be float32 {shape[:-1]}")
    dense = [_dense(part[0], found) for part, found in zip(parts, outputs)]
    dense_rows = [_dense(part[1], found) for part, found in zip(parts, rows)]
    n_rows = int(np.prod(shape[:-1]))
    desc = _c.qkv_attention_desc()
    desc.struct_size = ctypes.sizeof(desc)
    lib.qkv_attention_desc_fill(ctypes.byref(desc), 1, 1, 1, n_rows, 0, 0, shape[-1])
    desc.dtype = DTYPES[outputs[0].dtype]
    o, lse = empty_like(parts[0][0], shape, outputs[0].dtype), np.zeros(shape[:-1], dtype=np.float32)
    array = ctypes.c_void_p * len(parts)
    ctx.check(lib.qkv_attention_merge(ctx.handle, ctypes.byref(desc), len(parts),
                                      ctypes.byref(array(*map(_address, dense))),
                                      ctypes.byref(array(*map(_address, dense_rows))),
                                      _address(floats(o, "o")), _pointer(lse)))
    return o, _like(parts[0][1], lse)


def _dense(array: Any, found: View) -> View:
    step, strides = 1, []
    for size in reversed(found.shape):
        strides.append(step)
        step *= size
    same = all(size == 1 or given == want for size, given, want in zip(found.shape, found.strides, reversed(strides)))
    return found if same else floats(densely(array, "a part"), "a part")
