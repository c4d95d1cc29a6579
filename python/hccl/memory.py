"""Memory that the library knows: allocated by it, or told to it."""

from __future__ import annotations

import ctypes as c
import operator
import os
import weakref
from types import TracebackType
from typing import TYPE_CHECKING

from . import buffers, lib
from .buffers import Data

if TYPE_CHECKING:
    from .membership import Membership


def empty(size: int) -> memoryview:
    """Memory of `size` bytes that ranks of one host read in place, where other memory is copied once more. It lives as long as
    what refers to it: numpy.frombuffer(hccl.empty(n), numpy.float32) keeps it."""
    size = operator.index(size)
    if size < 1:
        raise ValueError(f"empty: {size} bytes: ask for at least one")
    address = c.c_void_p()
    lib.must(lib.load().ncclMemAlloc, c.byref(address), size)
    made = (c.c_ubyte * size).from_address(address.value or 0)
    # A process that ends frees everything itself, and a forked child must not free what is its parent's.
    weakref.finalize(made, _free, address, os.getpid()).atexit = False
    return memoryview(made).cast("B")


def _free(address: c.c_void_p, owner: int) -> None:
    if os.getpid() == owner:
        lib.load().ncclMemFree(address)


class Registration:
    """A buffer that was registered by Communicator.register; `close`, or the end of a `with` block, ends it."""

    def __init__(self, comm: Membership, buffer: Data) -> None:
        self._comm, self._view = comm, buffers.view(buffer, "register: buffer")
        self._handle = c.c_void_p()
        comm.ask("ncclCommRegister", comm.handle, self._view.address, self._view.bytes, c.byref(self._handle))

    def close(self) -> None:
        handle, self._handle = self._handle, c.c_void_p()
        if handle and self._comm.handle:
            self._comm.ask("ncclCommDeregister", self._comm.handle, handle)

    def __enter__(self) -> Registration:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
