"""Masks as functions: qkv.mask_mod compiles one to lists of visible blocks."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .arrays import integers, numbers
from .checked import integer
from .errors import ArgumentError, ShapeError

# Cells of a mask that are evaluated at a time: 4 MiB of bools.
_AT_ONCE = 1 << 22


class BlockMask:
    """Which blocks of keys each block of queries sees, and the cells of those that are seen in part.

    offsets [batches, heads, blocks + 1] and index: as block_offsets and block_index of the C header. bits: None if all
    visible blocks are full, else [batches, heads, len_q, ceil(len_k / 8)], key j in bit j % 8.
    """

    def __init__(self, block_len: int, len_q: int, len_k: int, offsets: np.ndarray[Any, Any],
                 index: np.ndarray[Any, Any], bits: np.ndarray[Any, Any] | None) -> None:
        self.block_len, self.len_q, self.len_k = _block_len(block_len), _length(len_q, "len_q"), _length(len_k, "len_k")
        n_rows = -(-self.len_q // self.block_len)
        shape = *np.shape(offsets)[:-1], n_rows + 1
        if len(shape) != 3:
            raise ShapeError(f"offsets has shape {np.shape(offsets)}, and must have (batches, heads, {n_rows + 1})")
        # Of their own, and read-only: the library reads as far as they say.
        self.offsets = _kept(integers(offsets, np.int64, "offsets", shape))
        self.index = _kept(integers(index, np.int32, "index", (len(index),)))
        if self.offsets.size and not 0 <= self.offsets.min() <= self.offsets.max() <= len(self.index):
            raise ShapeError(f"offsets are {self.offsets.min()} to {self.offsets.max()}, and index has "
                             f"{len(self.index)} blocks")
        of_bits = *shape[:2], self.len_q, -(-self.len_k // 8)
        self.bits = None if bits is None else _kept(integers(bits, np.uint8, "bits", of_bits))
        self._is_made = True

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(self, "_is_made"):
            raise ArgumentError(f"a BlockMask is not changed: make one with another {name}")
        object.__setattr__(self, name, value)

    def sealed(self) -> BlockMask:
        """Itself, or of copies, whose arrays NumPy has made writable, one that is checked again."""
        arrays = self.offsets, self.index, self.bits
        if any(array is not None and array.flags.writeable for array in arrays):
            return BlockMask(self.block_len, self.len_q, self.len_k, self.offsets, self.index, self.bits)
        return self

    def check(self, n_batch: int, n_heads: int, len_q: int, len_k: int) -> None:
        if (self.len_q, self.len_k) != (len_q, len_k):
            raise ShapeError(f"block_mask is of {self.len_q} x {self.len_k}, the problem of {len_q} x {len_k}")
        for n, whole, name in zip(self.offsets.shape, (n_batch, n_heads), ("batches", "heads")):
            if n not in (1, whole):
                raise ShapeError(f"block_mask has {n} {name}, and must have 1 or {whole}")

    @property
    def sparsity(self) -> float:
        """The share of blocks that are hidden, 0 to 1."""
        side = [-(-n // self.block_len) for n in (self.len_q, self.len_k)]
        whole = side[0] * side[1] * self.offsets.shape[0] * self.offsets.shape[1]
        return 1 - len(self.index) / whole if whole else 0.0

    def __repr__(self) -> str:
        kind = "full blocks" if self.bits is None else "full and partial blocks"
        return f"<qkv.BlockMask {self.len_q} x {self.len_k}, {kind} of {self.block_len}, {self.sparsity:.0%} hidden>"


def _block_len(value: int) -> int:
    if value not in (32, 64, 96, 128):
        raise ArgumentError(f"block_len is {value}, and must be 32, 64, 96 or 128")
    return int(value)


def _length(value: int, name: str) -> int:
    return integer(value, name, least=0)


def _kept(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array, made read-only: a copy, unless it already is."""
    made = array.copy() if array.flags.writeable or array.base is not None else array
    made.flags.writeable = False
    return made


def _called(f: Callable[..., Any], *places: Any) -> Any:
    try:
        return f(*places)
    except ValueError as error:
        if "truth value" not in str(error):
            raise
        raise ArgumentError(
            "the mask_mod asks whether a whole array is true, as `and`, `or`, `not`, `if` and `a < b < c` do: write "
            "(i - j < 8) & (j <= i) with &, | and ~, and each comparison in parentheses") from error


def _broadcast(sees: np.ndarray[Any, Any], shape: tuple[int, int]) -> np.ndarray[Any, Any]:
    try:
        return np.broadcast_to(sees, shape)
    except ValueError:
        raise ShapeError(f"the mask_mod returned shape {sees.shape}, which does not broadcast to {shape}, the shape of "
                         "i and j together") from None


def mask_mod(f: Callable[[Any, Any, Any, Any], Any], *, len_q: int, len_k: int, batch: int = 1, heads: int = 1,
             block_len: int = 128) -> BlockMask:
    """Compiles f(b, h, i, j) to a block mask, as FlexAttention's create_block_mask does.

    f gets integer arrays that broadcast to [rows, len_k], and returns bools: True lets query i see key j. With batch
    or heads 1 the mask serves all. Hidden blocks cost neither time nor memory in attention. Memory: a bit for each
    cell, if a block is seen in part.
    """
    if not callable(f):
        raise ArgumentError(f"the mask_mod is a {type(f).__name__}, and must be a function f(b, h, i, j)")
    block_len, len_q, len_k = _block_len(block_len), _length(len_q, "len_q"), _length(len_k, "len_k")
    batch, heads = integer(batch, "batch", least=1), integer(heads, "heads", least=1)
    n_rows, n_columns = -(-len_q // block_len), -(-len_k // block_len)
    offsets = np.zeros((batch, heads, n_rows + 1), dtype=np.int64)
    bits = np.zeros((batch, heads, len_q, -(-len_k // 8)), dtype=np.uint8)
    lists, partial, total = [], False, 0
    step = max(1, _AT_ONCE // max(1, len_k * block_len))
    edges = np.arange(0, n_columns) * block_len
    j = np.arange(len_k)[None, :]
    for b in range(batch):
        for h in range(heads):
            offsets[b, h, 0] = total
            for first in range(0, n_rows, step):
                i0, i1 = first * block_len, min((first + step) * block_len, len_q)
                i = np.arange(i0, i1)[:, None]
                sees = numbers(_called(f, np.int64(b), np.int64(h), i, j), "what the mask_mod returned")
                if sees.dtype != np.bool_:
                    raise ArgumentError(f"the mask_mod returned {sees.dtype}, and must return bools")
                sees = _broadcast(sees, (i1 - i0, len_k))
                bits[b, h, i0:i1] = np.packbits(sees, axis=1, bitorder="little")
                for row in range(i0, i1, block_len):
                    rows = sees[row - i0:row - i0 + block_len]
                    counts = np.add.reduceat(rows.sum(axis=0), edges) if len_k else np.zeros(0, dtype=np.int64)
                    sizes = np.diff(np.append(edges, len_k)) * len(rows)
                    lists.append(np.flatnonzero(counts).astype(np.int32))
                    partial = partial or bool(((counts > 0) & (counts < sizes)).any())
                    total += len(lists[-1])
                    offsets[b, h, row // block_len + 1] = total
    index = np.concatenate(lists) if lists else np.zeros(0, dtype=np.int32)
    for made in (offsets, index, bits):
        made.flags.writeable = False
    return BlockMask(block_len, len_q, len_k, offsets, index, bits if partial else None)
