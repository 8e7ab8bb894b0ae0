"""Keywords of attention: their types, what help() says of them, and errors that name the one that was meant."""
from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

from .errors import KeywordError

if TYPE_CHECKING:
    from .blocks import BlockMask
    from .context import Context

Layout = Literal["bhld", "blhd"]
Causal = bool | Literal["top-left", "bottom-right"]
Arithmetic = Literal["auto", "f32", "dp", "amx"]
Window = tuple[int | None, int | None]
Function = TypeVar("Function", bound=Callable[..., Any])
Shown = TypeVar("Shown")


class CacheRules(TypedDict, total=False):
    """Rules of KVCache.attend, besides causal and window: see qkv.attention."""

    scale: float | None
    softcap: float | None
    mask: Any
    q_len: Any
    prefix_len: Any
    chunk: int | None
    segments: Any
    block_mask: BlockMask | None
    alibi: Any
    distance_bias: Any
    sinks: Any
    arithmetic: Arithmetic


class Rules(CacheRules, total=False):
    """Rules of qkv.attention and qkv.Problem. A query sees a key only if every rule that is given allows it.

    `i` counts queries and `j` keys, from 0. Positions, lengths and windows are in tokens. None is the default, and
    means that there is no such rule.

    causal        True or "top-left": j <= i + q_offset. "bottom-right": the last query sees the last key. Default:
                  False.
    window        (left, right), in tokens: -left <= j - (i + q_offset) <= right. None or -1 sets no bound.
    q_offset      position of query 0 among the keys, in tokens, or one for each batch. Default 0.
    mask          broadcast to [batch, heads, len_q, len_k]. Of bool: True lets i see j, and so does 1 of integers 0 and
                  1, as tokenizers make them: tokens["attention_mask"][:, None, None]. Of floats: added to the score.
    kv_len        tokens, [batch] or one number: keys from there on are hidden, and never read. Default len_k.
    q_len         tokens, [batch] or one number: queries from there on are left out; their rows of o are 0.
    prefix_len    tokens, [batch] or one number, with causal: keys before it are seen by all. Default 0.
    chunk         tokens: queries and keys in the same chunk of so many positions see each other.
    segments      [batch, len] of int32, or (of queries, of keys): those of the same number see each other.
    cu_seqlens    [sequences + 1], in rows, or (of queries, of keys): sequences packed one after another. Arrays then
                  have 3 dimensions, [heads, rows, dim], or [rows, heads, dim] with layout "blhd".
    block_mask    a BlockMask, from qkv.mask_mod.

    Scores are <q, k> times scale:

    scale         the factor. Default 1/sqrt(dim).
    softcap       c: scores become c tanh(score / c). Default: no cap.
    alibi         slopes, [heads]: slope (j - i - q_offset) is added.
    distance_bias  (numbers [heads or 1, before + 1 + after], before): number before + n of the head's row is added,
                  n = j - i - q_offset; beyond its ends the first or the last.
    sinks         scores without a key, [heads], which take part in the softmax.
    dropout       0 to 1, the share of weights that become 0. Default 0. It needs a seed.
    seed          0 to 2^64 - 1: the same seed drops the same weights in every call.

    How it is computed:

    layout        "bhld": arrays are [batch, heads, len, dim]. "blhd": lengths come before heads. Default "bhld".
    arithmetic    of bfloat16: "auto", "f32", "dp" or "amx". Default "auto".
    context       a qkv.Context. Default: that of the thread.
    """

    causal: Causal
    window: Window | None
    q_offset: Any
    kv_len: Any
    cu_seqlens: Any
    dropout: float
    seed: int | None
    layout: Layout
    context: Context | None


RULES = frozenset({*CacheRules.__annotations__, *Rules.__annotations__})

# ---- Keywords that are not there -----------------------------------------------------------------

# What other libraries call a rule: torch's scaled_dot_product_attention, FlexAttention and MultiheadAttention, the
# attention of transformers, flash-attn and xformers.
OTHERS = {
    "is_causal": "use causal={value!r}",
    "attn_mask": "use mask=",
    "attention_mask": "use mask=, or kv_len= for padding at the end",
    "attn_bias": "use mask=, whose floats are added to the scores",
    "position_bias": "use distance_bias=, or mask=, whose floats are added to the scores",
    "relative_attention_bias": "use distance_bias=(numbers, before)",
    "key_padding_mask": "use mask=, where True lets a query see a key, or kv_len= for padding at the end",
    "dropout_p": "use dropout={value!r} with seed=",
    "enable_gqa": "leave it out, k and v may have fewer heads than q",
    "softmax_scale": "use scale={value!r}",
    "scaling": "use scale={value!r}",
    "logits_soft_cap": "use softcap={value!r}",
    "alibi_slopes": "use alibi=",
    "s_aux": "use sinks=",
    "window_size": "use window={value!r}",
    "sliding_window": "use window=(left, right): so many tokens before a query and after it, without its own",
    "score_mod": "use mask= for what is added to scores, softcap= or alibi=",
    "mask_mod": "use block_mask=qkv.mask_mod(f, len_q=, len_k=)",
    "seqused_k": "use kv_len=",
    "cu_seqlens_q": "use cu_seqlens=, or a pair (of queries, of keys)",
    "cu_seqlens_k": "use cu_seqlens=(of queries, of keys)",
    "return_lse": "use lse=True",
    "return_attn_probs": "use lse=True, and qkv.Problem(…).weights(lse) for weights",
    "need_weights": "use qkv.Problem(…).weights(lse)",
    "output_attentions": "use qkv.Problem(…).weights(lse)",
}


OF_PROBLEM = {
    **OTHERS,
    "lse": "leave it out, forward() returns it",
    **dict.fromkeys(("stats", "out", "out_dtype"), "it is one of forward()"),
}
# A window of KVCache.attend is a number.
OF_CACHE = {
    **OTHERS,
    **dict.fromkeys(("sliding_window", "window_size"), "use window=, a number of tokens with a query's own"),
}
# What other libraries call what inspect() keeps or shows.
OF_INSPECT = {
    "layer": "use layers=[{value!r}]",
    "output_attentions": 'use keep="qk", and weights(layer, head)',
    "heads": 'use keep="qk", and heads= of page() or save()',
    "batch": "it is seen[b], or batch= of what is asked afterwards",
}
# What others call what ablated() takes.
OF_ABLATED = {
    "layers": 'use heads=["L.*"] for all heads of layer L',
    "head": "use heads=[{value!r}]",
    "ablate": "use by={value!r}",
    "heads_to_prune": 'use heads=["L.H", …]',
}


def unknown(call: str, name: str, value: Any, known: Iterable[str], others: Mapping[str, str]) -> KeywordError:
    """The error for a keyword that a call does not have: it names the one that was meant."""
    hint = others.get(name)
    if hint is not None:
        said = repr(value) if isinstance(value, (bool, int, float, str, tuple)) else "…"
        hint = hint.replace("{value!r}", said if len(said) <= 40 else "…")
        return KeywordError(f"{call}() has no keyword {name}: {hint}")
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1)
    return KeywordError(f"{call}() has no keyword {name}: " + (f"did you mean {near[0]}?" if near else
                                                             f"it has {', '.join(known)}"))


def no_such(what: str, name: Any, known: Sequence[str]) -> str:
    """What an error says of a name that is not in a list."""
    near = difflib.get_close_matches(name, known, n=1) if isinstance(name, str) else []
    return f"{what} has no {name!r}{f' (did you mean {near[0]!r}?)' if near else ''}; it has {', '.join(known)}"


def refuse_unknown(call: str, given: Mapping[str, Any], known: frozenset[str] = RULES, more: Iterable[str] = (),
                   others: Mapping[str, str] = OTHERS) -> None:
    """Refuses a keyword that is not in `known`. `more` has those of the call itself, which are never given here."""
    if given.keys() <= known:
        return
    name, all_known = next(name for name in given if name not in known), {*known, *more}
    hints = {other: hint for other, hint in others.items() if _is_there(hint, all_known)}
    raise unknown(call, name, given[name], all_known, hints)


def _is_there(hint: str, known: set[str]) -> bool:
    """Whether a call has the keyword that a hint names."""
    name = hint.removeprefix("use ").partition("=")[0]
    return name in known or not name.isidentifier()


def keywords(call: str, others: Mapping[str, str] = OTHERS) -> Callable[[Function], Function]:
    """Makes a function that lists its keywords name the one that was meant, where another one is given."""
    def decorated(function: Function) -> Function:
        known = frozenset(inspect.signature(function).parameters)

        @functools.wraps(function)
        def checked(*arguments: Any, **given: Any) -> Any:
            refuse_unknown(call, given, known, (), others)
            return function(*arguments, **given)

        made: Any = checked
        return made  # type: ignore[no-any-return]
    return decorated


# ---- What help() shows ---------------------------------------------------------------------------


def listed(thing: Shown) -> Shown:
    """Adds the list of rules to the documentation of a function or class."""
    thing.__doc__ = f"{inspect.cleandoc(thing.__doc__ or '')}\n\n{inspect.cleandoc(Rules.__doc__ or '')}"
    return thing


def with_rules(of: Callable[..., Any], kind: Any = None) -> Callable[[Function], Function]:
    """Gives a function with **rules the rules of `of` in its signature, or those of `kind`, with their defaults."""
    names = RULES if kind is None else kind.__annotations__

    def decorated(function: Function) -> Function:
        own = inspect.signature(function)
        parts = [part for part in own.parameters.values() if part.kind is not part.VAR_KEYWORD]
        rules = [part for name, part in inspect.signature(of).parameters.items() if name in names]
        shown: Any = function
        shown.__signature__ = own.replace(
            parameters=[*parts, *(part for part in rules if part.name not in own.parameters)])
        return function
    return decorated
