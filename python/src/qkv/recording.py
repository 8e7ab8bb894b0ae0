"""What qkv.inspect keeps of the calls of a model: queries and keys, or statistics of rows, layer by layer.

A run is one call of the model, with the calls that continue it from its cache. Rows of later calls stand behind those
of earlier ones, as keys do in the cache. Of a batch each row keeps its own places; padding is left out when it is read.
"""
from __future__ import annotations

import ctypes
import inspect
import re
import sys
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from . import _c
from ._library import lib
from .arrays import apart
from .errors import UnsupportedError
from .problem import Problem
from .rules import Rules

Array = np.ndarray[Any, Any]
_CROSS = re.compile(r"cross|encdec|encoder_attn", re.IGNORECASE)
_ROWS = ("entropy", "largest", "effective_keys")
_PLACES = ("mean_distance", "offset_mass")
_TOKENS = ("same_token", "duplicate", "induction")


class Names:
    """The tokens of one side of a run: ids [batch, len], appended call by call, and how they are shown."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._parts: list[Array] = []
        self.fixed: list[str] | None = None  # of patches, the same for all rows
        self._numbered: tuple[int, tuple[Array, Array] | None] = (-1, None)

    def add(self, ids: Any) -> None:
        self._parts.append(ids.detach().cpu().numpy().astype(np.int64))

    def ids(self, length: int) -> Array | None:
        """[batch, length], or None if they are not known."""
        if not self._parts:
            return None
        found = self._parts[0] if len(self._parts) == 1 else np.concatenate(self._parts, axis=1)
        return found if found.shape[1] == length else None

    def texts(self, batch: int, length: int) -> list[str] | None:
        """The names of a row's tokens; None if there is no tokenizer."""
        if self.fixed is not None:
            n_more = length - len(self.fixed)
            more = ["[CLS]" if n == 0 else f"extra {n}" for n in range(n_more)]
            return more + self.fixed if n_more >= 0 else None
        found = self.ids(length)
        return None if found is None else self.of_ids(found[batch % len(found)])

    def of_ids(self, ids: Array) -> list[str] | None:
        if self._tokenizer is None:
            return None
        made = self._tokenizer.convert_ids_to_tokens([int(token) for token in ids])
        return [str(token) if name is None else _shown(str(name)) for name, token in zip(made, ids)]

    def numbered(self, length: int) -> tuple[Array, Array] | None:
        """Names as numbers and as kinds for qkv/stats.h, [batch or 1, length] each; None if tokens have no names."""
        if self._numbered[0] != length:  # all layers ask for the same
            self._numbered = length, self._number(length)
        return self._numbered[1]

    def _number(self, length: int) -> tuple[Array, Array] | None:
        ids = self.ids(length)
        if self.fixed is not None:
            names = self.texts(0, length)
        else:
            names = None if ids is None else self.of_ids(ids.reshape(-1))
        if names is None:
            return None
        shape = (-1, length)
        numbers: dict[str, int] = {}
        same = np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int32)
        return same.reshape(shape), _kinds(names).reshape(shape)


def _kinds(names: Sequence[str]) -> Array:
    kinds = np.zeros(len(names), dtype=np.uint8)
    texts = (ctypes.c_char_p * len(names))(*(name.encode("utf-8", "surrogateescape") for name in names))
    lib.qkv_heads_kinds(ctypes.addressof(texts), len(names), kinds.ctypes.data)
    return kinds


def _shown(name: str) -> str:
    """A token's name without the marks of byte-level BPE and SentencePiece for a space in front."""
    return name.replace("Ġ", " ").replace("▁", " ").replace("Ċ", "\\n").lstrip(" ") or name


class Layer:
    """What one attention module did in one run. Arrays have the whole batch."""

    def __init__(self, which: str, index: int, name: str, rules: Rules, query: Any, key: Any,
                 scores: dict[str, Any]) -> None:
        self.which, self.index, self.name = which, index, name
        self.causal, self.window = rules.causal, rules.window
        self.one_text = which != "cross"
        self.n_batch, self.n_heads = query.shape[0], query.shape[1]
        self.n_kv_heads, self.dim = key.shape[1], key.shape[3]
        self.scale, self.softcap = scores["scale"], scores["softcap"]
        sinks = scores["sinks"]
        self.sinks = None if sinks is None else sinks.detach().float().numpy().copy()
        self.first = rules.q_offset if self.one_text else 0
        self.n_rows = 0
        self.last_key: Any = None
        self._q: list[Any] = []
        self._k: list[Any] = []
        self._added: list[Array] = []
        self._seen: list[Array] = []
        self._stats: dict[str, list[Array]] = {}
        self.received: Array | None = None
        self.n_queries: Array | None = None

    @property
    def n_keys(self) -> int:
        return self.first + self.n_rows if self.one_text else int(self._seen[0].shape[1])

    def continues(self, rules: Rules, key: Any) -> None:
        """Says an error if a call does not go on where the last one ended."""
        rows = self.last_key
        if not self.one_text or rows is None:
            return
        if self.window == (-1, -1) and rules.q_offset != self.n_keys:
            raise UnsupportedError(f"{self.name}: the cache has {rules.q_offset} keys, and {self.n_keys} were seen in "
                                   "this run. qkv.inspect joins calls only where nothing is taken back")
        at = rules.q_offset - 1
        if at < 0 or at >= key.shape[2]:
            raise UnsupportedError(f"{self.name}: the cache begins anew within one run, which qkv.inspect cannot join")
        now = key[:, :, at].detach().float()
        if now.shape != rows.shape or (now - rows).abs().max() > 0.05 * rows.abs().max():
            raise UnsupportedError("the cache's rows are in another order than before, as beam search leaves them: "
                                   "qkv.inspect joins greedy search and sampling only, so pass num_beams=1")

    def add_seen(self, rules: Rules, query: Any, key: Any) -> None:
        """Which keys are tokens, and which are padding."""
        first, n = rules.q_offset, query.shape[2]
        if not self.one_text:
            if not self._seen:
                self._seen = [np.ones((self.n_batch, key.shape[2]), np.bool_) if rules.seen is None else rules.seen]
            self.n_rows += n
            return
        begin = 0 if not self._seen else first
        if rules.seen is None:
            self._seen.append(np.ones((self.n_batch, first + n - begin), np.bool_))
        else:
            self._seen.append(rules.seen[:, begin:first + n].copy())
        self.n_rows += n
        self.last_key = key[:, :, first + n - 1].detach().float().clone()

    def seen(self) -> Array:
        """[batch, n_keys] of bools: False for padding."""
        return self._seen[0] if len(self._seen) == 1 else np.concatenate(self._seen, axis=1)

    # ---- Queries and keys ----

    def add_arrays(self, rules: Rules, query: Any, key: Any, scores: dict[str, Any]) -> None:
        first, n = rules.q_offset, query.shape[2]
        self._q.append(query.detach().float().clone())
        begin = 0 if not self._k or not self.one_text else first
        if self.one_text:
            self._k.append(key[:, :, begin:first + n].detach().float().clone())
        elif not self._k:
            self._k.append(key.detach().float().clone())
        bias = scores["added"]
        if bias is not None and bool(bias.detach().any()):
            length = first + n if self.one_text else key.shape[2]
            self._added.append(bias[..., :length].detach().float().numpy().copy())
        elif self._added:
            raise UnsupportedError(f"{self.name} has a position bias in some calls of a run only")

    @property
    def nbytes(self) -> int:
        arrays = [x.numel() * x.element_size() for x in (*self._q, *self._k)]
        stored = [x.nbytes for part in self._stats.values() for x in part]
        received = [x.nbytes for x in (self.received, self.n_queries) if x is not None]
        return int(sum(arrays) + sum(stored) + sum(received) + sum(x.nbytes for x in self._added))

    def q(self, batch: int, rows: Array) -> Array:
        """[heads, rows, dim] of the queries that are marked."""
        whole = torch.cat([x[batch] for x in self._q], dim=1)
        made: Array = np.ascontiguousarray(whole.numpy()[:, rows])
        return made

    def k(self, batch: int, keys: Array) -> Array:
        whole = torch.cat([x[batch] for x in self._k], dim=1)
        made: Array = np.ascontiguousarray(whole.numpy()[:, keys])
        return made

    def added(self, batch: int, rows: Array, keys: Array) -> Array | None:
        """[heads, rows, keys] of what was added to scores."""
        if not self._added:
            return None
        made = np.zeros((self.n_heads, self.n_rows, self.n_keys), dtype=np.float32)
        at = 0
        for part in self._added:
            one = part[batch % part.shape[0]]
            made[:, at:at + one.shape[1], :one.shape[2]] = one
            at += one.shape[1]
        return np.ascontiguousarray(made[:, rows][:, :, keys])

    # ---- Statistics ----

    def add_stats(self, stats: dict[str, Array]) -> None:
        for name in (*_ROWS, *_PLACES, "class_mass", *_TOKENS):
            if name in stats:
                self._stats.setdefault(name, []).append(apart(stats[name]))

    def add_received(self, rules: Rules, columns: dict[str, Array]) -> None:
        """What keys receive of the rows of a call; key j of the call is key j + begin of the run."""
        n = self.first + self.n_rows if self.one_text else columns["received"].shape[2]
        begin = n - (rules.q_offset + rules.len_q) if self.one_text else 0
        received = np.zeros((self.n_batch, self.n_heads, n), dtype=np.float32)
        n_queries = np.zeros(received.shape, dtype=np.int64)
        if self.received is not None and self.n_queries is not None:
            received[:, :, :self.received.shape[2]] = self.received
            n_queries[:, :, :self.n_queries.shape[2]] = self.n_queries
        width = min(columns["received"].shape[2], n - begin)
        received[:, :, begin:begin + width] += columns["received"][:, :, :width]
        n_queries[:, :, begin:begin + width] += columns["n_queries"][:, :, :width]
        self.received, self.n_queries = apart(received), apart(n_queries)

    def stats(self, batch: int, rows: Array) -> dict[str, Array]:
        """Numbers of rows by name, [heads, rows, …]."""
        n = {name: sum(part.shape[2] for part in parts) for name, parts in self._stats.items()}
        return {name: np.ascontiguousarray(np.concatenate([part[batch] for part in parts], axis=1)[:, rows])
                for name, parts in self._stats.items() if n[name] == self.n_rows}


class Run:
    """One call of a model and those that continue it."""

    def __init__(self, tokenizer: Any) -> None:
        self.layers: dict[tuple[str, int], Layer] = {}
        self.names = {side: Names(tokenizer) for side in ("queries", "keys")}
        self.cache: Any = None
        self.only_encoder = False

    def which(self) -> list[str]:
        return list(dict.fromkeys(which for which, _ in self.layers))

    def side(self, which: str) -> Names:
        """The tokens that are keys of an attention: those of the encoder, or of the only stack or the decoder."""
        return self.names["keys" if which in ("encoder", "cross") else "queries"]

    def query_seen(self, layer: Layer) -> Array:
        """[batch, n_rows]: False for queries that are padding."""
        if layer.one_text:
            return layer.seen()[:, layer.first:]
        for (which, _), other in self.layers.items():
            if which not in ("cross", "encoder") and other.n_rows == layer.n_rows:
                return other.seen()[:, other.first:]
        return np.ones((layer.n_batch, layer.n_rows), np.bool_)


class Recorder:
    """Hooks on a model that is inspected, and what qkv.transformers tells it of each layer."""

    def __init__(self, model: Any, roots: Sequence[Any], tokenizer: Any, layers: Sequence[int] | None, keep: str,
                 received: bool) -> None:
        self.runs: list[Run] = []
        self._tokenizer, self._keep, self._received = tokenizer, keep, received
        self._layers = None if layers is None else set(layers)
        self._roots = list(roots)
        self.model_name = type(self._roots[0]).__name__
        self._modules = {id(module): (name, module) for name, module in model.named_modules()}
        self._places: dict[int, tuple[str, int]] = {}
        self._depth = 0
        self._hooks: list[Any] = []
        self._told = False
        # Of one call of the model: how often each module was called, and the layers of each attention so far.
        self._called: dict[int, int] = {}
        self._n_layers: dict[str, int] = {}
        self._now: tuple[str, int] | None = None

    # ---- Calls of the model ----

    def install(self) -> None:
        for root in self._roots:
            self._hooks.append(root.register_forward_pre_hook(self._begin, with_kwargs=True))
            self._hooks.append(root.register_forward_hook(self._end, always_call=True))
            encoder = _encoder(root)
            if encoder is not None:
                self._hooks.append(encoder.register_forward_pre_hook(self._encode, with_kwargs=True))

    def remove(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    def _begin(self, module: Any, arguments: Any, keywords: Any) -> None:
        self._depth += 1
        if self._depth > 1:
            return
        self._called, self._n_layers = {}, {}
        given = _given(module, arguments, keywords)
        cache = next((given[name] for name in _CACHES if given.get(name) is not None), None)
        run = self.runs[-1] if self.runs else None
        # transformers.generate runs an encoder before the first call of the model
        if run is None or not (run.only_encoder or _continues(run, cache)):
            run = self._new_run()
        run.only_encoder = False
        run.cache = None if cache is None else weakref.ref(cache)
        pair = bool(getattr(module.config, "is_encoder_decoder", False))
        ids = given.get("decoder_input_ids" if pair else "input_ids")
        if ids is not None:
            run.names["queries"].add(ids)
        pixels = given.get("pixel_values")
        if pixels is not None and ids is None:
            run.names["queries"].fixed = _patches(module.config, pixels)

    def _end(self, module: Any, arguments: Any, output: Any) -> None:
        self._depth -= 1
        cache = next((getattr(output, name) for name in _CACHES if getattr(output, name, None) is not None), None)
        if self._depth == 0 and self.runs and cache is not None:
            self.runs[-1].cache = weakref.ref(cache)

    def _encode(self, module: Any, arguments: Any, keywords: Any) -> None:
        if self._depth == 0:
            self._new_run().only_encoder = True
        ids = _given(module, arguments, keywords).get("input_ids")
        if ids is not None and not self.runs[-1].names["keys"]._parts:
            self.runs[-1].names["keys"].add(ids)

    def _new_run(self) -> Run:
        self.runs.append(Run(self._tokenizer))
        return self.runs[-1]

    # ---- Calls of layers ----

    def _place(self, module: Any) -> tuple[str, int] | None:
        """Which attention a module is, and the number of its layer; None for those of other models."""
        if id(module) not in self._modules:
            return None
        if id(module) not in self._places:
            self._places.update(_places(self._modules.values(), type(module), self._roots))
        which, index = self._places[id(module)]
        if self._depth > 0:
            # A module that several layers share (ALBERT) is each of them in turn.
            index = self._n_layers.get(which, 0) if self._called.get(id(module)) else index
            self._called[id(module)] = self._called.get(id(module), 0) + 1
            self._n_layers[which] = self._n_layers.get(which, 0) + 1
        return (which, index) if self._layers is None or index in self._layers else None

    def wants(self, module: Any, query: Any, key: Any, rules: Rules) -> Any:
        """Statistics that the forward pass is to make."""
        place = self._now = self._place(module)
        if place is None or self._keep != "stats":
            return None
        wanted: dict[str, Any] = dict.fromkeys(_ROWS, True)
        if place[0] != "cross":
            wanted["mean_distance"] = True
            edges = (ctypes.c_int64 * (_c.QKV_HEADS_N_OFFSETS + 1)).from_address(lib.qkv_heads_offsets())
            wanted["offsets"] = list(edges)
        tokens = self._tokens(place, rules)
        if tokens is None:
            return wanted
        ids, wanted["classes"] = tokens
        wanted["n_classes"] = _c.QKV_HEADS_N_KINDS
        # A window's cache has forgotten the token before its first key, which induction needs.
        if place[0] != "cross" and self._begins_at(place, rules) == 0:
            wanted["tokens"] = np.ascontiguousarray(ids[:, rules.q_offset:rules.q_offset + rules.len_q]), ids
        return wanted

    def _begins_at(self, place: tuple[str, int], rules: Rules) -> int:
        """The place in the run of the first key of a call."""
        layer = self.runs[-1].layers.get(place)
        return 0 if layer is None else layer.n_keys - rules.q_offset

    def _tokens(self, place: tuple[str, int], rules: Rules) -> tuple[Array, Array] | None:
        """Numbers and kinds of the keys of a call, [batch, len_k]; 0 where a static cache is not filled."""
        if not self.runs:
            return None
        names = self.runs[-1].side(place[0])
        if place[0] == "cross":
            begin, width, found = 0, rules.len_k, names.numbered(rules.len_k)
        else:
            begin, width = self._begins_at(place, rules), rules.q_offset + rules.len_q
            found = names.numbered(begin + width)
        if found is None or begin < 0:
            return None
        made = []
        for values, kind in zip(found, (np.int32, np.uint8)):
            whole = np.zeros((rules.batch, rules.len_k), dtype=kind)
            whole[:, :width] = values[:, begin:begin + width]
            made.append(whole)
        if rules.seen is not None:
            made[0][~rules.seen] = -1  # padding is no token that another one follows
        return made[0], made[1]

    def saw(self, module: Any, problem: Problem, query: Any, key: Any, lse: Any, stats: Any, rules: Rules,
            scores: dict[str, Any]) -> None:
        place = self._now
        if place is None:
            return
        name = self._modules[id(module)][0]
        _refuse(name, rules, scores)
        run = self._run_of(place, rules)
        layer = run.layers.get(place)
        if layer is None:
            layer = run.layers[place] = Layer(*place, name, rules, query, key, scores)
            self._tell(layer, query)
        else:
            layer.continues(rules, key)
            alone = rules.len_q == 1 and rules.q_offset == rules.len_k - 1
            if not alone and (layer.causal, layer.window) != (rules.causal, rules.window):
                raise UnsupportedError(f"{name} has other rules than in the call before, which this one continues")
        if self._keep == "qk":
            layer.add_arrays(rules, query, key, scores)
        else:
            layer.add_stats(stats)
        layer.add_seen(rules, query, key)
        if self._keep == "stats" and self._received:
            layer.add_received(rules, self._columns(run, layer, rules, scores, problem, query, key, lse))

    def _columns(self, run: Run, layer: Layer, rules: Rules, scores: dict[str, Any], problem: Problem, query: Any,
                 key: Any, lse: Any) -> dict[str, Array]:
        """What keys receive of the queries that are no padding."""
        seen = run.query_seen(layer)[:, layer.n_rows - rules.len_q:]
        if not seen.all():
            rows, keys = np.where(seen, 1, 2), np.ones((rules.batch, rules.len_k))
            hidden = rules.also(rows.astype(np.int32), keys.astype(np.int32))
            numbers = {name: scores[name] for name in ("scale", "softcap", "sinks")}
            problem = Problem(query, key, key, mask=scores["added"], **numbers, **hidden.keywords())
            lse = torch.where(torch.from_numpy(seen)[:, None], lse, -torch.inf)
        return problem.columns(lse, want=("received", "n_queries"))

    def _run_of(self, place: tuple[str, int], rules: Rules) -> Run:
        """The run that a call of a layer belongs to, also where a part of a model is called by itself."""
        if not self.runs:
            return self._new_run()
        run = self.runs[-1]
        if self._depth == 0 and place in run.layers and place[0] != "cross" and rules.q_offset == 0:
            return self._new_run()
        return run

    def _tell(self, layer: Layer, query: Any) -> None:
        if self._keep != "qk" or self._told:
            return
        self._told = True
        same = [place for place in self._places.values()
                if place[0] == layer.which and (self._layers is None or place[1] in self._layers)]
        n = query.shape[0] * query.shape[2] * layer.dim * (layer.n_heads + layer.n_kv_heads) * 4 * len(same)
        size = f"{n / 1e6:.1f} MB" if n >= 1e6 else f"{n / 1e3:.1f} kB"
        print(f'qkv.inspect: keep="qk" stores {size}: queries and keys of {query.shape[0]} x {query.shape[2]} tokens '
              f"in {len(same)} layers of {layer.which} attention", file=sys.stderr)


def _refuse(name: str, rules: Rules, scores: dict[str, Any]) -> None:
    added = scores["added"]
    if rules.packed or rules.chunk is not None:
        raise UnsupportedError(f"{name} has packed sequences or chunks: qkv.inspect knows causal order, windows and "
                               "padding")
    if added is not None and (added.dtype == torch.bool or added.shape[1] == 1):
        raise UnsupportedError(f"{name} has a mask of cells, which the model made itself: qkv.inspect knows causal "
                               "order, windows and padding")


# ---- Models --------------------------------------------------------------------------------------


def _given(module: Any, arguments: Any, keywords: Any) -> dict[str, Any]:
    """The arguments of a call by their names."""
    try:
        bound = inspect.signature(module.forward).bind_partial(*arguments, **keywords).arguments
    except (TypeError, ValueError):
        return dict(keywords)
    more = [value for key, value in bound.items() if key == "kwargs" and isinstance(value, dict)]
    return {**bound, **(more[0] if more else {})}


# The name of a cache among arguments and outputs, since transformers 5.24 and before.
_CACHES = "cache", "past_key_values"


def _continues(run: Run, cache: Any) -> bool:
    if cache is None or run.cache is None or run.cache() is not cache:
        return False
    try:
        return int(cache.get_seq_length()) > 0
    except (AttributeError, TypeError, ValueError):
        return False


def _encoder(root: Any) -> Any:
    if not getattr(root.config, "is_encoder_decoder", False):
        return None
    try:
        found = root.get_encoder()
    except (AttributeError, NotImplementedError, ValueError):
        return None
    return None if found is root else found


def _patches(config: Any, pixels: Any) -> list[str] | None:
    """Names of the patches of an image by row and column, from 0, behind the tokens that are none."""
    size = getattr(config, "patch_size", None)
    if size is None or pixels.dim() != 4:
        return None
    down, across = (size, size) if isinstance(size, int) else tuple(size)
    n_rows, n_columns = pixels.shape[2] // down, pixels.shape[3] // across
    return [f"{row},{column}" for row in range(n_rows) for column in range(n_columns)]


def _places(modules: Any, kind: type[Any], roots: Sequence[Any]) -> dict[int, tuple[str, int]]:
    """(which, layer) of each attention module of a class. Layers are counted along their names."""
    pair = any(getattr(root.config, "is_encoder_decoder", False) for root in roots)
    found: dict[str, list[int]] = {}
    for name, module in modules:
        if type(module) is kind:
            found.setdefault(re.sub(r"(?<![^.])\d+(?![^.])", "#", name), []).append(id(module))
    named: dict[str, list[str]] = {}
    for pattern in found:
        cross = bool(_CROSS.search(pattern)) or "cross" in kind.__name__.lower()
        which = ("cross" if cross else "self" if not pair else "encoder"
                 if "encoder" in pattern and "decoder" not in pattern else "decoder")
        named.setdefault(which, []).append(pattern)
    made = {}
    for which, patterns in named.items():
        for pattern in patterns:
            label = which if len(patterns) == 1 else pattern.split("#")[0].strip(".")
            made.update({module: (label, n) for n, module in enumerate(found[pattern])})
    return made
