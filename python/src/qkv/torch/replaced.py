"""A mode in which torch's attention is computed by qkv, whatever name it was imported by.

>>> with qkv.torch.replaced() as r:
...     model(x)
>>> r.calls, r.fallbacks
(12, {'dtype float64': 1})

torch.overrides.TorchFunctionMode sees each call of torch's functions in this thread, before torch does. A mode also
keeps nn.MultiheadAttention, TransformerEncoderLayer and TransformerEncoder of this thread off their fused operators:
they ask has_torch_function, which is true inside a mode. So torch.backends.mha.set_fastpath_enabled, which is one
switch for all threads, is never touched.

Python functions of torch run outside of the mode that has seen them. The one that calls attention,
multi_head_attention_forward, is therefore run as a copy of torch's own function, with another function under the name
scaled_dot_product_attention. Nothing of torch is changed.
"""
from __future__ import annotations

import inspect
import itertools
import types
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import functional
from torch.nn.attention.bias import CausalBias
from torch.overrides import TorchFunctionMode

from .. import tensors
from ..errors import QkvError, UnsupportedError
from . import calls, operators

_SDPA: Callable[..., Tensor] = functional.scaled_dot_product_attention
_MHA: Callable[..., Any] = functional.multi_head_attention_forward
_NEED_WEIGHTS = list(inspect.signature(_MHA).parameters).index("need_weights")
_FLOATS = torch.float32, torch.bfloat16, torch.float16
# Operators that compute a whole layer: called by name they stay torch's.
_FUSED = {
    getattr(torch, name): f"the fused operator {name}"
    for name in ("_native_multi_head_attention", "_transformer_encoder_layer_fwd") if hasattr(torch, name)
}
_ATEN = torch.ops.aten.scaled_dot_product_attention, torch.ops.aten.scaled_dot_product_attention.default


def _reason_of_tensor(x: Any) -> str | None:
    """Why qkv.torch cannot take this query, key or value."""
    if not isinstance(x, Tensor):
        return "not a tensor"
    if x.is_nested:
        return "nested tensor"
    if x.layout != torch.strided:
        return f"layout {x.layout}"
    if x.device.type != "cpu":
        return f"device {x.device.type}"
    if x.dtype not in _FLOATS:
        return f"dtype {str(x.dtype)[6:]}"
    if not torch.compiler.is_compiling() and type(x) not in tensors.PLAIN:
        return f"tensor subclass {type(x).__name__}"
    if x.dim() < 2:
        return "fewer than 2 dimensions"
    return None


def _reason_of_mask(mask: Any, query: Tensor, is_causal: bool) -> str | None:
    if mask is None:
        return None
    if not isinstance(mask, Tensor):
        return "not a tensor"
    if is_causal:
        return "attn_mask with is_causal"
    if not torch.compiler.is_compiling() and type(mask) not in (*tensors.PLAIN, CausalBias):
        return f"attn_mask of tensor subclass {type(mask).__name__}"
    if mask.is_nested or mask.layout != torch.strided or mask.device.type != "cpu":
        return "attn_mask that is nested, sparse or on a device"
    if mask.dtype not in (torch.bool, torch.float32, query.dtype):
        return f"attn_mask of {str(mask.dtype)[6:]}"
    return None


def _reason_of_shapes(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool) -> str | None:
    """What torch refuses or broadcasts in another way."""
    if len({x.dtype for x in (query, key, value)}) > 1:
        return "different dtypes"
    heads = [x.shape[-3] if x.dim() > 2 else 1 for x in (query, key, value)]
    if heads[1] != heads[2] or (heads[1] != heads[0] and not enable_gqa and heads[1] != 1):
        return "heads of key or value differ"
    return None


def _reason_of_transform(tensors: tuple[Tensor, ...]) -> str | None:
    if torch.compiler.is_compiling():
        return None
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return "functorch transform"
    if forward_ad._current_level >= 0 and any(forward_ad.unpack_dual(x).tangent is not None for x in tensors):
        return "forward-mode gradient"
    return None


def _reason(query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
            scale: float | None = None, enable_gqa: bool = False) -> str | None:
    """Why torch computes this call itself; None: qkv does."""
    for x in (query, key, value):
        found = _reason_of_tensor(x)
        if found is not None:
            return found
    if scale == 0:
        return "scale 0"
    return (_reason_of_mask(attn_mask, query, is_causal) or _reason_of_shapes(query, key, value, enable_gqa)
            or _reason_of_transform((query, key, value, *(() if attn_mask is None else (attn_mask,)))))


# A count that compiled code changed would be one of its guards: the code would be compiled anew for each call.
_numbers = itertools.count()
_modes: weakref.WeakValueDictionary[int, replaced] = weakref.WeakValueDictionary()


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator,unused-ignore]
def _count_while_tracing(number: int, reason: str | None) -> None:
    """Runs once, while a call is traced, and is no part of what is compiled."""
    _modes[number]._add(reason)


class replaced(TorchFunctionMode):  # type: ignore[misc,unused-ignore]  # noqa: N801  # named as what it does
    """Inside `with replaced() as r:` torch's attention is qkv's, in this thread.

    Every name of torch.nn.functional.scaled_dot_product_attention is meant, torch.ops.aten's among them, and the
    attention inside torch.nn's modules. What qkv cannot compute as torch means it goes to torch.

    r.calls       how many calls qkv computed
    r.fallbacks   reason -> how many calls torch computed. "weights": nn.MultiheadAttention was asked for them.
                  "double backward": the gradient of a call was made differentiable, by torch's operators.
    strict        True: what would go to torch raises UnsupportedError.

    Under torch.compile calls are counted when they are traced. Scripted modules (torch.jit) run without Python, and
    keep torch's attention. Dropout has torch's distribution, and draws other weights.
    """

    def __init__(self, strict: bool = False) -> None:
        super().__init__()
        self.strict = strict
        self._number = next(_numbers)
        _modes[self._number] = self
        self.calls = 0
        self.fallbacks: dict[str, int] = {}
        # torch's own function, which finds our attention under its name
        names = {**_MHA.__globals__, "has_torch_function": lambda _: False,
                 "scaled_dot_product_attention": self._attend}
        self._mha = types.FunctionType(_MHA.__code__, names, _MHA.__name__, _MHA.__defaults__)
        self._mha.__kwdefaults__ = _MHA.__kwdefaults__

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is _SDPA or func in _ATEN:
            return self._attend(*args, **kwargs)
        if func is _MHA:
            return self._layer(*args, **kwargs)
        if func in _FUSED:
            self._count(_FUSED[func])
        return func(*args, **kwargs)

    def _attend(self, *args: Any, **kwargs: Any) -> Any:
        reason = _reason(*args, **kwargs)
        if reason is None:
            watch = operators.watch
            before, watch.note = watch.note, self._note
            try:
                o = calls.scaled_dot_product_attention(*args, **kwargs)
                self._count(None)
                return o
            except QkvError as error:
                reason = str(error)
            finally:
                watch.note = before
        self._count(reason)
        return _SDPA(*args, **kwargs)

    def _layer(self, *args: Any, **kwargs: Any) -> Any:
        if args[_NEED_WEIGHTS] if len(args) > _NEED_WEIGHTS else kwargs.get("need_weights", True):
            self._count("weights")
            return _MHA(*args, **kwargs)
        return self._mha(*args, **kwargs)

    def _note(self) -> None:
        self._count("double backward")

    def _count(self, reason: str | None) -> None:
        """Counts a call that qkv computed (None), or one that torch will."""
        if reason is not None and self.strict:
            raise UnsupportedError(f"replaced(strict=True), and torch would compute this: {reason}")
        if torch.compiler.is_compiling():
            _count_while_tracing(self._number, reason)
        else:
            self._add(reason)

    def _add(self, reason: str | None) -> None:
        if reason is None:
            self.calls += 1
        else:
            self.fallbacks[reason] = self.fallbacks.get(reason, 0) + 1
