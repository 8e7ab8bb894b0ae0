"""qkv: exact scaled dot-product attention, at any length, with the weights if you want to see them.

>>> import numpy, qkv
>>> q, k, v = (numpy.random.rand(1, 8, 1000, 64).astype(numpy.float32) for _ in range(3))
>>> o = qkv.attention(q, k, v, causal=True)

Problem has all rules and calls; KVCache decodes; mask_mod compiles a function to a block mask.
load() opens models, whose look() shows what every head looks at; heads() does so for queries and keys of any model,
and inspect() for a model of transformers during ordinary calls.
"""
from __future__ import annotations

from typing import Any

from ._library import lib, string
from .attend import attention
from .blocks import BlockMask, mask_mod
from .cache import KVCache, merge
from .context import Context, context, set_num_threads
from .errors import (
    ArgumentError,
    BusyError,
    CancelledError,
    DTypeError,
    FileError,
    FormatError,
    LimitError,
    OutOfMemoryError,
    QkvError,
    ShapeError,
    StrideError,
    UnsupportedError,
)
from .heads import NUMBERS, Heads, Number, Sharpest, heads
from .models import Candidate, Generated, Model, Tokens, load
from .page import Page
from .problem import Forward, Gradients, Problem

__version__ = string(lib.qkv_version())
__all__ = [
    "ArgumentError", "BlockMask", "BusyError", "CancelledError", "Candidate", "Context", "DTypeError",
    "FileError", "FormatError", "Forward", "Generated", "Gradients", "Heads", "KVCache", "LimitError",
    "Model", "NUMBERS", "Number", "OutOfMemoryError", "Page", "Problem", "QkvError", "ShapeError", "Sharpest",
    "StrideError", "Tokens", "UnsupportedError", "attention", "context", "heads", "inspect", "load", "mask_mod",
    "merge", "set_num_threads",
]


def inspect(model: Any, **options: Any) -> Any:
    """Watches the heads of a model of transformers: see qkv.seen.inspect, which needs torch and transformers.

    >>> with qkv.inspect(model, tokenizer=tokenizer, keep="qk") as seen:
    ...     model(**tokenizer("I saw it.", return_tensors="pt"))
    >>> seen.heads()
    """
    from .seen import inspect as of_models

    return of_models(model, **options)
