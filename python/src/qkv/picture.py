"""Pictures of heads, by libqkvview. It draws with cairo and pango of the system, which the first picture loads."""
from __future__ import annotations

import ctypes
import ctypes.util
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _c
from ._library import init, lib, library_file
from .arrays import reals
from .checked import Head, integer, real, texts
from .checked import path as path_of
from .checked import places as places_of
from .checked import text as text_of
from .errors import ArgumentError, ErrorText, LimitError, UnsupportedError

if TYPE_CHECKING:
    from .heads import Heads
    from .page import Pictured

_loaded: dict[str, Any] = {}


# What has the libraries that draw, where the system lacks them.
_PACKAGES = ("apt install libpangocairo-1.0-0 (Debian, Ubuntu), dnf install pango (Fedora), zypper install "
             "libpango-1_0-0 (openSUSE), pacman -S pango (Arch)")


def _library() -> Any:
    """The library of QKV_VIEW_LIBRARY, else of this package, else of the system."""
    own, named = library_file("qkvview"), os.environ.get("QKV_VIEW_LIBRARY")
    name = named or (None if own is None else str(own)) or ctypes.util.find_library("qkvview")
    if name is None:
        raise UnsupportedError("pictures need libqkvview, and this package was built without it, where cairo and pango "
                               "were not: build it where they are (Debian: libpango1.0-dev), install the C library, or "
                               "set QKV_VIEW_LIBRARY to its file. page() needs nothing")
    try:
        return ctypes.CDLL(name)
    except OSError as reason:
        if named:
            raise UnsupportedError(f"QKV_VIEW_LIBRARY is {named!r}, which cannot be loaded: {reason}") from None
        raise UnsupportedError(f"pictures need cairo and pango of the system ({reason}): {_PACKAGES}. page() needs "
                               "nothing") from None


def _view(name_of: str) -> Any:
    """A function of the library that draws."""
    if name_of not in _loaded:
        function = _library()[name_of]
        function.restype, function.argtypes = _c.FUNCTIONS[name_of]
        _loaded[name_of] = function
    return _loaded[name_of]


def visible(heads: Heads, index: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Where the keys that each query of a head may see begin and end, [queries] each."""
    desc, bounds, error = heads._view(index).desc, np.zeros((heads.n_queries, 2), np.int64), ErrorText()
    for i, row in enumerate(bounds.ctypes.data + 16 * np.arange(heads.n_queries)):
        error.check(lib.qkv_attention_visible_keys(desc, 0, i, 0, int(row), int(row) + 8, error.pointer))
    return bounds[:, 0], bounds[:, 1]


def sees(heads: Heads, index: int = 0) -> np.ndarray[Any, Any]:
    """[queries, keys] of bools: which keys a query of a head may see."""
    first, end = visible(heads, index)
    j = np.arange(heads.n_keys)
    return (j >= first[:, None]) & (j < end[:, None])


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
        return {"palette": PALETTES.index(self.palette), "figures": figures, "min": real(self.min, "min"),
                "max": real(self.max, "max"),
                "size": integer(self.size, "size", ctypes.c_int, least=0)}


def write_heatmap(heads: Heads, index: int, path: str | os.PathLike[str], title: str, drawn: Drawn) -> None:
    """Draws the weights of a head to a file."""
    fields = drawn.fields()
    write, error = _view("qkv_picture_heatmap_write"), ErrorText()
    weights = heads.weights(*divmod(index, heads.n_heads))
    hidden = np.ascontiguousarray(~sees(heads, index), dtype=np.uint8)
    labels = texts(heads.queries, "queries"), texts(heads.tokens, "tokens")
    made = init(_c.qkv_heatmap, n_rows=heads.n_queries, n_cols=heads.n_keys, weights=weights.ctypes.data,
                row_labels=ctypes.addressof(labels[0]), col_labels=ctypes.addressof(labels[1]),
                title=text_of(heads._title if drawn.title is None else drawn.title, "title"),
                caption=text_of(f"{heads._caption} {title}.", "caption"), **fields)
    if hidden.any():
        made.hidden = hidden.ctypes.data
    error.check(write(ctypes.byref(made), path_of(path, "path"), error.pointer))


def _maps_over(heads: Heads, image: Any, shown: Any, query: int | None) -> tuple[np.ndarray[Any, Any], str]:
    """[layers, heads, patches] of what is shown, and what that is."""
    first = int(image.n_prefix)
    if isinstance(shown, np.ndarray):
        if shown.shape not in ((heads.n_keys,), (heads.n_keys - first,)):
            raise ArgumentError(f"shown has shape {list(shown.shape)}, and must have a number for each of "
                                f"{heads.n_keys} tokens, or of {heads.n_keys - first} patches")
        return reals(shown, "shown")[None, None, -(heads.n_keys - first):], ""
    if query is not None and not 0 <= integer(query, "query") < heads.n_queries:
        raise ArgumentError(f"query is {query}, and there are {heads.n_queries}")
    rows = slice(first, None) if query is None and first == 0 else slice(query or 0, (query or 0) + 1)
    chosen = list(np.ndindex(heads.n_layers, heads.n_heads)) if shown is None else places_of([shown], "shown")
    bounds = (rows.start, heads.n_queries if rows.stop is None else rows.stop)
    maps = [heads.weights(*divmod(heads._index(*place), heads.n_heads), queries=bounds).mean(axis=0)[first:]
            for place in chosen]
    shape = (heads.n_layers, heads.n_heads, -1) if shown is None else (1, 1, -1)
    looks = "all patches, on average," if rows.stop is None else heads.queries[rows.start]
    what = "What" if shown is None else f"Layer {chosen[0][0]}, head {chosen[0][1]}: what"
    return np.stack(maps).reshape(shape), f"{what} {looks} looks at"


def write_over_image(heads: Heads, path: str | os.PathLike[str], shown: Any, query: int | None, opacity: float,
                     smooth: bool, drawn: Drawn) -> None:
    """Draws maps over the image that the heads are of."""
    image = _c.qkv_image_tokens.from_address(heads._image) if heads._image is not None else None
    if image is None or not image.rgb:
        raise UnsupportedError("over_image() needs an image: model.look(image=IMAGE) makes such heads")
    fields, opacity = drawn.fields(), real(opacity, "opacity")
    if not 0 < opacity <= 1:  # 0 is the library's default
        raise ArgumentError(f"opacity = {opacity:g}: must be above 0 and at most 1")
    del fields["figures"]
    maps, what = _maps_over(heads, image, shown, query)
    title = (what or heads._title) if drawn.title is None else drawn.title
    weights, write, error = np.ascontiguousarray(maps, np.float32), _view("qkv_picture_image_write"), ErrorText()
    made = init(_c.qkv_image_maps, rgb=image.rgb, height=image.height, width=image.width, rows=image.rows,
                columns=image.columns, cell_height=image.patch_height, cell_width=image.patch_width,
                n_layers=maps.shape[0], n_heads=maps.shape[1], weights=weights.ctypes.data, opacity=opacity,
                smooth=bool(smooth), title=text_of(title, "title"), caption=text_of(heads._caption, "caption"),
                **fields)
    error.check(write(ctypes.byref(made), path_of(path, "path"), error.pointer))


PLAIN = Drawn("qkv", None, 0, 0.0, 0.0, None)
# Weights of a grid are stored, all of them: 1 GiB.
_MOST_CELLS = 1 << 28


def write_picture(heads: Pictured, chosen: Sequence[Head] | None, path: str | os.PathLike[str],
                  numbers: Sequence[int] | None = None) -> None:
    """Draws all heads to a file, layers down and heads across, or the one that is chosen.

    numbers: those of the layers in the model. A place that is chosen counts layers from 0.
    """
    numbers = range(heads.n_layers) if numbers is None else numbers
    if chosen is not None:
        chosen = places_of(chosen, "heads")
        if len(chosen) != 1:
            raise ArgumentError(f"heads has {len(chosen)}, and a picture shows one head, or with heads=None all: save "
                                "a .html for several")
        part, index = heads._at(*chosen[0])
        write_heatmap(part, index, path, f"Layer {numbers[chosen[0][0]]}, head {chosen[0][1]}", PLAIN)
        return
    if list(numbers) != list(range(heads.n_layers)):
        raise ArgumentError(f"layers {list(numbers)} were seen, and a picture of all heads counts layers from 0: "
                            "choose one by heads=[(layer, head)], or save a .html")
    found = [heads._at(layer, head) for layer, head in np.ndindex(heads.n_layers, heads.n_heads)]
    lead = found[0][0]
    n_cells = len(found) * lead.n_queries * lead.n_keys
    if n_cells > _MOST_CELLS:
        raise LimitError(f"{len(found)} heads of {lead.n_queries} x {lead.n_keys} weights are {n_cells} cells, and a "
                         f"picture has at most {_MOST_CELLS}: choose one by heads=[(layer, head)], or save a .html")
    weights = np.stack([part.weights(*divmod(index, part.n_heads)) for part, index in found])
    hidden = np.stack([~sees(part, index) for part, index in found]).astype(np.uint8)
    labels, error = texts([part.label(*divmod(index, part.n_heads)) for part, index in found], "labels"), ErrorText()
    made = init(_c.qkv_head_grid, n_layers=heads.n_layers, n_heads=heads.n_heads, n=lead.n_keys,
                n_queries=lead.n_queries, weights=weights.ctypes.data, labels=ctypes.addressof(labels),
                title=text_of(lead._title, "title"), caption=text_of(lead._caption, "caption"), **PLAIN.fields())
    if hidden.any():
        made.hidden, made.hidden_of_heads = hidden.ctypes.data, 1
    error.check(_view("qkv_picture_grid_write")(ctypes.byref(made), path_of(path, "path"), error.pointer))


# ---- matplotlib ----------------------------------------------------------------------------------

# Of more tokens than this names would lie on each other: axes count them.
_MOST_NAMES = 60


def plot_weights(weights: np.ndarray[Any, Any], queries: Sequence[str], keys: Sequence[str], title: str, ax: Any,
                 options: dict[str, Any]) -> Any:
    """Draws weights on axes of matplotlib, and returns the axes."""
    if ax is None:
        try:
            from matplotlib import pyplot
        except ImportError:
            raise UnsupportedError("plot() needs matplotlib: pip install matplotlib. picture() and page() need none "
                                   "of it") from None
        _, ax = pyplot.subplots()
    if not hasattr(ax, "imshow"):
        raise ArgumentError(f"ax is a {type(ax).__name__}, and must be axes of matplotlib")
    ax.imshow(weights, **{"vmin": 0.0, "cmap": "Blues", "interpolation": "nearest", **options})
    for axis, names, of in ((ax.yaxis, queries, "query"), (ax.xaxis, keys, "key")):
        axis.set_label_text(of)
        if len(names) <= _MOST_NAMES:
            # A dollar begins a formula there.
            axis.set_ticks(range(len(names)), labels=[name.replace("$", r"\$") for name in names])
    if len(keys) <= _MOST_NAMES:
        ax.tick_params(axis="x", labelrotation=90)
    ax.set_title(title)
    return ax
