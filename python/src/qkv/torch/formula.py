"""Attention in torch's own operators, for what the C library has not: gradients of gradients, forward mode, torch.func.

o = softmax(scale <q, k> + added) v with every rule of the operator `attention` but dropout and packed sequences. It
stores len_q x len_k numbers, as torch does. 16-bit tensors are computed in float32.
"""
from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import tensors
from ..errors import DTypeError, UnsupportedError
from . import fast

_FLOATS = torch.float32, torch.bfloat16, torch.float16, torch.float64


def _visible(q: Tensor, k: Tensor, kv_len: Tensor | None, segments_q: Tensor | None, segments_k: Tensor | None,
             numbers: tuple[Any, ...]) -> tuple[Tensor, Tensor]:
    """Which keys a query sees by position, and j - (i + q_offset)."""
    causal, q_offset, left, right, *_ = numbers
    len_q, len_k = q.shape[-2], k.shape[-2]
    i, j = torch.arange(len_q, device=q.device)[:, None], torch.arange(len_k, device=q.device)
    lengths = torch.tensor([len_k], device=q.device) if kv_len is None else kv_len if kv_len.dim() else kv_len[None]
    offset: Any = lengths[:, None, None, None] - len_q if causal == 2 else q_offset
    distance = j - (i + offset)
    seen = (j < lengths[:, None, None, None]).expand(-1, 1, len_q, -1)
    if causal:
        seen = seen & (distance <= 0)
    if left >= 0:
        seen = seen & (distance >= -left)
    if right >= 0:
        seen = seen & (distance <= right)
    if segments_q is not None and segments_k is not None:
        seen = seen & (segments_q[..., None] == segments_k[..., None, :]).reshape(-1, 1, len_q, len_k)
    return seen, distance


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, sinks: Tensor | None, alibi: Tensor | None,
              kv_len: Tensor | None, segments_q: Tensor | None, segments_k: Tensor | None,
              numbers: tuple[Any, ...], cells: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """(o, lse), float32 or float64, in 4 dimensions. cells: bools that say with all other rules who is seen."""
    scale, softcap = numbers[4], numbers[5]
    q, k, v = (x if x.dtype == torch.float64 else x.float() for x in (q, k, v))
    q, k, v = (x[(None,) * (4 - x.dim())] for x in (q, k, v))
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], dim=1) for x in (k, v))
    scores = q @ k.transpose(-1, -2) * (scale or q.shape[-1]**-0.5)
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    if mask is not None and not mask.is_floating_point():
        mask = mask != 0
    seen, distance = _visible(q, k, kv_len, segments_q, segments_k, numbers)
    if alibi is not None:
        scores = scores + alibi[:, None, None] * distance
    if cells is not None:
        seen = seen & cells
    if mask is not None and mask.dtype == torch.bool:
        seen = seen & mask
    elif mask is not None:
        seen = seen & (mask != -torch.inf)  # a row of nothing else has gradients of 0
        scores = scores + mask
    scores = scores.masked_fill(~seen, -torch.inf)
    whole = scores
    if sinks is not None:
        whole = torch.cat([scores, sinks[:, None, None].expand(*scores.shape[:-1], 1)], dim=-1)
    lse = whole.logsumexp(dim=-1)
    weights = (scores - lse.masked_fill(lse == -torch.inf, 0)[..., None]).exp()
    return weights @ v, lse


def _refuse(what: str, lacking: str, numbers: Any, cu_seqlens: Tensor | None) -> None:
    if numbers[-1] or cu_seqlens is not None:
        where = "dropout" if numbers[-1] else "packed sequences"
        raise UnsupportedError(f"{what} with {where}: {lacking} not implemented there")


def _stand_in(x: Tensor | None, kind: Any = np.float32) -> Any:
    """An array of the shape of a tensor, which has the memory of one row."""
    return None if x is None else np.broadcast_to(np.zeros(x.shape[-1:], kind), x.shape)


def _integers(x: Tensor | None, name: str) -> Any:
    """Integers that say who is seen, or what stands for those that a transform hides."""
    if x is None:
        return None
    if x.is_floating_point() or x.is_complex():
        raise DTypeError(f"{name} is {str(x.dtype)[6:]}, and must hold integers")
    if tensors.why_not(x) is not None or x.device.type != "cpu":
        return _stand_in(x, np.int32)
    return tensors.array_of(x)


def _check(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, sinks: Tensor | None, alibi: Tensor | None,
           kv_len: Tensor | None, segments_q: Tensor | None, segments_k: Tensor | None, numbers: Any) -> None:
    """Refuses what a call of the C library refuses. torch's operators would broadcast some of it."""
    for x, name in ((q, "query"), (k, "key"), (v, "value")):
        if x.dtype not in _FLOATS:
            raise DTypeError(f"{name} is {x.dtype}, and must be of floats")
        if x.dtype != q.dtype:
            raise DTypeError(f"query is {q.dtype} and {name} is {x.dtype}: they must be the same")
    if mask is not None and mask.dtype not in (torch.bool, *_FLOATS[:3], q.dtype):
        raise DTypeError(f"attn_mask is {mask.dtype}, and must be bool, float32, bfloat16 or float16")
    shapes = [x.shape for x in (q, k, v, mask, sinks, alibi, kv_len, segments_q, segments_k) if x is not None]
    if all(type(n) is int for shape in shapes for n in shape):  # none is a symbol of a trace
        of_mask = _stand_in(mask, np.bool_ if mask is not None and mask.dtype == torch.bool else np.float32)
        fast.problem_of(_stand_in(q), _stand_in(k), _stand_in(v), of_mask, _stand_in(sinks), _stand_in(alibi), None,
                        _integers(kv_len, "kv_len"), _integers(segments_q, "segments"),
                        _integers(segments_k, "segments"), None, None, *numbers).plan()


def transformed(q: Tensor, k: Tensor, v: Tensor, *rules: Any) -> tuple[Tensor, Tensor]:
    """What the operator `attention` returns, of dual tensors and of values inside torch.func.

    The tangent of o is sum p (t_s - sum p t_s) v + sum p t_v of each row.
    """
    mask, sinks, alibi, _, kv_len, segments_q, segments_k, cu_seqlens_q, _, *numbers = rules
    _refuse("forward mode and torch.func", "they are", numbers, cu_seqlens_q)
    if mask is not None:
        mask = tensors.of_zeros_and_ones(mask, "attn_mask")
    _check(q, k, v, mask, sinks, alibi, kv_len, segments_q, segments_k, numbers)
    o, lse = attention(q, k, v, mask, sinks, alibi, kv_len, segments_q, segments_k, tuple(numbers))
    return o.reshape(*q.shape[:-1], v.shape[-1]).to(q.dtype), lse.reshape(q.shape[:-1])


def differentiable(d_o: Tensor, d_lse: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None,
                   sinks: Tensor | None, others: list[Tensor | None], numbers: Any,
                   needed: tuple[bool, ...], cells: Tensor | None = None) -> tuple[Tensor | None, ...]:
    """Gradients of q, k, v, the mask and the sinks, each None where it is not needed. With create_graph=True they have
    gradients again; d_o and d_lse may be batches of torch.func, as is_grads_batched=True makes them.
    """
    alibi, _, kv_len, segments_q, segments_k, cu_seqlens_q, _ = others
    again = torch.is_grad_enabled()
    _refuse("create_graph=True" if again else "is_grads_batched=True", "they are", numbers, cu_seqlens_q)
    inputs = q, k, v, mask, sinks
    wanted = [x for x, need in zip(inputs, needed) if need and x is not None]
    with torch.enable_grad():
        o, lse = attention(q, k, v, mask, sinks, alibi, kv_len, segments_q, segments_k, tuple(numbers), cells)
    got = iter(torch.autograd.grad((o, lse), wanted, (d_o.reshape(o.shape).to(o.dtype), d_lse.reshape(lse.shape)),
                                   create_graph=again, allow_unused=True))
    return tuple(next(got) if need and x is not None else None for x, need in zip(inputs, needed))
