"""All heads at a glance, above the page in a notebook's cell: a thumbnail, the label and the numbers of each.

A page holds queries and keys, of as many heads as have room. The overview holds none: a head takes about 0.7 kB. It is
HTML without scripts, in a frame of its own.
"""
from __future__ import annotations

import base64
import ctypes
import html
import struct
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _c
from ._library import lib, string
from .errors import ErrorText

if TYPE_CHECKING:
    from .heads import Heads
    from .page import Pictured

# Cells of a thumbnail, at most, and its pixels.
_SIDE, _PIXELS = 16, 32
_STYLE = """body{font:12px system-ui,sans-serif;margin:8px;color:#222;background:#fff}
.row{display:flex;flex-wrap:wrap;align-items:center;margin:2px 0}.row b{width:3em}
figure{margin:1px;padding:1px;border:1px solid #ddd;width:34px}figure.in{border-color:#06c}
img{display:block;width:32px;height:32px;image-rendering:pixelated}
figcaption{font-size:7px;height:9px;overflow:hidden;text-align:center}
table{border-collapse:collapse}td,th{padding:0 5px;text-align:right;white-space:nowrap}"""


def _png(cells: np.ndarray[Any, Any]) -> str:
    """A grey picture of weights as a data URI: 0 is white, 1 is black, and what is hidden is light grey."""
    grey = np.where(cells < 0, 232, 255 - np.round(255 * np.clip(np.sqrt(np.maximum(cells, 0)), 0, 1))).astype(np.uint8)
    lines = b"".join(b"\0" + row.tobytes() for row in grey)
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", cells.shape[1], cells.shape[0], 8, 0, 0, 0, 0)),
              (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b"")]
    made = b"\x89PNG\r\n\x1a\n"
    for kind, data in chunks:
        made += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return "data:image/png;base64," + base64.b64encode(made).decode()


def _thumbnail(part: Heads, index: int) -> str:
    tile = max(1, -(-max(part.n_queries, part.n_keys) // _SIDE))
    shape = -(-part.n_queries // tile), -(-part.n_keys // tile)
    cells, error = np.zeros(shape, dtype=np.float32), ErrorText()
    with part._reading():
        error.check(lib.qkv_heads_cells(part._handle, index, tile, _c.QKV_TILE_PEAK, cells.ctypes.data, None,
                                        error.pointer))
    return _png(cells)


def _columns() -> list[tuple[int, str, str]]:
    """(index, title, name) of the numbers that are shown."""
    rows = [(n, _c.qkv_head_number.from_address(lib.qkv_head_number_at(n))) for n in range(lib.qkv_head_number_count())]
    return [(n, string(row.title), string(row.name)) for n, row in rows if row.title is not None]


def height_of(overview: str) -> int:
    """About the pixels of an overview in a cell of 640: a line has 90 letters of text, or 14 heads."""
    words = overview.split("<p>")[1].split("</p>")[0]
    rows = sum(-(-row.count("<figure") // 14) for row in overview.split('<div class="row">')[1:])
    return 64 + 15 * -(-len(words) // 90) + 47 * rows


def write_overview(heads: Pictured, layers: Sequence[int], shown: Sequence[tuple[int, int]], caption: str) -> str:
    """An HTML document of all heads. layers: their numbers in the model; shown: heads whose q and k a page has."""
    columns, grid, table = _columns(), [], []
    inside = set(shown)
    for n, layer in enumerate(layers):
        figures = []
        for head in range(heads.n_heads):
            part, index = heads._at(n, head)
            numbers = (ctypes.c_double * lib.qkv_head_number_count()).from_address(
                lib.qkv_heads_numbers(part._handle, index))
            label = string(lib.qkv_heads_label(ctypes.byref(numbers)))
            texts = ["" if numbers[c] != numbers[c] else f"{numbers[c]:.3g}" for c, _, _ in columns]
            used = [m for m, text in enumerate(texts) if text]
            said = f"{layer}.{head} {label}: " + ", ".join(f"{columns[m][2]} {texts[m]}" for m in used[:4])
            mark = ' class="in"' if (layer, head) in inside else ""
            figures.append(f'<figure{mark} title="{html.escape(said)}"><img alt="" src="{_thumbnail(part, index)}">'
                           f"<figcaption>{html.escape(label or f'{layer}.{head}')}</figcaption></figure>")
            table.append(f"<tr><th>{layer}.{head}<td>{html.escape(label)}" + "".join(f"<td>{text}" for text in texts))
        grid.append(f'<div class="row"><b>{layer}</b>{"".join(figures)}</div>')
    names = ", ".join(f"{layer}.{head}" for layer, head in shown)
    note = "There is no page of these heads."
    if shown:
        n_all = len(layers) * heads.n_heads
        note = (f"Queries and keys of {len(shown)} of {n_all} heads are in the page below, marked "
                f"here: {names}. page(heads=…) chooses, save() writes all.")
    titles = "".join(f'<th title="{html.escape(name)}">{html.escape(title)}' for _, title, name in columns)
    return ("<!doctype html><meta charset=utf-8><meta http-equiv=Content-Security-Policy content=\"default-src 'none'; "
            f"style-src 'unsafe-inline'; img-src data:\"><title>Heads</title><style>{_STYLE}</style>"
            f"<p>{html.escape(caption)} {html.escape(note)}</p>{''.join(grid)}"
            f"<details><summary>Numbers of all heads</summary><table><tr><th>head<th>label{titles}{''.join(table)}"
            "</table></details>")
