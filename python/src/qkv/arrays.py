"""Arrays of others, read where they are: NumPy, torch, and whatever has `__dlpack__` or `__array_interface__`."""
from __future__ import annotations

import ctypes
import math
import mmap
import sys
from typing import Any, NamedTuple

import numpy as np

from . import _c
from .errors import ArgumentError, DTypeError, ShapeError, StrideError, UnsupportedError

DTYPES = {"float32": _c.QKV_F32, "bfloat16": _c.QKV_BF16, "float16": _c.QKV_F16}
SIZES = {_c.QKV_F32: 4, _c.QKV_BF16: 2, _c.QKV_F16: 2}


_LARGE = 1 << 18
_SCALARS = int, float, complex, str, np.generic


def _pages(n_bytes: int) -> mmap.mmap:
    if sys.platform == "win32":  # which gives no others
        return mmap.mmap(-1, n_bytes)
    return mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def apart(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array, or if it is large a copy in pages of its own.

    For what outlives the temporary arrays around it. On the heap it would lie between them, and later arrays that are
    larger than the gaps would take new memory.
    """
    if array.nbytes < _LARGE:
        return array
    pages = _pages(array.nbytes)
    made = np.frombuffer(pages, array.dtype).reshape(array.shape)
    made[...] = array
    return made


class View(NamedTuple):
    """Where an array lies. Strides are in elements. `owner` keeps the memory alive."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    owner: Any

    def transposed(self, *axes: int) -> View:
        return self._replace(shape=tuple(self.shape[a] for a in axes), strides=tuple(self.strides[a] for a in axes))

    def expanded(self, n_dims: int) -> View:
        """With dimensions of 1 in front, up to n_dims."""
        more = n_dims - len(self.shape)
        return self._replace(shape=(1,) * more + self.shape, strides=(0,) * more + self.strides)


# ---- DLPack -------------------------------------------------------------------------------------


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned, since DLPack 1.0."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _DLTensor),
    ]


_READ_ONLY = 1
_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}
_DEVICE_CPU = 1
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]


def _capsule_of(array: Any) -> tuple[Any, Any, bool]:
    """The capsule of an array, its tensor, and whether it says that others may write.

    The capsule stays unconsumed: its destructor gives the memory back.
    """
    try:
        capsule = array.__dlpack__(max_version=(1, 0))
    except TypeError:  # an array from before DLPack 1.0, which cannot say it
        capsule = array.__dlpack__()
    if not _is_valid(capsule, b"dltensor_versioned"):
        return capsule, _DLTensor.from_address(_pointer_of(capsule, b"dltensor")), False
    found = _Versioned.from_address(_pointer_of(capsule, b"dltensor_versioned"))
    if found.major != 1:
        raise UnsupportedError(f"DLPack {found.major}.{found.minor} of a {type(array).__name__}: qkv reads version 1")
    return capsule, found.tensor, not found.flags & _READ_ONLY


def _from_dlpack(array: Any, name: str) -> View:
    capsule, tensor, _ = _capsule_of(array)
    if tensor.device_type != _DEVICE_CPU:
        raise DTypeError(f"{name} is on a device (DLPack type {tensor.device_type}), and qkv computes on the CPU")
    kind = _CODES.get(tensor.code, f"DLPack type {tensor.code}, ")
    dtype = "bool" if kind == "bool" else f"{kind}{tensor.bits}" + (f" x {tensor.lanes}" if tensor.lanes != 1 else "")
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else _dense(shape)
    return View((tensor.data or 0) + tensor.byte_offset, shape, _steps(shape, strides), dtype, (array, capsule))


# ---- Any array ----------------------------------------------------------------------------------


def _steps(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of which a dimension of 1 has no negative one: nothing steps there, and a copy would have it again."""
    return tuple(abs(stride) if size == 1 else stride for size, stride in zip(shape, strides))


def _dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def is_torch(array: Any) -> bool:
    """Whether it is a tensor, of a subclass that is not torch's, too."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def _refuse_masked(array: Any, name: str) -> None:
    if isinstance(array, np.ma.MaskedArray):
        raise DTypeError(f"{name} is a masked array, whose mask no call reads: pass {name}.filled(value), or the mask "
                         "of attention as a rule")


def _plain(values: Any, name: str) -> Any:
    """Lists of arrays as lists of plain ones: NumPy would join them without their masks, and tensors as they lie."""
    if not isinstance(values, (list, tuple)) or all(issubclass(kind, _SCALARS) for kind in set(map(type, values))):
        return values
    return [_plain(each, name) if isinstance(each, (list, tuple)) else
            each if isinstance(each, _SCALARS) else numbers(each, name) for each in values]


def _as_numpy(values: Any, name: str) -> Any:
    """What is no tensor as an array of NumPy, which asks for `__dlpack__` only where it is told to."""
    if hasattr(values, "__dlpack__") and not any(hasattr(values, way) for way in ("__array__", "__array_interface__")):
        return np.from_dlpack(values)
    return np.asanyarray(_plain(values, name))


def densely(array: Any, name: str) -> Any:
    """The same numbers without gaps, as a tensor or an array of NumPy."""
    return array.contiguous() if is_torch(array) else np.ascontiguousarray(_as_numpy(array, name))


def one(value: Any, name: str) -> Any:
    """What stands for one number: not masked, and as a tensor with a memory of its own and without a gradient."""
    if isinstance(value, _SCALARS):
        return value
    _refuse_masked(value, name)
    return _without_gradient(value, name) if is_torch(value) else value


def _native(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same numbers in the byte order of this machine and aligned to their size, as the library reads them."""
    as_it_is = array.dtype.isnative and array.flags.aligned
    return array if as_it_is else array.astype(array.dtype.newbyteorder("="))


def numbers(values: Any, name: str) -> np.ndarray[Any, Any]:
    """Numbers of others as an array of NumPy in this machine's byte order, without a copy if it is one."""
    _refuse_masked(values, name)
    if is_torch(values):
        from .tensors import array_of

        values = _without_gradient(values, name)
        values = array_of(values.float() if str(values.dtype) == "torch.bfloat16" else values)
    made = _as_numpy(values, name)
    _refuse_masked(made, name)  # of an object that becomes one
    return _native(np.asarray(made))


def reals(values: Any, name: str) -> np.ndarray[Any, Any]:
    """Dense numbers of float32. What NumPy would cast to them in silence is refused: complex numbers, texts, times."""
    given = numbers(values, name)
    if given.dtype.kind not in "biuf" and given.dtype.name != "bfloat16":
        raise DTypeError(f"{name} is {given.dtype}, and must hold real numbers")
    return np.ascontiguousarray(given, dtype=np.float32).reshape(given.shape)


def _view_numpy(array: np.ndarray[Any, Any], name: str) -> View:
    _refuse_masked(array, name)
    array = _native(np.asarray(array))
    size = array.itemsize or 1
    if any(stride % size for stride in array.strides):
        array = array.copy()
    # Those of an array without elements are 0 in NumPy 2.4.
    strides = tuple(stride // size for stride in array.strides) if array.size else _dense(array.shape)
    address = array.__array_interface__["data"][0]
    return View(address, array.shape, _steps(array.shape, strides), array.dtype.name, array)


def _without_gradient(array: Any, name: str) -> Any:
    """A tensor whose memory is its elements, and to which no gradient would be lost."""
    import torch

    from .tensors import settled

    found = settled(array, name)
    if found.requires_grad and torch.is_grad_enabled():
        raise UnsupportedError(f"{name} requires a gradient, which torch would not get: pass {name}.detach(), and see "
                               "Problem.backward")
    return found


def _view_torch(array: Any, name: str) -> View:
    found = _without_gradient(array, name)
    return View(found.data_ptr(), tuple(found.shape), found.stride(), str(found.dtype)[6:], found)


def view(array: Any, name: str) -> View:
    """Where `array` lies, without a copy if it can be read where it is."""
    if isinstance(array, np.ndarray):
        return _view_numpy(array, name)
    if is_torch(array):
        return _view_torch(array, name)
    if hasattr(array, "__dlpack__"):
        return _from_dlpack(array, name)
    return _view_numpy(np.asanyarray(_plain(array, name)), name)


def written(array: Any, name: str) -> View:
    """Where an array lies that a call writes to. What would need a copy, which the caller never sees, is refused."""
    if isinstance(array, np.ndarray) or hasattr(array, "__array_interface__") and not is_torch(array):
        made = np.asarray(array)
        if not made.flags.writeable:
            raise ArgumentError(f"{name} is read-only, and results are written to it")
        if not made.dtype.isnative:
            raise DTypeError(f"{name} is {made.dtype.str}, and must have the byte order of this machine")
        if not made.flags.aligned:
            raise StrideError(f"{name} is not aligned to its elements of {made.itemsize} bytes")
    elif is_torch(array):
        from .tensors import settled

        if settled(array, name) is not array:
            raise DTypeError(f"{name} is negated, or zeros without memory, to torch: pass an array of its own")
    elif not hasattr(array, "__dlpack__"):
        raise DTypeError(f"{name} is a {type(array).__name__}, and must be an array that results can be written to")
    elif not _capsule_of(array)[2]:
        raise ArgumentError(f"{name} is of the type {type(array).__name__}, and does not say by DLPack 1.0 that others "
                            "may write to it: pass an array of NumPy")
    found = view(array, name)
    if found.shape and (any(stride < 0 for stride in found.strides) or found.strides[-1] != 1 < found.shape[-1]):
        raise StrideError(f"{name} has strides {found.strides}: the last one must be 1, and none may be negative")
    return found


def zero(array: Any) -> None:
    """Writes zeros to an array that written() accepts."""
    if not hasattr(array, "__setitem__"):
        array = np.from_dlpack(array) if hasattr(array, "__dlpack__") else np.asarray(array)
    array[...] = 0


def has_moved(found: View) -> bool:
    """Whether an array lies elsewhere by now: it was resized, or given other memory."""
    owner = found.owner
    if is_torch(owner):
        return bool(owner.data_ptr() != found.address or owner.numel() != math.prod(found.shape))
    if isinstance(owner, np.ndarray):
        return bool(owner.__array_interface__["data"][0] != found.address or owner.size != math.prod(found.shape))
    return False


def floats(array: Any, name: str) -> View:
    """As view(), of elements that qkv computes with, whose last stride is 1. Copied where it is not."""
    found = view(array, name)
    if found.dtype not in DTYPES:
        hint = f": pass {name}.astype(numpy.float32)" if isinstance(array, np.ndarray) else ""
        raise DTypeError(f"{name} is {found.dtype}, and qkv computes with float32, bfloat16 and float16{hint}")
    if not found.shape:
        raise ShapeError(f"{name} has no dimensions")
    inner = found.strides[-1] == 1 or found.shape[-1] <= 1
    if not inner or any(stride < 0 for stride in found.strides):
        found = view(densely(array, name), name)
    return found


def integers(values: Any, kind: type[np.integer[Any]], name: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """A dense array of integers; a value that does not fit, a fraction or another shape is refused."""
    given = numbers(values, name)
    if given.dtype.kind not in "iu" and given.size:
        raise DTypeError(f"{name} is {given.dtype}, and must hold integers")
    if given.shape != shape:
        raise ShapeError(f"{name} has shape {given.shape}, and must have {shape}")
    made = np.ascontiguousarray(given, dtype=kind).reshape(shape)
    if given.size and not np.array_equal(made, given):
        raise ShapeError(f"{name} has {given[made != given][0]}, which {np.dtype(kind).name} cannot hold")
    return made


def of_zeros_and_ones(values: Any, name: str) -> np.ndarray[Any, Any]:
    """Integers of 0 and 1, as tokenizers make masks, as bools."""
    given = numbers(values, name)
    others = (given != 0) & (given != 1)
    if others.any():
        raise ArgumentError(f"{name} is {given.dtype} and has {given[others][0]}: integers are 0 or 1, which sees; "
                            "numbers that are added to scores are floats")
    return given.astype(bool)


def empty_like(like: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """A new dense array: a tensor if `like` is one, otherwise of NumPy."""
    if is_torch(like):
        import torch

        return torch.empty(shape, dtype=getattr(torch, dtype), device="cpu")
    if dtype == "bfloat16":
        import ml_dtypes

        return np.empty(shape, dtype=ml_dtypes.bfloat16)
    return np.empty(shape, dtype=dtype)
