"""Contexts: threads, workspace and instruction set of calls. Each thread of Python has its own."""
from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Generator
from typing import Any

from . import _c
from ._library import init, lib, string
from .checked import integer, text
from .errors import ArgumentError, ErrorText, NoCopies, error_of


class Context(NoCopies):
    """A qkv_ctx. A call of `qkv.attention` takes the one of its thread if it is given none.

    n_threads: 1 to 1024; 0: as many as affinity and quota allow (or QKV_NUM_THREADS of the environment).
    isa: "scalar", "avx2", "avx512", "avx512bf16" or "neon"; None: the best one here.
    executor: None, or n_threads threads of a host, as a qkv_executor whose functions the caller keeps.
    """

    def __init__(self, n_threads: int = 0, isa: str | None = None, *, executor: _c.qkv_executor | None = None) -> None:
        self.handle: int | None = None
        self._process = os.getpid()
        # Of heads, which take turns. Other calls are refused while one computes.
        self.lock = threading.RLock()
        n_threads = integer(n_threads, "n_threads", ctypes.c_int)
        options = init(_c.qkv_ctx_options, n_threads=n_threads, isa=None if isa is None else text(isa, "isa"))
        if executor is not None:
            self._executor = executor  # of which only a copy is the library's
            options.executor = executor
            options.executor.n_threads = n_threads
        handle, error = ctypes.c_void_p(), ErrorText()
        error.check(lib.qkv_ctx_create(ctypes.byref(options), ctypes.byref(handle), error.pointer))
        self.handle = handle.value

    def __del__(self) -> None:
        # After a fork the threads of the parent's context are not there: its memory is left to the system.
        if getattr(self, "handle", None) is not None and self._process == os.getpid():
            lib.qkv_ctx_free(self.handle)

    @property
    def isa(self) -> str:
        return string(lib.qkv_ctx_isa(self.handle))

    @property
    def n_threads(self) -> int:
        return int(lib.qkv_ctx_threads(self.handle))

    def check(self, status: int) -> None:
        """Raises the exception of a status that is not QKV_OK."""
        if status == _c.QKV_ERR_BUSY:  # its message is the other call's
            raise error_of(status, "the context is inside another call: give each thread a context of its own")
        if status != _c.QKV_OK:
            raise error_of(status, string(lib.qkv_ctx_message(self.handle)))

    def __repr__(self) -> str:
        return f"qkv.Context(n_threads={self.n_threads}, isa={self.isa!r})"


def given(context: Any) -> Context | None:
    """The context of a caller; None: that of the thread."""
    if context is not None and not isinstance(context, Context):
        raise ArgumentError(f"context is a {type(context).__name__}, and must be a qkv.Context")
    return context


class _OfThread(threading.local):
    context: Context | None = None


_of_thread = _OfThread()
_of_heads: Context | None = None
_n_threads = 0
_IN_ENVIRONMENT = bool(os.environ.get("QKV_NUM_THREADS"))


def context() -> Context:
    """The context of this thread, made at its first call. A child process makes a new one."""
    found = _of_thread.context
    if found is None:
        found = _of_thread.context = Context(_n_threads)
    return found


def context_of_heads() -> Context:
    """The context of heads that were given none, whatever thread has opened them.

    Heads keep their context. With that of a thread they would be in the way of this thread's own calls.
    """
    global _of_heads
    found = _of_heads
    if found is None:
        found = _of_heads = Context(_n_threads)
    return found


def set_num_threads(n: int) -> None:
    """Sets the number of threads of contexts to come, and renews that of this thread. 0: the default."""
    global _n_threads, _of_heads
    made = Context(n)
    _n_threads, _of_heads = n, None
    _of_thread.context = made


def chosen() -> bool:
    """Whether someone has said how many threads calls have."""
    return bool(_n_threads or _IN_ENVIRONMENT)


def _forget() -> None:
    global _of_thread, _of_heads
    _of_thread, _of_heads = _OfThread(), None


if sys.platform != "win32":  # which has no forks
    os.register_at_fork(after_in_child=_forget)


# ---- Ctrl-C -------------------------------------------------------------------------------------

# Of the three arguments of a progress function only the first is passed on: send() takes one.
_PROGRESS = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Interruptible:
    """Call options with which Ctrl-C ends a call.

    Python looks for signals only while it runs bytecode. The library's progress function therefore resumes a generator
    that waits inside a `try`: there KeyboardInterrupt is caught, the call's cancel flag set, and the exception kept.
    """

    def __init__(self) -> None:
        self._flag = ctypes.c_int(0)
        self._raised: BaseException | None = None
        watch = self._watch()
        next(watch)
        self._function = _PROGRESS(watch.send)
        self._options = init(_c.qkv_call_options, cancel=ctypes.addressof(self._flag),
                             progress=ctypes.cast(self._function, ctypes.c_void_p))

    @property
    def pointer(self) -> Any:
        """For one call. Kept here, it would be a part of the circle by way of _watch() that the collector does not see:
        nothing of it would ever be freed."""
        return ctypes.byref(self._options)

    def _watch(self) -> Generator[None, Any, None]:
        while True:
            try:
                while True:
                    yield
            except GeneratorExit:
                return
            except BaseException as raised:  # whatever a signal handler raises
                self._raised = raised
                self._flag.value = 1

    def raise_pending(self) -> None:
        """Raises what a signal handler has raised."""
        if self._raised is not None:
            raise self._raised

    def check(self, context: Context, status: int) -> None:
        self.raise_pending()
        context.check(status)
