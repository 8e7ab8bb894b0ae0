"""A problem of attention: arrays and rules, and every call that takes them."""
from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from . import _c
from ._library import init, lib, string
from .arrays import DTYPES, View, empty_like, floats, has_moved, integers, is_torch, numbers, reals, written, zero
from .checked import a_list, choice, integer, interval, pair, queries_of, real
from .context import context
from .descriptor import Descriptor, _address, _pair, _pointer, run
from .errors import ArgumentError, DTypeError, ErrorText, ShapeError, UnsupportedError
from .keywords import listed, no_such

Stats = Sequence[str] | Mapping[str, Any]

_ROW_STATS = ("largest", "entropy", "effective_keys", "mean_distance", "mean_square_distance", "logit_mean",
              "logit_variance", "logit_largest", "n_seen")
_ARRAYS = "classes", "offsets", "key_weights", "tokens"
_KEY_COLUMNS = ("received", "n_queries", "largest", "largest_query", "entropy")
_COUNTS = ("n_cells", "n_tiny", "n_empty_rows", "n_nan_rows")


if TYPE_CHECKING:
    from torch import Tensor
    from typing_extensions import TypeVar as _TypeVar
    from typing_extensions import Unpack

    from .keywords import Rules

    # What results are: of the kind of q where it is NumPy's or torch's.
    Array = _TypeVar("Array", default=Any)
    _Known = _TypeVar("_Known", np.ndarray[Any, Any], Tensor)

    class Forward(NamedTuple, Generic[Array]):
        o: Array
        lse: Array
        stats: dict[str, np.ndarray[Any, Any]]

    class Gradients(NamedTuple, Generic[Array]):
        d_q: Array
        d_k: Array
        d_v: Array
        d_sinks: np.ndarray[Any, Any] | None
        d_mask: np.ndarray[Any, Any] | None
        d_distance_bias: np.ndarray[Any, Any] | None = None
else:  # Python 3.10 has no generic named tuples
    Array = TypeVar("Array")

    class Forward(NamedTuple):
        """What a forward pass returns: o, lse, and statistics by name (empty if none were asked for)."""

        o: Any
        lse: Any
        stats: dict[str, np.ndarray[Any, Any]]

    class Gradients(NamedTuple):
        """What a backward pass returns. Of d_q, d_k and d_v all, of the others what there is and was asked for."""

        d_q: Any
        d_k: Any
        d_v: Any
        d_sinks: np.ndarray[Any, Any] | None
        d_mask: np.ndarray[Any, Any] | None
        d_distance_bias: np.ndarray[Any, Any] | None = None


@listed
class Problem(Descriptor, Generic[Array]):
    """Queries, keys, values and rules. All calls on it see the same weights.

    q [batch, heads, len_q, dim], k [batch, kv_heads, len_k, dim], v [batch, kv_heads, len_k, dim_v]; without batch, or
    without batch and heads, with 3 or 2 dimensions. With layout "blhd" lengths come before heads. Arrays are NumPy's,
    torch's, or have `__dlpack__` (JAX) or `__array_interface__`; float32, bfloat16 or float16, all the same. They are
    read where they are; only one whose last stride is not 1 is copied.

    Keywords are rules:
    """

    if TYPE_CHECKING:
        @overload
        def __init__(self: Problem[_Known], q: _Known, k: Any, v: Any = ..., **rules: Unpack[Rules]) -> None: ...
        @overload
        def __init__(self: Problem[Any], q: Any, k: Any, v: Any = ..., **rules: Unpack[Rules]) -> None: ...
        def __init__(self, q: Any, k: Any, v: Any = None, **rules: Unpack[Rules]) -> None: ...

    def _run(self, function: Any, desc: _c.qkv_attention_desc, *arguments: Any) -> None:
        run(self._context or context(), function, desc, *arguments)

    def _of_call(self) -> _c.qkv_attention_desc:
        """The descriptor of one call, which says there where its outputs lie. Threads share the problem's own."""
        for name, found in (("q", self._q), ("k", self._k), ("v", self._v), ("mask", self._mask)):
            if found is not None and has_moved(found):
                raise ArgumentError(f"{name} was resized or given other memory since the problem was made")
        desc = _c.qkv_attention_desc.from_buffer_copy(self._desc)
        length = self._rows()[-1]
        desc.lse_stride[:] = (0 if self._packed else desc.n_heads * length, length, 1)
        if self._packed:
            desc.o_stride[:] = (0, length * desc.head_dim_v, desc.head_dim_v)
        return desc

    def _shape_o(self) -> tuple[int, ...]:
        return *self._shape_q[:-1], self._desc.head_dim_v

    def _rows(self) -> tuple[int, ...]:
        """The shape of lse."""
        desc = self._desc
        if self._packed:
            return desc.n_heads, self._q.shape[2]
        full = (desc.n_batch, desc.n_heads, desc.len_q)
        return full[4 - self._n_dims:]

    def _output(self, desc: _c.qkv_attention_desc, out: Any, out_dtype: str | None) -> tuple[Any, View]:
        dtype = self._q.dtype if out_dtype is None else out_dtype
        if not isinstance(dtype, str) or dtype not in DTYPES:
            raise DTypeError(f"out_dtype is {dtype!r}, and must be float32 or that of q")
        if out is None:
            out = empty_like(self._given, self._shape_o(), dtype)
        made = self._placed(desc, written(out, "out"), "out", dtype)
        if self._packed or desc.flags & _c.QKV_SET_Q_LEN:
            zero(out)  # rows that are no query's
        return out, made

    def _placed(self, desc: _c.qkv_attention_desc, found: View, name: str, dtype: str) -> View:
        """o of a call, whose strides and type the descriptor gets."""
        if found.shape != self._shape_o() or found.dtype != dtype:
            raise ShapeError(f"{name} is {found.dtype} {found.shape}, and must be {dtype} {self._shape_o()}")
        made = self._in_four(found, name)
        desc.o_stride[:] = (0 if self._packed else made.strides[0], *made.strides[1:3])
        if dtype != self._q.dtype:
            desc.flags |= _c.QKV_SET_O_DTYPE
            desc.o_dtype = DTYPES[dtype]
        return made

    def prepared(self, out: Any) -> tuple[tuple[int, ...], _c.qkv_attention_desc]:
        """Where q, k, v and `out` lie for a forward pass into `out`, and its descriptor, for as long as this lives."""
        desc = self._of_call()
        _, found = self._output(desc, out, None)
        return (self._q.address, self._k.address, self._v.address, found.address), desc

    def forward(self, *, out: Any = None, out_dtype: str | None = None, stats: Stats | None = None) -> Forward[Array]:
        """o = softmax(scores) v, lse = log(sum(exp(scores))) of each row, and statistics of the weights.

        stats: names of rows' numbers (largest, entropy, effective_keys, mean_distance, mean_square_distance,
        logit_mean, logit_variance, logit_largest, n_seen); or a mapping, which may also have "top": n (lists of the
        keys with the most weight), "classes": [batch, len_k] of uint8 (and "n_classes", else the largest + 1),
        "offsets": edges, "key_weights": [batch, heads, len_k], "tokens": ids of queries and keys, or a pair of them.
        """
        desc = self._of_call()
        lse = np.zeros(self._rows(), dtype=np.float32)
        o, found = self._output(desc, out, out_dtype)
        results, keep = self._request(desc, stats)
        self._attend(desc, _address(found), _pointer(lse))
        del keep
        return Forward(o, _like(self._given, lse), results)

    def _attend(self, desc: _c.qkv_attention_desc, o: int, lse: int) -> None:
        self._run(lib.qkv_attention_forward, desc, _address(self._q), _address(self._k), _address(self._v), o, lse)

    def _request(self, desc: _c.qkv_attention_desc,
                 stats: Stats | None) -> tuple[dict[str, np.ndarray[Any, Any]], Any]:
        results: dict[str, np.ndarray[Any, Any]] = {}
        if stats is None:
            return results, None
        wanted: dict[str, Any] = (dict(stats) if isinstance(stats, Mapping)
                                  else {name if isinstance(name, str) else repr(name): True
                                        for name in a_list(stats, "stats", "entropy")})
        n_classes = wanted.pop("n_classes", None)
        if n_classes is not None:
            n_classes = integer(n_classes, "n_classes", least=1, most=_c.QKV_STATS_MAX_CLASSES)
            if "classes" not in wanted:
                raise ArgumentError("n_classes is given without classes, which say what each key is")
        made = init(_c.qkv_attention_stats)
        lib.qkv_attention_stats_fill(ctypes.byref(made), ctypes.byref(desc))
        rows = self._rows()
        made.stride[:] = desc.lse_stride
        kept: list[Any] = [made]

        def row(name: str, *more: int, kind: Any = np.float32) -> None:
            results[name] = np.zeros(rows + more, dtype=kind)
            setattr(made, name, _pointer(results[name]))

        for name, value in wanted.items():
            if value is True and name in _ARRAYS:
                raise ArgumentError(f'stats has {name!r} without a value: pass a mapping, {{"{name}": …}}')
            if name in _ROW_STATS:
                if value:
                    row(name, kind=np.int64 if name == "n_seen" else np.float32)
            elif name == "top":
                made.top_k = top_k = integer(value, "top", least=1, most=_c.QKV_STATS_MAX_TOP)
                row("top_keys", top_k, kind=np.int64)
                row("top_weights", top_k)
                row("top_scores", top_k)
            elif name == "classes":
                ids = self._ids(value, np.uint8, "classes", self._all_k)
                made.n_classes = int(ids.max(initial=0)) + 1 if n_classes is None else n_classes
                made.classes, made.classes_stride = _pointer(ids), 0 if ids.ndim == 1 else ids.shape[-1]
                kept.append(ids)
                row("class_mass", made.n_classes)
            elif name == "offsets":
                given = numbers(value, "offsets")
                edges = integers(given, np.int64, "offsets", (given.size,))
                if len(edges) < 2:
                    raise ShapeError(f"offsets has {len(edges)} edges, and must have at least 2")
                made.offsets, made.n_offsets = _pointer(edges), len(edges) - 1
                kept.append(edges)
                row("offset_mass", made.n_offsets)
            elif name == "key_weights":
                weights = reals(value, "key_weights")
                full = (desc.n_batch, desc.n_heads, self._all_k)
                if weights.shape != full:
                    raise ShapeError(f"key_weights has shape {weights.shape}, and must have {full}")
                made.key_weights, made.key_weights_stride[:] = _pointer(weights), (full[1] * full[2], full[2])
                kept.append(weights)
                row("weighted_mass")
            elif name == "tokens":
                for side, length, ids in zip("qk", (desc.len_q, self._all_k), _pair(value, "tokens")):
                    tokens = self._ids(ids, np.int32, "tokens", length)
                    kept.append(tokens)
                    setattr(made, f"tokens_{side}", _pointer(tokens))
                    setattr(made, f"tokens_{side}_stride", 0 if tokens.ndim == 1 else length)
                for each in ("same_token", "duplicate", "induction"):
                    row(each)
            else:
                raise ArgumentError(no_such("stats", name, (*_ROW_STATS, "top", *_ARRAYS)))
        heads = (desc.n_batch, desc.n_heads)
        for name in ("n_empty_rows", "n_nan_rows"):
            results[name] = np.zeros(heads, dtype=np.int64)
            setattr(made, name, _pointer(results[name]))
        desc.flags |= _c.QKV_SET_STATS
        desc.stats = ctypes.addressof(made)
        return results, kept

    def _ids(self, values: Any, kind: type[np.integer[Any]], name: str, length: int) -> np.ndarray[Any, Any]:
        """Integers of tokens, the same for all batches or for each."""
        given, allowed = numbers(values, name), ((length,), (self._desc.n_batch, length))
        if given.shape not in allowed:
            raise ShapeError(f"{name} has shape {given.shape}, and must have {allowed[0]} or {allowed[1]}")
        return integers(given.astype(np.uint8) if given.dtype == np.bool_ else given, kind, name, given.shape)

    def backward(self, d_o: Any, *, o: Any, lse: Any, d_lse: Any = None, d_mask: bool = False,
                 d_distance_bias: bool = False, out: tuple[Any, Any, Any] | None = None) -> Gradients[Array]:
        """Gradients of sum(o * d_o) + sum(lse * d_lse). o and lse are those of forward().

        d_mask: True also returns the gradient of a mask of floats, in the mask's shape with 4 dimensions.
        d_distance_bias: True also returns the gradient of a distance bias, in the shape of its numbers.
        out: arrays of the shapes and the dtype of q, k and v, whose last stride is 1, for d_q, d_k and d_v.
        """
        desc, grads = self._of_call(), init(_c.qkv_attention_grads)
        for name, found in (("k", self._k), ("v", self._v)):
            if found.shape[0] != self._q.shape[0]:
                raise UnsupportedError(f"backward with a {name} that all batches share: expand it first")
        of_o = floats(o, "o")
        found_o = self._placed(desc, of_o, "o", of_o.dtype)
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
        if out is not None and len(out) != 3:
            raise ShapeError(f"out has {len(out)} arrays, and must have 3: for d_q, d_k and d_v")
        for n, (name, original) in enumerate((("q", self._q), ("k", self._k), ("v", self._v))):
            made = empty_like(self._given, self._shape_of(original), self._q.dtype) if out is None else out[n]
            four = self._in_four(written(made, f"out for d_{name}"), f"out for d_{name}")
            if four.shape != original.shape or four.dtype != self._q.dtype:
                raise ShapeError(f"out for d_{name} is {four.dtype} {four.shape}, and must be {self._q.dtype} "
                                 f"{original.shape}")
            if some_unwritten:
                zero(made)
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
        of_distances = None
        if d_distance_bias:
            if not desc.flags & _c.QKV_SET_DISTANCE_BIAS:
                raise ArgumentError("d_distance_bias was asked for, and there is no distance_bias")
            of_distances = np.zeros(self._distances_shape, dtype=np.float32)
            grads.d_distance_bias, grads.d_distance_bias_stride = _pointer(of_distances), desc.distance_bias_stride
        self._differentiate(desc, _address(found_o), _pointer(rows), grads)
        return Gradients(outputs[0], outputs[1], outputs[2], d_sinks, of_mask, of_distances)

    def _differentiate(self, desc: _c.qkv_attention_desc, o: int, lse: int, grads: _c.qkv_attention_grads) -> None:
        self._run(lib.qkv_attention_backward, desc, _address(self._q), _address(self._k), _address(self._v), o, lse,
                  ctypes.byref(grads))

    def _shape_of(self, found: View) -> tuple[int, ...]:
        """The shape of [batch, heads, len, dim] in the caller's layout."""
        batch, heads, length, dim = found.shape
        inner = (length, heads, dim) if self._layout == "blhd" else (heads, length, dim)
        return ((batch, *inner), inner, (length, dim))[4 - self._n_dims]

    def _lse(self, lse: Any, name: str = "lse") -> np.ndarray[Any, Any]:
        made = reals(lse, name)
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
        desc, made = self._of_call(), init(_c.qkv_attention_columns)
        lib.qkv_attention_columns_fill(ctypes.byref(made), ctypes.byref(desc))
        rows, results = self._lse(lse), {}
        heads = (desc.n_batch, desc.n_heads)
        keys = (desc.n_heads, self._k.shape[2]) if self._packed else (*heads, desc.len_k)
        made.stride[:] = (0 if self._packed else desc.n_heads * keys[-1], keys[-1], 1)
        if diagonals is not None:
            first, n_diagonals = pair(diagonals, "diagonals")
            made.first_diagonal = integer(first, "diagonals[0]")
            made.n_diagonals = n_diagonals = integer(n_diagonals, "diagonals[1]", least=1)

        def array(name: str, shape: tuple[int, ...], kind: Any = np.float32) -> None:
            results[name] = np.zeros(shape, dtype=kind)
            setattr(made, name, _pointer(results[name]))

        for name in a_list(want, "want", "received"):
            if name not in _KEY_COLUMNS:
                raise ArgumentError(no_such("columns", name, _KEY_COLUMNS))
            array(name, keys, np.int64 if name in ("n_queries", "largest_query") else np.float32)
        of_rows = None if row_weights is None else self._lse(row_weights, "row_weights")
        if of_rows is not None:
            made.row_weights, made.row_weights_stride[:] = _pointer(of_rows), tuple(desc.lse_stride)
        if diagonals is not None:
            array("diagonal", (*heads, n_diagonals))
            array("diagonal_rows", (*heads, n_diagonals), np.int64)
        if tiles is not None:
            most = _c.QKV_COLUMNS_MAX_TILES
            made.n_tiles_q, made.n_tiles_k = side = tuple(
                integer(n, f"tiles[{at}]", least=1, most=most) for at, n in enumerate(pair(tiles, "tiles")))
            array("tile_mass", (*heads, *side))
            array("tile_peak", (*heads, *side))
            array("tile_rows", (*heads, side[0]), np.int64)
        for name in _COUNTS:
            if name != "n_tiny" or tiny is not None:
                array(name, heads, np.int64)
        if tiny is not None:
            made.tiny = real(tiny, "tiny")
        self._run(lib.qkv_attention_columns_pass, desc, _address(self._q), _address(self._k), _pointer(rows),
                  ctypes.byref(made))
        return results

    def weights(self, lse: Any, *, batch: int = 0, head: int = 0, queries: tuple[int, int] | None = None,
                keys: tuple[int, int] | None = None, rows: tuple[int, int] | None = None) -> NDArray[np.float32]:
        """Weights of one head: queries queries[0] to queries[1] - 1 and keys keys[0] to keys[1] - 1; None: all.

        With cu_seqlens batch is the number of a sequence, whose queries and keys are counted from its own first ones.
        rows: the older name of queries.
        They are normalised by each row's own sum over all its keys (and its sink): a row sums to 1 whatever
        the scores are. lse only says which rows have no keys, or are NaN.
        """
        desc = self._of_call()
        of_rows = self._lse(lse)
        batch = integer(batch, "batch", least=0, most=desc.n_batch - 1)
        head = integer(head, "head", least=0, most=desc.n_heads - 1)
        n_queries, n_keys = desc.len_q, desc.len_k
        if self._packed:  # of the sequence, where those are of the longest one
            n_queries, n_keys = (int(self._packed_lengths(cu)[batch]) for cu in (desc.cu_seqlens_q, desc.cu_seqlens_k))
        (i0, i1), (j0, j1) = queries_of(queries, rows, n_queries), interval(keys, "keys", n_keys)
        p = np.zeros((i1 - i0, j1 - j0), dtype=np.float32)
        self._run(lib.qkv_attention_weights, desc, _address(self._q), _address(self._k), _pointer(of_rows), batch, head,
                  i0, i1, j0, j1, _pointer(p), max(j1 - j0, 1))
        return p

    def rollout_step(self, lse: Any, x: Any, *, heads: Literal["mean", "max", "min"] = "mean") -> NDArray[np.float32]:
        """One layer of attention rollout (Abnar and Zuidema 2020), from its output to its input, [batch, len_q].

        x [batch, len_q] is how much of each token is wanted behind the layer; the result, how much of each before it.
        A row goes on by half through the mean of the heads, or, with "max" and "min", through (A + I) / its sum, where
        A is cell by cell the largest or the smallest weight of any head. Queries and keys are the same tokens.
        """
        desc, error = self._of_call(), ErrorText()
        of_rows, shares = self._lse(lse), np.ascontiguousarray(reals(x, "x"), dtype=np.float32)
        rows = self._rows()
        shape = rows[1:] if self._packed else rows[:-2] + rows[-1:]
        if shares.shape != shape:
            raise ShapeError(f"x has shape {shares.shape}, and must have {shape}")
        made = np.zeros(shape, dtype=np.float32)
        ctx = self._context or context()
        error.check(lib.qkv_inspect_rollout_step(ctx.handle, ctypes.byref(desc), _address(self._q), _address(self._k),
                                                 _pointer(of_rows), fused(heads), _pointer(shares), _pointer(made),
                                                 error.pointer))
        return made

    def plan(self, what: Literal["forward", "backward", "decode"] = "forward") -> dict[str, Any]:
        """How a call is computed, and why: kernel, instruction set, class, blocks, threads, workspace."""
        passes = {"forward": _c.QKV_PASS_FORWARD, "backward": _c.QKV_PASS_BACKWARD, "decode": _c.QKV_PASS_DECODE}
        made, ctx = init(_c.qkv_attention_plan), self._context or context()
        made.pass_ = choice(what, "what", passes)
        ctx.check(lib.qkv_attention_explain(ctx.handle, ctypes.byref(self._of_call()), ctypes.byref(made)))
        values = {name: getattr(made, name) for name, *_ in made._fields_ if name not in ("struct_size", "pass_")}
        return {name: string(value) if isinstance(value, bytes) else value for name, value in values.items()}


_FUSED = {"mean": _c.QKV_ROLLOUT_MEAN, "max": _c.QKV_ROLLOUT_MAX, "min": _c.QKV_ROLLOUT_MIN}


def fused(heads: str) -> int:
    """What stands for all heads of a layer in a rollout."""
    if not isinstance(heads, str) or heads not in _FUSED:
        raise ArgumentError(f"heads is {heads!r}, and must be one of {', '.join(map(repr, _FUSED))}")
    return _FUSED[heads]


def _like(given: Any, array: np.ndarray[Any, Any]) -> Any:
    if is_torch(given):
        import torch

        return torch.from_numpy(array)
    return array
