"""qkv.inspect: what the heads of any model of transformers look at, during ordinary calls.

>>> with qkv.inspect(model, tokenizer=tokenizer) as seen:
...     model(**tokenizer("I saw it.", return_tensors="pt"))
>>> seen.heads()

Weights, numbers and labels are those of qkv.heads. Nothing of len_q x len_k is stored.
"""
from __future__ import annotations

import ctypes
import html
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import numpy as np

from . import _c
from . import page as pages
from ._library import init, lib
from .checked import integer
from .context import Interruptible, context
from .errors import ArgumentError, DTypeError, ErrorText, UnsupportedError
from .heads import Heads, heads, open_arrays
from .overview import write_overview
from .picture import Drawn, write_heatmap
from .recorded import Layer, Run
from .recording import Recorder

Array = np.ndarray[Any, Any]
Keep = Literal["stats", "qk"]
# The default of a notebook's cell. save() has no limit.
_CELL_BYTES = 2_000_000
# What quotes and such of a page and an overview take more inside an attribute, and names of heads.
_ESCAPES = 60_000


class Map(NamedTuple):
    """Queries and keys of a head as points of a plane, by t-SNE: [n, 2] each, and what the map is worth."""

    queries: Array
    keys: Array
    report: dict[str, Any]


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
        if not 0 <= batch < len(self):
            raise IndexError(f"there is no row {batch}: the batch has {len(self)}")
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

    def _layer(self, which: str, layer: int) -> Layer:
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
            made._caption = self._caption(layer)
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
        batch, made = self._batch if batch is None else batch, []
        for which in self.which:
            for n in self._numbers_of(which):
                made += [{"which": which, **row, "layer": n} for row in self._open(which, n, batch).rows()]
        return made

    def heads(self, *, batch: int | None = None) -> Any:
        """rows() as a table: a DataFrame of pandas, or of polars, if there is one, else the list itself."""
        made = self.rows(batch=batch)
        for name in ("pandas", "polars"):
            try:
                library = __import__(name)
            except ImportError:
                continue
            return library.DataFrame(made)
        return made

    def weights(self, layer: int, head: int, *, which: str | None = None, batch: int | None = None,
                rows: tuple[int, int] | None = None, keys: tuple[int, int] | None = None) -> Array:
        """Weights of a head [queries, keys], padding left out: of queries rows[0] to rows[1] - 1; None: all."""
        self._arrays("weights()")
        return self._of(layer, which, batch).weights(0, head, rows=rows, keys=keys)

    def _of(self, layer: int, which: str | None, batch: int | None) -> Heads:
        return self._open(self._one(which), layer, self._batch if batch is None else batch)

    def stats(self, layer: int, *, which: str | None = None, batch: int | None = None) -> dict[str, Array]:
        """Statistics of each query, by name, [heads, queries, …], and what keys received, [heads, keys]."""
        if self._keep != "stats":
            raise UnsupportedError('stats() reads what keep="stats" stores: with keep="qk" see heads() and weights()')
        found = self._layer(self._one(which), layer)
        batch = self._batch if batch is None else batch
        rows, keys = self._marks(found, batch)
        made = found.stats(batch, rows)
        if found.received is not None:
            made["received"] = found.received[batch][:, keys]
        return made

    def tokens(self, *, which: str | None = None, batch: int | None = None) -> list[str]:
        """The names of the keys of an attention."""
        which = self._one(which)
        return self._open(which, self._numbers_of(which)[0], self._batch if batch is None else batch).tokens

    def map(self, layer: int, head: int, *, which: str | None = None, batch: int | None = None,
            **options: Any) -> Map:
        """Queries and keys of a head as points of a plane. options: perplexity, n_iters, n_runs, seed, metric and
        other fields of qkv_map_options, with the header's defaults."""
        self._arrays("map()")
        found = self._layer(self._one(which), layer)
        rows, keys = self._marks(found, self._batch if batch is None else batch)
        q = np.ascontiguousarray(found.q(self._batch if batch is None else batch, rows)[head])
        group = found.n_heads // found.n_kv_heads
        k = np.ascontiguousarray(found.k(self._batch if batch is None else batch, keys)[head // group])
        return _map_of(q, k, options)

    def picture(self, path: str, layer: int, head: int, *, which: str | None = None, batch: int | None = None,
                palette: str = "qkv", values: bool | None = None, size: int = 0, min: float = 0.0, max: float = 0.0,
                title: str | None = None) -> None:
        """Draws the weights of a head as a heat map: .png, .svg or .pdf. It needs libqkvview, which draws.

        palette: "qkv", "viridis", "cividis" or "greys". values: True for figures in all cells, False for none.
        size: the longer side of the cells in pixels. min, max: where colours begin and end; max=0: a round number.
        """
        self._arrays("picture()")
        write_heatmap(self._of(layer, which, batch), head, path, f"{self._one(which)} attention, layer {layer}, "
                      f"head {head}", Drawn(palette, values, size, min, max, title))

    # ---- The page ----

    def page(self, *, which: str | None = None, batch: int | None = None,
             heads: Sequence[tuple[int, int]] | None = None, limit_bytes: int | None = None) -> pages.Page:
        """A page for a browser of the heads of an attention, one HTML file without a network.

        heads: a list of (layer, head); None: the most confident first, as many as limit_bytes has room for. With
        limit_bytes=None a cell has at most 2 MB, and above the page an overview: a thumbnail, the label and the
        numbers of each head, and the names of those in the page. limit_bytes=0: no limit.
        """
        self._arrays("page()")
        which = self._one(which)
        numbers = self._numbers_of(which)
        opened = [self._open(which, n, self._batch if batch is None else batch) for n in numbers]
        for each in opened:
            each._measure()
        chosen = None
        if heads is not None:
            heads = list(heads)
            for layer, _ in heads:
                self._layer(which, layer)
            chosen = [(numbers.index(layer), head) for layer, head in heads]
        layers = _Layers(opened)
        if limit_bytes is not None:
            return self._named(pages.write_page(layers, chosen, limit_bytes), numbers)
        caption = self._caption(self._layer(which, numbers[0]))
        room = _CELL_BYTES - _ESCAPES - len(write_overview(layers, numbers, [(0, 0)] * len(numbers), caption))
        made = self._named(pages.write_page(layers, chosen, max(room, 1)), numbers)
        made.overview = write_overview(layers, numbers, made.heads, caption)
        return made

    def _overview(self, which: str, why: str) -> str:
        numbers = self._numbers_of(which)
        opened = [self._open(which, n, self._batch) for n in numbers]
        for each in opened:
            each._measure()
        caption = f"{self._caption(self._layer(which, numbers[0]))} {why}."
        return pages.framed(write_overview(_Layers(opened), numbers, [], caption), 720, "")

    def _named(self, made: pages.Page, numbers: Sequence[int]) -> pages.Page:
        """With the layers' own numbers."""
        made.heads = [(numbers[layer], head) for layer, head in made.heads]
        return made

    def save(self, path: str, *, which: str | None = None, batch: int | None = None) -> None:
        """Writes the page of all heads to a file."""
        self.page(which=which, batch=batch, limit_bytes=0).save(path)

    def _repr_html_(self) -> str:
        if self._keep == "qk":
            try:
                return self.page(which=self.which[0])._repr_html_()
            except UnsupportedError as reason:  # position biases
                return self._overview(self.which[0], str(reason))
        table = self.heads()
        return str(table._repr_html_()) if hasattr(table, "_repr_html_") else f"<pre>{html.escape(repr(self))}</pre>"

    def __repr__(self) -> str:
        runs = [run for run in self._recorder.runs if run.layers]
        if not runs:
            return "<qkv.Seen nothing yet>"
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


def _map_of(q: Array, k: Array, options: dict[str, Any]) -> Map:
    known = {name for name, *_ in _c.qkv_map_options._fields_} - {"struct_size", "start"}
    for name in options:
        if name not in known:
            raise ArgumentError(f"map has no option {name!r}; it has {', '.join(sorted(known))}")
    kinds: dict[str, Any] = {name: kind for name, kind, *_ in _c.qkv_map_options._fields_}
    given = init(_c.qkv_map_options, **{
        name: value if kinds[name] is ctypes.c_double else integer(value, name, kinds[name])
        for name, value in options.items()})
    points, report = np.zeros((len(q) + len(k), 2)), init(_c.qkv_map_report)
    error, call = ErrorText(), Interruptible()
    status = lib.qkv_inspect_map(context().handle, ctypes.byref(given), len(q), len(k), q.shape[1], q.ctypes.data,
                                 k.ctypes.data, points.ctypes.data, None, None, ctypes.byref(report), call.pointer,
                                 error.pointer)
    call.raise_pending()
    error.check(status)
    said = {name: getattr(report, name) for name, *_ in report._fields_ if name not in ("struct_size", "explained")}
    said["explained"] = list(report.explained)
    return Map(points[:len(q)], points[len(q):], said)


# ---- Inspecting ----------------------------------------------------------------------------------


@contextmanager
def inspect(model: Any, *, tokenizer: Any = None, layers: Sequence[int] | None = None, keep: Keep = "stats",
            received: bool = True) -> Iterator[Seen]:
    """Watches the attention of a model of transformers, or of one that holds such a model.

    tokenizer: names tokens; without one they have numbers. layers: only these, from 0. keep="stats": O(len) statistics
    of each query and head, from the forward pass itself; with received=True also what each key receives, by a second
    pass over the scores. keep="qk": queries and keys, of which any weight, page or map is made; it says its bytes
    first. Inside, models compute by attn_implementation="qkv"; afterwards, and after an exception, by what they had.
    """
    from transformers import PreTrainedModel

    from . import transformers as ours

    if layers is not None:
        layers = [integer(layer, "layers", least=0) for layer in layers]
        if not layers:
            raise ArgumentError("layers is empty, and nothing would be seen: None watches all")
    if keep not in ("stats", "qk"):
        raise ArgumentError(f'keep is {keep!r}, and must be "stats" or "qk"')
    roots = _roots(model, PreTrainedModel)
    _check_devices(model)
    ours.register()
    recorder = Recorder(model, roots, tokenizer, layers, keep, received)
    before = {id(config): (config, config._attn_implementation_internal) for config in _configs(model)}
    watched = ours.watched.recorder
    try:
        for root in roots:
            _set(root, ours.NAME)
        recorder.install()
        ours.watched.recorder = recorder
        yield Seen(recorder, keep)
    finally:
        ours.watched.recorder = watched
        recorder.remove()
        for config, implementation in before.values():
            config._attn_implementation_internal = implementation


def _roots(model: Any, kind: Any) -> list[Any]:
    """The models of transformers in a module that are in no other one."""
    found = [(name, module) for name, module in getattr(model, "named_modules", list)() if isinstance(module, kind)]
    if not found:
        raise UnsupportedError(f"{type(model).__name__} holds no model of transformers: qkv.heads(q, k) shows arrays")
    made: list[tuple[str, Any]] = []
    for name, module in found:
        if not any(name == other or other == "" or name.startswith(other + ".") for other, _ in made):
            made.append((name, module))
    return [module for _, module in made]


def _check_devices(model: Any) -> None:
    for name, parameter in model.named_parameters():
        if parameter.device.type != "cpu":
            raise UnsupportedError(f"{name} is on {parameter.device}, and qkv computes on the CPU: call "
                                   'model.to("cpu")')
        if parameter.is_floating_point() and str(parameter.dtype) not in ("torch.float32", "torch.bfloat16",
                                                                          "torch.float16"):
            raise DTypeError(f"{name} is {parameter.dtype}, and qkv computes with float32, bfloat16 and float16: call "
                             "model.float()")


def _configs(model: Any) -> list[Any]:
    """The configurations of a model and of its parts."""
    found: dict[int, Any] = {}

    def add(config: Any) -> None:
        if hasattr(config, "_attn_implementation_internal") and id(config) not in found:
            found[id(config)] = config
            for name in getattr(config, "sub_configs", {}):
                add(getattr(config, name, None))

    for module in model.modules():
        add(getattr(module, "config", None))
    return list(found.values())


def _set(root: Any, name: str) -> None:
    root.set_attn_implementation(name)
    for config in _configs(root):
        if getattr(config, "_attn_implementation_internal", name) not in (name, None):
            raise UnsupportedError(f"{type(root).__name__} has attention of its own, which transformers does not let "
                                   "others replace: qkv.heads(q, k) shows arrays")
