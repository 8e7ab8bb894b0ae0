"""The part of qkv.torch that is C: the library's tasks on torch's threads, and small calls. None where torch is older.

python/native/torch_bridge.c gets functions of torch's stable C interface from here, so that one wheel is for every
torch. torch_parallel_for came with torch 2.10, and conversions of tensors to and from Python with 2.14. Wheels for
Windows and macOS have no such part, which nobody has run there: calls are computed by threads of the library.
"""
from __future__ import annotations

import ctypes
import os
import pathlib
import sys
import threading
from collections.abc import Callable
from typing import Any

import torch

from .. import _c
from ..context import Context, chosen
from ..context import context as own_context

# In the order of `struct functions` of torch_bridge.c, without its last two.
FUNCTIONS = (
    "torch_parallel_for", "torch_tensor_from_pyobject", "torch_tensor_to_pyobject", "aoti_torch_delete_tensor_object",
    "aoti_torch_get_dim", "aoti_torch_get_sizes", "aoti_torch_get_strides", "aoti_torch_get_dtype",
    "aoti_torch_get_layout", "aoti_torch_get_device_type", "aoti_torch_get_data_ptr", "aoti_torch_empty_strided",
)
_FLOATS = "aoti_torch_dtype_float32", "aoti_torch_dtype_bfloat16", "aoti_torch_dtype_float16"

# q, k, v, causal: o, or None if the call is not one for it.
Small = Callable[[Any, Any, Any, bool], Any]


def _address(function: Any) -> int | None:
    return ctypes.cast(function, ctypes.c_void_p).value


def _nothing(q: Any, k: Any, v: Any, causal: bool) -> None:
    return None


def _bind() -> tuple[_c.qkv_executor | None, Small]:
    """An executor of torch's threads and the small call, if this torch has what it needs."""
    try:
        of_torch = ctypes.CDLL(str(pathlib.Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
        # Of a PyDLL: its functions hold the GIL, as conversions of tensors need it.
        native = ctypes.PyDLL(str(pathlib.Path(__file__).parents[1] / "lib" / "libqkvtorch.so"))
    except OSError:
        return None, _nothing
    found = [getattr(of_torch, name, None) for name in FUNCTIONS]
    kinds = [getattr(of_torch, name, None) for name in _FLOATS]
    if found[0] is None or None in kinds:
        return None, _nothing
    table = (ctypes.c_void_p * (len(found) + 2))(
        *(None if each is None else _address(each) for each in found), _address(ctypes.pythonapi.Py_IncRef), id(None))
    native.qkvt_bind(table, (ctypes.c_int32 * 3)(*(kind() for kind in kinds if kind is not None)))
    executor = _c.qkv_executor()
    executor.parallel_for = _address(native.qkvt_parallel_for)
    if None in found:
        return executor, _nothing
    small = native.qkvt_small
    small.restype = ctypes.py_object
    small.argtypes = [*[ctypes.py_object] * 3, ctypes.c_int]
    return executor, small


_executor, small = _bind()


class _OfThread(threading.local):
    context: Context | None = None
    n_threads = 0


_of_thread = _OfThread()
_forked = False


def context() -> Context:
    """The context of this thread for calls of torch: on torch's own threads, as many as torch.get_num_threads().

    Once qkv.set_num_threads or QKV_NUM_THREADS says a number, it is qkv.context(), with threads of the library. After a
    fork OpenMP cannot start threads in the child if it had some in the parent: the child has threads of the library.
    """
    if chosen():
        return own_context()
    n, found = torch.get_num_threads(), _of_thread.context
    if found is None or _of_thread.n_threads != n:
        found = _of_thread.context = Context(n, executor=None if _forked or n == 1 else _executor)
        _of_thread.n_threads = n
    return found


def _forget() -> None:
    global _of_thread, _forked
    _of_thread, _forked = _OfThread(), True


if sys.platform != "win32":  # which has no forks
    os.register_at_fork(after_in_child=_forget)
