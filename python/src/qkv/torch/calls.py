"""The calls of qkv.torch: attention with every rule, torch's own signature, and packed sequences."""
from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn.attention.bias import CausalBias, CausalVariant

from .. import tensors
from ..checked import integer, real
from ..errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from ..keywords import keywords
from . import bridge, distances, formula, operators

_C, small, is_grad_enabled, is_compiling = torch._C, bridge.small, torch.is_grad_enabled, torch.compiler.is_compiling
Window = tuple[int | None, int | None]
Causal = bool | Literal["bottom-right"]

# Here keywords have torch's names: what qkv.attention and others call them.
OF_TORCH = {
    "causal": "use is_causal={value!r}",
    "mask": "use attn_mask=",
    "attention_mask": "use attn_mask=",
    "attn_bias": "use attn_mask=, whose numbers are added to the scores",
    "dropout": "use dropout_p={value!r}",
    "enable_gqa": "leave it out, key and value may have fewer heads than query",
    "softmax_scale": "use scale={value!r}",
    "s_aux": "use sinks=",
    "alibi_slopes": "use alibi=",
    "position_bias": "use distance_bias=(numbers [heads or 1, n], before), or attn_mask=",
    "relative_attention_bias": "use distance_bias=(numbers [heads or 1, n], before)",
    "window_size": "use window={value!r}",
    "sliding_window": "use window=(left, right): so many tokens before a query and after it, without its own",
    "lse": "leave it out, lse is always returned",
    "return_lse": "leave it out, lse is always returned",
    "cu_seqlens": "use cu_seqlens_q= of varlen_attention, and cu_seqlens_k= where keys have others",
    "cu_seqlens_q": "it is one of varlen_attention",
    "block_mask": "it is one of qkv.attention",
    "prefix_len": "it is one of qkv.attention",
    "chunk": "it is one of qkv.attention",
    "stats": "it is one of qkv.attention",
}


def _are_tensors(*given: Any) -> None:
    for x, name in zip(given, operators.NAMES):
        if not isinstance(x, Tensor):
            raise DTypeError(f"{name} is of type {type(x).__name__}, and must be a tensor")


def _broadcast(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Query, key and value with the same number of dimensions and the same batches, by views."""
    query, key, value = tensors
    _are_tensors(query, key, value)
    n_dims = query.dim()
    if n_dims == key.dim() == value.dim() == 4 and query.shape[0] == key.shape[0] == value.shape[0]:
        return tensors
    n_dims = max(x.dim() for x in tensors)
    for name, x in zip(("query", "key", "value"), tensors):
        if x.dim() < 2:
            raise ShapeError(f"{name} has {x.dim()} dimensions, and must have at least 2")
    full = tuple(x[(None,) * (n_dims - x.dim())] for x in tensors)
    if n_dims < 4:
        return full
    lead = torch.broadcast_shapes(*(x.shape[:-3] for x in full))
    return tuple(x.expand(*lead, *x.shape[-3:]) for x in full)


def _lower(x: Tensor) -> Tensor:
    """As autocast does: float64 stays."""
    return x if x.dtype == torch.float64 else x.to(torch.get_autocast_dtype("cpu"))


def _seed(dropout_p: float, seed: Tensor | None) -> Tensor | None:
    """A seed of torch's generator, by an operator that torch.compile sees."""
    return torch.randint(0, 2**62, (), dtype=torch.int64, device="cpu") if dropout_p and seed is None else seed


def _numbers(is_causal: Causal, q_offset: int, window: Window | None, scale: float | None, softcap: float | None,
             dropout_p: float) -> tuple[Any, ...]:
    if is_causal not in (False, True, "bottom-right"):
        raise ArgumentError(f'is_causal is {is_causal!r}, and must be a bool or "bottom-right"')
    left, right = (-1, -1) if window is None else (-1 if bound is None else bound for bound in _pair(window))
    if not is_compiling():
        q_offset = _size(q_offset, "q_offset", None)
        left, right = _size(left, "window[0]", -1), _size(right, "window[1]", -1)
        scale, softcap = (None if x is None else real(x, name) for x, name in ((scale, "scale"), (softcap, "softcap")))
        dropout_p = real(dropout_p, "dropout_p")
    if scale == 0:
        raise ArgumentError("scale is 0, and every weight would be the same")
    if softcap == 0:
        raise ArgumentError("softcap is 0, and must be a number above 0, or None")
    return (2 if is_causal == "bottom-right" else int(is_causal), q_offset, left, right, scale or 0.0, softcap or 0.0,
            dropout_p)


def _size(value: Any, name: str, least: int | None) -> Any:
    """A number of tokens; a symbol of a trace is not looked at."""
    return value if isinstance(value, torch.SymInt) else integer(value, name, least=least)


def _given(mask: Any, sinks: Any, alibi: Any, kv_len: Any, seed: Any, segments: tuple[Any, ...] = ()) -> Tensor | None:
    """The mask, integers of 0 and 1 as bools. What is there in place of a tensor is refused."""
    for x, name in ((mask, "attn_mask"), (sinks, "sinks"), (alibi, "alibi"), (kv_len, "kv_len"), (seed, "seed"),
                    *((each, "segments") for each in segments)):
        if x is not None and not isinstance(x, Tensor):
            raise DTypeError(f"{name} is of type {type(x).__name__}, and must be a tensor")
    if seed is not None and (seed.numel() != 1 or seed.is_floating_point() or seed.is_complex()):
        raise ArgumentError(f"seed is of {seed.dtype} {tuple(seed.shape)}, and must be one integer")
    return None if mask is None else tensors.of_zeros_and_ones(mask, "attn_mask")


def _pair(window: Any) -> Window:
    """The bounds of a window. torch.compile reads this, so sizes may be symbols: they are not looked at."""
    if not isinstance(window, (tuple, list)) or len(window) != 2:
        raise ArgumentError(f"window is {window!r}, and must be a pair of numbers, such as (3, 0) for 3 tokens before "
                            "a query")
    return window[0], window[1]


def _refuse_gradients(**tensors: Tensor | None) -> None:
    for name, x in tensors.items():
        if x is not None and x.requires_grad and torch.is_grad_enabled():
            raise UnsupportedError(f"{name} requires a gradient, which is not implemented: pass {name}.detach()")


def _are_plain(*given: Tensor | None) -> bool:
    """Whether nothing of torch wants to see the call: no mode, cast, wrapper, transform or trace."""
    for x in given:
        if x is not None and (type(x) not in tensors.PLAIN or x.is_nested or x.is_neg() or x._is_zerotensor()
                              or tensors.is_transformed(x)):
            return False
    return not (_C._len_torch_dispatch_stack() or _C._len_torch_function_stack()
                or _C._functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0
                or _C._get_tracing_state() is not None)


def _refuse_others(q: Tensor, *others: Tensor | None) -> None:
    """A subclass whose memory is not its elements and that does not see operators; a tensor of another device."""
    for x, name in zip((q, *others), operators.NAMES):
        if x is None:
            continue
        tensors.refuse_unset(x, name)
        if x.dim():  # a seed is one number
            tensors.refuse_elsewhere(x, name, q)


def _by_formula(*given: Tensor | None) -> bool:
    """Whether torch has to differentiate or map the call by itself: inside torch.func, or with a dual tensor."""
    return any(x is not None and (tensors.is_transformed(x) or tensors.has_tangent(x)) for x in given)


def _call(q: Tensor, k: Tensor, v: Tensor, *rules: Any) -> tuple[Tensor, Tensor]:
    """The operator `attention`, and its bits; not through the dispatcher where only the C library has to see it.

    In forward mode and inside torch.func it is the formula in torch's own operators, which torch differentiates.
    """
    given = q, k, v, *rules[:operators.N_TENSORS]
    if is_compiling():
        return torch.ops.qkv.attention(q, k, v, *rules)  # type: ignore[no-any-return,unused-ignore]
    if not _are_plain(*given) or any(x is not None and x.device.type != "cpu" for x in given):
        _refuse_others(*given)
        if _by_formula(*given):
            return formula.transformed(q, k, v, *rules)
        return torch.ops.qkv.attention(q, k, v, *rules)  # type: ignore[no-any-return,unused-ignore]
    if is_grad_enabled() and any(x is not None and x.requires_grad for x in given):
        return operators.Attention.apply(q, k, v, *rules)  # type: ignore[no-any-return,unused-ignore]
    with torch.no_grad():
        return operators.forward(q, k, v, *rules)


def _of_bias(query: Tensor, key: Tensor, mask: Tensor | None, is_causal: Causal) -> tuple[Tensor | None, Causal]:
    """torch's causal bias has no elements: it is a rule."""
    if not isinstance(mask, CausalBias):
        return mask, is_causal
    if is_causal:
        raise ArgumentError("attn_mask is a CausalBias, and is_causal is set: give one of them")
    if (mask.seq_len_q, mask.seq_len_kv) != (query.shape[-2], key.shape[-2]):
        raise ShapeError(f"attn_mask is a CausalBias of {mask.seq_len_q} queries and {mask.seq_len_kv} keys, and there "
                         f"are {query.shape[-2]} and {key.shape[-2]}")
    return None, "bottom-right" if mask.variant == CausalVariant.LOWER_RIGHT else True


@keywords("attention", OF_TORCH)
def attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, *, dropout_p: float = 0.0,
    is_causal: Causal = False, scale: float | None = None, window: Window | None = None, q_offset: int = 0,
    softcap: float | None = None, sinks: Tensor | None = None, alibi: Tensor | None = None,
    kv_len: Tensor | None = None, segments: Tensor | tuple[Tensor, Tensor] | None = None, seed: Tensor | None = None,
    distance_bias: tuple[Tensor, int] | None = None,
) -> tuple[Tensor, Tensor]:
    """(o, lse) of query [..., heads, len_q, dim], key and value [..., kv_heads, len_k, dim].

    attn_mask: bools, numbers that are added, or torch's causal_upper_left and causal_lower_right. Calls in forward mode
    and inside torch.func store len_q x len_k numbers, as gradients of gradients do; there is no dropout in them.

    What torch's own call lacks: a mask together with is_causal, window, q_offset, softcap, sinks [heads], alibi
    [heads], kv_len [batch], segments [batch, len] of int32 (or a pair, of queries and of keys), gradients of the mask,
    of the sinks and by lse, and fewer key/value heads without a copy. Rules are those of qkv.Problem. A seed is a
    tensor of one integer; without one dropout draws it from torch's generator.

    distance_bias is (numbers [heads or 1, before + 1 + after], before), as of qkv.Problem: T5's relative bias. The
    numbers have a gradient, and nothing of len_q x len_k is stored, but in forward mode, torch.func and torch.compile.
    """
    query, key, value = _broadcast(query, key, value)
    attn_mask, is_causal = _of_bias(query, key, attn_mask, is_causal)
    of_queries, of_keys = segments if isinstance(segments, tuple) else (segments, segments)
    attn_mask = _given(attn_mask, sinks, alibi, kv_len, seed, (of_queries, of_keys))
    if torch.is_autocast_enabled("cpu"):
        query, key, value = _lower(query), _lower(key), _lower(value)
    _refuse_gradients(alibi=alibi)
    numbers = _numbers(is_causal, q_offset, window, scale, softcap, dropout_p)
    seed = _seed(dropout_p, seed)
    lead = query.shape[:-3]
    if query.dim() > 4:
        query, key, value = (x.flatten(0, -4) for x in (query, key, value))
        if attn_mask is not None and attn_mask.dim() > 4:
            attn_mask = attn_mask.expand(*lead, *attn_mask.shape[-3:]).flatten(0, -4)
    if distance_bias is None:
        o, lse = _call(query, key, value, attn_mask, sinks, alibi, seed, kv_len, of_queries, of_keys, None, None,
                       *numbers)
    else:
        o, lse = _with_distances(query, key, value, distance_bias, attn_mask, sinks, alibi,
                                 (seed, kv_len, of_queries, of_keys), numbers)
    return (o.unflatten(0, lead), lse.unflatten(0, lead)) if len(lead) > 1 else (o, lse)


def _with_distances(q: Tensor, k: Tensor, v: Tensor, bias: Any, mask: Tensor | None, sinks: Tensor | None,
                    alibi: Tensor | None, others: tuple[Any, ...], numbers: tuple[Any, ...]) -> tuple[Tensor, Tensor]:
    """With a bias by distance, which is a mask of cells where torch has to see the call."""
    given, before = distances.checked(bias, q)
    if alibi is not None:
        raise UnsupportedError("distance_bias together with alibi: put the slopes into its numbers")
    tensors_of = q, k, v, given, mask, sinks, *others
    if not is_compiling() and _are_plain(*tensors_of) and all(x is None or x.device.type == "cpu" for x in tensors_of):
        return distances.attention(q, k, v, given, before, mask, sinks, others, numbers)
    cells = distances.as_mask(given, before, q, k, mask, others[1], numbers[0], numbers[1])
    return _call(q, k, v, cells, sinks, None, *others, None, None, *numbers)


@keywords("varlen_attention", OF_TORCH)
def varlen_attention(
    query: Tensor, key: Tensor, value: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Tensor | None = None, *,
    dropout_p: float = 0.0, is_causal: Causal = False, scale: float | None = None, window: Window | None = None,
    softcap: float | None = None, sinks: Tensor | None = None, alibi: Tensor | None = None,
    kv_len: Tensor | None = None, seed: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """(o, lse) of sequences packed one after another: o [rows, heads, dim_v], lse [heads, rows].

    query [rows, heads, dim], key and value [rows of keys, kv_heads, dim]. cu_seqlens_q [sequences + 1] of integers:
    sequence n is rows cu_seqlens_q[n] to cu_seqlens_q[n + 1] - 1. Without cu_seqlens_k the keys have the same. A query
    sees keys of its own sequence. is_causal counts from each sequence's first query and key; "bottom-right" from the
    last ones, as torch's varlen_attn does. kv_len [sequences] shortens the keys of each. Everything has gradients as in
    `attention`. Rows of no sequence get 0.
    """
    _are_tensors(query, key, value)
    _given(None, sinks, alibi, kv_len, seed)
    for cu, name in ((cu_seqlens_q, "cu_seqlens_q"), (cu_seqlens_k, "cu_seqlens_k")):
        if not isinstance(cu, Tensor) and (cu is not None or name == "cu_seqlens_q"):
            raise DTypeError(f"{name} is of type {type(cu).__name__}, and must be a tensor")
    if query.dim() != 3 or key.dim() != 3 or value.dim() != 3:
        raise ShapeError(f"query, key and value have {query.dim()}, {key.dim()} and {value.dim()} dimensions, and must "
                         "have 3: rows, heads, channels")
    if torch.is_autocast_enabled("cpu"):
        query, key, value = _lower(query), _lower(key), _lower(value)
    _refuse_gradients(alibi=alibi)
    numbers = _numbers(is_causal, 0, window, scale, softcap, dropout_p)
    q, k, v = (x.transpose(0, 1) for x in (query, key, value))
    cu_k = cu_seqlens_q if cu_seqlens_k is None else cu_seqlens_k
    seed = _seed(dropout_p, seed)
    o, lse = _call(q, k, v, None, sinks, alibi, seed, kv_len, None, None, cu_seqlens_q, cu_k, *numbers)
    return o.transpose(0, 1), lse


# ---- torch's signature --------------------------------------------------------------------------


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:
    """As torch.nn.functional.scaled_dot_product_attention, for CPU tensors of float32, bfloat16 and float16.

    Differences: a mask together with is_causal is allowed; key and value may have fewer heads whether or not
    enable_gqa is set. A query that sees no key gets 0, as in torch. Dropout draws other weights than torch's.
    """
    if (attn_mask is None and not dropout_p and scale is None and type(is_causal) is bool and not is_compiling()
            and not _C._is_any_autocast_enabled() and _are_plain(query, key, value)
            and not (is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad))):
        made = small(query, key, value, is_causal)
        if made is not None:
            return made  # type: ignore[no-any-return,unused-ignore]
    return attention(query, key, value, attn_mask, dropout_p=dropout_p, is_causal=is_causal, scale=scale)[0]


# The same as an operator, torch.ops.qkv.scaled_dot_product_attention. Where its first kernel runs, the dispatcher has
# already seen to autocast, transforms, negation, and tensors that are not dense ones of the CPU.

operators.define(
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
    "float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
)


def _composite(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
               is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False) -> Tensor:
    return attention(query, key, value, attn_mask, dropout_p=dropout_p, is_causal=is_causal, scale=scale)[0]


def _first(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
           is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False) -> Tensor:
    if (attn_mask is None and not dropout_p and scale is None and type(query) is type(key) is type(value) is Tensor
            and not (_C._len_torch_dispatch_stack() or forward_ad._current_level >= 0)
            and not (is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad))):
        made = small(query, key, value, is_causal)
        if made is not None:
            return made  # type: ignore[no-any-return,unused-ignore]
    return _composite(query, key, value, attn_mask, dropout_p, is_causal, scale)


def _autocast(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
              is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False) -> Tensor:
    return _composite(query, key, value, attn_mask, dropout_p, is_causal, scale)


operators.implement("scaled_dot_product_attention", _composite, "CompositeImplicitAutograd")
operators.implement("scaled_dot_product_attention", _autocast, "AutocastCPU")
for _key in ("AutogradCPU", "CPU"):
    operators.implement("scaled_dot_product_attention", _first, _key)
