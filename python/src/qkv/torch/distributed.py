"""Attention of a sequence that lies in pieces on the ranks of a torch.distributed group, such as gloo.

>>> import qkv.torch.distributed
>>> o, lse = qkv.torch.distributed.ring_attention(q, k, v, is_causal=True)

Pieces lie in the order of ranks: rows of rank r follow those of rank r - 1. They may have any lengths. It needs no MPI.
"""
from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from .. import errors, tensors
from ..cache import merge
from ..keywords import keywords
from ..problem import Problem
from . import distances
from .calls import OF_TORCH, Window, _lower

_SHARED = ("dtype", "heads", "kv_heads", "dim", "dim_v", "batch", "rules", "distance_bias", "requires_grad")


class _Ring(NamedTuple):
    """A group of ranks in a circle, and where the pieces of each begin."""

    group: Any
    rank: int
    size: int
    first_q: int
    first_k: list[int]
    len_k: list[int]

    def exchange(self, mine: Tensor, theirs: Tensor) -> list[Any]:
        """Sends `mine` to the next rank, and receives what the one before sends. Tensors without elements stay."""
        peers = [dist.get_global_rank(self.group, (self.rank + step) % self.size) for step in (1, -1)]
        calls = [dist.P2POp(function, x.view(torch.uint8), peer, self.group)
                 for function, x, peer in zip((dist.isend, dist.irecv), (mine, theirs), peers) if x.numel()]
        return dist.batch_isend_irecv(calls) if calls else []

    def source(self, step: int) -> int:
        """Whose keys are here in a step."""
        return (self.rank - step) % self.size


def _wait(pending: list[Any]) -> None:
    for each in pending:
        each.wait()


def _unpack(buffer: Tensor, like_k: Tensor, like_v: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """Keys and values of so many rows, one after the other in `buffer`."""
    shapes = [(*x.shape[:2], length, x.shape[3]) for x in (like_k, like_v)]
    n = shapes[0][0] * shapes[0][1] * length * shapes[0][3]
    return buffer[:n].view(shapes[0]), buffer[n:].view(shapes[1])


def _pack(*tensors: Tensor) -> Tensor:
    return torch.cat([x.reshape(-1) for x in tensors])


def _row_width(k: Tensor, v: Tensor) -> int:
    """Elements of a row of keys and values, in all batches and heads."""
    return int(k.shape[0] * k.shape[1] * (k.shape[3] + v.shape[3]))


def _problem(ring: _Ring, source: int, q: Tensor, k: Tensor, v: Tensor, bias: tuple[Tensor, int] | None,
             rules: dict[str, Any]) -> Problem | None:
    """Queries of this rank and keys of another one; None where no query sees a key."""
    offset = ring.first_q - ring.first_k[source]
    if not q.shape[2] or not k.shape[2] or rules["causal"] and offset + q.shape[2] <= 0:
        return None
    return Problem(q, k, v, q_offset=offset, distance_bias=bias, **rules)


def _sum_over(group: Any, mine: Tensor) -> Tensor:
    """The sum of what the ranks have, in their order and in float64: the same bits on all of them."""
    found = [torch.empty_like(mine) for _ in range(dist.get_world_size(group))]
    dist.all_gather(found, mine, group=group)
    return torch.stack(found).double().sum(dim=0)


class _Attention(torch.autograd.Function):  # type: ignore[misc,unused-ignore]  # torch may not be there
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, before: int, ring: _Ring,
                rules: dict[str, Any]) -> Any:
        o = q.new_zeros((*q.shape[:3], v.shape[3]), dtype=torch.float32)
        lse = q.new_full(q.shape[:3], -torch.inf, dtype=torch.float32)
        here, numbers = _pack(k, v), None if bias is None else (bias.detach().float(), before)
        for step in range(ring.size):
            source, last = ring.source(step), step + 1 == ring.size
            coming = here.new_empty(0 if last else ring.len_k[ring.source(step + 1)] * _row_width(k, v))
            pending = [] if last else ring.exchange(here, coming)
            made = _problem(ring, source, q, *_unpack(here, k, v, ring.len_k[source]), numbers, rules)
            if made is not None:
                parts: list[Any] = [(o, lse), made.forward(out_dtype="float32")]
                o, lse = merge(parts)
            _wait(pending)
            here = coming
        o = o.to(q.dtype)
        ctx.save_for_backward(q, k, v, o, lse, bias)
        ctx.ring, ctx.rules, ctx.before = ring, rules, before
        return o, lse

    @staticmethod
    def backward(ctx: Any, d_o: Tensor, d_lse: Tensor) -> Any:
        if torch.is_grad_enabled():  # once_differentiable would not see a graph that other inputs need
            raise errors.UnsupportedError("create_graph=True through ring_attention: gradients of gradients are not "
                                          "implemented there")
        if tensors.is_transformed(d_o) or tensors.is_transformed(d_lse):  # the ranks would not agree
            raise errors.UnsupportedError("is_grads_batched=True through ring_attention: it is not implemented there")
        q, k, v, o, lse, bias = ctx.saved_tensors
        ring, rules = ctx.ring, ctx.rules
        numbers = None if bias is None else (bias.detach().float(), ctx.before)
        d_bias = None if bias is None else torch.zeros(bias.shape, dtype=torch.float64)
        d_q = torch.zeros_like(q, dtype=torch.float32)
        here, sums = _pack(k, v), k.new_zeros(k.numel() + v.numel(), dtype=torch.float32)
        for step in range(ring.size):
            source, last = ring.source(step), step + 1 == ring.size
            n = ring.len_k[ring.source(step + 1)] * _row_width(k, v)
            coming = here.new_empty(0 if last else n)
            pending = [] if last else ring.exchange(here, coming)
            made = _problem(ring, source, q, *_unpack(here, k, v, ring.len_k[source]), numbers, rules)
            if made is not None:
                part = made.backward(d_o, o=o, lse=lse, d_lse=d_lse, d_distance_bias=bias is not None)
                if d_bias is not None:
                    d_bias += torch.from_numpy(part.d_distance_bias)
                d_q += part.d_q
                sums += _pack(part.d_k, part.d_v)
            # The sums go on with their keys; after the last step they come home.
            next_sums = sums.new_empty(n)
            pending += ring.exchange(sums, next_sums) if ring.size > 1 else []
            _wait(pending)
            here, sums = coming, next_sums if ring.size > 1 else sums
        d_k, d_v = _unpack(sums, k, v, k.shape[2])
        of_bias = None if d_bias is None else _sum_over(ring.group, d_bias).to(bias.dtype)
        return d_q.to(q.dtype), d_k.to(k.dtype), d_v.to(v.dtype), of_bias, None, None, None


def _agree(group: Any, error: BaseException | None, mine: dict[str, Any] | None) -> list[dict[str, Any]]:
    """What each rank has been given. An error of one of them is the error of all."""
    found: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(found, (errors.told(error), mine), group=group)
    errors.raise_told([each for each, _ in found])
    for rank, (_, each) in enumerate(found):
        for name in _SHARED:
            if each[name] != found[0][1][name]:
                raise errors.ArgumentError(f"rank {rank}: {name} is {each[name]}, and rank 0 has {found[0][1][name]}")
    return [each for _, each in found]


def _described(query: Tensor, key: Tensor, value: Tensor, distance_bias: Any, rules: dict[str, Any]) -> dict[str, Any]:
    for name, x in zip(("query", "key", "value"), (query, key, value)):
        if x.dim() != 4:
            raise errors.ShapeError(f"{name} has {x.dim()} dimensions, and must have 4: batch, heads, rows, channels")
        tensors.settled(x, name)
    Problem(*(x.detach() for x in (query, key, value)), **rules)
    said, differentiated = None, [query, key, value]
    if distance_bias is not None:
        numbers, before = distances.checked(distance_bias, query)
        differentiated.append(numbers)
        tensors.settled(numbers, "distance_bias")
        digest = hashlib.sha256(numbers.detach().float().contiguous().numpy().tobytes()).hexdigest()[:16]
        said = f"{tuple(numbers.shape)} with {before} before and the digest {digest}"
    return {"dtype": str(query.dtype), "batch": query.shape[0], "heads": query.shape[1], "kv_heads": key.shape[1],
            "dim": query.shape[3], "dim_v": value.shape[3], "rules": rules, "len_q": query.shape[2],
            "len_k": key.shape[2], "distance_bias": said,
            # The backward pass is collective: a rank without one would leave the others waiting.
            "requires_grad": torch.is_grad_enabled() and any(x.requires_grad for x in differentiated)}


@keywords("ring_attention", OF_TORCH)
def ring_attention(query: Tensor, key: Tensor, value: Tensor, *, group: Any = None, is_causal: bool = False,
                   window: Window | None = None, scale: float | None = None, softcap: float | None = None,
                   distance_bias: tuple[Tensor, int] | None = None) -> tuple[Tensor, Tensor]:
    """(o, lse) of this rank's queries over the keys of all ranks. Collective; so is its backward pass.

    query [batch, heads, len_q, dim], key and value [batch, kv_heads, len_k, dim], the rows of this rank. group: a
    group of torch.distributed whose tensors are on the CPU; None: the default one. Rules are those of
    qkv.torch.attention, and count rows of the whole sequence.

    distance_bias: (numbers [heads or 1, before + 1 + after], before), the same on all ranks. Its gradient is that of
    the whole sequence, on all ranks alike: the sums of the ranks, in their order.

    Keys go from each rank to the next, while they are computed. Results of the pieces are joined by lse in float32.
    Bits depend on ranks and cuts; the bounds of accuracy are those of one process. Under is_causal the last rank has
    the most work. Memory: two pieces of keys and values; backward also their sums in float32. A wrong argument of one
    rank raises the same exception on all of them, and so does another dtype, shape or rule than that of rank 0, or
    requires_grad on some ranks only.
    """
    bias, before = distance_bias if isinstance(distance_bias, (tuple, list)) and len(distance_bias) == 2 else (None, 0)
    for name, x in zip(("query", "key", "value", "distance_bias"), (query, key, value, bias)):
        if isinstance(x, Tensor) and tensors.is_transformed(x):  # there the ranks cannot even agree
            raise errors.UnsupportedError(f"{name} is {tensors.why_not(x)}")
    if torch.is_autocast_enabled("cpu"):
        query, key, value = _lower(query), _lower(key), _lower(value)
    rules: dict[str, Any] = {"causal": bool(is_causal), "window": window, "scale": scale, "softcap": softcap}
    mine, error = None, None
    try:
        if is_causal not in (False, True):
            raise errors.ArgumentError(f"is_causal is {is_causal!r}, and must be a bool")
        mine = _described(query, key, value, distance_bias, rules)
    except Exception as raised:
        error = raised
    group = group or dist.group.WORLD
    pieces = _agree(group, error, mine)
    rank, len_k = dist.get_rank(group), [piece["len_k"] for piece in pieces]
    first_q = sum(piece["len_q"] for piece in pieces[:rank])
    ring = _Ring(group, rank, len(pieces), first_q, [sum(len_k[:r]) for r in range(len(pieces))], len_k)
    return _Attention.apply(query, key, value, bias, before, ring, rules)  # type: ignore[no-any-return,unused-ignore]


__all__ = ["ring_attention"]
