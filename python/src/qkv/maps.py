"""The map of a head: its queries and keys as points of a plane."""
from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _c
from ._library import init, lib
from .checked import integer, real
from .context import Interruptible, context
from .errors import ArgumentError, ErrorText
from .keywords import no_such

Array = NDArray[np.float64]


class Map(NamedTuple):
    """Queries and keys of a head as points of a plane, by t-SNE: [n, 2] each, and what the map is worth."""

    queries: Array
    keys: Array
    report: dict[str, Any]


def map_of(q: NDArray[np.float32], k: NDArray[np.float32], options: dict[str, Any]) -> Map:
    known = {name for name, *_ in _c.qkv_map_options._fields_} - {"struct_size", "start"}
    for name in options:
        if name not in known:
            raise ArgumentError(no_such("map", name, sorted(known)).replace("has no", "has no option", 1))
    kinds: dict[str, Any] = {name: kind for name, kind, *_ in _c.qkv_map_options._fields_}
    given = init(_c.qkv_map_options, **{
        name: (real(value, name) if kinds[name] is ctypes.c_double else integer(value, name, kinds[name]))
        for name, value in options.items()})
    points, report = np.zeros((len(q) + len(k), 2)), init(_c.qkv_map_report)
    error, call = ErrorText(), Interruptible()
    status = lib.qkv_inspect_map(context().handle, ctypes.byref(given), len(q), len(k), q.shape[1], q.ctypes.data,
                                 k.ctypes.data, points.ctypes.data, None, None, ctypes.byref(report), call.pointer,
                                 error.pointer)
    call.raise_pending()
    error.check(status)
    said = {name: getattr(report, name) for name, *_ in report._fields_ if name not in ("struct_size", "explained")}
    said["explained"] = list(report.explained)
    return Map(points[:len(q)], points[len(q):], said)
