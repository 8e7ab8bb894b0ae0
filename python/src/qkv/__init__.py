"""qkv: exact scaled dot-product attention, at any length, with the weights if you want to see them.

>>> import numpy, qkv
>>> q, k, v = (numpy.random.rand(1, 8, 1000, 64).astype(numpy.float32) for _ in range(3))
>>> o = qkv.attention(q, k, v, causal=True)

Problem has all rules and calls; KVCache decodes; mask_mod compiles a function to a block mask.
load() opens models, whose look() shows what every head looks at; heads() does so for queries and keys of any model,
and inspect() for a model of transformers during ordinary calls.
"""
from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal

from ._library import lib, string
from .attend import attention
from .blocks import BlockMask, mask_mod
from .cache import KVCache, merge
from .compare import Compared
from .context import Context, context, set_num_threads
from .errors import (
    ArgumentError,
    BusyError,
    CancelledError,
    DTypeError,
    FileError,
    FormatError,
    KeywordError,
    LimitError,
    OutOfMemoryError,
    QkvError,
    ShapeError,
    StrideError,
    UnsupportedError,
)
from .heads import NUMBERS, Heads, Number, Sharpest, heads
from .keywords import OF_INSPECT, Rules
from .keywords import keywords as _keywords
from .maps import Map
from .models import Candidate, Generated, Model, Tokens, load
from .page import Page
from .problem import Forward, Gradients, Problem
from .weights import Weights

if TYPE_CHECKING:
    from .seen import Seen

__version__ = string(lib.qkv_version())
__all__ = [
    "ArgumentError", "BlockMask", "BusyError", "CancelledError", "Candidate", "Compared", "Context", "DTypeError",
    "FileError", "FormatError", "Forward", "Generated", "Gradients", "Heads", "KVCache", "KeywordError",
    "LimitError", "Map", "Model", "NUMBERS", "Number", "OutOfMemoryError", "Page", "Problem", "QkvError", "Rules",
    "ShapeError", "Sharpest", "StrideError", "Tokens", "UnsupportedError", "Weights", "attention", "context",
    "heads", "inspect", "load", "mask_mod", "merge", "set_num_threads",
]


@_keywords("inspect", OF_INSPECT)
def inspect(model: Any, *, tokenizer: Any = None, layers: Sequence[int] | None = None,
            keep: Literal["stats", "qk"] = "stats", received: bool = True) -> AbstractContextManager[Seen]:
    """Watches the heads of a model of transformers, or of a pipeline, in the calls inside a `with`.

    >>> with qkv.inspect(model, tokenizer=tokenizer, keep="qk") as seen:
    ...     model(**tokenizer("I saw it.", return_tensors="pt"))
    >>> seen.table()

    tokenizer     names tokens; without one they have numbers, but that of a pipeline is taken.
    layers        a list of layers, from 0: only these are watched. Default: all.
    keep          "stats": statistics of each query and head, about 50 to 90 bytes. "qk": queries and keys, of which any
                  weight, page, picture or map is made; it says its bytes first. Default "stats".
    received      with keep="stats", True: also what each key receives, by a second pass over the scores. Default True.

    It needs torch and transformers. Inside, the model computes by attn_implementation="qkv".
    """
    from .seen import inspect as of_models

    return of_models(model, tokenizer=tokenizer, layers=layers, keep=keep, received=received)
