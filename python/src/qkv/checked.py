"""Numbers and texts of callers on their way to C, which would wrap the one and cut the other at a NUL byte."""
from __future__ import annotations

import ctypes
import operator
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .arrays import numbers, one
from .errors import ArgumentError


def integer(value: Any, name: str, kind: type[Any] = ctypes.c_int64, *, least: int | None = None,
            most: int | None = None) -> int:
    """A whole number that `kind` holds, and that is `least` to `most`."""
    value = one(value, name)
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} = {value!r} is not a whole number") from None
    bits, signed = 8 * ctypes.sizeof(kind), kind(-1).value < 0
    lowest, highest = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    lowest, highest = lowest if least is None else least, highest if most is None else most
    if not lowest <= number <= highest:
        raise ArgumentError(f"{name} = {number} is not in [{lowest}, {highest}]")
    return number


def real(value: Any, name: str) -> float:
    """A real number, which loses no imaginary part, mask or gradient."""
    if type(value) in (float, int) and abs(value) < 2**1000:
        return float(value)
    found = numbers(value, name)
    if found.ndim or found.dtype.kind not in "biuf" and found.dtype.name != "bfloat16":
        raise ArgumentError(f"{name} = {_described(value)} is not a real number")
    return float(found)


def choice(value: Any, name: str, of: Mapping[str, int]) -> int:
    """What the library calls one of several names."""
    if not isinstance(value, str) or value not in of:
        raise ArgumentError(f"{name} is {value!r}, and must be one of {', '.join(of)}")
    return of[value]


def pair(value: Any, name: str, example: str = "(0, 8)") -> tuple[Any, Any]:
    try:
        first, second = value
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} is {value!r}, and must be a pair of numbers, such as {example}") from None
    return first, second


def a_list(value: Any, name: str, example: Any) -> Sequence[Any]:
    """Several names or numbers. A text is one, and would be taken for its letters."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise ArgumentError(f"{name} is {value!r}, and must be a list, such as [{example!r}]")
    return list(value)


def interval(value: Any, name: str, length: int) -> tuple[int, int]:
    """(first, end) of rows or keys. None: all."""
    if value is None:
        return 0, length
    first, end = (integer(bound, name) for bound in pair(value, name))
    if not 0 <= first <= end <= length:
        raise ArgumentError(f"{name} is ({first}, {end}), and must rise within 0 to {length}")
    return first, end


def queries_of(queries: Any, rows: Any, length: int) -> tuple[int, int]:
    """The interval of queries, by its name or by the older one."""
    if queries is not None and rows is not None:
        raise ArgumentError("queries and rows are both given: rows is the older name of queries")
    return interval(rows, "rows", length) if queries is None else interval(queries, "queries", length)


# A head as the tool names it, "L.H", or (layer, head).
Head = str | tuple[int, int]
HEAD = re.compile(r"(\d+)\.(\d+)", re.ASCII)


def places(value: Any, name: str) -> list[tuple[int, int]]:
    """A list of (layer, head), or of texts "L.H"."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise ArgumentError(f"{name} is {value!r}, and must be a list of (layer, head), such as [(0, 1)]")
    made = []
    for n, each in enumerate(value):
        if isinstance(each, str):
            found = HEAD.fullmatch(each)
            if found is None:
                raise ArgumentError(f"{name}[{n}] is {each!r}, and must be a head L.H, such as '0.1'")
            each = int(found[1]), int(found[2])
        layer, head = pair(each, f"{name}[{n}]", "(layer, head)")
        made.append((integer(layer, f"{name}[{n}][0]"), integer(head, f"{name}[{n}][1]")))
    return made


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and value >= 0


def window(value: Any) -> tuple[int, int]:
    """(left, right) with -1 for no bound. None: no window."""
    left, right = (None, None) if value is None else pair(
        value, "window", f"({value}, 0) for {value} tokens before a query" if _is_whole(value) else "(3, 0)")
    return (-1 if left is None else integer(left, "window[0]", least=-1),
            -1 if right is None else integer(right, "window[1]", least=-1))


def a_text(value: Any, name: str) -> str:
    """One text."""
    if not isinstance(value, str):
        raise ArgumentError(f"{name} is {_described(value)}, and must be a text (a str)")
    return str(value)  # of NumPy's kind of str, too


def _described(value: Any) -> str:
    said = repr(value)
    return said if len(said) <= 60 else f"a {type(value).__name__}"


def text(value: str, name: str) -> bytes:
    """A text that a NUL ends in C."""
    made = a_text(value, name).encode("utf-8", "surrogateescape")
    if b"\0" in made:
        raise ArgumentError(f"{name} is {value!r}, and would end at its NUL byte")
    return made


def some_texts(values: Any, name: str) -> list[str]:
    """A sequence of texts: a list, an array of texts, a column of a table."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ArgumentError(f"{name} is {_described(values)}, and must be a list of texts")
    return [a_text(value, f"{name}[{n}]") for n, value in enumerate(values)]


def texts(values: Sequence[str], name: str) -> Any:
    """An array of const char *, which keeps its texts."""
    return (ctypes.c_char_p * len(values))(*(text(value, f"{name}[{n}]") for n, value in enumerate(values)))


def path(value: Any, name: str) -> bytes:
    """A path as the system takes it."""
    made = os.fsencode(value)
    if b"\0" in made:
        raise ArgumentError(f"{name} is {value!r}, and would end at its NUL byte")
    return made
