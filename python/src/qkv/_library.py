"""The C libraries of this package, with the signatures of their headers."""
from __future__ import annotations

import ctypes
import pathlib
import sys
from typing import Any

from . import _c

_FOLDER = pathlib.Path(__file__).parent / "lib"


def file_name(name: str, version: str) -> str:
    """What this system calls a library of a version; "*": of any."""
    if sys.platform == "win32":
        return f"lib{name}.dll"
    return f"lib{name}.{version}.dylib" if sys.platform == "darwin" else f"lib{name}.so.{version}"


class _Library:
    """Functions by name. Each gets its signature when it is first looked up."""

    def __init__(self) -> None:
        # In this order: on Windows and on macOS, too, the second finds the first, which is loaded and lies beside it.
        self._libraries = [ctypes.CDLL(str(_find(name)), mode=ctypes.RTLD_GLOBAL) for name in ("qkv", "qkvmodel")]

    def __getattr__(self, name: str) -> Any:
        if name not in _c.FUNCTIONS:
            raise AttributeError(f"the C headers have no function {name}")
        for library in self._libraries:
            try:
                function = getattr(library, name)
            except AttributeError:
                continue
            function.restype, function.argtypes = _c.FUNCTIONS[name]
            setattr(self, name, function)
            return function
        raise AttributeError(f"{name} is in libqkvview, which draws pictures: see picture.py")

    def again(self, name: str, arguments: list[Any]) -> Any:
        """The function with other types of arguments: conversions of plain addresses are faster."""
        function = next(library[name] for library in self._libraries if hasattr(library, name))
        function.restype, function.argtypes = _c.FUNCTIONS[name][0], arguments
        return function


def library_file(name: str) -> pathlib.Path | None:
    """A library of this package."""
    return min(_FOLDER.glob(file_name(name, "*")), key=lambda path: len(path.name), default=None)


def _find(name: str) -> pathlib.Path:
    found = library_file(name)
    if found is None:
        raise ImportError(f"{_FOLDER} has no {file_name(name, '*')}: install the package with pip, not used from its "
                          "source")
    return found


lib = _Library()


def string(text: bytes | None) -> str:
    return "" if text is None else text.decode("utf-8", "replace")


def copied(address: int | None, n: int) -> bytes:
    """n bytes at an address. string_at takes lengths of 31 bits only."""
    return bytes((ctypes.c_char * n).from_address(address)) if address and n else b""


def init(kind: type[Any], **fields: Any) -> Any:
    """A structure with all bytes 0 but its size, then `fields`."""
    made = kind()
    made.struct_size = ctypes.sizeof(kind)
    for name, value in fields.items():
        setattr(made, name, value)
    return made
