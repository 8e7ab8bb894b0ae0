"""Masks of transformers as rules of O(len) memory: which function says what, and a mask tensor that is not there.

transformers describes a mask by a function of (batch, head, query, key) and a list of padding. `rules_of` reads the
functions that transformers itself makes, by their code objects, and says None of every other. `RuleMask` is what a
model carries around: a bool tensor of [batch, 1, len_q, len_k] without memory. It keeps its rules through slices and
copies, and becomes a real tensor in any other operation.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from transformers import masking_utils as theirs

Ints = np.ndarray[Any, Any]
_NO_MORE = -1


@dataclasses.dataclass(frozen=True)
class Visibility:
    """Which keys a query sees, as keywords of qkv.Problem. Query i stands at key i + q_offset.

    kv_len [batch]; seg_q [batch, len_q] and seg_k [batch, len_k]; all None: no such rule. A window bound of -1 is none.
    seen [batch, len_k]: False for padding, None if there is none. It says again what kv_len and segments do.
    """

    batch: int
    len_q: int
    len_k: int
    causal: bool = False
    q_offset: int = 0
    window: tuple[int, int] = (_NO_MORE, _NO_MORE)
    chunk: int | None = None
    kv_len: Ints | None = None
    seg_q: Ints | None = None
    seg_k: Ints | None = None
    seen: Ints | None = None
    packed: bool = False

    def keywords(self) -> dict[str, Any]:
        """What qkv.Problem takes."""
        made: dict[str, Any] = {"causal": self.causal, "q_offset": self.q_offset or None, "chunk": self.chunk}
        if self.window != (_NO_MORE, _NO_MORE):
            made["window"] = self.window
        if self.kv_len is not None:
            made["kv_len"] = self.kv_len
        if self.seg_q is not None:
            made["segments"] = (self.seg_q, self.seg_k)
        return made

    def dense(self) -> torch.Tensor:
        """The mask itself, [batch, 1, len_q, len_k] of bools."""
        i = np.arange(self.len_q)[None, :, None] + self.q_offset
        j = np.arange(self.len_k)[None, None, :]
        sees = np.ones((self.batch, self.len_q, self.len_k), dtype=np.bool_)
        left, right = self.window
        if self.causal:
            sees &= j <= i
        if left >= 0:
            sees &= j >= i - left
        if right >= 0:
            sees &= j <= i + right
        if self.chunk is not None:
            sees &= j // self.chunk == i // self.chunk
        if self.kv_len is not None:
            sees &= j < self.kv_len[:, None, None]
        if self.seg_q is not None and self.seg_k is not None:
            sees &= self.seg_q[:, :, None] == self.seg_k[:, None, :]
        return torch.from_numpy(sees)[:, None]

    def queries(self, first: int, end: int) -> Visibility:
        """Those of some queries."""
        seg_q = None if self.seg_q is None else np.ascontiguousarray(self.seg_q[:, first:end])
        return dataclasses.replace(self, len_q=end - first, q_offset=self.q_offset + first, seg_q=seg_q)

    def keys(self, first: int, end: int) -> Visibility | None:
        """Those of some keys; None where chunks do not begin at them."""
        if self.chunk is not None and first % self.chunk:
            return None
        return dataclasses.replace(
            self, len_k=end - first, q_offset=self.q_offset - first,
            kv_len=None if self.kv_len is None else np.clip(self.kv_len - first, 0, end - first),
            seg_k=None if self.seg_k is None else np.ascontiguousarray(self.seg_k[:, first:end]),
            seen=None if self.seen is None else self.seen[:, first:end])

    def batches(self, first: int, end: int) -> Visibility:
        """Those of some rows of the batch."""
        def some(part: Ints | None) -> Ints | None:
            return None if part is None else np.ascontiguousarray(part[first:end])

        return dataclasses.replace(self, batch=end - first, kv_len=some(self.kv_len), seg_q=some(self.seg_q),
                                   seg_k=some(self.seg_k), seen=some(self.seen))

    def also(self, seg_q: Ints, seg_k: Ints) -> Visibility:
        """With segments that must be the same, too."""
        if self.seg_q is None or self.seg_k is None:
            return dataclasses.replace(self, seg_q=seg_q, seg_k=seg_k, packed=True)
        both = np.concatenate([np.stack([self.seg_q, seg_q], -1), np.stack([self.seg_k, seg_k], -1)], axis=1)
        _, ids = np.unique(both.reshape(-1, 2), axis=0, return_inverse=True)
        made = ids.reshape(both.shape[:2]).astype(np.int32)
        return dataclasses.replace(self, seg_q=np.ascontiguousarray(made[:, :self.len_q]),
                                   seg_k=np.ascontiguousarray(made[:, self.len_q:]), packed=True)


# ---- Mask functions of transformers --------------------------------------------------------------


def _nothing(*indices: Any) -> Any:
    raise AssertionError("only its code is looked at")


# A function is known by the code that transformers compiled for it. Another release with other code is not known, and
# its masks are computed cell by cell.
_zero = torch.zeros(1, 1, dtype=torch.int64)
_AND = theirs.and_masks(_nothing).__code__
_LEFT = theirs.sliding_window_overlay(1).__code__
_BOTH = theirs.sliding_window_bidirectional_overlay(1).__code__
_CHUNKS = theirs.chunked_overlay(1, _zero).__code__
_PACKED = theirs.packed_sequence_mask_function(_zero).__code__
_MOVED = theirs.remap_positions_for_packed_sequence(_nothing, _zero).__code__


@dataclasses.dataclass
class _Found:
    causal: bool = False
    left: int = _NO_MORE
    right: int = _NO_MORE
    chunk: tuple[int, torch.Tensor] | None = None
    packed: torch.Tensor | None = None
    moved: bool = False


def _narrower(bound: int, other: int) -> int:
    return other if bound < 0 else min(bound, other)


def _read(function: Any, found: _Found) -> bool:
    """Adds what a mask function says; False if it is not one of those above."""
    if function is theirs.causal_mask_function:
        found.causal = True
        return True
    if function is theirs.bidirectional_mask_function:
        return True
    code = getattr(function, "__code__", None)
    cells = getattr(function, "__closure__", None)
    if code is None or cells is None:
        return False
    given = {name: cell.cell_contents for name, cell in zip(code.co_freevars, cells)}
    if code is _AND:
        return all(_read(each, found) for each in given["mask_functions"])
    if code is _LEFT and given["sliding_window"] >= 1:
        found.left = _narrower(found.left, given["sliding_window"] - 1)
    elif code is _BOTH and given["sliding_window"] >= 0:
        found.left = _narrower(found.left, given["sliding_window"])
        found.right = _narrower(found.right, given["sliding_window"])
    elif code is _CHUNKS and found.chunk is None and not found.moved:
        found.chunk = given["chunk_size"], given["left_padding"]
    elif code is _PACKED and found.packed is None:
        found.packed = given["packed_sequence_mask"]
    elif code is _MOVED and found.chunk is None:
        # Positions count from the beginning of each packed sequence. Distances within one stay as they are.
        found.moved = True
        return _read(given["mask_function"], found)
    else:
        return False
    return True


def rules_of(batch_size: int, q_length: int, kv_length: int, q_offset: Any, kv_offset: Any,
             mask_function: Callable[..., Any], attention_mask: torch.Tensor | None) -> Visibility | None:
    """What a mask function and a list of padding [batch, len] say, as rules; None if the function is not known."""
    found = _Found()
    if not _read(mask_function, found) or (found.moved and found.packed is None):
        return None
    kv_offset, q_offset = int(kv_offset), int(q_offset)
    seen = None if attention_mask is None else _seen(attention_mask, batch_size, kv_length, kv_offset)
    rules = Visibility(batch_size, q_length, kv_length, causal=found.causal, q_offset=q_offset - kv_offset,
                  window=(found.left, found.right))
    if found.packed is not None:
        ids = found.packed.expand(batch_size, -1).to(torch.int32).numpy()
        if ids.shape[1] != q_length or q_length != kv_length:
            return None
        rules = rules.also(np.ascontiguousarray(ids), np.ascontiguousarray(ids))
    if found.chunk is not None:
        rules = _chunked(rules, found.chunk[0], found.chunk[1].expand(batch_size).numpy(), q_offset, kv_offset)
    return rules if seen is None else _padded(rules, seen)


def _seen(mask: torch.Tensor, batch_size: int, kv_length: int, kv_offset: int) -> Ints | None:
    """[batch, kv_length] of bools; what the list lacks is padding. None if all keys are seen."""
    given = mask[:, kv_offset:kv_offset + kv_length].to(torch.bool).numpy()
    if given.shape[1] == kv_length and given.all():
        return None
    made = np.zeros((batch_size, kv_length), dtype=np.bool_)
    made[:, :given.shape[1]] = given
    return made


def _padded(rules: Visibility, seen: Ints) -> Visibility:
    """Padding at the end is a length. Elsewhere it is a segment of its own."""
    last = np.where(seen.any(axis=1), rules.len_k - np.argmax(seen[:, ::-1], axis=1), 0).astype(np.int64)
    rules = dataclasses.replace(rules, kv_len=last, seen=seen)
    if not (seen == (np.arange(rules.len_k) < last[:, None])).all():
        ones = np.ones((rules.batch, rules.len_q), dtype=np.int32)
        packed = rules.packed
        rules = dataclasses.replace(rules.also(ones, seen.astype(np.int32)), packed=packed)
    return rules


def _chunked(rules: Visibility, size: int, left: Ints, q_offset: int, kv_offset: int) -> Visibility:
    """Chunks that begin behind the padding of each row."""
    if not left.any() and kv_offset % size == 0:
        return dataclasses.replace(rules, chunk=size)
    i = (np.arange(rules.len_q) + q_offset - left[:, None]) // size
    j = (np.arange(rules.len_k) + kv_offset - left[:, None]) // size
    return rules.also(i.astype(np.int32), j.astype(np.int32))


# ---- A mask without memory -----------------------------------------------------------------------


_any: Any = torch  # what follows is below torch's types


class RuleMask(torch.Tensor):  # type: ignore[misc,unused-ignore]  # torch may not be there
    """A bool mask [batch, 1, len_q, len_k] that holds rules in place of its cells."""

    rules: Visibility
    __torch_function__ = _any._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, rules: Visibility) -> RuleMask:
        shape = rules.batch, 1, rules.len_q, rules.len_k
        made: RuleMask = _any.Tensor._make_wrapper_subclass(cls, shape, dtype=torch.bool, device="cpu")
        made.rules = rules
        return made

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override,unused-ignore]
        return f"RuleMask({self.rules})"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override,unused-ignore]
        cls, function: Any, types: Any, arguments: Any = (), keywords: Any = None,
    ) -> Any:
        kept = _keep(function, arguments, keywords or {})
        if kept is not None:
            return RuleMask(kept)
        real = _any.utils._pytree.tree_map_only(RuleMask, lambda mask: mask.rules.dense(), (arguments, keywords or {}))
        return function(*real[0], **real[1])


_aten: Any = torch.ops.aten
_SAME = {_aten.detach.default, _aten.alias.default, _aten.clone.default}


def _keep(function: Any, arguments: Any, keywords: Any) -> Visibility | None:
    """The rules of the result, if it is a mask by the same rules; else None."""
    if not arguments or not isinstance(arguments[0], RuleMask):
        return None
    rules = arguments[0].rules
    if function in _SAME:
        return rules
    if function is _aten._to_copy.default:
        same = keywords.get("dtype") in (None, torch.bool) and str(keywords.get("device") or "cpu") == "cpu"
        return rules if same else None
    return _sliced(rules, *arguments[1:]) if function is _aten.slice.Tensor else None


def _sliced(rules: Visibility, dim: int = 0, first: int | None = None, end: int | None = None,
            step: int = 1) -> Visibility | None:
    dim %= 4
    size = (rules.batch, 1, rules.len_q, rules.len_k)[dim]
    i, j, _ = slice(first, end).indices(size)
    if step != 1 or j < i or (dim == 1 and (i, j) != (0, size)):
        return None
    if (i, j) == (0, size):
        return rules
    return (rules.batches, rules.queries, rules.queries, rules.keys)[dim](i, j)
