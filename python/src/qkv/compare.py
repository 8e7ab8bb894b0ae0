"""Two texts and what the heads of a model do on each, with their tokens paired."""
from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import ArgumentError, ShapeError
from .tables import as_table
from .weights import Weights

Array = NDArray[np.float32]


def paired(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """Places of tokens that are each other's counterpart, in the order of both texts.

    What both texts have in common is paired, and so is what stands between in as many tokens: one word for another.
    """
    first = next((n for n, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    made = [(n, n) for n in range(first)]
    inner = difflib.SequenceMatcher(None, a[first:], b[first:], autojunk=False)
    for _, i0, i1, j0, j1 in inner.get_opcodes():
        if i1 - i0 == j1 - j0:
            made += [(first + i0 + n, first + j0 + n) for n in range(i1 - i0)]
    return made


class Compared:
    """The heads of a model on two texts, whose tokens are paired.

    pairs: places (in the first text, in the second). tokens: their names, of both. Of a token that has no counterpart
    only the sum of the weights counts.
    """

    def __init__(self, first: Weights, second: Weights) -> None:
        self._both = first, second
        (layers, n_heads, _, _), (others, n_others, _, _) = first.shape, second.shape
        if (layers, n_heads) != (others, n_others) or first.layers != second.layers:
            raise ShapeError(f"the first has {layers} layers of {n_heads} heads and the second {others} of {n_others}: "
                             "compare() shows one model on two texts")
        self.shape = layers, n_heads
        self.pairs = paired(first.keys, second.keys)
        self.tokens = [(first.keys[i], second.keys[j]) for i, j in self.pairs]
        self._queries = self.pairs if first.queries == first.keys and second.queries == second.keys else paired(
            first.queries, second.queries)
        if not self.pairs or not self._queries:
            raise ArgumentError("the texts have no token in common, and no word in the place of another")

    def __repr__(self) -> str:
        a, b = (len(each.keys) for each in self._both)
        return f"<qkv.Compared {len(self.pairs)} pairs of tokens, of {a} and {b}>"

    def weights(self, layer: int, head: int) -> tuple[Array, Array]:
        """The weights of a head on each text, [paired queries, paired keys]."""
        made = [self._rows(side, layer, head)[:, [pair[side] for pair in self.pairs]] for side in (0, 1)]
        return made[0], made[1]

    def difference(self, layer: int, head: int) -> Array:
        """Weights on the second text minus those on the first, [paired queries, paired keys]."""
        first, second = self.weights(layer, head)
        made: Array = second - first
        return made

    def distance(self, layer: int, head: int) -> NDArray[np.float64]:
        """How far the rows of a head are apart, [paired queries], 0 to 1: half the sum of absolute differences.

        The weights of keys without a counterpart are one sum on each side.
        """
        sides = [self._rows(side, layer, head).astype(np.float64) for side in (0, 1)]
        shown = [rows[:, [pair[side] for pair in self.pairs]] for side, rows in enumerate(sides)]
        rest = [rows.sum(1) - part.sum(1) for rows, part in zip(sides, shown)]
        made: NDArray[np.float64] = 0.5 * (np.abs(shown[1] - shown[0]).sum(1) + np.abs(rest[1] - rest[0]))
        return made

    def _rows(self, side: int, layer: int, head: int) -> Array:
        made: Array = self._both[side][layer, head][[pair[side] for pair in self._queries]]
        return made

    def rows(self) -> list[dict[str, Any]]:
        """A row for each head, those that differ most first: layer, head, the mean distance, and the largest change
        of a weight with its query and key, as (name in the first text, name in the second)."""
        made = []
        for layer in self._both[0].layers:
            for head in range(self.shape[1]):
                change = self.difference(layer, head)
                i, j = np.unravel_index(np.abs(change).argmax(), change.shape)
                places = self._queries[i]
                made.append({"layer": layer, "head": head, "distance": float(self.distance(layer, head).mean()),
                             "change": float(change[i, j]),
                             "query": tuple(each.queries[n] for each, n in zip(self._both, places)),
                             "key": self.tokens[j]})
        return sorted(made, key=lambda row: -row["distance"])

    def table(self) -> Any:
        """rows() as a table."""
        return as_table(self.rows())
