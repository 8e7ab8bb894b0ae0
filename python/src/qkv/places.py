"""Which layer of which attention a module of a model of transformers is, as its calls come."""
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

_CROSS = re.compile(r"cross|encdec|encoder_attn", re.IGNORECASE)


class Places:
    """The attentions of a model: `place` tells which layer of which one calls now.

    begin() and end() are the calls of the model. A module that several layers share is each of them in turn.
    """

    def __init__(self, model: Any, roots: Sequence[Any]) -> None:
        self._roots = list(roots)
        self._modules = {id(module): (name, module) for name, module in model.named_modules()}
        self._found: dict[int, tuple[str, int]] = {}
        self.depth = 0
        # Of one call of the model: how often each module was called, and the layers of each attention so far.
        self._called: dict[int, int] = {}
        self._n_layers: dict[str, int] = {}
        # How many layers each attention has, as far as they were called.
        self.most: dict[str, int] = {}

    def begin(self) -> bool:
        """A call of the model begins: whether it is inside no other one."""
        self.depth += 1
        if self.depth == 1:
            self._called, self._n_layers = {}, {}
        return self.depth == 1

    def end(self) -> bool:
        self.depth -= 1
        return self.depth == 0

    def name(self, module: Any) -> str:
        return str(self._modules[id(module)][0])

    def known(self) -> list[tuple[str, int]]:
        """The places of all modules that are known so far."""
        return list(self._found.values())

    def place(self, module: Any) -> tuple[str, int] | None:
        """Which attention a module is, and the number of its layer; None for those of other models."""
        if id(module) not in self._modules:
            return None
        if id(module) not in self._found:
            self._found.update(_places(self._modules.values(), type(module), self._roots))
        which, index = self._found[id(module)]
        if self.depth > 0:
            # A module that several layers share (ALBERT) is each of them in turn.
            index = self._n_layers.get(which, 0) if self._called.get(id(module)) else index
            self._called[id(module)] = self._called.get(id(module), 0) + 1
            self._n_layers[which] = self._n_layers.get(which, 0) + 1
        self.most[which] = max(self.most.get(which, 0), index + 1)
        return which, index


def _places(modules: Any, kind: type[Any], roots: Sequence[Any]) -> dict[int, tuple[str, int]]:
    """(which, layer) of each attention module of a class. Layers are counted along their names."""
    pair = any(getattr(root.config, "is_encoder_decoder", False) for root in roots)
    found: dict[str, list[int]] = {}
    for name, module in modules:
        if type(module) is kind:
            found.setdefault(re.sub(r"(?<![^.])\d+(?![^.])", "#", name), []).append(id(module))
    named: dict[str, list[str]] = {}
    for pattern in found:
        cross = bool(_CROSS.search(pattern)) or "cross" in kind.__name__.lower()
        which = ("cross" if cross else "self" if not pair else "encoder"
                 if "encoder" in pattern and "decoder" not in pattern else "decoder")
        named.setdefault(which, []).append(pattern)
    made = {}
    for which, patterns in named.items():
        for pattern in patterns:
            label = which if len(patterns) == 1 else pattern.split("#")[0].strip(".")
            made.update({module: (label, n) for n, module in enumerate(found[pattern])})
    return made
