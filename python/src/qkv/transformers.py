"""Attention of transformers' models on this library: `attn_implementation="qkv"`.

>>> import qkv.transformers
>>> model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="qkv")

Padding, causal order, windows, chunks and packed sequences stay rules of O(len) memory. A mask is made of cells only
where a model has a mask function of its own. Key/value heads are read where they are, without repeating them. Forward
and backward store nothing of len_q x len_k; T5's relative bias is read by distance (distances.py).
Models compute on the CPU, in float32, bfloat16 or float16. What cannot be computed is an error that names it.
"""
from __future__ import annotations

import threading
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers import masking_utils as theirs

from . import distances, tensors
from . import torch as ours
from .ablation import ablated as ablated
from .ablation import active
from .checked import integer, real
from .errors import ArgumentError, ShapeError, UnsupportedError
from .problem import Problem
from .rules import RuleMask, Visibility, rules_of
from .torch import bridge, formula, operators

NAME = "qkv"

# Keywords of models that say nothing about weights: places are in the queries and keys already, lengths follow from
# cu_seq_lens, and the others are of other implementations or of what a model returns.
IGNORED = frozenset({
    "position_ids", "cache_position", "max_length_q", "max_length_k", "max_seqlen_q", "max_seqlen_k", "seq_idx",
    "num_items_in_batch", "output_hidden_states", "output_router_logits", "return_dict", "use_cache", "logits_to_keep",
    "deterministic", "kernel_options", "position_embeddings", "labels", "token_type_ids",
})


class Recorder(Protocol):
    """Who wants to see attention calls: qkv.inspect."""

    def wants(self, module: Any, query: Tensor, key: Tensor, rules: Visibility) -> Any:
        """Statistics for Problem.forward, or None."""

    def saw(self, module: Any, problem: Problem, query: Tensor, key: Tensor, lse: Tensor, stats: Any, rules: Visibility,
            scores: dict[str, Any]) -> None:
        """One call."""


class _OfThread(threading.local):
    recorder: Recorder | None = None


watched = _OfThread()


def register() -> None:
    """Makes attn_implementation="qkv" known to transformers, with its mask function.

    The import of this module has done so. Further calls change nothing.
    """
    AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, mask)


# ---- The mask ------------------------------------------------------------------------------------


def _tracing() -> bool:
    jit: Any = torch.jit
    return bool(torch.compiler.is_compiling() or jit.is_tracing())


def mask(batch_size: int, q_length: int, kv_length: int, q_offset: Any = 0, kv_offset: Any = 0,
         mask_function: Any = theirs.causal_mask_function, attention_mask: Tensor | None = None,
         device: Any = "cpu", **options: Any) -> Tensor:
    """The mask of a model's call, [batch, 1, len_q, len_k]: a RuleMask if the function is known, else a bool tensor.

    It is never None: a model without a mask would be one that lost it.
    """
    if not _tracing():
        distances.install(NAME)
    if torch.device(device).type != "cpu":
        raise UnsupportedError(f'the model is on {device}, and qkv computes on the CPU: call model.to("cpu")')
    if not _tracing() and torch._C._functorch.peek_interpreter_stack() is None:  # there no tensor can be read
        found = rules_of(batch_size, q_length, kv_length, q_offset, kv_offset, mask_function, attention_mask)
        if found is not None:
            return RuleMask(found)
    options.update(allow_is_causal_skip=False, allow_is_bidirectional_skip=False)
    cells: Any = theirs.sdpa_mask
    made: Tensor = cells(
        batch_size=batch_size, q_length=q_length, kv_length=kv_length, q_offset=q_offset, kv_offset=kv_offset,
        mask_function=mask_function, attention_mask=attention_mask, device=device, **options)
    return made


# ---- Attention -----------------------------------------------------------------------------------


def attention(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None = None,
    dropout: float = 0.0, scaling: float | None = None, is_causal: bool | None = None,
    sliding_window: int | None = None, softcap: float | None = None, s_aux: Tensor | None = None,
    position_bias: Tensor | distances.DistanceBias | None = None, cu_seq_lens_q: Tensor | None = None,
    cu_seq_lens_k: Tensor | None = None, **others: Any,
) -> tuple[Tensor, None]:
    """What transformers calls for each layer: (o [batch, len_q, heads, dim_v], None).

    query [batch, heads, len_q, dim], key and value [batch, kv_heads, len_k, dim]. attention_mask: None, what mask()
    made, or any tensor of four dimensions, bools that say who is seen or numbers that are added. A tensor is the whole
    rule. With None a module that is causal is so from the first key on, as with "sdpa", and sliding_window is its
    window. s_aux [heads] are scores without a key, position_bias [1 or batch, heads, len_q, len_k] is added to scores;
    that of T5 comes as numbers by distance.
    """
    _check(module, query, others)
    query, key, value = _same_batch(query, key, value)
    if torch.is_autocast_enabled("cpu"):
        query, key, value = (x.to(torch.get_autocast_dtype("cpu")) for x in (query, key, value))
    if not _tracing():  # a tensor would lose its gradient
        scaling, softcap = (None if x is None else real(x, name)
                            for x, name in ((scaling, "scaling"), (softcap, "softcap")))
    cells, rules = _rules(module, query, key, attention_mask, is_causal, sliding_window)
    if cu_seq_lens_q is not None or cu_seq_lens_k is not None:
        rules = _packed(rules, cu_seq_lens_q, cu_seq_lens_k)
    bias, position_bias = _by_distance(position_bias, rules, query, key, value)
    added = cells if position_bias is None else _biased(position_bias, cells)
    if _tracing():
        return _traced(query, key, value, added, s_aux, rules, dropout, scaling, softcap), None
    o = _computed(module, query, key, value, added, s_aux, bias, rules, dropout, scaling, softcap)
    for block in active.blocks:
        o = block.ablate(module, o, rules, cells)
    return o, None


def _by_distance(given: Tensor | distances.DistanceBias | None, rules: Visibility,
                 *of: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """(numbers by distance, position bias of all pairs), of which one is None. Who looks at heads wants all pairs."""
    if not isinstance(given, distances.DistanceBias):
        return None, given
    numbers, len_q, len_k = given.numbers, of[0].shape[2], of[1].shape[2]
    if numbers is None:
        return None, None
    before = len_q - 1 + rules.q_offset
    fits = 0 <= before < numbers.shape[1] == len_q + len_k - 1
    if fits and watched.recorder is None and not _of_torch(numbers, *of):
        return numbers, None
    return None, given.dense(len_q, len_k)


def _computed(module: Any, query: Tensor, key: Tensor, value: Tensor, added: Tensor | None, sinks: Tensor | None,
              bias: Tensor | None, rules: Visibility, dropout: float, scaling: float | None,
              softcap: float | None) -> Tensor:
    """o [batch, len_q, heads, dim_v], with gradients where they are wanted."""
    if bias is None and _of_torch(query, key, value, added, sinks):
        return _by_cells(query, key, value, added, sinks, rules, dropout, scaling, softcap)
    scores = {"scale": scaling, "softcap": softcap or None, "dropout": dropout}
    if dropout:
        scores["seed"] = int(torch.randint(0, 2**62, (), dtype=torch.int64, device="cpu"))
    call = _Call(module, rules, scores)
    given = query, key, value, added, sinks, bias
    if torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in given):
        made: Tensor = _Attention.apply(call, *given)
        return made
    return call.forward(*given)[0]


def _check(module: Any, query: Tensor, others: dict[str, Any]) -> None:
    if query.device.type != "cpu":
        raise UnsupportedError(f'query is on {query.device}, and qkv computes on the CPU: call model.to("cpu")')
    name = type(module).__name__
    for keyword, value in others.items():
        if value is None or value is False or keyword in IGNORED:
            continue
        if keyword == "cache":
            raise UnsupportedError(f"{name} has a paged cache, which qkv does not read: generate without continuous "
                                   'batching, or with attn_implementation="sdpa"')
        if keyword == "output_attentions":
            raise UnsupportedError("output_attentions=True stores len_q x len_k weights of every head, which qkv does "
                                   "not make: use qkv.inspect(model)")
        raise UnsupportedError(f"{name} passes {keyword}, which qkv does not know. It may change the weights, and is "
                               'therefore not ignored: use attn_implementation="sdpa" or "eager"')
    if _wants_weights():
        raise UnsupportedError("output_attentions=True stores len_q x len_k weights of every head, which qkv does not "
                               "make: use qkv.inspect(model)")


try:
    from transformers.utils import output_capturing

    _collector: Any = output_capturing._active_collector

    def _wants_weights() -> bool:
        """Whether the model was called with output_attentions=True, which newer models do not pass on."""
        wanted = _collector.get()
        return bool(wanted) and any(name.endswith("attentions") for name in wanted)
except (ImportError, AttributeError):

    def _wants_weights() -> bool:
        return False


def _same_batch(*given: Tensor) -> list[Tensor]:
    """Queries, keys and values of the same batch, by views: learned queries may have a batch of 1."""
    for name, x in zip(("query", "key", "value"), given):
        if x.dim() != 4:
            raise ShapeError(f"{name} has {x.dim()} dimensions, and must have 4: [batch, heads, len, dim]")
    n = max(x.shape[0] for x in given)
    return [x if x.shape[0] == n else x.expand(n, -1, -1, -1) for x in given]


def _rules(module: Any, query: Tensor, key: Tensor, given: Tensor | None, is_causal: bool | None,
           sliding_window: int | None) -> tuple[Tensor | None, Visibility]:
    """The mask of cells, if there is one, and the rules."""
    batch, len_q, len_k = query.shape[0], query.shape[2], key.shape[2]
    plain = Visibility(batch, len_q, len_k)
    if isinstance(given, RuleMask):
        rules = given.rules
        if (rules.len_q, rules.len_k) != (len_q, len_k):
            raise ShapeError(f"the mask is of {rules.len_q} queries and {rules.len_k} keys, and "
                             f"{type(module).__name__} has {len_q} and {len_k}")
        if rules.batch == batch:
            return None, rules
        return given.rules.dense(), plain
    if given is not None:
        if not isinstance(given, Tensor) or given.dim() != 4:
            shape = tuple(given.shape) if isinstance(given, Tensor) else type(given).__name__
            raise ShapeError(f"attention_mask is {shape}, and must be a tensor [batch, 1 or heads, len_q, len_k]")
        return tensors.of_zeros_and_ones(given, "attention_mask"), plain
    causal = bool(getattr(module, "is_causal", True) if is_causal is None else is_causal)
    if sliding_window and not _tracing():
        sliding_window = integer(sliding_window, "sliding_window", least=1)
    window = (sliding_window - 1,) * 2 if sliding_window and causal else (-1, -1)
    if sliding_window and not causal:
        raise UnsupportedError(f"{type(module).__name__} has sliding_window = {sliding_window} and no mask, and is not "
                               "causal: pass a mask, which says where the window lies")
    if len_q == 1:  # the newest token, which sees all before it
        return None, Visibility(batch, len_q, len_k, q_offset=len_k - 1, window=(window[0], -1))
    return None, Visibility(batch, len_q, len_k, causal=causal, window=(window[0], -1))


def _packed(rules: Visibility, of_queries: Tensor | None, of_keys: Tensor | None) -> Visibility:
    """With sequences that lie one after another, of cu_seq_lens [sequences + 1]."""
    if rules.batch != 1:
        raise UnsupportedError(f"cu_seq_lens are given for a batch of {rules.batch}, and sequences are packed into one")
    ids = []
    for cu, other, length in ((of_queries, of_keys, rules.len_q), (of_keys, of_queries, rules.len_k)):
        cu = other if cu is None else cu
        if cu is None:
            raise ArgumentError("cu_seq_lens_q and cu_seq_lens_k are both None")
        edges = cu.detach().to(torch.int64).numpy()
        if edges.ndim != 1 or edges[0] != 0 or edges[-1] != length or (np.diff(edges) < 0).any():
            raise ArgumentError(f"cu_seq_lens are {edges.tolist()}, and must rise from 0 to {length}")
        ids.append(np.repeat(np.arange(len(edges) - 1), np.diff(edges)).astype(np.int32)[None])
    return rules.also(*ids)


def _biased(bias: Tensor, mask: Tensor | None) -> Tensor:
    """A position bias together with a mask of cells."""
    if mask is None:
        return bias
    return bias.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else bias + mask


def _traced(query: Tensor, key: Tensor, value: Tensor, added: Tensor | None, sinks: Tensor | None, rules: Visibility,
            dropout: float, scaling: float | None, softcap: float | None) -> Tensor:
    """For torch.compile and torch.jit.trace: the operator, which takes a mask of cells and no lists."""
    if rules.seg_q is not None:
        raise UnsupportedError("cu_seq_lens inside torch.compile: pass position_ids alone")
    o, _ = ours.attention(query, key, value, added, dropout_p=dropout, is_causal=rules.causal, scale=scaling,
                          window=rules.window, q_offset=rules.q_offset, softcap=softcap or None, sinks=sinks)
    return o.transpose(1, 2).contiguous()


def _of_torch(*given: Tensor | None) -> bool:
    """Whether torch has to see the call: inside torch.func, of dual tensors, or of subclasses that see operators."""
    return any(x is not None and (tensors.is_transformed(x) or tensors.has_tangent(x) or tensors.wraps(type(x)))
               for x in given)


def _by_cells(query: Tensor, key: Tensor, value: Tensor, added: Tensor | None, sinks: Tensor | None, rules: Visibility,
              dropout: float, scaling: float | None, softcap: float | None) -> Tensor:
    """The operator, with all rules as a mask of cells."""
    cells = rules.dense()
    mask = cells if added is None else added & cells if added.dtype == torch.bool else _biased(added, cells)
    o, _ = ours.attention(query, key, value, mask, dropout_p=dropout, scale=scaling, softcap=softcap or None,
                          sinks=sinks)
    return o.transpose(1, 2).contiguous()


class _Call:
    """One attention call: its rules, what it adds to scores, and after forward() its lse."""

    def __init__(self, module: Any, rules: Visibility, scores: dict[str, Any]) -> None:
        self.module, self.rules, self.scores = module, rules, scores

    def problem(self, query: Tensor, key: Tensor, value: Tensor, added: Tensor | None, sinks: Tensor | None,
                bias: Tensor | None) -> Problem:
        before = query.shape[2] - 1 + self.rules.q_offset
        numbers = None if bias is None else (bias.detach().float(), before)
        return Problem(query, key, value, mask=added, sinks=sinks, distance_bias=numbers, context=bridge.context(),
                       **self.rules.keywords(), **self.scores)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, added: Tensor | None, sinks: Tensor | None,
                bias: Tensor | None) -> tuple[Tensor, Tensor]:
        """(o [batch, len_q, heads, dim_v], lse [batch, heads, len_q])."""
        batch, heads, len_q, _ = query.shape
        o = query.new_empty(batch, len_q, heads, value.shape[-1])
        with torch.no_grad():
            problem = self.problem(query, key, value, added, sinks, bias)
            seen_by = watched.recorder
            stats = None if seen_by is None else seen_by.wants(self.module, query, key, self.rules)
            made = problem.forward(out=o.transpose(1, 2), stats=stats)
            if seen_by is not None:
                seen_by.saw(self.module, problem, query, key, made.lse, made.stats, self.rules,
                            {**self.scores, "added": added, "sinks": sinks})
        return o, made.lse

    def differentiable(self, d_o: Tensor, d_lse: Tensor, query: Tensor, key: Tensor, value: Tensor,
                       added: Tensor | None, sinks: Tensor | None, bias: Tensor | None,
                       needed: tuple[bool, ...]) -> tuple[Tensor | None, ...]:
        """Gradients of the tensors, which have gradients again: by torch's operators, with a mask of cells."""
        numbers = 0, 0, -1, -1, self.scores["scale"] or 0.0, self.scores["softcap"] or 0.0, self.scores["dropout"]
        given = query, key, value, added, sinks
        if bias is None:
            return *formula.differentiable(d_o, d_lse, *given, [None] * 7, numbers, needed, self.rules.dense()), None
        with torch.enable_grad():
            pairs = distances.cells(bias, query.shape[2], key.shape[2])
            all_added = pairs if added is None else _biased(pairs, added)
        wanted = (*needed[:3], needed[3] or needed[5], needed[4])
        got = list(formula.differentiable(d_o, d_lse, query, key, value, all_added, sinks, [None] * 7, numbers, wanted,
                                          self.rules.dense()))
        of_bias = of_added = None
        if needed[5] and got[3] is not None:
            (of_bias,) = torch.autograd.grad(all_added, bias, got[3], create_graph=torch.is_grad_enabled())
        if needed[3] and added is not None and got[3] is not None:
            of_added = got[3].sum_to_size(added.shape)
        return *got[:3], of_added, got[4], of_bias


class _Attention(torch.autograd.Function):  # type: ignore[misc,unused-ignore]  # torch may not be there
    """The call with gradients of queries, keys, values, the mask of cells or position bias, sinks, and a bias by
    distance.
    """

    @staticmethod
    def forward(ctx: Any, call: _Call, *given: Tensor) -> Tensor:
        o, lse = call.forward(*given)
        ctx.save_for_backward(*given, o, lse)
        ctx.call = call
        return o

    @staticmethod
    def backward(ctx: Any, d_o: Tensor) -> tuple[Tensor | None, ...]:
        *given, o, lse = ctx.saved_tensors
        added, sinks, bias = given[3:]
        needed = ctx.needs_input_grad[1:]
        if torch.is_grad_enabled() or tensors.is_transformed(d_o):  # create_graph=True, is_grads_batched=True
            return None, *ctx.call.differentiable(d_o.transpose(1, 2), torch.zeros_like(lse), *given, needed)
        d_mask = added is not None and needed[3]
        d_bias = bias is not None and needed[5]
        got = ctx.call.problem(*given).backward(d_o.transpose(1, 2), o=o.transpose(1, 2), lse=lse, d_mask=d_mask,
                                                d_distance_bias=d_bias, out=operators.new_grads(*given[:3]))
        of_mask = of_sinks = of_bias = None
        if d_mask and got.d_mask is not None:
            of_mask = torch.from_numpy(got.d_mask).to(added.dtype)
        if sinks is not None and needed[4] and got.d_sinks is not None:
            of_sinks = torch.from_numpy(got.d_sinks).to(sinks.dtype)
        if d_bias and got.d_distance_bias is not None:
            of_bias = torch.from_numpy(got.d_distance_bias).to(bias.dtype)
        return None, got.d_q, got.d_k, got.d_v, of_mask, of_sinks, of_bias


register()
