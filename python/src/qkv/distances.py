"""T5's relative bias for qkv.transformers: numbers by distance, in place of a tensor of len_q x len_k.

transformers' T5Attention makes that tensor in its first layer, and hands it to the others; cross-attention gets one of
zeros. With attn_implementation="qkv" both are a DistanceBias, which our attention reads; nothing else does. The classes
are changed once, when a model of theirs is first run with qkv; with other implementations they do as ever.
"""
from __future__ import annotations

import sys
from typing import Any

import torch
from torch import Tensor

_MODULES = {"transformers.models.t5.modeling_t5": "T5Attention", "transformers.models.mt5.modeling_mt5": "MT5Attention"}


class DistanceBias:
    """Number j - i + len_q - 1 of a head's row is added to the score of query i and key j; numbers None: 0 is."""

    requires_grad = False  # what transformers asks tensors

    def __init__(self, numbers: Tensor | None) -> None:
        self.numbers = numbers  # [heads, len_q + len_k - 1]

    def dense(self, len_q: int, len_k: int) -> Tensor | None:
        """[1, heads, len_q, len_k], with the gradient of the numbers."""
        return None if self.numbers is None else cells(self.numbers, len_q, len_k)


def cells(numbers: Tensor, len_q: int, len_k: int) -> Tensor:
    i, j = torch.arange(len_q, device=numbers.device)[:, None], torch.arange(len_k, device=numbers.device)
    return numbers[:, j - i + len_q - 1][None]


def _is_ours(module: Any, name: str) -> bool:
    """Whether this attention is computed by qkv, and its bias is read by nobody else."""
    jit: Any = torch.jit
    traced = torch.compiler.is_compiling() or jit.is_tracing()
    if traced or torch._C._functorch.peek_interpreter_stack() is not None:
        return False
    return module.config._attn_implementation == name and not (module.training and module.gradient_checkpointing)


def _changed(theirs: Any, name: str) -> None:
    """The class with our bias, under the name of our implementation."""
    compute_bias, forward = theirs.compute_bias, theirs.forward

    def ours(self: Any, query_length: Any, key_length: Any, device: Any = None, past_seen_tokens: Any = 0) -> Any:
        if not _is_ours(self, name) or type(past_seen_tokens) is not int:
            return compute_bias(self, query_length, key_length, device=device, past_seen_tokens=past_seen_tokens)
        weight = self.relative_attention_bias.weight
        places = torch.arange(1 - query_length - past_seen_tokens, key_length - past_seen_tokens, device=weight.device)
        buckets = self._relative_position_bucket(
            places, bidirectional=not self.is_decoder, num_buckets=self.relative_attention_num_buckets,
            max_distance=self.relative_attention_max_distance)
        return DistanceBias(self.relative_attention_bias(buckets).transpose(0, 1))

    def call(self: Any, hidden_states: Any, mask: Any = None, key_value_states: Any = None, position_bias: Any = None,
             *others: Any, **more: Any) -> Any:
        if position_bias is None and not self.has_relative_attention_bias and _is_ours(self, name):
            position_bias = DistanceBias(None)
        return forward(self, hidden_states, mask, key_value_states, position_bias, *others, **more)

    theirs.compute_bias, theirs.forward, theirs._qkv_bias = ours, call, True


def install(name: str) -> None:
    """Changes the classes that are loaded and have not been changed."""
    for module, attention in _MODULES.items():
        theirs = getattr(sys.modules.get(module), attention, None)
        if theirs is not None and "_qkv_bias" not in vars(theirs) and hasattr(theirs, "compute_bias"):
            _changed(theirs, name)
