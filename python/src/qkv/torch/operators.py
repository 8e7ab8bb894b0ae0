"""The operators of qkv.torch: their schemas, kernels, shapes and gradients.

attention              (o, lse) of every rule, with gradients of q, k, v, the mask and the sinks
attention_backward     the gradients

Tensors: q [batch, heads, len_q, dim], or packed (with cu_seqlens) [heads, rows, dim]; k and v as qkv.Problem has them.
Numbers that say "none": a window bound of -1, a scale or soft cap of 0. `causal` is 0, 1 or 2: no, from the top left,
from the bottom right.
"""
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .. import tensors
from . import fast
from .formula import differentiable

_TENSORS = ("Tensor? mask, Tensor? sinks, Tensor? alibi, Tensor? seed, Tensor? kv_len, Tensor? segments_q, "
            "Tensor? segments_k, Tensor? cu_seqlens_q, Tensor? cu_seqlens_k")
_NUMBERS = ("int causal, SymInt q_offset, SymInt window_left, SymInt window_right, float scale, float softcap, "
            "float dropout")
N_TENSORS = 9
NAMES = ("query", "key", "value", "attn_mask", "sinks", "alibi", "seed", "kv_len", "segments", "segments",
         "cu_seqlens_q", "cu_seqlens_k")

_library: Any = torch.library.Library("qkv", "DEF")
define, implement = _library.define, _library.impl

define(f"attention(Tensor q, Tensor k, Tensor v, {_TENSORS}, {_NUMBERS}) -> (Tensor, Tensor)")
define(
    f"attention_backward(Tensor d_o, Tensor d_lse, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, {_TENSORS}, "
    f"{_NUMBERS}, bool d_mask, bool d_sinks) -> (Tensor, Tensor, Tensor, Tensor?, Tensor?)",
)


# ---- Kernels ------------------------------------------------------------------------------------


def _new_o(q: Tensor, v: Tensor) -> Tensor:
    """Of the shape of o. In memory lengths come before heads, as in torch: models join heads next, without a copy."""
    if q.dim() < 3:
        return q.new_empty((*q.shape[:-1], v.shape[-1]))
    *batch, heads, length, _ = q.shape
    return q.new_empty((*batch, length, heads, v.shape[-1])).transpose(-3, -2)


def new_grads(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of the shapes and, where they have no gaps, of the strides of q, k and v."""
    made = [torch.empty_like(x) for x in (q, k, v)]
    made = [x if x.stride(-1) == 1 else x.new_empty(x.shape) for x in made]
    return made[0], made[1], made[2]


def forward(q: Tensor, k: Tensor, v: Tensor, *rules: Any) -> tuple[Tensor, Tensor]:
    o = _new_o(q, v)
    lse = fast.forward(o, q, k, v, *rules)
    if lse is None:
        lse = fast.problem_of(q, k, v, *rules).forward(out=o if rules[7] is None else o.zero_()).lse
    return o, lse


def _settled(names: tuple[str, ...], given: tuple[Any, ...]) -> list[Any]:
    return [tensors.settled(x, name) if isinstance(x, Tensor) else x for x, name in zip(given, names)]


def _checked_forward(*given: Any) -> tuple[Tensor, Tensor]:
    """For the dispatcher, which also brings what a caller of the operator gives it without looking."""
    return forward(*_settled(NAMES, given), *given[len(NAMES):])


def _checked_backward(*given: Any) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    names = ("d_o", "d_lse", *NAMES[:3], "o", "lse", *NAMES[3:])
    return backward(*_settled(names, given), *given[len(names):])


def _forward_shapes(q: Tensor, k: Tensor, v: Tensor, *rules: Any) -> tuple[Tensor, Tensor]:
    for x, name in zip((k, v, rules[0]), NAMES[1:]):
        if x is not None:
            tensors.refuse_elsewhere(x, name, q)
    return _new_o(q, v), q.new_empty(q.shape[:-1], dtype=torch.float32)


def backward(d_o: Tensor, d_lse: Tensor | None, q: Tensor, k: Tensor, v: Tensor, o: Tensor, lse: Tensor,
             *rest: Any) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    found = fast.backward(d_o, d_lse, q, k, v, o, lse, *rest)
    if found is not None:
        return found
    *rules, d_mask, d_sinks = rest
    made = new_grads(q, k, v)
    got = fast.problem_of(q, k, v, *rules).backward(d_o, o=o, lse=lse, d_lse=d_lse, d_mask=d_mask, out=made)
    mask, sinks = rules[0], rules[1]
    of_mask = torch.from_numpy(got.d_mask).reshape(mask.shape).to(mask.dtype) if d_mask else None
    of_sinks = torch.from_numpy(got.d_sinks).to(sinks.dtype) if d_sinks else None
    return (*made, of_mask, of_sinks)


def _settled_backward(d_o: Tensor, d_lse: Tensor | None, *rest: Any) -> Any:
    """backward() of what autograd brings, which may be negated, or zeros without memory."""
    return backward(tensors.settled(d_o, "d_o"), None if d_lse is None else tensors.settled(d_lse, "d_lse"), *rest)


def _backward_shapes(d_o: Tensor, d_lse: Tensor, q: Tensor, k: Tensor, v: Tensor, o: Tensor, lse: Tensor,
                     *rest: Any) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    mask, sinks, d_mask, d_sinks = rest[0], rest[1], rest[-2], rest[-1]
    return (*new_grads(q, k, v), mask.new_empty(mask.shape) if d_mask else None,
            sinks.new_empty(sinks.shape) if d_sinks else None)


# ---- Gradients ----------------------------------------------------------------------------------


class _Watch(threading.local):
    """What to call when the gradient of a call of this thread is differentiated again: replaced() counts it."""

    note: Callable[[], None] | None = None


watch = _Watch()


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    q, k, v, *rules = inputs
    ctx.save_for_backward(q, k, v, *output, *rules[:N_TENSORS])
    ctx.numbers = rules[N_TENSORS:]
    ctx.note = watch.note
    ctx.set_materialize_grads(False)


def _differentiate(ctx: Any, d_o: Tensor | None, d_lse: Tensor | None) -> tuple[Any, ...]:
    """Gradients of q, k, v, the mask and the sinks, and None of the other arguments."""
    q, k, v, o, lse, mask, sinks, *others = ctx.saved_tensors
    n_inputs = 3 + N_TENSORS + len(ctx.numbers)
    if d_o is None and d_lse is None:
        return (None,) * n_inputs
    d_o = torch.zeros_like(o) if d_o is None else d_o
    needed, compiling = ctx.needs_input_grad[:5], torch.compiler.is_compiling()
    direct = getattr(ctx, "plain", False) and type(d_o) is Tensor and not compiling
    again = torch.is_grad_enabled() and not compiling  # create_graph=True
    batched = not compiling and (tensors.is_transformed(d_o) or tensors.is_transformed(d_lse))
    if d_lse is None and (again or batched or not direct):
        d_lse = torch.zeros_like(lse)
    got: Any
    if again or batched:
        if again and ctx.note is not None:
            ctx.note()
        got = differentiable(d_o, d_lse, q, k, v, mask, sinks, others, ctx.numbers, needed)
    else:
        call: Any = _settled_backward if direct else torch.ops.qkv.attention_backward
        got = call(d_o, d_lse, q, k, v, o, lse, mask, sinks, *others, *ctx.numbers, mask is not None and needed[3],
                   sinks is not None and needed[4])
    return (*got, *(None,) * (n_inputs - 5))


class Attention(torch.autograd.Function):  # type: ignore[misc,unused-ignore]  # torch may not be there
    """The operator `attention` on plain tensors, without the dispatcher, which takes longer than a small call."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, Tensor]:
        made = forward(*inputs)
        _keep(ctx, inputs, made)
        ctx.plain = True
        return made

    backward = staticmethod(_differentiate)


implement("attention", _checked_forward, "CPU")
implement("attention_backward", _checked_backward, "CPU")
torch.library.register_fake("qkv::attention", _forward_shapes, lib=_library)
torch.library.register_fake("qkv::attention_backward", _backward_shapes, lib=_library)
torch.library.register_autograd("qkv::attention", _differentiate, setup_context=_keep, lib=_library)
