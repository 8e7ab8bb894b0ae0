"""qkv.inspect: what the heads of any model of transformers look at, during ordinary calls.

>>> with qkv.inspect(model, tokenizer=tokenizer) as seen:
...     model(**tokenizer("I saw it.", return_tensors="pt"))
>>> seen.table()

Weights, numbers and labels are those of qkv.heads. Nothing of len_q x len_k is stored.
"""
from __future__ import annotations

import ctypes
import html
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from . import _c
from . import page as pages
from ._library import init
from .checked import Head, a_list, integer, places
from .compare import Compared
from .errors import ArgumentError, UnsupportedError
from .heads import NUMBERS, Heads, Sharpest, heads, open_arrays
from .implementation import by_qkv, of_pipeline, roots_of
from .keywords import OF_INSPECT, keywords
from .maps import Map
from .overview import write_overview
from .picture import Drawn, plot_weights, write_heatmap, write_picture
from .problem import Problem
from .recorded import Layer, Run
from .recording import Recorder
from .tables import as_table
from .weights import Weights

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = np.ndarray[Any, Any]
Keep = Literal["stats", "qk"]
# The default of a notebook's cell. save() has no limit.
_CELL_BYTES = 2_000_000
# What quotes and such of a page and an overview take more inside an attribute, and names of heads.
_ESCAPES = 60_000


class _Layers:
    """Heads of all layers of one attention, for a page."""

    def __init__(self, parts: Sequence[Heads]) -> None:
        self._parts = list(parts)
        self.n_layers, self.n_heads = len(parts), min(part.n_heads for part in parts)

    def _at(self, layer: int, head: int) -> tuple[Heads, int]:
        return self._parts[layer], self._parts[layer]._index(0, head)


class Seen:
    """What a model's heads did in the calls inside `with qkv.inspect(…)`.

    A run is one call, with those that continue it from its cache, as generate() makes them. Methods speak of the last
    run, and `seen.runs[n]` of another one. `seen[b]` is row b of the batch; without it methods take batch=0.
    """

    def __init__(self, recorder: Recorder, keep: Keep, run: int | None = None, batch: int = 0,
                 made: dict[Any, Heads] | None = None) -> None:
        self._recorder, self._keep, self._n, self._batch = recorder, keep, run, batch
        self._made: dict[Any, Heads] = {} if made is None else made

    # ---- Which run, row, layer ----

    @property
    def runs(self) -> list[Seen]:
        """Each run as a Seen of its own."""
        return [Seen(self._recorder, self._keep, n, self._batch, self._made) for n in range(len(self._recorder.runs))]

    def __getitem__(self, batch: int) -> Seen:
        batch, n = integer(batch, "batch"), len(self)
        if not -n <= batch < n:
            raise IndexError(f"there is no row {batch}: the batch has {n}")
        batch %= n
        return Seen(self._recorder, self._keep, self._n, batch, self._made)

    def __len__(self) -> int:
        """Rows of the batch."""
        return int(next(iter(self._run().layers.values())).n_batch)

    def _run(self) -> Run:
        runs = [run for run in self._recorder.runs if run.layers]
        if not runs:
            raise ArgumentError("no attention was seen: call the model inside `with qkv.inspect(model) as seen:`")
        return runs[-1] if self._n is None else self._recorder.runs[self._n]

    @property
    def which(self) -> list[str]:
        """The attentions of the model: ["self"], or ["encoder", "decoder", "cross"]."""
        return self._run().which()

    @property
    def bytes(self) -> int:
        """Bytes that all runs store."""
        return sum(layer.nbytes for run in self._recorder.runs for layer in run.layers.values())

    def _one(self, which: str | None) -> str:
        known = self.which
        if which is None and len(known) == 1:
            return known[0]
        if which not in known:
            raise ArgumentError(f"which is {which!r}, and must be one of {', '.join(map(repr, known))}")
        return which

    def _check_head(self, which: str, layer: int, head: int) -> None:
        n = self._layer(which, layer).n_heads
        if not 0 <= integer(head, "head") < n:
            raise ArgumentError(f"there is no head {layer}.{head}: its layer has heads 0 to {n - 1}")

    def _layer(self, which: str, layer: int) -> Layer:
        layer = integer(layer, "layer")
        found = self._run().layers.get((which, layer))
        if found is None:
            known = [n for name, n in self._run().layers if name == which]
            raise ArgumentError(f"there is no layer {layer} of {which!r}: seen are {known}")
        return found

    def _numbers_of(self, which: str) -> list[int]:
        return sorted(n for name, n in self._run().layers if name == which)

    def _marks(self, layer: Layer, batch: int) -> tuple[Array, Array]:
        """The queries and keys of a row of the batch that are no padding."""
        if not 0 <= batch < layer.n_batch:
            raise ArgumentError(f"batch is {batch}, and there are {layer.n_batch} rows")
        keys = layer.seen()[batch]
        rows = self._run().query_seen(layer)[batch]
        for name, marks in (("keys", keys), ("queries", rows)):
            places = np.flatnonzero(marks)
            if not len(places):
                raise UnsupportedError(f"row {batch} of the batch is all padding")
            if places[-1] - places[0] + 1 != len(places):
                raise UnsupportedError(f"row {batch} of the batch has padding between its {name}: pad at the left for "
                                       "generate()")
        return rows, keys

    def _texts(self, layer: Layer, batch: int, rows: Array, keys: Array) -> tuple[list[str], list[str] | None]:
        """Names of keys, and of queries if those are others."""
        run = self._run()
        names = run.side(layer.which).texts(batch, layer.n_keys)
        tokens = [] if names is None else [name for name, mark in zip(names, keys) if mark]
        if layer.one_text:
            return tokens, None if layer.first == 0 else tokens[-int(rows.sum()):] or None
        others = run.names["queries"].texts(batch, layer.n_rows)
        return tokens, [str(i) for i in range(int(rows.sum()))] if others is None else [
            name for name, mark in zip(others, rows) if mark]

    def _open(self, which: str, n: int, batch: int) -> Heads:
        """The heads of one layer and one row of the batch, measured."""
        key = id(self._run()), which, n, batch, self._layer(which, n).n_rows
        if key not in self._made:
            made = self._opened(self._layer(which, n), batch)
            if self._keep == "stats":
                made._measure()
            self._made[key] = made
        return self._made[key]

    def _opened(self, layer: Layer, batch: int) -> Heads:
        rows, keys = self._marks(layer, batch)
        tokens, queries = self._texts(layer, batch, rows, keys)
        q_offset = int(keys[:layer.first].sum()) if layer.one_text else 0
        rules: dict[str, Any] = {"causal": layer.causal and layer.one_text, "q_offset": q_offset,
                                 "two_texts": not layer.one_text, "tokens": tokens, "queries": queries,
                                 "title": self._title(layer, batch, tokens)}
        if layer.window != (-1, -1):
            rules["window"] = layer.window
        if self._keep == "qk":
            made = heads(layer.q(batch, rows), layer.k(batch, keys), scale=layer.scale, softcap=layer.softcap,
                         sinks=layer.sinks, added=layer.added(batch, rows, keys), **rules)
            made._caption, made._made_by = self._caption(layer), 'qkv.inspect(model, keep="qk")'
            return made
        return _of_stats(layer, batch, rows, keys, {**rules, "window": rules.get("window"),
                                                    "caption": self._caption(layer)})

    def _title(self, layer: Layer, batch: int, tokens: Sequence[str]) -> str:
        text = " ".join(tokens[:24]) + (" …" if len(tokens) > 24 else "")
        return text or f"{layer.which}, row {batch}"

    def _caption(self, layer: Layer) -> str:
        n = len(self._numbers_of(layer.which))
        return (f"{self._recorder.model_name}, {layer.which} attention: {n} layers of {layer.n_heads} heads, "
                f"{layer.dim} channels each.")

    def _arrays(self, what: str) -> None:
        if self._keep != "qk":
            raise UnsupportedError(f'{what} needs queries and keys, and keep="stats" stores none: use '
                                   'qkv.inspect(model, keep="qk")')

    # ---- Questions ----

    def rows(self, *, batch: int | None = None) -> list[dict[str, Any]]:
        """A row for each head: which attention, layer, head, label and all numbers that it has."""
        batch, made = self._row(batch), []
        for which in self.which:
            for n in self._numbers_of(which):
                made += [{"which": which, **row, "layer": n} for row in self._open(which, n, batch).rows()]
        return made

    def table(self, *, batch: int | None = None) -> Any:
        """rows() as a table: a DataFrame of pandas, or of polars, if there is one, else the list itself."""
        return as_table(self.rows(batch=batch))

    def heads(self, *, batch: int | None = None) -> Any:
        """The same as table()."""
        return self.table(batch=batch)

    def numbers(self, *, which: str | None = None, batch: int | None = None) -> dict[str, NDArray[np.float64]]:
        """Every number by its name, [layers, heads]; NaN where a head has none. qkv.NUMBERS has the definitions."""
        parts = [part.numbers() for part in self._parts(which, batch)]
        return {number.name: np.concatenate([part[number.name] for part in parts]) for number in NUMBERS}

    def label(self, layer: int, head: int, *, which: str | None = None, batch: int | None = None) -> str:
        """What the head does, if a rule of docs/statistics.md says so: "previous", "first", …; else ""."""
        return self._of(layer, head, which, batch).label(0, head)

    def looks_at(self, layer: int, head: int, query: int, *, which: str | None = None,
                 batch: int | None = None) -> tuple[int, float]:
        """The key with the largest weight of a query, and this weight."""
        self._arrays("looks_at()")
        return self._of(layer, head, which, batch).looks_at(0, head, query)

    def sharpest(self, *, which: str | None = None, batch: int | None = None) -> Sharpest:
        """The largest weight of all heads, from a query to another token."""
        self._arrays("sharpest()")
        numbers = self._numbers_of(self._one(which))
        found = [part.sharpest()._replace(layer=n) for n, part in zip(numbers, self._parts(which, batch))]
        return max(found, key=lambda each: each.weight)

    def rollout(self, first: int = 0, end: int | None = None, *, heads: Literal["mean", "max", "min"] = "mean",
                which: str | None = None, batch: int | None = None) -> NDArray[np.float32]:
        """How much of each token is in a token after all layers, or on average in tokens first … end - 1: [keys].

        Attention rollout (Abnar and Zuidema 2020), as `Heads.rollout`, over the layers that were seen.
        """
        self._arrays("rollout()")
        which, batch = self._one(which), self._row(batch)
        layers = [self._layer(which, n) for n in self._numbers_of(which)]
        if not layers[0].one_text or layers[0].first:
            raise UnsupportedError(f"rollout() of {which!r}: queries and keys are not the same tokens")
        rows, keys = self._marks(layers[0], batch)
        n = int(keys.sum())
        first = integer(first, "first", least=0, most=n - 1)
        end = first + 1 if end is None else integer(end, "end", least=first + 1, most=n)
        shares = np.zeros(n, dtype=np.float32)
        shares[first:end] = 1 / (end - first)
        for layer in reversed(layers):
            k = layer.k(batch, keys)
            window = None if layer.window == (-1, -1) else layer.window
            problem = Problem(layer.q(batch, rows), k, np.zeros((*k.shape[:-1], 1), np.float32), causal=layer.causal,
                              window=window, scale=layer.scale, softcap=layer.softcap, sinks=layer.sinks,
                              mask=layer.added(batch, rows, keys))
            shares = problem.rollout_step(problem.forward().lse, shares, heads=heads)
        return shares

    def weights(self, layer: int, head: int, *, which: str | None = None, batch: int | None = None,
                queries: tuple[int, int] | None = None, keys: tuple[int, int] | None = None,
                rows: tuple[int, int] | None = None) -> NDArray[np.float32]:
        """Weights of a head [queries, keys], padding left out: of queries queries[0] to queries[1] - 1; None: all.

        rows: the older name of queries.
        """
        self._arrays("weights()")
        return self._of(layer, head, which, batch).weights(0, head, queries=queries, keys=keys, rows=rows)

    def array(self, *, which: str | None = None, batch: int | None = None) -> Weights:
        """The weights of all heads, indexed [layer, head, query, key] by numbers and names of tokens."""
        self._arrays("array()")
        parts = dict(zip(self._numbers_of(self._one(which)), self._parts(which, batch)))
        lead = next(iter(parts.values()))
        return Weights(list(parts), min(part.n_heads for part in parts.values()), lead.queries, lead.tokens,
                       lambda layer, head, queries, keys: parts[layer].weights(0, head, queries=queries, keys=keys))

    def compare(self, other: Seen, *, which: str | None = None, batch: int | None = None) -> Compared:
        """These heads beside those of another run or row of the batch, with the tokens of both paired.

        >>> seen[0].compare(seen[1]).table()
        """
        if not isinstance(other, Seen):
            raise ArgumentError(f"other is a {type(other).__name__}, and must be a Seen, such as seen[1]")
        return Compared(self.array(which=which, batch=batch), other.array(which=which))

    def _parts(self, which: str | None, batch: int | None) -> list[Heads]:
        """The heads of each layer of an attention, measured."""
        name = self._one(which)
        found = [self._open(name, n, self._row(batch)) for n in self._numbers_of(name)]
        for each in found:
            each._measure()
        return found

    def _row(self, batch: int | None) -> int:
        return self._batch if batch is None else integer(batch, "batch")

    def _of(self, layer: int, head: int, which: str | None, batch: int | None) -> Heads:
        """The heads of one layer, which has this one."""
        which = self._one(which)
        self._check_head(which, layer, head)
        return self._open(which, layer, self._row(batch))

    def stats(self, layer: int, *, which: str | None = None, batch: int | None = None) -> dict[str, Array]:
        """Statistics of each query, by name, [heads, queries, …], and what keys received, [heads, keys]."""
        if self._keep != "stats":
            raise UnsupportedError('stats() reads what keep="stats" stores: with keep="qk" see table() and weights()')
        found = self._layer(self._one(which), layer)
        batch = self._row(batch)
        rows, keys = self._marks(found, batch)
        made = found.stats(batch, rows)
        if found.received is not None:
            made["received"] = found.received[batch][:, keys]
        return made

    def tokens(self, *, which: str | None = None, batch: int | None = None) -> list[str]:
        """The names of the keys of an attention."""
        which = self._one(which)
        return self._open(which, self._numbers_of(which)[0], self._row(batch)).tokens

    def map(self, layer: int, head: int, *, which: str | None = None, batch: int | None = None,
            **options: Any) -> Map:
        """Queries and keys of a head as points of a plane. options: perplexity, n_iters, n_runs, seed, metric and
        other fields of qkv_map_options, with the header's defaults."""
        self._arrays("map()")
        return self._of(layer, head, which, batch).map(0, head, **options)

    def picture(self, path: str, layer: int, head: int, *, which: str | None = None, batch: int | None = None,
                palette: str = "qkv", values: bool | None = None, size: int = 0, min: float = 0.0, max: float = 0.0,
                title: str | None = None) -> None:
        """Draws the weights of a head as a heat map: .png, .svg or .pdf. cairo and pango of the system draw.

        palette: "qkv", "viridis", "cividis" or "greys". values: True for figures in all cells, False for none.
        size: the longer side of the cells in pixels. min, max: where colours begin and end; max=0: a round number.
        """
        self._arrays("picture()")
        part = self._of(layer, head, which, batch)
        write_heatmap(part, part._index(0, head), path, f"{self._one(which)} attention, layer {layer}, head {head}",
                      Drawn(palette, values, size, min, max, title))

    def plot(self, layer: int, head: int, *, which: str | None = None, batch: int | None = None, ax: Axes | None = None,
             **options: Any) -> Axes:
        """The weights of a head on axes of matplotlib: `ax`, or new ones, which it returns. options: of imshow."""
        self._arrays("plot()")
        part = self._of(layer, head, which, batch)
        made: Axes = plot_weights(part.weights(0, head), part.queries, part.tokens, f"layer {layer}, head {head}", ax,
                                  options)
        return made

    # ---- The page ----

    def page(self, *, which: str | None = None, batch: int | None = None,
             heads: Sequence[Head] | None = None, limit_bytes: int | None = None) -> pages.Page:
        """A page for a browser of the heads of an attention, one HTML file without a network.

        heads: a list of (layer, head) or "L.H"; None: the most confident first, as many as limit_bytes has room for.
        With limit_bytes=None a cell has at most 2 MB, and above the page an overview: a thumbnail, the label and the
        numbers of each head, and the names of those in the page. limit_bytes=0: no limit.
        """
        self._arrays("page()")
        which = self._one(which)
        numbers, chosen = self._numbers_of(which), self._chosen(which, heads)
        layers = _Layers(self._parts(which, batch))
        if limit_bytes is not None:
            return self._named(pages.write_page(layers, chosen, limit_bytes), numbers)
        caption = self._caption(self._layer(which, numbers[0]))
        room = _CELL_BYTES - _ESCAPES - len(write_overview(layers, numbers, [(0, 0)] * len(numbers), caption))
        made = self._named(pages.write_page(layers, chosen, max(room, 1)), numbers)
        made.overview = write_overview(layers, numbers, made.heads, caption)
        return made

    def _chosen(self, which: str, heads: Sequence[Head] | None) -> list[tuple[int, int]] | None:
        """A list of (layer, head) with the layers' places among those that were seen."""
        if heads is None:
            return None
        found = places(heads, "heads")
        for layer, head in found:
            self._check_head(which, layer, head)
        numbers = self._numbers_of(which)
        return [(numbers.index(layer), head) for layer, head in found]

    def _overview(self, which: str, why: str) -> str:
        numbers = self._numbers_of(which)
        caption = f"{self._caption(self._layer(which, numbers[0]))} {why}."
        return pages.framed(write_overview(_Layers(self._parts(which, None)), numbers, [], caption), 720, "")

    def _named(self, made: pages.Page, numbers: Sequence[int]) -> pages.Page:
        """With the layers' own numbers."""
        made.heads = [(numbers[layer], head) for layer, head in made.heads]
        return made

    def save(self, path: str | os.PathLike[str], *, which: str | None = None, batch: int | None = None,
             heads: Sequence[Head] | None = None) -> None:
        """Writes all heads, or those of a list of (layer, head) or "L.H", to a file.

        The ending decides: .html is the page; .svg, .png and .pdf are a picture of the weights of all heads or, by
        heads=[(layer, head)], of one, drawn by cairo and pango of the system.
        """
        if pages.ending_of(path) in pages.PAGES:
            self.page(which=which, batch=batch, heads=heads, limit_bytes=0).save(path)
            return
        self._arrays("save()")
        which = self._one(which)
        write_picture(_Layers(self._parts(which, batch)), self._chosen(which, heads), path, self._numbers_of(which))

    def _repr_html_(self) -> str:
        if not any(run.layers for run in self._recorder.runs):
            return f"<pre>{html.escape(repr(self))}</pre>"
        if self._keep == "qk":
            try:
                return self.page(which=self.which[0])._repr_html_()
            except UnsupportedError as reason:  # position biases
                return self._overview(self.which[0], str(reason))
        table = self.table()
        return str(table._repr_html_()) if hasattr(table, "_repr_html_") else f"<pre>{html.escape(repr(self))}</pre>"

    def __repr__(self) -> str:
        runs = [run for run in self._recorder.runs if run.layers]
        if not runs:
            return "<qkv.Seen nothing yet: call the model inside `with qkv.inspect(model) as seen:`>"
        layer = next(iter(self._run().layers.values()))
        parts = [f"{len(self._numbers_of(which))} layers of {which}" for which in self.which]
        return (f"<qkv.Seen {len(runs)} runs; {', '.join(parts)}, {layer.n_heads} heads, {layer.n_batch} rows, "
                f"{layer.n_keys} keys>")


def _of_stats(layer: Layer, batch: int, rows: Array, keys: Array, rules: dict[str, Any]) -> Heads:
    """Heads whose numbers come from statistics of rows."""
    given = layer.stats(batch, rows)
    fields = init(_c.qkv_heads_rows)
    kept: list[Any] = [fields, given]
    for name, values in given.items():
        setattr(fields, name, values.ctypes.data)
    if layer.received is not None and layer.n_queries is not None:
        for name, values in (("received", layer.received), ("n_queries", layer.n_queries)):
            kept.append(np.ascontiguousarray(values[batch][:, keys]))
            setattr(fields, name, kept[-1].ctypes.data)
    sizes = layer.n_heads, layer.n_kv_heads, int(rows.sum()), int(keys.sum()), layer.dim
    return open_arrays(sizes, {"rows": ctypes.addressof(fields)}, kept, **rules)


# ---- Inspecting ----------------------------------------------------------------------------------


@keywords("inspect", OF_INSPECT)
@contextmanager
def inspect(model: Any, *, tokenizer: Any = None, layers: Sequence[int] | None = None, keep: Keep = "stats",
            received: bool = True) -> Iterator[Seen]:
    """Watches the attention of a model of transformers, of one that holds such a model, or of a pipeline.

    tokenizer: names tokens; without one they have numbers, but that of a pipeline is taken. layers: only these, from 0.
    keep="stats": O(len) statistics of each query and head, from the forward pass itself; with received=True also what
    each key receives, by a second pass over the scores. keep="qk": queries and keys, of which any weight, page or map
    is made; it says its bytes first. Inside, models compute by attn_implementation="qkv"; afterwards, and after an
    exception, by what they had.
    """
    from . import transformers as ours

    if layers is not None:
        layers = [integer(layer, "layers", least=0) for layer in a_list(layers, "layers", 0)]
        if not layers:
            raise ArgumentError("layers is empty, and nothing would be seen: None watches all")
    if keep not in ("stats", "qk"):
        raise ArgumentError(f'keep is {keep!r}, and must be "stats" or "qk"')
    model, tokenizer = of_pipeline(model, tokenizer)
    if not hasattr(tokenizer, "convert_ids_to_tokens") and tokenizer is not None:
        raise ArgumentError(f"tokenizer is a {type(tokenizer).__name__}, and must be one of transformers, or have its "
                            "convert_ids_to_tokens")
    roots = roots_of(model)
    recorder = Recorder(model, roots, tokenizer, layers, keep, received)
    watched = ours.watched.recorder
    with by_qkv(model, roots):
        try:
            recorder.install()
            ours.watched.recorder = recorder
            yield Seen(recorder, keep)
            recorder.check_layers()
        finally:
            ours.watched.recorder = watched
            recorder.remove()
