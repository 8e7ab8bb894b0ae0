"""Tensors of torch: which of them hold their elements in memory, where qkv reads them, and why others do not.

A subclass may say for itself what its elements are, and leave its memory unset. Inside torch.func, in a FakeTensorMode
or on the meta device the memory is another one, or there is none. A dual tensor has a tangent, a negated one is the
negative of its memory.
"""
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from .errors import ArgumentError, DTypeError, UnsupportedError

PLAIN = Tensor, torch.nn.Parameter
_functorch: Any = torch._C._functorch
_is_new: Any = _functorch.is_functorch_wrapped_tensor
# of is_grads_batched=True and vectorize=True, which have a vmap of their own
_is_old: Any = getattr(_functorch, "is_legacy_batchedtensor", lambda x: False)
_is_functional: Any = getattr(torch, "_is_functional_tensor", lambda x: False)


def _bare(method: Any) -> Any:
    """A method of a class without the class."""
    return getattr(method, "__func__", method)


_any: Any = Tensor
_FUNCTIONS = _bare(_any.__torch_function__), torch._C._disabled_torch_function_impl
_DISPATCH = _bare(_any.__torch_dispatch__)


def wraps(kind: Any) -> bool:
    """Whether a subclass sees every operator by __torch_dispatch__."""
    return kind not in PLAIN and _bare(kind.__torch_dispatch__) is not _DISPATCH


def says_for_itself(kind: Any) -> bool:
    """Whether a subclass has functions of its own in place of torch's, so that its memory need not be its elements."""
    return kind not in PLAIN and (_bare(kind.__torch_function__) not in _FUNCTIONS or wraps(kind))


def is_transformed(x: Tensor | None) -> bool:
    """Whether it is a value of torch.func: of grad, jvp, vmap or functionalize."""
    return x is not None and bool(_is_new(x) or _is_old(x))


def has_tangent(x: Tensor) -> bool:
    return forward_ad._current_level >= 0 and not is_transformed(x) and forward_ad.unpack_dual(x).tangent is not None


def why_not(x: Tensor) -> str | None:
    """Why the memory of a tensor is not its elements; None: it is, but for a sign (settled())."""
    if is_transformed(x) or _is_functional(x):
        return "a value inside torch.func, and has no memory of its own: call qkv.torch.attention there"
    if says_for_itself(type(x)):
        name = type(x).__name__
        more = ' (causal=True or causal="bottom-right" says the same)' if name == "CausalBias" else ""
        return f"a {name}, which says for itself what its elements are{more}: pass a torch.Tensor"
    if x.is_nested:
        return "a nested tensor: pass the sequences with cu_seqlens, or padded"
    if has_tangent(x):
        return "a dual tensor, whose tangent would be lost: call qkv.torch.attention, or unpack_dual first"
    return None


def refuse_unset(x: Tensor, name: str) -> None:
    """Refuses a subclass whose memory need not be its elements, and which does not see operators either."""
    if says_for_itself(type(x)) and not wraps(type(x)):
        raise UnsupportedError(f"{name} is {why_not(x)}")


def refuse_elsewhere(x: Tensor, name: str, query: Tensor) -> None:
    """Refuses a tensor of another device than the query: one without elements would make an o that is not set."""
    if x.device != query.device:
        raise DTypeError(f"{name} is on {x.device}, and query is on {query.device}: they must be on the same")


def array_of(x: Tensor) -> Any:
    """A plain tensor as an array of NumPy, also where torch.func would make a value of its own of it."""
    bare: Any = torch._C
    with bare._DisableFuncTorch():
        return x.detach().numpy()


def of_zeros_and_ones(mask: Tensor, name: str) -> Tensor:
    """A mask, integers of 0 and 1 as bools: torch's operators would add them to scores."""
    if mask.dtype == torch.bool or mask.is_floating_point() or mask.is_complex():
        return mask
    plain = not (torch.compiler.is_compiling() or torch.jit.is_tracing()) and why_not(mask) is None
    if plain and mask.device.type == "cpu" and bool(((mask != 0) & (mask != 1)).any()):
        raise ArgumentError(f"{name} is {str(mask.dtype)[6:]} and has numbers other than 0 and 1, which sees; numbers "
                            "that are added to scores are floats")
    return mask != 0


def settled(x: Tensor, name: str) -> Tensor:
    """The tensor, with its sign and zeros written out, if its memory is its elements; else an error that says why."""
    reason = why_not(x)
    if reason is not None:
        raise UnsupportedError(f"{name} is {reason}")
    if x.device.type != "cpu":
        hint = "it has no elements" if x.device.type == "meta" else f"pass {name}.cpu()"
        raise DTypeError(f"{name} is on {x.device}, and qkv computes on the CPU: {hint}")
    if x.layout != torch.strided:
        raise DTypeError(f"{name} has layout {x.layout}, and qkv reads strided tensors: pass {name}.to_dense()")
    if x._is_zerotensor():
        return torch.zeros(x.shape, dtype=x.dtype, device="cpu")
    return x.resolve_neg() if x.is_neg() else x  # an operator would make a value of torch.func of it
