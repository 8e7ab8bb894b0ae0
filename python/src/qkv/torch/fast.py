"""Calls that have been made before: a descriptor is filled once for all calls of the same shapes, strides and numbers.

Filling one costs as much as a small call itself. A case holds what a call of its key needs; a call copies it and writes
the pointers of this call into the copy. Everything that is checked here is part of the key, so a case that was valid
once is valid again. Calls with alibi, lengths, segments or packed sequences are not cases.
"""
from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import _c
from .._library import init, lib
from ..descriptor import run
from ..errors import ArgumentError
from ..problem import Problem
from . import bridge

Gradients = tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]

_LARGEST = 512
# alibi, seed, kv_len, segments of queries and keys, cu_seqlens of both
N_OTHERS = 7
_F32 = torch.float32
# Of what the library writes to, whatever torch's default dtype and device are.
_NEW: Any = {"dtype": _F32, "device": "cpu"}
_CAUSAL: tuple[Any, ...] = (False, True, "bottom-right")
_Desc, _Grads = _c.qkv_attention_desc, _c.qkv_attention_grads


class _Case(NamedTuple):
    desc: Any
    grads: Any


_cases: dict[Any, _Case | None] = {}


def problem_of(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, sinks: Tensor | None, alibi: Tensor | None,
               seed: Tensor | None, kv_len: Tensor | None, segments_q: Tensor | None, segments_k: Tensor | None,
               cu_seqlens_q: Tensor | None, cu_seqlens_k: Tensor | None, causal: int, q_offset: int, window_left: int,
               window_right: int, scale: float, softcap: float, dropout: float) -> Problem:
    """The problem of an operator's arguments."""
    if causal not in (0, 1, 2):
        raise ArgumentError(f"causal = {causal}, and must be 0, 1 or 2")
    no_window = window_left == window_right == -1
    return Problem(
        q, k, v, mask=mask, sinks=sinks, alibi=alibi, kv_len=kv_len,
        segments=None if segments_q is None else (segments_q, segments_k),
        cu_seqlens=None if cu_seqlens_q is None else (cu_seqlens_q, cu_seqlens_k), causal=_CAUSAL[causal],
        q_offset=q_offset or None, window=None if no_window else (window_left, window_right),
        scale=scale or None, softcap=softcap or None, dropout=dropout,
        seed=None if seed is None else int(seed) & (2**64 - 1), context=bridge.context())  # a seed of int64


def _of(x: Tensor | None) -> Any:
    return None if x is None else (x.shape, x.stride(), x.dtype)


def _are_fast(q: Tensor, sinks: Tensor | None, others: tuple[Any, ...]) -> bool:
    """others: alibi, seed, kv_len, segments and cu_seqlens of the operator."""
    if others[0] is not None or others[2] is not None or others[3] is not None or others[5] is not None:
        return False
    return q.dim() > 2 and (sinks is None or (sinks.dtype == _F32 and sinks.is_contiguous()))


def _described(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, sinks: Tensor | None, seed: Tensor | None,
               numbers: tuple[Any, ...], o: Tensor, d_o: Tensor | None, d_mask: bool) -> _Case | None:
    """A new case, or None if an array cannot be read where it is. Problem checks everything."""
    problem = problem_of(q, k, v, mask, sinks, None, seed, None, None, None, None, None, *numbers)
    addresses, described = problem.prepared(o)
    desc = _Desc.from_buffer_copy(described)
    if addresses != tuple(x.data_ptr() for x in (q, k, v, o)) or (mask is not None and desc.mask != mask.data_ptr()):
        return None
    if desc.q_offsets:  # an array that goes with the problem
        return None
    grads = init(_Grads)
    if d_o is not None:
        if d_o.shape != o.shape or d_o.dtype != o.dtype or d_o.stride(-1) != 1:
            return None
        lib.qkv_attention_grads_fill(ctypes.byref(grads), ctypes.byref(desc))
        for name, x in (("o", d_o), ("q", torch.empty_like(q)), ("k", torch.empty_like(k)), ("v", torch.empty_like(v))):
            if x.stride(-1) != 1:
                return None
            getattr(grads, f"d_{name}_stride")[:] = _strides(x)
        if d_mask and mask is not None:
            grads.d_mask_stride[:] = _mask_strides(mask)
    return _Case(desc, grads)


def _strides(x: Tensor) -> tuple[int, ...]:
    """Of batch, head and token."""
    batch, head, token = ((0, 0, 0) + x.stride()[:-1])[-3:]
    return batch, head, token


def _mask_strides(mask: Tensor) -> list[int]:
    """Of a dense gradient of the mask's shape; 0 where the mask is repeated."""
    strides, step = [0, 0, 0, 0], 1
    for n, size in enumerate(reversed(mask.shape)):
        strides[3 - n] = 0 if size == 1 else step
        step *= size
    return strides


def _find(key: Any, *arguments: Any) -> _Case | None:
    try:
        return _cases[key]
    except KeyError:
        if len(_cases) >= _LARGEST:
            _cases.clear()
        case = _cases[key] = _described(*arguments)
        return case


def _fill(case: _Case, mask: Tensor | None, sinks: Tensor | None, seed: Tensor | None) -> Any:
    if mask is None and sinks is None and seed is None:
        return case.desc
    desc = _Desc.from_buffer_copy(case.desc)
    if mask is not None:
        desc.mask = mask.data_ptr()
    if sinks is not None:
        desc.sinks = sinks.data_ptr()
    if seed is not None:
        desc.dropout_seed = int(seed) & (2**64 - 1)
    return desc


def forward(o: Tensor, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, sinks: Tensor | None,
            *rest: Any) -> Tensor | None:
    """Writes o and returns lse; None: not a case, nothing was written."""
    others, numbers = rest[:N_OTHERS], rest[N_OTHERS:]
    if not _are_fast(q, sinks, others):
        return None
    seed = others[1]
    case = _find((q.shape, k.shape, v.shape, q.stride(), k.stride(), v.stride(), q.dtype, k.dtype, v.dtype, _of(mask),
                  sinks is None, seed is None, numbers), q, k, v, mask, sinks, seed, numbers, o, None, False)
    if case is None:
        return None
    lse = torch.empty(q.shape[:-1], **_NEW)
    run(bridge.context(), lib.qkv_attention_forward, _fill(case, mask, sinks, seed), q.data_ptr(), k.data_ptr(),
        v.data_ptr(), o.data_ptr(), lse.data_ptr())
    return lse


def backward(d_o: Tensor, d_lse: Tensor | None, q: Tensor, k: Tensor, v: Tensor, o: Tensor, lse: Tensor,
             mask: Tensor | None, sinks: Tensor | None, *rest: Any) -> Gradients | None:
    """The gradients; None: not a case."""
    others, numbers, (d_mask, d_sinks) = rest[:N_OTHERS], rest[N_OTHERS:-2], rest[-2:]
    if not _are_fast(q, sinks, others):
        return None
    d_o = d_o if d_o.stride(-1) == 1 else d_o.contiguous()
    lse, seed = lse.contiguous(), others[1]
    d_rows = lse if d_lse is None else d_lse.contiguous()
    case = _find((q.shape, k.shape, v.shape, q.stride(), k.stride(), v.stride(), q.dtype, k.dtype, v.dtype, _of(mask),
                  sinks is None, seed is None, numbers, _of(o), _of(d_o), d_mask),
                 q, k, v, mask, sinks, seed, numbers, o, d_o, d_mask)
    if case is None or lse.shape != q.shape[:-1] or d_rows.shape != lse.shape or not lse.dtype == d_rows.dtype == _F32:
        return None
    grads = _Grads.from_buffer_copy(case.grads)
    made = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    grads.d_o, grads.d_lse = d_o.data_ptr(), None if d_lse is None else d_rows.data_ptr()
    grads.d_q, grads.d_k, grads.d_v = (x.data_ptr() for x in made)
    of_mask = torch.zeros(mask.shape, **_NEW) if d_mask and mask is not None else None
    of_sinks = torch.zeros(sinks.shape, **_NEW) if sinks is not None else None
    grads.d_mask = None if of_mask is None else of_mask.data_ptr()
    grads.d_sinks = None if of_sinks is None else of_sinks.data_ptr()
    run(bridge.context(), lib.qkv_attention_backward, _fill(case, mask, sinks, seed), q.data_ptr(), k.data_ptr(),
        v.data_ptr(), o.data_ptr(), lse.data_ptr(), ctypes.byref(grads))
    return (*made, None if of_mask is None or mask is None else of_mask.to(mask.dtype), of_sinks if d_sinks else None)
