"""What qkv.inspect keeps of the calls of a model: queries and keys, or statistics of rows, layer by layer.

A run is one call of the model, with the calls that continue it from its cache. Rows of later calls stand behind those
of earlier ones, as keys do in the cache. Of a batch each row keeps its own places; padding is left out when it is read.
"""
from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ._library import lib
from .arrays import apart
from .checked import texts
from .errors import UnsupportedError
from .rules import Visibility

Array = np.ndarray[Any, Any]
ROWS = ("entropy", "largest", "effective_keys")
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
    made = texts(names, "names of tokens")
    lib.qkv_heads_kinds(ctypes.addressof(made), len(names), kinds.ctypes.data)
    return kinds


def _shown(name: str) -> str:
    """A token's name without the marks of byte-level BPE and SentencePiece for a space in front."""
    name = name.replace("\0", "␀")  # which would end it in C
    return name.replace("Ġ", " ").replace("▁", " ").replace("Ċ", "\\n").lstrip(" ") or name


class Layer:
    """What one attention module did in one run. Arrays have the whole batch."""

    def __init__(self, which: str, index: int, name: str, rules: Visibility, query: Any, key: Any,
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

    def continues(self, rules: Visibility, key: Any) -> None:
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

    def add_seen(self, rules: Visibility, query: Any, key: Any) -> None:
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

    def add_arrays(self, rules: Visibility, query: Any, key: Any, scores: dict[str, Any]) -> None:
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
        for name in (*ROWS, *_PLACES, "class_mass", *_TOKENS):
            if name in stats:
                self._stats.setdefault(name, []).append(apart(stats[name]))

    def add_received(self, rules: Visibility, columns: dict[str, Array]) -> None:
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
