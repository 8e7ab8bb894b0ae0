"""Attention with a bias by distance, for `distance_bias` of qkv.torch.attention: T5's relative bias, with its gradient.

numbers [heads or 1, n] and before: number before + d of a head's row is added to the score of query i and key j, with
d = j - i - q_offset, cut to -before ... n - 1 - before. The C library reads the numbers where they are. Where torch has
to see the call (torch.compile, torch.func, forward mode) they become a mask of len_q x len_k.
"""
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..errors import ArgumentError, ShapeError, UnsupportedError
from ..problem import Problem
from . import bridge, fast, operators


def checked(given: Any, query: Tensor) -> tuple[Tensor, int]:
    """The two of a distance_bias."""
    if not isinstance(given, (tuple, list)) or len(given) != 2 or not isinstance(given[0], Tensor):
        raise ArgumentError("distance_bias is no pair of a tensor and a number, and must be (numbers [heads or 1, n], "
                            "before)")
    numbers, before = given
    heads = query.shape[-3] if query.dim() > 2 else 1
    if numbers.dim() != 2 or numbers.shape[0] not in (1, heads) or numbers.shape[1] < 1:
        raise ShapeError(f"distance_bias has shape {tuple(numbers.shape)}, and must have (1 or {heads}, n)")
    if not isinstance(before, int) or isinstance(before, bool) or not 0 <= before < numbers.shape[1]:
        raise ArgumentError(f"before of distance_bias is {before!r}, and must be an integer from 0 to "
                            f"{numbers.shape[1] - 1}")
    return numbers, before


def as_mask(numbers: Tensor, before: int, query: Tensor, key: Tensor, mask: Tensor | None, kv_len: Tensor | None,
            causal: int, q_offset: int) -> Tensor:
    """[batch or 1, heads or 1, len_q, len_k]: the numbers of all pairs, and the mask, which is bools or is added."""
    len_q, len_k, device = query.shape[-2], key.shape[-2], query.device
    i, j = torch.arange(len_q, device=device)[:, None], torch.arange(len_k, device=device)
    lengths = torch.tensor([len_k], device=device) if kv_len is None else kv_len
    offset: Any = (lengths[:, None, None] - len_q) if causal == 2 else q_offset
    places = (j - i - offset + before).clamp(0, numbers.shape[1] - 1)
    added = numbers[:, places]
    added = added.transpose(0, 1) if added.dim() == 4 else added[None]
    if mask is not None:
        added = added.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else added + mask
    while added.dim() > query.dim() and added.shape[0] == 1:
        added = added[0]
    return added


def _problem(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, before: int, mask: Tensor | None, sinks: Tensor | None,
             others: tuple[Any, ...], numbers: tuple[Any, ...]) -> Problem:
    """As fast.problem_of has it, with the bias."""
    seed, kv_len, of_queries, of_keys = others
    causal, q_offset, left, right, scale, softcap, dropout = numbers
    return Problem(
        q, k, v, mask=mask, sinks=sinks, kv_len=kv_len, segments=None if of_queries is None else (of_queries, of_keys),
        distance_bias=(bias.detach().float(), before), causal=fast._CAUSAL[causal], q_offset=q_offset or None,
        window=None if left < 0 and right < 0 else (left, right), scale=scale or None, softcap=softcap or None,
        dropout=dropout, seed=None if seed is None else int(seed) & (2**64 - 1), context=bridge.context())


def _forward(q: Tensor, k: Tensor, v: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    o = operators._new_o(q, v)
    return o, _problem(q, k, v, *rest).forward(out=o).lse  # type: ignore[return-value,unused-ignore]


class Attention(torch.autograd.Function):  # type: ignore[misc,unused-ignore]  # torch may not be there
    """(o, lse), with gradients of q, k, v, the bias, the mask and the sinks."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, bias: Tensor, before: int, mask: Tensor | None,
                sinks: Tensor | None, others: tuple[Any, ...], numbers: tuple[Any, ...]) -> tuple[Tensor, Tensor]:
        made = _forward(q, k, v, bias, before, mask, sinks, others, numbers)
        ctx.save_for_backward(q, k, v, bias, mask, sinks, *made)
        ctx.rest = before, others, numbers
        ctx.set_materialize_grads(False)
        return made

    @staticmethod
    def backward(ctx: Any, d_o: Tensor | None, d_lse: Tensor | None) -> Any:
        if torch.is_grad_enabled():
            raise UnsupportedError("create_graph=True with distance_bias: gradients of gradients are not implemented "
                                   "there; give its numbers as attn_mask")
        if d_o is None and d_lse is None:
            return (None,) * 9
        q, k, v, bias, mask, sinks, o, lse = ctx.saved_tensors
        before, others, numbers = ctx.rest
        d_o = torch.zeros_like(o) if d_o is None else d_o
        d_mask = mask is not None and ctx.needs_input_grad[5]
        made = operators.new_grads(q, k, v)
        got = _problem(q, k, v, bias, before, mask, sinks, others, numbers).backward(
            d_o, o=o, lse=lse, d_lse=d_lse, d_mask=d_mask, d_distance_bias=True, out=made)
        of_bias = torch.from_numpy(got.d_distance_bias).to(bias.dtype)
        of_mask = torch.from_numpy(got.d_mask).reshape(mask.shape).to(mask.dtype) if d_mask else None
        of_sinks = None if sinks is None or got.d_sinks is None else torch.from_numpy(got.d_sinks).to(sinks.dtype)
        return (*made, of_bias, None, of_mask, of_sinks, None, None)


def attention(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, before: int, mask: Tensor | None, sinks: Tensor | None,
              others: tuple[Any, ...], numbers: tuple[Any, ...]) -> tuple[Tensor, Tensor]:
    """others: seed, kv_len, and segments of queries and of keys."""
    given = q, k, v, bias, mask, sinks
    if torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in given):
        made: tuple[Tensor, Tensor] = Attention.apply(q, k, v, bias, before, mask, sinks, others, numbers)
        return made
    with torch.no_grad():
        return _forward(q, k, v, bias, before, mask, sinks, others, numbers)
