"""Where the bytes of an argument are: anything with the buffer protocol, numpy arrays, torch CPU tensors. Nothing is copied.

A View keeps what it shows alive, and a bytearray from being resized, for as long as it lives itself: during a call, or until the
end of a group. What cannot be used is refused here, by a sentence, before the library is called.
"""

from __future__ import annotations

import ctypes as c
import sys
from typing import TYPE_CHECKING, Any, Callable, Protocol, Union

from . import elements
from .elements import Element

if TYPE_CHECKING:
    from typing_extensions import Buffer

    class Tensor(Protocol):
        """A torch tensor, as far as it is looked at."""

        def data_ptr(self) -> int: ...

        def numel(self) -> int: ...

    Data = Union[Buffer, Tensor]
else:
    Data = Any


class View:
    """Memory of an argument: its address, the number of its elements, and their type."""

    __slots__ = ("address", "count", "element", "keep")

    def __init__(self, address: int, count: int, element: Element, keep: object) -> None:
        self.address = address
        self.count = count
        self.element = element
        self.keep = keep

    @property
    def bytes(self) -> int:
        return self.count * self.element.size


class _PyBuffer(c.Structure):
    """Py_buffer of CPython's stable interface."""

    _fields_ = [
        ("buf", c.c_void_p),
        ("obj", c.c_void_p),
        ("len", c.c_ssize_t),
        ("itemsize", c.c_ssize_t),
        ("readonly", c.c_int),
        ("ndim", c.c_int),
        ("format", c.c_char_p),
        ("shape", c.c_void_p),
        ("strides", c.c_void_p),
        ("suboffsets", c.c_void_p),
        ("internal", c.c_void_p),
    ]


_ND_FORMAT = 0x8 | 0x4  # without PyBUF_STRIDES, so that memory with gaps is refused
_get = c.pythonapi.PyObject_GetBuffer
_get.argtypes, _get.restype = [c.py_object, c.c_void_p, c.c_int], c.c_int
_release = c.pythonapi.PyBuffer_Release
_release.argtypes, _release.restype = [c.c_void_p], None


class _Export:
    """An object whose buffer is held."""

    __slots__ = ("info",)

    def __init__(self, thing: object) -> None:
        self.info = _PyBuffer()
        _get(thing, c.byref(self.info), _ND_FORMAT)

    def __del__(self) -> None:
        _release(c.byref(self.info))  # does nothing to a buffer that was never got


def _from_buffer(thing: Any, what: str, writes: bool) -> View:
    try:
        held = _Export(thing)
    except TypeError:
        raise TypeError(
            f"{what} is of type {type(thing).__name__}: give a numpy array, a torch CPU tensor or anything with the buffer "
            "protocol, such as array.array or bytearray"
        ) from None
    except (BufferError, ValueError) as e:
        raise ValueError(f"{what} cannot be used where it lies ({e}): make a contiguous copy first") from None
    info = held.info
    if writes and info.readonly:
        raise ValueError(f"{what} is read-only, but the result would be written there")
    element = elements.of_format(what, (info.format or b"B").decode(), info.itemsize)
    return View(info.buf or 0, info.len // info.itemsize if info.itemsize else 0, element, held)


_numpy_elements: dict[Any, Element] = {}


def _from_numpy(thing: Any, what: str, writes: bool) -> View:
    flags = thing.flags
    if not flags.c_contiguous:
        raise ValueError(
            f"{what} is not contiguous (shape {thing.shape}, strides {thing.strides}): use numpy.ascontiguousarray"
        )
    if writes and not flags.writeable:
        raise ValueError(f"{what} is read-only, but the result would be written there")
    dtype = thing.dtype
    element = _numpy_elements.get(dtype)
    if element is None:
        element = _numpy_elements[dtype] = elements.of_numpy(what, dtype)
    try:
        held = c.c_char.from_buffer(thing)  # half the time of ndarray.ctypes
        return View(c.addressof(held), thing.size, element, held)
    except (TypeError, ValueError):  # read-only, empty, or of a type that the buffer protocol lacks
        return View(thing.ctypes.data, thing.size, element, thing)


_torch_elements: dict[Any, Element] = {}


def _from_torch(thing: Any, what: str, writes: bool) -> View:
    if thing.device.type != "cpu":
        raise ValueError(f"{what} lies on device {thing.device}: only CPU tensors can be used so far, see Tensor.cpu()")
    if str(thing.layout) != "torch.strided" or not thing.is_contiguous():
        raise ValueError(
            f"{what} is not contiguous (shape {tuple(thing.shape)}, layout {thing.layout}): use Tensor.contiguous()"
        )
    if thing.is_neg() or thing.is_conj():
        raise ValueError(f"{what} is a negated or conjugated view: use Tensor.resolve_neg() or Tensor.resolve_conj()")
    element = _torch_elements.get(thing.dtype)
    if element is None:
        element = _torch_elements[thing.dtype] = elements.of_torch(thing.dtype)
    return View(thing.data_ptr(), thing.numel(), element, thing)


_readers: dict[type, Callable[[Any, str, bool], View]] = {}  # by the class of an argument: asked once per class


def _reader(kind: type) -> Callable[[Any, str, bool], View]:
    """numpy and torch are never imported here: an array of theirs exists only where they already are."""
    reader = _from_buffer
    if issubclass(kind, getattr(sys.modules.get("numpy"), "ndarray", ())):
        reader = _from_numpy
    elif issubclass(kind, getattr(sys.modules.get("torch"), "Tensor", ())):
        reader = _from_torch
    _readers[kind] = reader
    return reader


def view(thing: Data, what: str, writes: bool = False) -> View:
    """The memory of an argument, which the caller's text calls `what`."""
    kind = type(thing)
    return (_readers.get(kind) or _reader(kind))(thing, what, writes)
