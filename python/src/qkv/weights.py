"""All weights of an attention as one array that is computed where it is read, with names of tokens for places."""
from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from .checked import integer
from .errors import ArgumentError

Array = NDArray[np.float32]
Interval = tuple[int, int]
_AXES = "layer", "head", "query", "key"


def place_of(name: str, names: Sequence[str], axis: str) -> int:
    """Where a token stands that is there once."""
    found = [n for n, each in enumerate(names) if each == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise ArgumentError(f"{axis} {name!r} stands at {', '.join(map(str, found))}: give one of these numbers")
    near = difflib.get_close_matches(name, list(dict.fromkeys(names)), n=3)
    raise ArgumentError(f"there is no {axis} {name!r}" + (f": near are {', '.join(map(repr, near))}" if near else ""))


class Weights:
    """Weights of all heads, indexed [layer, head, query, key] as an array of NumPy is.

    >>> heads.array()[-1, 0]                    # [queries, keys] of head 0 of the last layer
    >>> heads.array()[:, :, "door", "opened"]   # [layers, heads]: what "door" gives "opened" in each
    >>> numpy.asarray(heads.array())            # all of them

    An index is a number, a negative one from the end, a slice, `...`, or a list; of queries and keys also the name of
    a token that is there once. Lists choose along their axis each. A layer has its number in the model. Only heads that
    are asked for are computed, and only asarray() stores all of them.
    """

    def __init__(self, layers: Sequence[int], n_heads: int, queries: Sequence[str], keys: Sequence[str],
                 weights: Callable[[int, int, Interval, Interval], Array]) -> None:
        self.layers, self.queries, self.keys, self._weights = list(layers), list(queries), list(keys), weights
        self.shape = len(self.layers), n_heads, len(self.queries), len(self.keys)
        self.ndim, self.dtype = 4, np.dtype(np.float32)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        """[head, query, key] of each layer."""
        return (self[layer] for layer in self.layers)

    def __repr__(self) -> str:
        return f"<qkv.Weights [layer, head, query, key] of shape {self.shape}>"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("weights are computed where they are read: they cannot be had without a copy")
        return np.asarray(self[...], dtype=dtype)

    @overload
    def __getitem__(self, index: tuple[int, int, int | str, int | str]) -> np.float32: ...
    @overload
    def __getitem__(self, index: Any) -> Array: ...
    def __getitem__(self, index: Any) -> Array | np.float32:
        chosen = [self._places(axis, each) for axis, each in enumerate(self._four(index))]
        (layers, heads, queries, keys) = (places for places, _ in chosen)
        made = np.zeros([len(places) for places, _ in chosen], dtype=np.float32)
        if made.size:
            (i0, i1), (j0, j1) = ((min(places), max(places) + 1) for places in (queries, keys))
            inner = np.ix_([i - i0 for i in queries], [j - j0 for j in keys])
            for a, layer in enumerate(layers):
                for b, head in enumerate(heads):
                    made[a, b] = self._weights(self.layers[layer], head, (i0, i1), (j0, j1))[inner]
        return made[tuple(0 if is_one else slice(None) for _, is_one in chosen)]

    def _four(self, index: Any) -> list[Any]:
        given = list(index) if isinstance(index, tuple) else [index]
        n_dots = sum(each is Ellipsis for each in given)
        if n_dots > 1 or len(given) - n_dots > 4:
            raise ArgumentError(f"{len(given)} indices, and there are 4 axes: {', '.join(_AXES)}")
        at = next((n for n, each in enumerate(given) if each is Ellipsis), len(given))
        rest = given[at + 1:]
        return given[:at] + [slice(None)] * (4 - at - len(rest)) + rest

    def _places(self, axis: int, index: Any) -> tuple[list[int], bool]:
        """Positions along an axis, and whether the index is of one."""
        if isinstance(index, slice):
            try:
                return list(range(self.shape[axis])[index]), False
            except TypeError:
                raise ArgumentError(f"{_AXES[axis]} {index!r}: bounds of a slice are whole numbers") from None
        if isinstance(index, (list, range, np.ndarray)) and np.ndim(index) == 1:
            if getattr(index, "dtype", None) == np.bool_:
                raise ArgumentError(f"{_AXES[axis]} is an array of bools: pass numpy.flatnonzero of it")
            return [self._place(axis, each) for each in index], False
        return [self._place(axis, index)], True

    def _place(self, axis: int, index: Any) -> int:
        name, size = _AXES[axis], self.shape[axis]
        if isinstance(index, str) and axis >= 2:
            return place_of(index, self.queries if axis == 2 else self.keys, name)
        number = integer(index, name)
        if axis == 0 and number >= 0:
            if number not in self.layers:
                raise ArgumentError(f"there is no layer {number}: there are {self.layers}")
            return self.layers.index(number)
        if not -size <= number < size:
            raise ArgumentError(f"{name} {number} is not in [{-size}, {size - 1}]")
        return number % size
