"""A model of transformers that computes by attn_implementation="qkv" for a while."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .errors import DTypeError, UnsupportedError


@contextmanager
def by_qkv(model: Any, roots: Sequence[Any]) -> Iterator[None]:
    """Inside, the models `roots` in `model` compute by qkv; afterwards by what they had."""
    from . import transformers as ours

    check_devices(model)
    ours.register()
    before = {id(config): (config, config._attn_implementation_internal) for config in _configs(model)}
    try:
        for root in roots:
            _set(root, ours.NAME)
        yield
    finally:
        for config, implementation in before.values():
            config._attn_implementation_internal = implementation


def of_pipeline(model: Any, tokenizer: Any) -> tuple[Any, Any]:
    """The model of a pipeline of transformers, and its tokenizer, if no other one is given."""
    from transformers import Pipeline

    if not isinstance(model, Pipeline):
        return model, tokenizer
    return model.model, model.tokenizer if tokenizer is None else tokenizer


def roots_of(model: Any) -> list[Any]:
    """The models of transformers in a module that are in no other one."""
    from transformers import PreTrainedModel as kind

    found = [(name, module) for name, module in getattr(model, "named_modules", list)() if isinstance(module, kind)]
    if not found:
        raise UnsupportedError(f"{type(model).__name__} holds no model of transformers: qkv.heads(q, k) shows arrays")
    made: list[tuple[str, Any]] = []
    for name, module in found:
        if not any(name == other or other == "" or name.startswith(other + ".") for other, _ in made):
            made.append((name, module))
    return [module for _, module in made]


def check_devices(model: Any) -> None:
    for name, parameter in model.named_parameters():
        if parameter.device.type != "cpu":
            raise UnsupportedError(f"{name} is on {parameter.device}, and qkv computes on the CPU: call "
                                   'model.to("cpu")')
        if parameter.is_floating_point() and str(parameter.dtype) not in ("torch.float32", "torch.bfloat16",
                                                                          "torch.float16"):
            raise DTypeError(f"{name} is {parameter.dtype}, and qkv computes with float32, bfloat16 and float16: call "
                             "model.float()")


def _configs(model: Any) -> list[Any]:
    """The configurations of a model and of its parts."""
    found: dict[int, Any] = {}

    def add(config: Any) -> None:
        if hasattr(config, "_attn_implementation_internal") and id(config) not in found:
            found[id(config)] = config
            for name in getattr(config, "sub_configs", {}):
                add(getattr(config, name, None))

    for module in model.modules():
        add(getattr(module, "config", None))
    return list(found.values())


def _set(root: Any, name: str) -> None:
    root.set_attn_implementation(name)
    for config in _configs(root):
        if getattr(config, "_attn_implementation_internal", name) not in (name, None):
            raise UnsupportedError(f"{type(root).__name__} has attention of its own, which transformers does not let "
                                   "others replace: qkv.heads(q, k) shows arrays")
