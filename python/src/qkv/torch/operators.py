"""The operators of qkv.torch: their schemas, kernels, shapes and gradients.

attention              (o, lse) of every rule, with gradients of q, k, v, the mask and the sinks
attention_backward     the gradients

Tensors: q [batch, heads, len_q, dim], or packed (with cu_seqlens) [heads, rows, dim]; k and v as
qkv.Problem has them. Numbers that say "none": a window bound of -1, a scale or soft cap of 0. `causal` is 0, 1 or 2: no,
from the top left, from the bottom right.
"""
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..problem import Causal, Problem
from . import bridge
from .formula import differentiable

_TENSORS = ("Tensor? mask, Tensor? sinks, Tensor? alibi, Tensor? seed, Tensor? kv_len, Tensor? segments_q, "
            "Tensor? segments_k, Tensor? cu_seqlens_q, Tensor? cu_seqlens_k")
_NUMBERS = ("int causal, SymInt q_offset, SymInt window_left, SymInt window_right, float scale, float softcap, "
            "float dropout")
N_RULES = 16
_CAUSAL: tuple[Causal, ...] = (False, True, "bottom-right")

_library = torch.library.Library("qkv", "DEF")
define, implement = _library.define, _library.impl

define(f"attention(Tensor q, Tensor k, Tensor v, {_TENSORS}, {_NUMBERS}) -> (Tensor, Tensor)")
define(
    f"attention_backward(Tensor d_o, Tensor d_lse, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, {_TENSORS}, {_NUMBERS}, "
    "bool d_mask, bool d_sinks) -> (Tensor, Tensor, Tensor, Tensor?, Tensor?)",
)


# ---- Kernels ------------------------------------------------------------------------------------


def _pair(q: Tensor | None, k: Tensor | None) -> Any:
    return None if q is None else (q, k)


def _problem(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, sinks: Tensor | None, alibi: Tensor | None,
             seed: Tensor | None, kv_len: Tensor | None, segments_q: Tensor | None, segments_k: Tensor | None,
             cu_seqlens_q: Tensor | None, cu_seqlens_k: Tensor | None, causal: int, q_offset: int, window_left: int,
             window_right: int, scale: float, softcap: float, dropout: float) -> Problem:
    return Problem(
        q, k, v, mask=mask, sinks=sinks, alibi=alibi, kv_len=kv_len, segments=_pair(segments_q, segments_k),
        cu_seqlens=_pair(cu_seqlens_q, cu_seqlens_k), causal=_CAUSAL[causal], q_offset=q_offset or None,
        window=None if window_left < 0 and window_right < 0 else (window_left, window_right), scale=scale or None,
        softcap=softcap or None, dropout=dropout, seed=int(seed) if seed is not None else None,
        context=bridge.context())


def _new_o(q: Tensor, v: Tensor) -> Tensor:
    """Of the shape of o. In memory lengths come before heads, as in torch: models join heads next, without a copy."""
    if q.dim() < 3:
        return q.new_empty((*q.shape[:-1], v.shape[-1]))
    *batch, heads, length, _ = q.shape
    return q.new_empty((*batch, length, heads, v.shape[-1])).transpose(-3, -2)


def _forward(q: Tensor, k: Tensor, v: Tensor, *rules: Any) -> tuple[Tensor, Tensor]:
    o = _new_o(q, v)
    made = _problem(q, k, v, *rules).forward(out=o if rules[7] is None else o.zero_())
    return o, made.lse


def _forward_shapes(q: Tensor, k: Tensor, v: Tensor, *rules: Any) -> tuple[Tensor, Tensor]:
    return _new_o(q, v), q.new_empty(q.shape[:-1], dtype=torch.float32)


def _backward(d_o: Tensor, d_lse: Tensor, q: Tensor, k: Tensor, v: Tensor, o: Tensor, lse: Tensor,
              *rest: Any) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    *rules, d_mask, d_sinks = rest
    got = _problem(q, k, v, *rules).backward(d_o, o=o, lse=lse, d_lse=d_lse, d_mask=d_mask)
    mask, sinks = rules[0], rules[1]
    of_mask = torch.from_numpy(got.d_mask).reshape(mask.shape).to(mask.dtype) if d_mask else None
    of_sinks = torch.from_numpy(got.d_sinks).to(sinks.dtype) if d_sinks else None
    return got.d_q, got.d_k, got.d_v, of_mask, of_sinks


def _backward_shapes(d_o: Tensor, d_lse: Tensor, q: Tensor, k: Tensor, v: Tensor, o: Tensor, lse: Tensor,
                     *rest: Any) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    mask, sinks, d_mask, d_sinks = rest[0], rest[1], rest[-2], rest[-1]
    dense = [x.new_empty(x.shape) for x in (q, k, v)]
    return (dense[0], dense[1], dense[2], mask.new_empty(mask.shape) if d_mask else None,
            sinks.new_empty(sinks.shape) if d_sinks else None)


# ---- Gradients ----------------------------------------------------------------------------------


class _Watch(threading.local):
    """What to call when the gradient of a call of this thread is differentiated again: replaced() counts it."""

    note: Callable[[], None] | None = None


watch = _Watch()


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    q, k, v, *rules = inputs
    n = N_RULES - 7
    ctx.save_for_backward(q, k, v, *output, *rules[:n])
    ctx.numbers = rules[n:]
    ctx.note = watch.note
    ctx.set_materialize_grads(False)


def _differentiate(ctx: Any, d_o: Tensor | None, d_lse: Tensor | None) -> tuple[Any, ...]:
    q, k, v, o, lse, mask, sinks, *others = ctx.saved_tensors
    nothing: tuple[Any, ...] = (None,) * (N_RULES - 2)
    if d_o is None and d_lse is None:
        return (None,) * 5 + nothing
    d_o = torch.zeros_like(o) if d_o is None else d_o
    d_lse = torch.zeros_like(lse) if d_lse is None else d_lse
    needed = ctx.needs_input_grad[:5]
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():  # create_graph=True
        if ctx.note is not None:
            ctx.note()
        return (*differentiable(d_o, d_lse, q, k, v, mask, sinks, others, ctx.numbers, needed), *nothing)
    got = torch.ops.qkv.attention_backward(d_o, d_lse, q, k, v, o, lse, mask, sinks, *others, *ctx.numbers,
                                           mask is not None and needed[3], sinks is not None and needed[4])
    return (*got, *nothing)


implement("attention", _forward, "CPU")
implement("attention_backward", _backward, "CPU")
torch.library.register_fake("qkv::attention", _forward_shapes, lib=_library)
torch.library.register_fake("qkv::attention_backward", _backward_shapes, lib=_library)
torch.library.register_autograd("qkv::attention", _differentiate, setup_context=_keep, lib=_library)
