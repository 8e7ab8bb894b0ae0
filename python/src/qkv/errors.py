"""Exceptions. Each has the message of the C library, which names field, value and rule."""
from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from . import _c
from ._library import lib, string


class QkvError(Exception):
    """Any failure that the C library reports. `status` is its name, "QKV_ERR_SHAPE"."""

    status = "QKV_ERR"


class ArgumentError(QkvError, ValueError):
    """A flag, number or array is invalid for every problem."""


class KeywordError(ArgumentError, TypeError):
    """A call has no such keyword. The message names the one that was meant."""


class ShapeError(QkvError, ValueError):
    """Sizes do not fit each other."""


class StrideError(QkvError, ValueError):
    """A stride is negative, overflows, or makes rows of an output overlap."""


class DTypeError(QkvError, TypeError):
    """An element type, or a combination of types, is not supported."""


class OutOfMemoryError(QkvError, MemoryError):
    """An allocation failed."""


class FormatError(QkvError, ValueError):
    """A file breaks the rules of its format."""


class LimitError(QkvError, ValueError):
    """The input is legal, but exceeds a limit, which the message names."""


class UnsupportedError(QkvError, NotImplementedError):
    """The input is legal, but needs a feature that is not implemented."""


class FileError(QkvError, OSError):
    """The operating system failed to read or write."""


class BusyError(QkvError, RuntimeError):
    """The context is inside another call."""


class CancelledError(QkvError):
    """The call was cancelled. Outputs may be written in part."""


_KINDS: dict[int, type[QkvError]] = {
    _c.QKV_ERR_ARGUMENT: ArgumentError,
    _c.QKV_ERR_SHAPE: ShapeError,
    _c.QKV_ERR_STRIDE: StrideError,
    _c.QKV_ERR_DTYPE: DTypeError,
    _c.QKV_ERR_MEMORY: OutOfMemoryError,
    _c.QKV_ERR_FORMAT: FormatError,
    _c.QKV_ERR_LIMIT: LimitError,
    _c.QKV_ERR_UNSUPPORTED: UnsupportedError,
    _c.QKV_ERR_IO: FileError,
    _c.QKV_ERR_BUSY: BusyError,
    _c.QKV_ERR_CANCELLED: CancelledError,
}


def error_of(status: int, message: str) -> QkvError:
    """The exception of a status."""
    made = _KINDS.get(status, QkvError)(message)
    made.status = string(lib.qkv_status_name(status))
    return made


# ---- Errors of other processes ------------------------------------------------------------------

Told = tuple[str, str]


def told(error: BaseException | None) -> Told | None:
    """What a rank tells the others of its exception."""
    return None if error is None else (type(error).__name__, str(error))


def raise_told(of_ranks: Sequence[Told | None]) -> None:
    """Raises that of the lowest rank that has one, with its number. What is no QkvError becomes one."""
    kinds = {kind.__name__: kind for kind in (*_KINDS.values(), KeywordError)}
    for rank, each in enumerate(of_ranks):
        if each:
            raise kinds.get(each[0], QkvError)(f"rank {rank}: {each[1]}")


class ErrorText:
    """A qkv_error that a C function fills; `check(status)` raises it."""

    def __init__(self) -> None:
        self._error = _c.qkv_error()
        self.pointer = ctypes.byref(self._error)

    def check(self, status: int) -> None:
        if status != _c.QKV_OK:
            raise error_of(status, string(self._error.message))


class NoCopies:
    """A class whose objects have memory of the C library, or addresses: a copy would free it twice, or outlive it."""

    def __reduce_ex__(self, _: Any) -> Any:
        raise UnsupportedError(f"a {type(self).__name__} cannot be copied or pickled: it holds memory of this process")
