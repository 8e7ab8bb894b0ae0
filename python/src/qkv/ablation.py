"""qkv.transformers.ablated: heads of a model of transformers give nothing, or their mean, for a while."""
from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor

from .checked import Head, a_list, integer, pair
from .errors import ArgumentError, UnsupportedError
from .implementation import by_qkv, of_pipeline, roots_of
from .keywords import OF_ABLATED, keywords
from .places import Places
from .rules import Visibility

_HEADS = re.compile(r"(\d+)\.(\d+|\*)", re.ASCII)
# What stands for all heads of a layer.
_ALL = None
# The attentions of an encoder with a decoder.
_OF_PAIRS = "encoder", "decoder", "cross"


class _OfThread(threading.local):
    """The blocks that this thread is in, the outermost first."""

    blocks: tuple[_Block, ...] = ()


active = _OfThread()


@keywords("ablated", OF_ABLATED)
@contextmanager
def ablated(model: Any, heads: Iterable[Head], *, which: str | None = None,
            by: Literal["zero", "mean"] = "zero") -> Iterator[None]:
    """Ablates heads of a model of transformers, or of a pipeline, in the calls inside a `with`.

    >>> with qkv.transformers.ablated(model, ["3.7", (0, 2), "5.*"]):
    ...     model(**tokenizer("I saw it.", return_tensors="pt"))

    heads         a list of heads, from 0, each "L.H" or (L, H); "L.*" is all heads of layer L. Heads are those of
                  queries, also where several share keys.
    which         "encoder", "decoder" or "cross" of a model that has these.
    by            what a head gives to the output projection: "zero": 0. "mean": the mean of what it gives over the
                  tokens of its text, without padding. Default "zero".

    Gradients are those of the ablated model. Blocks may be nested, and ablate what each of them names; where two name
    the same head, the inner one is last. Inside, the model computes by attn_implementation="qkv"; afterwards, and after
    an exception, by what it had. A block is of its thread: calls of other threads are not ablated. A head that is not
    there is an error of the call that the model ends with, and so is a layer that was not computed by qkv.
    """
    if by not in ("zero", "mean"):
        raise ArgumentError(f'by is {by!r}, and must be "zero" or "mean"')
    model, _ = of_pipeline(model, None)
    roots = roots_of(model)
    pairs = any(getattr(root.config, "is_encoder_decoder", False) for root in roots)
    if pairs and which not in _OF_PAIRS:
        raise _no_such(which, _OF_PAIRS)
    block = _Block(Places(model, roots), _read(heads), which, by)
    with by_qkv(model, roots):
        outer = active.blocks
        try:
            block.install(roots)
            active.blocks = (*outer, block)
            yield
            block.check()
        finally:
            active.blocks = outer
            block.remove()


def _no_such(which: str | None, known: Iterable[str]) -> ArgumentError:
    return ArgumentError(f"which is {which!r}, and must be one of {', '.join(map(repr, known))}")


def _read(heads: Any) -> dict[int, set[int] | None]:
    """The heads of each layer."""
    made: dict[int, set[int] | None] = {}
    for n, each in enumerate(a_list(heads, "heads", "0.1")):
        name = f"heads[{n}]"
        if isinstance(each, str):
            found = _HEADS.fullmatch(each)
            if found is None:
                raise ArgumentError(f"{name} is {each!r}, and must be a head L.H, such as '0.1', or a layer L.*")
            layer, head = int(found[1]), _ALL if found[2] == "*" else int(found[2])
        else:
            first, second = pair(each, name, "(layer, head)")
            layer, head = integer(first, f"{name}[0]", least=0), integer(second, f"{name}[1]", least=0)
        known = made.setdefault(layer, set())
        if head is _ALL or known is None:
            made[layer] = _ALL
        else:
            known.add(head)
    if not made:
        raise ArgumentError("heads is empty, and nothing would be ablated")
    return made


class _Block:
    """One `with`: what is ablated, and which layers were."""

    def __init__(self, places: Places, heads: dict[int, set[int] | None], which: str | None, by: str) -> None:
        self._places, self._heads, self._which, self._by = places, heads, which, by
        self._thread = threading.get_ident()
        self._hooks: list[Any] = []
        self._done: set[int] = set()
        self._kinds: dict[str, type[Any]] = {}
        self._n_heads = 0

    # ---- Calls of the model ----

    def install(self, roots: Iterable[Any]) -> None:
        for root in roots:
            self._hooks.append(root.register_forward_pre_hook(self._begin))
            self._hooks.append(root.register_forward_hook(self._end, always_call=True))

    def remove(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    def _begin(self, module: Any, arguments: Any) -> None:
        if threading.get_ident() == self._thread:
            self._places.begin()

    def _end(self, module: Any, arguments: Any, output: Any) -> None:
        # After an exception there is no output.
        if threading.get_ident() == self._thread and self._places.end() and output is not None:
            self.check()

    def check(self) -> None:
        """Refuses what was to be ablated and was not."""
        counts = self._places.most
        if len(counts) > 1 if self._which is None else counts and self._which not in (*counts, *_OF_PAIRS):
            raise _no_such(self._which, counts)
        n_layers = max(counts.values(), default=0) if self._which is None else counts.get(self._which, 0)
        for layer in sorted(self._heads.keys() - self._done):
            if n_layers and layer >= n_layers:
                head = min(self._heads[layer] or "*")
                raise ArgumentError(f"there is no head {layer}.{head}: layers are 0 to {n_layers - 1}, "
                                    f"heads 0 to {self._n_heads - 1}")
            raise UnsupportedError(f"layer {layer} was not ablated: qkv computed no attention of it inside the block. "
                                   "Call the model there, and without torch.compile and torch.jit")

    # ---- Calls of layers ----

    def ablate(self, module: Any, o: Tensor, rules: Visibility, added: Tensor | None) -> Tensor:
        """o [batch, len_q, heads, dim_v] of a layer's attention, ablated. added: a mask of cells."""
        place = self._places.place(module)
        if place is None:
            return o
        which, layer = place
        if self._kinds.setdefault(which, type(module)) is not type(module):
            raise UnsupportedError(f"{self._kinds[which].__name__} and {type(module).__name__} both count as layers of "
                                   f"{which!r} attention: ablate each of the models by itself")
        if self._which not in (None, which):
            return o
        self._n_heads = o.shape[2]
        if layer not in self._heads:
            return o
        chosen = self._heads[layer]
        index = list(range(o.shape[2])) if chosen is _ALL else sorted(chosen)
        if index[-1] >= o.shape[2]:
            raise ArgumentError(f"there is no head {layer}.{index[-1]}: its layer has heads 0 to {o.shape[2] - 1}")
        at = torch.tensor(index, device=o.device)
        made = o.index_fill(2, at, 0.0) if self._by == "zero" else o.index_copy(
            2, at, _mean(o.index_select(2, at), rules, added))
        self._done.add(layer)
        return made


def _mean(o: Tensor, rules: Visibility, added: Tensor | None) -> Tensor:
    """The mean over the tokens of each row of the batch that are no padding, for all of them."""
    if added is not None:
        raise UnsupportedError('by="mean" with a mask of cells, which does not say what is padding: use by="zero"')
    if rules.packed or rules.len_q != rules.len_k or rules.q_offset != 0:
        raise UnsupportedError(f'by="mean" is over the tokens of one text, and this call has {rules.len_q} queries and '
                               f"{rules.len_k} keys"
                               f"{' of packed sequences' if rules.packed else ''}: call the model on whole texts, "
                               'without a cache, or use by="zero"')
    if rules.seen is None:
        return o.mean(1, keepdim=True).expand_as(o)
    real = torch.from_numpy(rules.seen)[:, :, None, None]
    return ((o * real).sum(1, keepdim=True) / real.sum(1, keepdim=True).clamp(min=1)).expand_as(o)
