"""Pages for a browser, and cells of notebooks that show them."""
from __future__ import annotations

import ctypes
import html
import os
import pathlib
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from . import _c
from ._library import init, lib, string
from .checked import Head, integer, text, texts
from .checked import path as path_of
from .checked import places as places_of
from .errors import ArgumentError, ErrorText, UnsupportedError
from .overview import height_of
from .picture import visible

if TYPE_CHECKING:
    from .heads import Heads

# The height of a notebook's cell.
_PIXELS = 720


# Endings of files: of pages, and of pictures.
PAGES = ".html", ".htm"
PICTURES = ".svg", ".png", ".pdf"


def ending_of(path: str | os.PathLike[str]) -> str:
    """What a file is by the ending of its name, in lower case. Others are refused."""
    try:
        name = os.fsdecode(path)
    except TypeError:
        raise ArgumentError(f"path is {path!r}, and must be the name of a file") from None
    ending = pathlib.PurePath(name).suffix.lower()
    if ending not in PAGES + PICTURES:
        what = f"ends with {ending!r}" if ending else "has no ending"
        raise ArgumentError(f"path is {name!r}, and {what}: it must be .html for a page, or .svg, .png or .pdf for a "
                            "picture")
    return ending


class Page:
    """One HTML file, which needs no network. The last expression of a notebook's cell shows it in a sandboxed frame.

    heads: those whose queries and keys it has. overview: "", or a document of all heads, which a cell shows above.
    """

    def __init__(self, text: str, n_heads: int, n_left_out: int, heads: Sequence[tuple[int, int]] = (),
                 overview: str = "") -> None:
        self.html, self.n_heads, self.n_left_out, self.heads = text, n_heads, n_left_out, list(heads)
        self.overview = overview

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page to a file, whose name ends with .html."""
        if ending_of(path) not in PAGES:
            raise ArgumentError(f"path is {os.fspath(path)!r}, and a page is HTML: its name ends with .html")
        with open(path_of(path, "path"), "wb") as file:  # in a text, Windows would end lines otherwise
            file.write(self.html.encode())

    def _repr_html_(self) -> str:
        above = framed(self.overview, min(height_of(self.overview), _PIXELS // 2), "") if self.overview else ""
        return above + framed(self.html, _PIXELS, "allow-scripts allow-downloads")

    def __repr__(self) -> str:
        return f"<qkv.Page of {self.n_heads} heads, {len(self.html) / 1e6:.2f} MB>"


def framed(document: str, height: int, allowed: str) -> str:
    """A document in a sandboxed frame."""
    return (f'<iframe sandbox="{allowed}" style="width: 100%; height: {height}px; border: 0" '
            f'srcdoc="{html.escape(document, quote=True)}"></iframe>')


class Pictured(Protocol):
    """Heads that a page shows: those of one attention on one text, of one or several layers."""

    n_layers: int
    n_heads: int

    def _at(self, layer: int, head: int) -> tuple[Heads, int]: ...


class Worth(NamedTuple):
    """What heads are worth for a prediction: what was measured, the word and its query ("" and -1: several), ln P of
    the whole model, and by how much that changes without each head, in nats."""

    what: str
    word: str
    query: int
    log_p: float
    changes: list[float]


def write_page(heads: Pictured, chosen: Sequence[Head] | None, limit_bytes: int = 0,
               effects: bool = False) -> Page:
    """The page of heads that are measured: those that are chosen, else all, the most confident first."""
    error = ErrorText()
    kept: list[Any] = []
    places, query = places_of(np.ndindex(heads.n_layers, heads.n_heads) if chosen is None else chosen, "heads"), -1
    if not places:
        raise ArgumentError("heads is empty, and a page shows at least one head")
    lead = heads._at(*places[0])[0]
    if chosen is None:
        places.sort(key=lambda place: -_confidence(*heads._at(*place)))
        if lead._is_run:
            first = init(_c.qkv_heads_choice)
            with lead._reading():
                error.check(lib.qkv_heads_choose(lead._handle, -1, ctypes.byref(first), error.pointer))
            places.sort(key=lambda place: place != (first.layer, first.head))
            query = first.query
    if query < 0:
        query = _first_query(*heads._at(*places[0]))
    rows = (_c.qkv_page_head * len(places))()
    descs = []
    for row, (layer, head) in zip(rows, places):
        part, index = heads._at(layer, head)
        view = part._view(index)
        desc = _c.qkv_attention_desc.from_address(view.desc)
        descs.append(desc)
        row.layer, row.head, row.q, row.k, row.lse = layer, head, view.q, view.k, view.lse
        row.numbers = lib.qkv_heads_numbers(part._handle, index)
        row.label, row.scale = string(lib.qkv_heads_label(row.numbers)).encode() or None, desc.scale
        if desc.flags & _c.QKV_SET_SINKS:
            row.sink = desc.sinks
        kept.append(_set_bias(row, desc))
    rules = _rules_of_all(descs, rows, lead)
    page = init(_c.qkv_page, n=lead.n_keys, head_dim=lead.head_dim, scale=descs[0].scale, query=query,
                n_heads=len(places), heads=ctypes.addressof(rows), head_bytes=ctypes.sizeof(_c.qkv_page_head),
                text_bytes=ctypes.sizeof(_c.qkv_page_text), title=text(lead._title, "title"),
                caption=text(lead._caption, "caption"), limit_bytes=integer(limit_bytes, "limit_bytes", least=0),
                ctx=lead._ctx.handle, made_by=_made_by(lead, effects).encode())
    if effects:
        worth = lead._worth(places)
        for row, change in zip(rows, worth.changes):
            row.effect = change
        page.effect_of, page.effect_word = worth.what.encode(), worth.word.encode() or None
        page.effect_query, page.effect_log_p = worth.query, worth.log_p
    if descs[0].flags & _c.QKV_SET_SOFTCAP:
        page.softcap = descs[0].softcap
    tokens = texts(lead.tokens, "tokens")
    page.tokens = ctypes.addressof(tokens)
    if lead._special is not None:
        page.special = lead._special.ctypes.data
    if lead._image is not None:
        page.image = _image_of(lead._image, kept)
    if not lead.one_text:
        run, names = _c.qkv_page_text(), texts(lead.queries, "queries")
        run.tokens = ctypes.addressof(names)
        page.queries, page.n_queries, page.two_texts = ctypes.addressof(run), lead.n_queries, 1
        kept += [run, names]
    elif lead.n_queries != lead.n_keys:
        run, names = _c.qkv_page_text(), texts(lead.queries, "queries")
        run.tokens = ctypes.addressof(names)
        page.queries, page.n_queries = ctypes.addressof(run), lead.n_queries
        kept += [run, names]
    if lead.one_text and rules is not None:
        page.rules = ctypes.addressof(rules)
    result = init(_c.qkv_page_result)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "page.html")
        with lead._reading():
            error.check(lib.qkv_page_write(ctypes.byref(page), path_of(path, "path"), ctypes.byref(result),
                                           error.pointer))
        written = path.read_bytes().decode()
    shown = places[:int(result.n_heads)]
    return Page(written, int(result.n_heads), len(places) - int(result.n_heads), shown)


def _image_of(address: int, kept: list[Any]) -> int | None:
    """The image that the tokens are of, for the page's view of it; None: its pixels are not known."""
    seen = _c.qkv_image_tokens.from_address(address)
    if not seen.rgb:
        return None
    kept.append(_c.qkv_page_image(pixels=seen.rgb, width=seen.width, height=seen.height, rows=seen.rows,
                                  columns=seen.columns, first=seen.n_prefix))
    return ctypes.addressof(kept[-1])


def _made_by(lead: Heads, effects: bool) -> str:
    """The call that made the page, and what would add effects, if anything does."""
    made = f"`page({'effects=True' if effects else ''})` of `{lead._made_by}`"
    return made if effects or lead._ablate is None else f"{made}; `effects=True` adds effects"


def _confidence(part: Heads, index: int) -> float:
    return float(lib.qkv_head_number_value(lib.qkv_heads_numbers(part._handle, index), b"confidence"))


def _first_query(part: Heads, index: int) -> int:
    """The query that a page shows first; -1: the page's own choice, the first one that is not special.

    Where that one sees a single key, all its weight is there, and says nothing: then it is the query that looks most
    sharply at another token.
    """
    first, end = visible(part, index)
    n_keys = end - first
    ordinary = np.ones(part.n_queries, np.bool_)
    if part._special is not None and part.one_text:
        ordinary = part._special[part._q_offset:part._q_offset + part.n_queries] == 0
    own = int(ordinary.argmax())
    if n_keys[own] > 1 or not (ordinary & (n_keys > 1)).any():
        return -1
    of, wanted = np.zeros(part.n_layers * part.n_heads, np.uint8), (ordinary & (n_keys > 1)).astype(np.uint8)
    of[index] = 1
    found, error = init(_c.qkv_sharpest), ErrorText()
    with part._reading():
        error.check(lib.qkv_heads_sharpest(part._handle, of.ctypes.data, wanted.ctypes.data, None, ctypes.byref(found),
                                           error.pointer))
    return int(found.query)


def _set_bias(row: Any, desc: Any) -> np.ndarray[Any, Any] | None:
    """What is added to a head's scores by distance; the numbers, if they were made here."""
    if desc.flags & _c.QKV_SET_ALIBI:
        row.alibi = ctypes.c_float.from_address(desc.alibi_slopes).value
    if desc.flags & _c.QKV_SET_DISTANCE_BIAS:
        row.distance_bias, row.distance_before, row.distance_after = (desc.distance_bias, desc.distance_before,
                                                                      desc.distance_after)
    if desc.mask_type != _c.QKV_MASK_F32 or not desc.flags & _c.QKV_SET_MASK:
        return None
    cells = np.ctypeslib.as_array((ctypes.c_float * (desc.len_q * desc.len_k)).from_address(desc.mask))
    cells = cells.reshape(desc.len_q, desc.len_k)
    # Numbers of the distances 1 - len_q to len_k - 1 of j - i: the first column upwards, then the first row.
    made = np.concatenate([cells[:0:-1, 0], cells[0]])
    rows = np.lib.stride_tricks.sliding_window_view(made, desc.len_k)[::-1]
    before = desc.len_q - 1 + (desc.q_offset if desc.flags & _c.QKV_SET_Q_OFFSET else 0)
    if not np.array_equal(rows, cells) or not np.isfinite(made).all() or not 0 <= before < len(made):
        raise UnsupportedError("a page shows no position biases but those by distance: see weights() and heads()")
    row.distance_bias, row.distance_before, row.distance_after = made.ctypes.data, before, len(made) - 1 - before
    return made


def _rules_of_all(descs: Sequence[Any], rows: Any, lead: Heads) -> Any:
    """The rules of the page, which are those of all heads; None if every query sees every key.

    Where layers have different windows, each head gets its own.
    """
    position = _c.QKV_SET_CAUSAL | _c.QKV_SET_WINDOW | _c.QKV_SET_Q_OFFSET
    # Of the rules the page takes those by position; scale, soft cap and sinks are fields of their own.
    rules = _c.qkv_attention_desc.from_buffer_copy(descs[0])
    rules.flags &= position
    windows = {(d.window_left, d.window_right) if d.flags & _c.QKV_SET_WINDOW else (-1, -1) for d in descs}
    caps = {d.softcap if d.flags & _c.QKV_SET_SOFTCAP else 0.0 for d in descs}
    if len(caps) > 1:
        raise UnsupportedError(f"layers have soft caps {sorted(caps)}, and a page has one: choose layers with heads=")
    if len(windows) > 1:
        rules.flags &= ~_c.QKV_SET_WINDOW
        for row, desc in zip(rows, descs):
            if desc.flags & _c.QKV_SET_WINDOW:
                row.has_window, row.window_left, row.window_right = 1, desc.window_left, desc.window_right
    return rules if rules.flags & (_c.QKV_SET_CAUSAL | _c.QKV_SET_WINDOW) or lead.n_queries != lead.n_keys else None

