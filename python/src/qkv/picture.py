"""Pictures of heads, by libqkvview: a library of the system, since it draws with cairo and pango."""
from __future__ import annotations

import ctypes
import ctypes.util
import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _c
from ._library import init
from .checked import integer, texts
from .checked import path as path_of
from .checked import text as text_of
from .errors import ArgumentError, ErrorText, UnsupportedError

if TYPE_CHECKING:
    from .heads import Heads

_loaded: list[Any] = []


def _view() -> Any:
    """The library, from QKV_VIEW_LIBRARY or where the system looks for libraries."""
    if not _loaded:
        name = os.environ.get("QKV_VIEW_LIBRARY") or ctypes.util.find_library("qkvview")
        try:
            if name is None:
                raise OSError("the system has none")
            library = ctypes.CDLL(name)
        except OSError as reason:
            raise UnsupportedError(f"pictures need libqkvview, which is no part of this package ({reason}): install "
                                   "the C library, or set QKV_VIEW_LIBRARY to its file. page() needs nothing") from None
        function = library.qkv_view_heatmap_write
        function.restype, function.argtypes = _c.FUNCTIONS["qkv_view_heatmap_write"]
        _loaded.append(function)
    return _loaded[0]


def sees(heads: Heads) -> np.ndarray[Any, Any]:
    """[queries, keys] of bools: which keys a query may see."""
    desc = _c.qkv_attention_desc.from_address(heads._view(0).desc)
    i, j = np.arange(heads.n_queries)[:, None] + heads._q_offset, np.arange(heads.n_keys)[None]
    made = np.ones((heads.n_queries, heads.n_keys), dtype=np.bool_)
    if heads.causal:
        made &= j <= i
    if desc.flags & _c.QKV_SET_WINDOW:
        made &= (j >= i - desc.window_left) if desc.window_left >= 0 else True
        made &= (j <= i + desc.window_right) if desc.window_right >= 0 else True
    return made


PALETTES = ("qkv", "viridis", "cividis", "greys")


class Drawn(NamedTuple):
    """How a picture looks: the fields of qkv_heatmap."""

    palette: str
    values: bool | None
    size: int
    min: float
    max: float
    title: str | None

    def fields(self) -> dict[str, Any]:
        if self.palette not in PALETTES:
            raise ArgumentError(f"palette = {self.palette!r}: must be one of {', '.join(PALETTES)}")
        figures = _c.QKV_FIGURES_AUTO if self.values is None else (
            _c.QKV_FIGURES_ON if self.values else _c.QKV_FIGURES_OFF)
        return {"palette": PALETTES.index(self.palette), "figures": figures, "min": self.min, "max": self.max,
                "size": integer(self.size, "size", ctypes.c_int, least=0)}


def write_heatmap(heads: Heads, head: int, path: str, title: str, drawn: Drawn) -> None:
    """Draws the weights of a head of one layer to a file."""
    fields = drawn.fields()
    write, error = _view(), ErrorText()
    weights = heads.weights(0, head)
    hidden = np.ascontiguousarray(~sees(heads), dtype=np.uint8)
    labels = texts(heads.queries, "queries"), texts(heads.tokens, "tokens")
    made = init(_c.qkv_heatmap, n_rows=heads.n_queries, n_cols=heads.n_keys, weights=weights.ctypes.data,
                row_labels=ctypes.addressof(labels[0]), col_labels=ctypes.addressof(labels[1]),
                title=text_of(heads._title if drawn.title is None else drawn.title, "title"),
                caption=text_of(f"{heads._caption} {title}.", "caption"), **fields)
    if hidden.any():
        made.hidden = hidden.ctypes.data
    error.check(write(ctypes.byref(made), path_of(path, "path"), error.pointer))
