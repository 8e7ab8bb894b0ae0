"""Modules of qkv.torch, whose state dicts are those of torch's."""
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .. import tensors
from ..errors import DTypeError, UnsupportedError
from .calls import attention


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
        for name, x in (("attn_mask", attn_mask), ("key_padding_mask", key_padding_mask)):
            if x is not None:
                tensors.refuse_unset(x, name)
                if x.dtype != torch.bool and not x.is_floating_point():
                    raise DTypeError(f"{name} is {str(x.dtype)[6:]}, and must be bool, where True hides a key as in "
                                     "torch, or floats that are added")
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
        made: Tensor = projected.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)
        return made

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
