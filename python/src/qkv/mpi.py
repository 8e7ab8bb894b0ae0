"""Attention over several processes: a sequence that lies in pieces on the ranks of an mpi4py communicator.

>>> from mpi4py import MPI
>>> import qkv.mpi
>>> group = qkv.mpi.Group(MPI.COMM_WORLD)
>>> o = group.attention(q, k, v, causal=True)  # q, k, v, o: the rows of this rank

It needs mpi4py and libqkvmpi, which is built with the MPI of the machine and is no part of this package. See
docs/scale.md.
"""
from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from . import _c, errors
from ._library import file_name, init, lib, string
from .checked import text
from .context import Context, context
from .descriptor import _address
from .keywords import Rules, refuse_unknown, with_rules
from .problem import Forward, Gradients, Problem, Stats

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm
    from typing_extensions import Unpack

Scheme = Literal["ordered", "ring", "zigzag"]


class _Options(ctypes.Structure):
    """qkvmpi_options of qkv/mpi.h."""

    _fields_ = [("struct_size", ctypes.c_size_t), ("scheme", ctypes.c_char_p)]


@functools.cache
def _load() -> ctypes.CDLL:
    version = string(lib.qkv_version()).rpartition(".")[0]
    name = os.environ.get("QKV_MPI_LIBRARY") or file_name("qkvmpi", version)
    try:
        # It uses the libqkv that is loaded here: both are of the same release.
        return ctypes.CDLL(name)
    except OSError as error:
        raise ImportError(f"{error}. qkv.mpi needs libqkvmpi {version} and its MPI: build and install qkv with MPI, or "
                          f"set QKV_MPI_LIBRARY to the path of {file_name('qkvmpi', version)}") from None


def _function(name: str, result: Any, *arguments: Any) -> Any:
    """A function of libqkvmpi, which is loaded when the first one is looked up."""
    found = getattr(_load(), name)
    found.restype, found.argtypes = result, arguments
    return found


def _native(comm: Intracomm) -> tuple[type[Any], Any]:
    """The MPI_Comm of mpi4py's object: a pointer in Open MPI, an int in MPICH."""
    from mpi4py import MPI

    kind = ctypes.c_void_p if MPI._sizeof(MPI.Comm) == ctypes.sizeof(ctypes.c_void_p) else ctypes.c_int
    return kind, kind.from_address(MPI._addressof(comm))


class _Agreement:
    """One call of all ranks. An exception of one of them, before they compute, becomes that of all."""

    def __init__(self, comm: Intracomm) -> None:
        self._comm, self._is_open = comm, True

    def __enter__(self) -> _Agreement:
        return self

    def __exit__(self, _: Any, error: BaseException | None, __: Any) -> None:
        if self._is_open:
            self.settle(error)

    def gather(self, mine: Any) -> list[Any]:
        """What each rank has; all raise if one of them has raised before."""
        found: list[Any] = self._comm.allgather((None, mine))
        self._raise(found)
        return [value for _, value in found]

    def settle(self, error: BaseException | None = None) -> None:
        """The last exchange: then the library agrees on errors. Other exceptions stay what they are on their rank."""
        self._is_open = False
        found = self._comm.allgather((errors.told(error), None))
        if error is None or isinstance(error, errors.QkvError):
            self._raise(found)

    def _raise(self, found: list[Any]) -> None:
        try:
            errors.raise_told([told for told, _ in found])
        except errors.QkvError:
            self._is_open = False
            raise


class Group(errors.NoCopies):
    """The ranks that call together: a qkvmpi_group. All calls on it, and its making, are collective.

    comm: an intracommunicator of mpi4py. It is duplicated.
    """

    def __init__(self, comm: Intracomm, *, context: Context | None = None) -> None:
        self._handle: int | None = None
        self._comm, self._context = comm, context
        # A group serves one call at a time, and MPI_THREAD_FUNNELED is all that it needs.
        self._lock = threading.RLock()
        kind, native = _native(comm)
        made, error = ctypes.c_void_p(), errors.ErrorText()
        create = _function("qkvmpi_group_create", ctypes.c_int, kind, ctypes.c_void_p, ctypes.c_void_p)
        error.check(create(native, ctypes.byref(made), error.pointer))
        self._handle = made.value

    def close(self) -> None:
        """Frees the group. Collective, and before MPI ends; the group is of no more use."""
        with self._lock:
            handle, self._handle = self._handle, None
            if handle is not None:
                _function("qkvmpi_group_free", None, ctypes.c_void_p)(handle)

    def __enter__(self) -> Group:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    @property
    def rank(self) -> int:
        return int(_function("qkvmpi_group_rank", ctypes.c_int, ctypes.c_void_p)(self._handle))

    @property
    def size(self) -> int:
        return int(_function("qkvmpi_group_size", ctypes.c_int, ctypes.c_void_p)(self._handle))

    @with_rules(Problem._describe)
    def attention(self, q: Any, k: Any, v: Any, *, scheme: Scheme = "ordered", out: Any = None,
                  out_dtype: str | None = None, lse: bool = False, stats: Stats | None = None,
                  **rules: Unpack[Rules]) -> Any:
        """qkv.attention of the whole sequence, of which each rank passes its rows and gets those of its queries.

        Pieces lie in the order of ranks, and may have any lengths. Rules are about the whole sequence: q_offset,
        kv_len and segments of keys have all keys, a mask has the rows of this rank's queries and all keys.
        scheme: "ordered" has the bits of one process; "ring" and "zigzag" are described in docs/scale.md.
        An exception of one rank is raised on all, with the number of the rank.
        """
        with self._lock, _Agreement(self._comm) as agreement:
            refuse_unknown("attention", rules, more=("scheme", "out", "out_dtype", "lse", "stats"))
            made = _Piece(self, agreement, q, k, v, scheme, rules).forward(out=out, out_dtype=out_dtype, stats=stats)
        if stats is not None:
            return made
        return (made.o, made.lse) if lse else made.o

    @with_rules(Problem._describe)
    def backward(self, q: Any, k: Any, v: Any, d_o: Any, *, o: Any, lse: Any, d_lse: Any = None,
                 out: tuple[Any, Any, Any] | None = None, **rules: Unpack[Rules]) -> Gradients:
        """Problem.backward of the whole sequence: each rank gets d_q of its queries, d_k and d_v of its keys.

        o and lse are those of attention(). d_sinks is that of the whole sequence, on all ranks. Bits are those of one
        process, given the same o and lse. There is no gradient of a mask or of a distance bias; of the latter
        qkv.torch.distributed has one.
        """
        with self._lock, _Agreement(self._comm) as agreement:
            refuse_unknown("backward", rules, more=("o", "lse", "d_lse", "out"))
            piece = _Piece(self, agreement, q, k, v, "ordered", rules)
            return piece.backward(d_o, o=o, lse=lse, d_lse=d_lse, out=out)

    def _check(self, status: int) -> None:
        if status != _c.QKV_OK:
            message = _function("qkvmpi_group_message", ctypes.c_char_p, ctypes.c_void_p)(self._handle)
            raise errors.error_of(status, string(message))


class _Piece(Problem):
    """The rows of one rank. Rules are about the rows of all."""

    def __init__(self, group: Group, agreement: _Agreement, q: Any, k: Any, v: Any, scheme: str,
                 given: Mapping[str, Any]) -> None:
        self._group, self._agreement, self._scheme = group, agreement, scheme
        if group._handle is None:
            raise errors.ArgumentError("the group is closed")
        rules: dict[str, Any] = {"context": group._context, **given}
        super().__init__(q, k, v, **rules)

    def _whole(self, len_q: int, len_k: int) -> tuple[int, int]:
        pieces = self._agreement.gather((len_q, len_k))
        return sum(piece[0] for piece in pieces), sum(piece[1] for piece in pieces)

    def _attend(self, desc: _c.qkv_attention_desc, o: int, lse: int) -> None:
        options = init(_Options, scheme=text(self._scheme, "scheme"))
        self._call("qkvmpi_attention_forward", desc, o, lse, ctypes.byref(options))

    def _differentiate(self, desc: _c.qkv_attention_desc, o: int, lse: int, grads: _c.qkv_attention_grads) -> None:
        self._call("qkvmpi_attention_backward", desc, o, lse, ctypes.byref(grads))

    def _call(self, name: str, desc: _c.qkv_attention_desc, *arguments: Any) -> None:
        ctx = self._context or context()
        function = _function(name, ctypes.c_int, *[ctypes.c_void_p] * 9)
        self._agreement.settle()
        self._group._check(function(self._group._handle, ctx.handle, ctypes.byref(desc), _address(self._q),
                                    _address(self._k), _address(self._v), *arguments))


__all__ = ["Forward", "Gradients", "Group"]
