"""Pages for a browser, and cells of notebooks that show them."""
from __future__ import annotations

import ctypes
import html
import pathlib
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _c
from ._library import init, lib
from .errors import ErrorText

if TYPE_CHECKING:
    from .heads import Heads

# The height of a notebook's cell.
_PIXELS = 720


class Page:
    """One HTML file, which needs no network. The last expression of a notebook's cell shows it in a sandboxed frame."""

    def __init__(self, text: str, n_heads: int, n_left_out: int) -> None:
        self.html, self.n_heads, self.n_left_out = text, n_heads, n_left_out

    def save(self, path: str | pathlib.Path) -> None:
        pathlib.Path(path).write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        return (f'<iframe sandbox="allow-scripts allow-downloads" style="width: 100%; height: {_PIXELS}px; border: 0" '
                f'srcdoc="{html.escape(self.html, quote=True)}"></iframe>')

    def __repr__(self) -> str:
        return f"<qkv.Page of {self.n_heads} heads, {len(self.html) / 1e6:.2f} MB>"


def _texts(texts: Sequence[str]) -> Any:
    return (ctypes.c_char_p * len(texts))(*(text.encode("utf-8", "surrogateescape") for text in texts))


def write_page(heads: Heads, chosen: Sequence[tuple[int, int]] | None, limit_bytes: int = 0) -> Page:
    """The page of heads that are measured: those that are chosen, else all, the most confident first."""
    error, kept = ErrorText(), []
    places, query = list(chosen or np.ndindex(heads.n_layers, heads.n_heads)), -1
    if not chosen:
        confidence = heads.numbers()["confidence"]
        places.sort(key=lambda place: -confidence[place])
        if heads._is_run:
            first = init(_c.qkv_heads_choice)
            error.check(lib.qkv_heads_choose(heads._handle, -1, ctypes.byref(first), error.pointer))
            places.sort(key=lambda place: place != (first.layer, first.head))
            query = first.query
    rows = (_c.qkv_page_head * len(places))()
    scale = 0.0
    for row, (layer, head) in zip(rows, places):
        index, view = heads._index(layer, head), init(_c.qkv_head_view)
        error.check(lib.qkv_heads_view(heads._handle, index, ctypes.byref(view), error.pointer))
        desc = _c.qkv_attention_desc.from_address(view.desc)
        scale = scale or desc.scale
        row.layer, row.head, row.q, row.k, row.lse = layer, head, view.q, view.k, view.lse
        row.numbers = lib.qkv_heads_numbers(heads._handle, index)
        row.label, row.scale = heads.label(layer, head).encode() or None, desc.scale
    # Of the rules the page takes those by position; the scale is a field of its own.
    rules = _c.qkv_attention_desc.from_buffer_copy(desc)
    rules.flags &= ~_c.QKV_SET_SCALE
    page = init(_c.qkv_page, n=heads.n_keys, head_dim=heads.head_dim, scale=scale, query=query, n_heads=len(places),
                heads=ctypes.addressof(rows), head_bytes=ctypes.sizeof(_c.qkv_page_head),
                run_bytes=ctypes.sizeof(_c.qkv_page_run), title=heads._title.encode(), caption=heads._caption.encode(),
                limit_bytes=limit_bytes)
    tokens = _texts(heads.tokens)
    page.tokens = ctypes.addressof(tokens)
    if heads._special is not None:
        page.special = heads._special.ctypes.data
    if not heads.one_text:
        run, texts = _c.qkv_page_run(), _texts(heads.queries)
        run.tokens = ctypes.addressof(texts)
        page.queries, page.n_queries, page.two_texts = ctypes.addressof(run), heads.n_queries, 1
        kept += [run, texts]
    elif not heads._sees_all:
        page.rules = ctypes.addressof(rules)
    result = init(_c.qkv_page_result)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "page.html")
        error.check(lib.qkv_page_write(ctypes.byref(page), str(path).encode(), ctypes.byref(result), error.pointer))
        text = path.read_text(encoding="utf-8")
    return Page(text, int(result.n_heads), len(places) - int(result.n_heads))
