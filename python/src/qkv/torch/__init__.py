"""Attention for torch: the signature and meaning of torch's own, gradients, autocast, torch.compile.

>>> import qkv.torch
>>> o = qkv.torch.scaled_dot_product_attention(q, k, v, is_causal=True)
>>> with qkv.torch.replaced() as r:
...     model(x)

Operators are torch.ops.qkv.attention, attention_backward and scaled_dot_product_attention, on CPU tensors of float32,
bfloat16 and float16. Nothing of len_q x len_k is stored, forward or backward. With the same seed the weights that
dropout makes 0 are the same in both.
"""
from __future__ import annotations

from .calls import attention, scaled_dot_product_attention, varlen_attention
from .modules import MultiheadAttention
from .replaced import replaced

__all__ = ["MultiheadAttention", "attention", "replaced", "scaled_dot_product_attention", "varlen_attention"]
