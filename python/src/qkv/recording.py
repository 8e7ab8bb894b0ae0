"""The hooks of qkv.inspect on a model: they tell which call is which layer's, and give it to a run (recorded.py)."""
from __future__ import annotations

import ctypes
import inspect
import sys
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from . import _c
from ._library import lib
from .errors import ArgumentError, UnsupportedError
from .places import Places
from .problem import Problem
from .recorded import ROWS, Array, Layer, Run
from .rules import Visibility


class Recorder:
    """Hooks on a model that is inspected, and what qkv.transformers tells it of each layer."""

    def __init__(self, model: Any, roots: Sequence[Any], tokenizer: Any, layers: Sequence[int] | None, keep: str,
                 received: bool) -> None:
        self.runs: list[Run] = []
        self._tokenizer, self._keep, self._received = tokenizer, keep, received
        self._layers = None if layers is None else set(layers)
        self._roots = list(roots)
        self.model_name = type(self._roots[0]).__name__
        self._places = Places(model, roots)
        self._hooks: list[Any] = []
        self._told = False
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
        if not self._places.begin():
            return
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
        outermost = self._places.end()
        cache = _cache_of(output)
        if outermost and self.runs and cache is not None:
            self.runs[-1].cache = weakref.ref(cache)
        # The encoder of a pair may be called by itself, before or after.
        if outermost and output is not None and not getattr(module.config, "is_encoder_decoder", False):
            self.check_layers()

    def check_layers(self) -> None:
        """Refuses layers that were asked for and that no attention of the model has."""
        counts = self._places.most
        most = max(counts.values(), default=0)
        for layer in sorted(self._layers or ()) if most else ():
            if layer >= most:
                there = ", ".join(f"0 to {n - 1}" + (f" of {which}" if len(counts) > 1 else "")
                                  for which, n in counts.items())
                raise ArgumentError(f"layers has {layer}, and the model has layers {there}")

    def _encode(self, module: Any, arguments: Any, keywords: Any) -> None:
        if self._places.depth == 0:
            self._new_run().only_encoder = True
        ids = _given(module, arguments, keywords).get("input_ids")
        if ids is not None and not self.runs[-1].names["keys"]._parts:
            self.runs[-1].names["keys"].add(ids)

    def _new_run(self) -> Run:
        self.runs.append(Run(self._tokenizer))
        return self.runs[-1]

    # ---- Calls of layers ----

    def _place(self, module: Any) -> tuple[str, int] | None:
        """Which attention and layer a module is; None if it is not watched."""
        place = self._places.place(module)
        return None if place is None or self._layers is not None and place[1] not in self._layers else place

    def wants(self, module: Any, query: Any, key: Any, rules: Visibility) -> Any:
        """Statistics that the forward pass is to make."""
        place = self._now = self._place(module)
        if place is None or self._keep != "stats":
            return None
        wanted: dict[str, Any] = dict.fromkeys(ROWS, True)
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

    def _begins_at(self, place: tuple[str, int], rules: Visibility) -> int:
        """The place in the run of the first key of a call."""
        layer = self.runs[-1].layers.get(place)
        return 0 if layer is None else layer.n_keys - rules.q_offset

    def _tokens(self, place: tuple[str, int], rules: Visibility) -> tuple[Array, Array] | None:
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

    def saw(self, module: Any, problem: Problem, query: Any, key: Any, lse: Any, stats: Any, rules: Visibility,
            scores: dict[str, Any]) -> None:
        place = self._now
        if place is None:
            return
        name = self._places.name(module)
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

    def _columns(self, run: Run, layer: Layer, rules: Visibility, scores: dict[str, Any], problem: Problem, query: Any,
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

    def _run_of(self, place: tuple[str, int], rules: Visibility) -> Run:
        """The run that a call of a layer belongs to, also where a part of a model is called by itself."""
        if not self.runs:
            return self._new_run()
        run = self.runs[-1]
        if self._places.depth == 0 and place in run.layers and place[0] != "cross" and rules.q_offset == 0:
            return self._new_run()
        return run

    def _tell(self, layer: Layer, query: Any) -> None:
        if self._keep != "qk" or self._told:
            return
        self._told = True
        same = [place for place in self._places.known()
                if place[0] == layer.which and (self._layers is None or place[1] in self._layers)]
        n = query.shape[0] * query.shape[2] * layer.dim * (layer.n_heads + layer.n_kv_heads) * 4 * len(same)
        size = f"{n / 1e6:.1f} MB" if n >= 1e6 else f"{n / 1e3:.1f} kB"
        print(f'qkv.inspect: keep="qk" stores {size}: queries and keys of {query.shape[0]} x {query.shape[2]} tokens '
              f"in {len(same)} layers of {layer.which} attention", file=sys.stderr)


def _refuse(name: str, rules: Visibility, scores: dict[str, Any]) -> None:
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


def _cache_of(output: Any) -> Any:
    """The cache that a model returned. Asked for as an attribute, the older name warns, whether it is there or not."""
    named = dict(output.items()) if isinstance(output, dict) else getattr(output, "__dict__", {})
    return next((named[name] for name in _CACHES if named.get(name) is not None), None)


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
