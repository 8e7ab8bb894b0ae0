"""Heads of an attention: their weights, numbers and labels, from a model's run or from arrays of queries and keys."""
from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _c
from ._library import init, lib, string
from .arrays import View, floats, has_moved, numbers
from .checked import Head, integer, interval, queries_of, real, some_texts, texts
from .checked import window as bounds_of
from .compare import Compared
from .context import Context, Interruptible, context_of_heads, given
from .errors import ArgumentError, DTypeError, ErrorText, NoCopies, ShapeError, UnsupportedError
from .keywords import OTHERS, keywords
from .maps import Map, map_of
from .page import PAGES, Page, Worth, ending_of, write_page
from .picture import Drawn, plot_weights, write_heatmap, write_over_image, write_picture
from .problem import fused
from .tables import as_table
from .weights import Weights

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Sharpest(NamedTuple):
    """The largest weight of one or all heads."""

    layer: int
    head: int
    query: int
    key: int
    weight: float


class Number(NamedTuple):
    """A number that each head has: its name, its definition in words, and its formula."""

    name: str
    title: str
    what: str
    formula: str


def _numbers() -> list[Number]:
    found = []
    for index in range(lib.qkv_head_number_count()):
        row = _c.qkv_head_number.from_address(lib.qkv_head_number_at(index))
        found.append(Number(string(row.name), string(row.title), string(row.what), string(row.formula)))
    return found


NUMBERS = _numbers()


class Flow:
    """A model's run, for what goes through all of its layers, and for what heads move."""

    def __init__(self, model: int | None, run: Any, context: Callable[[], Context]) -> None:
        self._model, self._kept, self._context = model, run, context

    def rollout(self, first: int, end: int, heads: int, received: NDArray[np.float32]) -> None:
        error = ErrorText()
        error.check(lib.qkv_inspect_rollout(self._context().handle, self._model, self._kept.handle, 0, first, end,
                                            heads, received.ctypes.data, error.pointer))

    def rollout_map(self, heads: int, shares: NDArray[np.float32]) -> None:
        error = ErrorText()
        error.check(lib.qkv_inspect_rollout_map(self._context().handle, self._model, self._kept.handle, _c.QKV_SELF, 0,
                                                heads, shares.ctypes.data, error.pointer))

    def norms(self, layer: int, norms: NDArray[np.float32]) -> None:
        error = ErrorText()
        error.check(lib.qkv_inspect_norms(self._context().handle, self._model, self._kept.handle, _c.QKV_SELF, 0, layer,
                                          norms.ctypes.data, error.pointer))


class Heads(NoCopies):
    """Heads of one attention on one input. Opened by Model.look, or by qkv.heads from arrays.

    Indices: layer and head from 0. Weights have the bits of qkv.attention. Nothing of len_q x len_k is stored.
    """

    def __init__(self, handle: int, ctx: Context, kept: Any, tokens: Sequence[str], queries: Sequence[str] | None,
                 title: str, caption: str, special: np.ndarray[Any, Any] | None = None,
                 worth: Callable[[Sequence[tuple[int, int]]], Worth] | None = None,
                 made_by: str = "qkv.heads(q, k)", flow: Flow | None = None,
                 image: int | None = None) -> None:
        self._handle: int | None = handle
        self._ctx, self._kept = ctx, kept
        self._title, self._caption, self._special, self._ablate = title, caption, special, worth
        # The call that opened them, which the page names.
        self._made_by = made_by
        # Of a model's run, and the qkv_image_tokens of an image.
        self._flow, self._image = flow, image
        info = _c.qkv_heads_info.from_address(lib.qkv_heads_get_info(handle))
        self.n_layers, self.n_heads = int(info.n_layers), int(info.n_heads)
        self.n_queries, self.n_keys, self.head_dim = int(info.n_queries), int(info.n_keys), int(info.head_dim)
        self.causal, self.one_text = bool(info.causal), bool(info.one_text)
        self._q_offset, self._sees_all = int(info.q_offset), bool(info.sees_all)
        self.tokens = list(tokens) or [str(j) for j in range(self.n_keys)]
        self.queries = list(queries) if queries is not None else self.tokens[:self.n_queries]
        # Rules that choose what to show first look at words, which runs have.
        self._is_run = special is not None
        self._measured = False
        # Arrays of the caller's that are read where they are.
        self._arrays: Sequence[tuple[str, View]] = ()
        # The library's heads store what is measured and compute by their context, and know nothing of threads.
        self._lock = ctx.lock

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            lib.qkv_heads_free(self._handle)

    def __repr__(self) -> str:
        return (f"<qkv.Heads {self.n_layers} layers of {self.n_heads} heads, {self.n_queries} queries, "
                f"{self.n_keys} keys>")

    def _index(self, layer: int, head: int) -> int:
        layer, head = integer(layer, "layer"), integer(head, "head")
        if not (0 <= layer < self.n_layers and 0 <= head < self.n_heads):
            raise ArgumentError(f"there is no head {layer}.{head}: layers are 0 to {self.n_layers - 1}, "
                                f"heads 0 to {self.n_heads - 1}")
        return layer * self.n_heads + head

    def _at(self, layer: int, head: int) -> tuple[Heads, int]:
        """Where the C library has a head: the object, and its index there."""
        return self, self._index(layer, head)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """A call that may read arrays of the caller's, which are where they were."""
        for name, found in self._arrays:
            if has_moved(found):
                raise ArgumentError(f"{name} was resized or given other memory since the heads were opened")
        with self._lock:
            yield

    def _view(self, index: int) -> Any:
        """The head as qkv/patterns.h takes it."""
        view, error = init(_c.qkv_head_view), ErrorText()
        with self._reading():
            error.check(lib.qkv_heads_view(self._handle, index, ctypes.byref(view), error.pointer))
        return view

    def _measure(self) -> None:
        with self._reading():
            if self._measured:
                return
            call, error = Interruptible(), ErrorText()
            status = lib.qkv_heads_measure(self._handle, _c.QKV_HEADS_RECEIVED | _c.QKV_HEADS_SHARPEST, call.pointer,
                                           error.pointer)
            call.raise_pending()
            error.check(status)
            self._measured = True

    def _values(self, index: int) -> Any:
        self._measure()
        return (ctypes.c_double * len(NUMBERS)).from_address(lib.qkv_heads_numbers(self._handle, index))

    def numbers(self) -> dict[str, NDArray[np.float64]]:
        """Every number by its name, [layers, heads]; NaN where a head has none. qkv.NUMBERS has the definitions."""
        rows = np.array([list(self._values(index)) for index in range(self.n_layers * self.n_heads)])
        shaped = rows.reshape(self.n_layers, self.n_heads, len(NUMBERS))
        return {number.name: shaped[:, :, n] for n, number in enumerate(NUMBERS)}

    def label(self, layer: int, head: int) -> str:
        """What the head does, if a rule of docs/statistics.md says so: "previous", "first", …; else ""."""
        return string(lib.qkv_heads_label(ctypes.byref(self._values(self._index(layer, head)))))

    def rows(self) -> list[dict[str, Any]]:
        """A row for each head: layer, head, label and all numbers that it has. For pandas.DataFrame and the like."""
        made = []
        for index in range(self.n_layers * self.n_heads):
            layer, head = divmod(index, self.n_heads)
            values = {number.name: value for number, value in zip(NUMBERS, self._values(index))
                      if not math.isnan(value)}
            made.append({"layer": layer, "head": head, "label": self.label(layer, head), **values})
        return made

    def table(self) -> Any:
        """rows() as a table: a DataFrame of pandas, or of polars, if there is one, else the list itself."""
        return as_table(self.rows())

    def weights(self, layer: int, head: int, *, queries: tuple[int, int] | None = None,
                keys: tuple[int, int] | None = None, rows: tuple[int, int] | None = None) -> NDArray[np.float32]:
        """Weights of a head: of queries queries[0] to queries[1] - 1 on keys keys[0] to keys[1] - 1; None: all.

        rows: the older name of queries.
        """
        (i0, i1), (j0, j1) = queries_of(queries, rows, self.n_queries), interval(keys, "keys", self.n_keys)
        made, error = np.zeros((i1 - i0, j1 - j0), dtype=np.float32), ErrorText()
        with self._reading():
            error.check(lib.qkv_heads_weights(self._handle, self._index(layer, head), i0, i1, j0, j1,
                                              made.__array_interface__["data"][0], max(j1 - j0, 1), error.pointer))
        return made

    def looks_at(self, layer: int, head: int, query: int) -> tuple[int, float]:
        """The key with the largest weight of a query, and this weight."""
        query = integer(query, "query", least=0, most=self.n_queries - 1)
        key, weight, error = ctypes.c_int64(), ctypes.c_float(), ErrorText()
        with self._reading():
            error.check(lib.qkv_heads_look(self._handle, self._index(layer, head), query, ctypes.byref(key),
                                           ctypes.byref(weight), error.pointer))
        return key.value, weight.value

    def sharpest(self) -> Sharpest:
        """The largest weight of all heads, from a query to another token."""
        self._measure()
        made, error = init(_c.qkv_sharpest), ErrorText()
        with self._reading():
            error.check(lib.qkv_heads_sharpest(self._handle, None, None, None, ctypes.byref(made), error.pointer))
        return Sharpest(made.layer, made.head, made.query, made.key, made.weight)

    def rollout(self, first: int = 0, end: int | None = None, *,
                heads: Literal["mean", "max", "min"] = "mean") -> NDArray[np.float32]:
        """How much of each token is in a token after all layers, or on average in tokens first … end - 1: [n_keys].

        Attention rollout (Abnar and Zuidema 2020): x <- x D (A + I) from the last layer to the first, with D so that
        rows sum to 1. A is the mean of the heads, or cell by cell the largest or the smallest weight of any of them.
        """
        first, flow, kind = integer(first, "first"), self._flowing("rollout()"), fused(heads)
        received = np.zeros(self.n_keys, dtype=np.float32)
        flow.rollout(first, first + 1 if end is None else integer(end, "end"), kind, received)
        return received

    def rollout_map(self, *, heads: Literal["mean", "max", "min"] = "mean") -> NDArray[np.float32]:
        """rollout() of each token, [queries, keys]: a row for each token after all layers. Rows sum to 1."""
        flow, kind = self._flowing("rollout_map()"), fused(heads)
        shares = np.zeros((self.n_queries, self.n_keys), dtype=np.float32)
        flow.rollout_map(kind, shares)
        return shares

    def norms(self, layer: int, head: int) -> NDArray[np.float32]:
        """How large what each query takes of each key is, [queries, keys]: ‖α f(x)‖ = α ‖(x W_V + b_V) W_O‖.

        α is the weight, x what the layer reads at the key, W_V and W_O the head's part of the projections of values and
        of the output (Kobayashi et al. 2020).
        """
        flow, (_, index) = self._flowing("norms()"), divmod(self._index(layer, head), self.n_heads)
        norms = np.zeros((self.n_heads, self.n_keys), dtype=np.float32)
        flow.norms(integer(layer, "layer"), norms)
        made: NDArray[np.float32] = self.weights(layer, head) * norms[index]
        return made

    def _flowing(self, call: str) -> Flow:
        if self._flow is None:
            raise UnsupportedError(f"{call} goes through layers of a model: model.look(…) makes such heads")
        return self._flow

    def array(self) -> Weights:
        """The weights of all heads, indexed [layer, head, query, key] by numbers and names of tokens."""
        return Weights(range(self.n_layers), self.n_heads, self.queries, self.tokens,
                       lambda layer, head, queries, keys: self.weights(layer, head, queries=queries, keys=keys))

    def compare(self, other: Heads) -> Compared:
        """These heads beside those of the same model on another text, with the tokens of both paired."""
        if not isinstance(other, Heads):
            raise ArgumentError(f"other is a {type(other).__name__}, and must be Heads: model.look(text) makes them")
        return Compared(self.array(), other.array())

    def map(self, layer: int, head: int, **options: Any) -> Map:
        """Queries and keys of a head as points of a plane, by t-SNE. options: perplexity, n_iters, n_runs, seed, metric
        and other fields of qkv_map_options, with the header's defaults."""
        view = self._view(self._index(layer, head))
        sides = []
        for name, address, n in (("queries", view.q, self.n_queries), ("keys", view.k, self.n_keys)):
            if not address:
                raise UnsupportedError(f"map() needs queries and keys, and these heads have no {name}")
            cells = (ctypes.c_float * self.head_dim * n).from_address(address)
            sides.append(np.ctypeslib.as_array(cells))
        return map_of(sides[0], sides[1], options)

    # ---- Pictures ----

    def picture(self, path: str, layer: int, head: int, *, palette: str = "qkv", values: bool | None = None,
                size: int = 0, min: float = 0.0, max: float = 0.0, title: str | None = None) -> None:
        """Draws the weights of a head as a heat map: .png, .svg or .pdf. cairo and pango of the system draw.

        palette: "qkv", "viridis", "cividis" or "greys". values: True for figures in all cells, False for none.
        size: the longer side of the cells in pixels. min, max: where colours begin and end; max=0: a round number.
        """
        write_heatmap(self, self._index(layer, head), path, f"Layer {layer}, head {head}",
                      Drawn(palette, values, size, min, max, title))

    def over_image(self, path: str, shown: Head | NDArray[Any] | None = None, *, query: int | None = None,
                   opacity: float = 0.5, smooth: bool = False, palette: str = "qkv", size: int = 0, min: float = 0.0,
                   max: float = 0.0, title: str | None = None) -> None:
        """Draws over the image what a query looks at: in all heads, or in the head `shown`, (layer, head) or "L.H".

        shown may also be numbers of its own, one for each token or each patch, such as rollout(). query: a token; by
        default [CLS] where there is one, else the mean of all patches. opacity: of the map, above 0 and at most 1.
        smooth: values between the middles of patches. The rest is as in picture().
        """
        write_over_image(self, path, shown, query, opacity, smooth, Drawn(palette, None, size, min, max, title))

    def plot(self, layer: int, head: int, *, ax: Axes | None = None, **options: Any) -> Axes:
        """The weights of a head on axes of matplotlib: `ax`, or new ones, which it returns. options: of imshow."""
        made: Axes = plot_weights(self.weights(layer, head), self.queries, self.tokens,
                                  f"layer {layer}, head {head}", ax, options)
        return made

    # ---- The page ----

    def page(self, heads: Sequence[Head] | None = None, *, effects: bool = False) -> Page:
        """All heads, or those of a list of (layer, head) or "L.H", as a page for a browser: one HTML file.

        effects: the page also tells what each head is worth for what the model predicts, the likeliest word of each
        [MASK] or the token that comes next: by how much ln P of it changes without the head, as `qkv look --effect`
        measures it. The model runs once for each head. Only heads of Model.look have them.
        """
        self._measure()
        return write_page(self, heads, effects=effects)

    def save(self, path: str | os.PathLike[str], *, heads: Sequence[Head] | None = None,
             effects: bool = False) -> None:
        """Writes all heads, or those of a list of (layer, head) or "L.H", to a file.

        The ending decides: .html is the page; .svg, .png and .pdf are a picture of the weights of all heads or, by
        heads=[(layer, head)], of one, drawn by cairo and pango of the system.
        """
        if ending_of(path) in PAGES:
            self.page(heads, effects=effects).save(path)
            return
        if effects:
            raise ArgumentError(f"effects=True: a picture has no effects, and {os.fspath(path)!r} is one: save a .html")
        write_picture(self, heads, path)

    def _worth(self, places: Sequence[tuple[int, int]]) -> Worth:
        if self._ablate is None:
            raise UnsupportedError("effects=True: only heads of Model.look know their model, which is run without each")
        return self._ablate(places)

    def _repr_html_(self) -> str:
        return self.page()._repr_html_()


# qkv.heads has no mask: it shows the weights of scores, to which numbers may be added.
_OTHERS = {**OTHERS, **dict.fromkeys(("mask", "attn_mask", "attention_mask", "position_bias", "attn_bias"),
                                     "use added=, whose numbers are added to scores: -inf hides a key")}


@keywords("heads", _OTHERS)
def heads(q: Any, k: Any, *, tokens: Sequence[str] = (), queries: Sequence[str] | None = None, causal: bool = False,
          q_offset: int = 0, window: tuple[int | None, int | None] | None = None, scale: float | None = None,
          softcap: float | None = None, sinks: Any = None, added: Any = None, two_texts: bool = False,
          title: str = "Arrays", context: Context | None = None) -> Heads:
    """Heads of any model, from its queries and keys: float32, q [heads, len_q, dim], k [kv_heads, len_k, dim].

    tokens: names of the keys; queries: those of the queries, if they are others. two_texts: queries have no places
    among the keys, as in cross-attention. sinks [heads]; added [heads, len_q, len_k] is added to scores, as the
    position bias of T5. Other rules: see Problem. Arrays are read where they are if they are dense.
    """
    views, dense = [("q", floats(q, "q")), ("k", floats(k, "k"))], [_float32(q, "q"), _float32(k, "k")]
    if dense[0].ndim != 3 or dense[1].ndim != 3 or dense[0].shape[2] != dense[1].shape[2]:
        raise ShapeError(f"q is {dense[0].shape} and k is {dense[1].shape}: they must be [heads, len, dim]")
    n_heads, n_queries, dim = dense[0].shape
    sizes = n_heads, dense[1].shape[0], n_queries, dense[1].shape[1], dim
    more: dict[str, Any] = {"q": dense[0].ctypes.data, "k": dense[1].ctypes.data}
    for name, number in (("scale", scale), ("softcap", softcap)):
        if number is not None:
            more[name] = _not_default(number, name)
    for name, value, shape in (("sinks", sinks, (n_heads,)), ("added", added, (n_heads, n_queries, sizes[3]))):
        if value is not None:
            views.append((name, floats(value, name)))
            dense.append(_float32(value, name))
            more[name] = dense[-1].ctypes.data
            if dense[-1].shape != shape:
                raise ShapeError(f"{name} has shape {dense[-1].shape}, and must have {shape}")
    caption = f"Arrays: {n_heads} heads of {dim} channels."
    made = open_arrays(sizes, more, dense, tokens=tokens, queries=queries, causal=causal, q_offset=q_offset,
                       window=window, two_texts=two_texts, title=title, caption=caption, context=context)
    made._arrays = [(name, found) for (name, found), array in zip(views, dense) if found.address == array.ctypes.data]
    return made


def open_arrays(sizes: tuple[int, int, int, int, int], fields: dict[str, Any], kept: Any, *, tokens: Sequence[str],
                queries: Sequence[str] | None, causal: bool, q_offset: int,
                window: tuple[int | None, int | None] | None, two_texts: bool, title: str, caption: str,
                context: Context | None = None) -> Heads:
    """Heads of a qkv_heads_arrays: sizes are (n_heads, n_kv_heads, n_queries, n_keys, head_dim)."""
    ctx = given(context) or context_of_heads()
    n_heads, n_kv_heads, n_queries, n_keys, head_dim = sizes
    tokens = () if tokens is None else some_texts(tokens, "tokens")
    queries = None if queries is None else some_texts(queries, "queries")
    names = _strings(tokens, n_keys, "tokens") if len(tokens) else None
    others = None if queries is None else _strings(queries, n_queries, "queries")
    left, right = bounds_of(window)
    if getattr(causal, "ndim", 0) or causal not in (False, True):
        raise ArgumentError(f"causal is {causal!r}, and must be a bool: q_offset says where the queries stand")
    arrays = init(
        _c.qkv_heads_arrays, n_heads=n_heads, n_kv_heads=n_kv_heads, n_queries=n_queries, n_keys=n_keys,
        head_dim=head_dim, causal=int(causal), q_offset=integer(q_offset, "q_offset"), window_left=left,
        window_right=right, two_texts=int(two_texts),
        keys=ctypes.addressof(names) if names else None, queries=ctypes.addressof(others) if others else None, **fields)
    handle, error = ctypes.c_void_p(), ErrorText()
    with ctx.lock:
        error.check(lib.qkv_heads_open_arrays(ctx.handle, ctypes.byref(arrays), ctypes.byref(handle), error.pointer))
    return Heads(handle.value or 0, ctx, (kept, names, others), tokens, queries, title, caption)


def _float32(array: Any, name: str) -> np.ndarray[Any, Any]:
    """Dense numbers, where they are if they are dense."""
    if floats(array, name).dtype != "float32":
        raise DTypeError(f"{name} is {floats(array, name).dtype}: heads are read from float32")
    return np.ascontiguousarray(numbers(array, name))


def _not_default(value: float, name: str) -> float:
    """A number other than 0, which qkv_heads_arrays takes for its default; also what is 0 as a float."""
    number = ctypes.c_float(real(value, name)).value
    if not math.isfinite(number) or number == 0:
        raise ArgumentError(f"{name} is {value}, and must be a finite number other than 0 here")
    return number


def _strings(values: Sequence[str], n: int, name: str) -> Any:
    if len(values) != n:
        raise ShapeError(f"{name} has {len(values)} texts, and there are {n}")
    return texts(values, name)
