"""Attention for torch: the signature and meaning of torch's own, gradients, autocast, torch.compile.

>>> import qkv.torch
>>> o = qkv.torch.scaled_dot_product_attention(q, k, v, is_causal=True)

Operators are torch.ops.qkv.attention and torch.ops.qkv.attention_backward, on CPU tensors of float32, bfloat16 and
float16. Nothing of len_q x len_k is stored, forward or backward. With the same seed the weights that dropout makes 0
are the same in both. Double backward is not implemented.
"""
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .errors import ArgumentError, ShapeError, UnsupportedError
from .problem import Problem

# A Tensor? of an operator is the mask or the sinks; a window bound of -1 is none; a scale of 0 is 1 / sqrt(dim).
torch.library.define(
    "qkv::attention",
    "(Tensor q, Tensor k, Tensor v, Tensor? mask, Tensor? sinks, Tensor? seed, bool causal, int q_offset, "
    "int window_left, int window_right, float scale, float softcap, float dropout) -> (Tensor, Tensor)",
)
torch.library.define(
    "qkv::attention_backward",
    "(Tensor d_o, Tensor d_lse, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, Tensor? mask, Tensor? sinks, "
    "Tensor? seed, bool causal, int q_offset, int window_left, int window_right, float scale, float softcap, "
    "float dropout, bool d_mask, bool d_sinks) -> (Tensor, Tensor, Tensor, Tensor?, Tensor?)",
)


def _problem(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, sinks: Tensor | None, seed: Tensor | None,
             causal: bool, q_offset: int, window_left: int, window_right: int, scale: float, softcap: float,
             dropout: float) -> Problem:
    return Problem(
        q, k, v, mask=mask, sinks=sinks, causal=causal, q_offset=q_offset or None,
        window=None if window_left < 0 and window_right < 0 else (window_left, window_right), scale=scale or None,
        softcap=softcap or None, dropout=dropout, seed=int(seed) if seed is not None else None)


def _forward(q: Tensor, k: Tensor, v: Tensor, *rules: Any) -> tuple[Tensor, Tensor]:
    made = _problem(q, k, v, *rules).forward()
    return made.o, made.lse


def _forward_shapes(q: Tensor, k: Tensor, v: Tensor, *rules: Any) -> tuple[Tensor, Tensor]:
    return q.new_empty((*q.shape[:-1], v.shape[-1])), q.new_empty(q.shape[:-1], dtype=torch.float32)


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


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    q, k, v, mask, sinks, seed, *numbers = inputs
    ctx.save_for_backward(q, k, v, *output, mask, sinks, seed)
    ctx.numbers = numbers
    ctx.set_materialize_grads(False)


def _differentiate(ctx: Any, d_o: Tensor | None, d_lse: Tensor | None) -> tuple[Any, ...]:
    q, k, v, o, lse, mask, sinks, seed = ctx.saved_tensors
    nothing: tuple[Any, ...] = (None,) * 8
    if d_o is None and d_lse is None:
        return (None,) * 5 + nothing
    d_o = torch.zeros_like(o) if d_o is None else d_o
    d_lse = torch.zeros_like(lse) if d_lse is None else d_lse
    d_mask = mask is not None and ctx.needs_input_grad[3]
    d_sinks = sinks is not None and ctx.needs_input_grad[4]
    got = torch.ops.qkv.attention_backward(d_o, d_lse, q, k, v, o, lse, mask, sinks, seed, *ctx.numbers, d_mask,
                                           d_sinks)
    return (*got, *nothing)


torch.library.impl("qkv::attention", "cpu", _forward)
torch.library.impl("qkv::attention_backward", "cpu", _backward)
torch.library.register_fake("qkv::attention", _forward_shapes)
torch.library.register_fake("qkv::attention_backward", _backward_shapes)
torch.library.register_autograd("qkv::attention", _differentiate, setup_context=_keep)


def _broadcast(*tensors: Tensor) -> list[Tensor]:
    """Query, key and value with the same number of dimensions and the same batches, by views."""
    n_dims = max(x.dim() for x in tensors)
    for name, x in zip(("query", "key", "value"), tensors):
        if x.dim() < 2:
            raise ShapeError(f"{name} has {x.dim()} dimensions, and must have at least 2")
    full = [x[(None,) * (n_dims - x.dim())] for x in tensors]
    if n_dims < 4:
        return full
    lead = torch.broadcast_shapes(*(x.shape[:-3] for x in full))
    return [x.expand(*lead, *x.shape[-3:]) for x in full]


def attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, *, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, window: tuple[int | None, int | None] | None = None,
    q_offset: int = 0, softcap: float | None = None, sinks: Tensor | None = None, seed: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """(o, lse) of query [..., heads, len_q, dim], key and value [..., kv_heads, len_k, dim].

    What torch's own call lacks: a mask together with is_causal, window, q_offset, softcap, sinks, gradients of the
    mask, of the sinks and by lse, and fewer key/value heads without a copy. Rules are those of qkv.Problem. A seed is a
    tensor of one integer; without one dropout draws it from torch's generator.
    """
    query, key, value = _broadcast(query, key, value)
    if torch.is_autocast_enabled("cpu"):
        to = torch.get_autocast_dtype("cpu")
        query, key, value = query.to(to), key.to(to), value.to(to)
    if dropout_p and seed is None:
        seed = torch.randint(0, 2**62, (), dtype=torch.int64)
    if scale == 0:
        raise ArgumentError("scale is 0, and every weight would be the same")
    lead = query.shape[:-3]
    if query.dim() > 4:
        query, key, value = (x.flatten(0, -4) for x in (query, key, value))
        if attn_mask is not None and attn_mask.dim() > 4:
            attn_mask = attn_mask.expand(*lead, *attn_mask.shape[-3:]).flatten(0, -4)
    left, right = (-1 if bound is None else bound for bound in window or (None, None))
    o, lse = torch.ops.qkv.attention(query, key, value, attn_mask, sinks, seed, is_causal, q_offset, left, right,
                                     scale or 0.0, softcap or 0.0, dropout_p)
    return (o.unflatten(0, lead), lse.unflatten(0, lead)) if len(lead) > 1 else (o, lse)


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:
    """As torch.nn.functional.scaled_dot_product_attention, for CPU tensors of float32, bfloat16 and float16.

    Differences: a mask together with is_causal is allowed; key and value may have fewer heads whether or not
    enable_gqa is set. A query that sees no key gets 0, as in torch.
    """
    return attention(query, key, value, attn_mask, dropout_p=dropout_p, is_causal=is_causal, scale=scale)[0]


class MultiheadAttention(torch.nn.MultiheadAttention):  # type: ignore[misc,unused-ignore]  # torch may not be there
    """As torch.nn.MultiheadAttention, whose state dict it loads. Weights are never stored, so it returns (o, None).

    need_weights is False by default, and True is refused: torch.nn.MultiheadAttention stores them, and qkv.heads shows
    them. As in torch, a bool mask says with True who must *not* be seen. is_causal needs no mask. bias_k, bias_v and
    add_zero_attn are refused.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if self.bias_k is not None or self.add_zero_attn:
            raise UnsupportedError("add_bias_kv and add_zero_attn: keys that no token has are not implemented")

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
        need_weights: bool = False, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, None]:
        if need_weights:
            raise UnsupportedError("need_weights=True stores len_q x len_k weights: qkv.heads shows them without")
        batched = query.dim() == 3
        if not batched:
            query, key, value = (x[None] for x in (query, key, value))
            key_padding_mask = None if key_padding_mask is None else key_padding_mask[None]
        elif not self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        q, k, v = (self._heads_of(x, n) for n, x in enumerate((query, key, value)))
        o, _ = attention(q, k, v, self._mask(attn_mask, key_padding_mask, q), is_causal=is_causal,
                         dropout_p=self.dropout if self.training else 0.0)
        o = torch.nn.functional.linear(o.transpose(1, 2).flatten(2), self.out_proj.weight, self.out_proj.bias)
        if not batched:
            return o[0], None
        return (o if self.batch_first else o.transpose(0, 1)), None

    def _heads_of(self, x: Tensor, part: int) -> Tensor:
        """[batch, heads, len, dim] of the projection of queries, keys or values: 0, 1, 2."""
        if self._qkv_same_embed_dim:
            weight = self.in_proj_weight.chunk(3)[part]
        else:
            weight = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)[part]
        bias = None if self.in_proj_bias is None else self.in_proj_bias.chunk(3)[part]
        projected = torch.nn.functional.linear(x, weight, bias)
        return projected.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)

    def _mask(self, mask: Tensor | None, padding: Tensor | None, q: Tensor) -> Tensor | None:
        """One mask of qkv's kind: bools say who is seen, floats are added."""
        if mask is not None and mask.dim() == 3:
            mask = mask.unflatten(0, (q.shape[0], self.num_heads))
        masks = [each for each in (mask, None if padding is None else padding[:, None, None, :]) if each is not None]
        if not masks:
            return None
        if all(each.dtype == torch.bool for each in masks):
            hidden = masks[0] if len(masks) == 1 else masks[0] | masks[1]
            return ~hidden
        added = [q.new_zeros(each.shape).masked_fill_(each, -torch.inf) if each.dtype == torch.bool else each
                 for each in masks]
        return added[0] if len(added) == 1 else added[0] + added[1]
