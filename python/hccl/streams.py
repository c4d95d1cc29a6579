"""Streams: what is queued on one is done in order, by threads of the library, while the program goes on.

    with hccl.Communicator.from_environment() as comm, hccl.Stream() as stream:
        comm.all_reduce(gradients, stream=stream)     # returns at once
        compute()                                     # beside it
        stream.synchronize()                          # the result is there, or an exception says why not

docs/streams.md says what is done in which order. Waiting gives up the interpreter's lock, and Ctrl-C or another signal is handled
at once: unlike one in an operation it aborts nothing, because what is queued goes on.
"""

from __future__ import annotations

import ctypes as c
import itertools
import os
import threading
import time
import warnings
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Sequence

from . import calls, lib, pending
from .results import ClosedError, Error, LimitError, Result, error

if TYPE_CHECKING:
    from .membership import Membership


class _Owned:
    """Something of the library that is closed once, by the process that made it."""

    _name = ""
    _open = False

    def _begin(self) -> None:
        self._owner, self._open = os.getpid(), True

    def _use(self, call: str) -> None:
        if not self._open:
            raise ClosedError(call, Result.INVALID_USAGE, f"the {self._name} was closed")

    def _end(self) -> bool:
        """Whether it is to be given back now."""
        ends, self._open = self._open, False
        return ends and self._owner == os.getpid()


class Stream(_Owned):
    """An order in which work is done beside the program. At the end of a `with` block it is synchronised and closed; if the block
    is left by an exception it is closed alone, which does not wait: what is queued goes on, and is kept alive."""

    _name = "stream"

    def __init__(self) -> None:
        pending.collect()
        self._work = pending.Work()
        self._failures: list[BaseException] = []  # of the program's functions, until synchronize
        self._comms: weakref.WeakSet[Membership] = weakref.WeakSet()  # those that have been used on it
        self._running_in = 0  # the thread that runs one of them
        self._begin()

    @property
    def handle(self) -> c.c_void_p:
        """The library's handle, a cudaStream_t for calls of one's own."""
        self._use("handle")
        return self._work.handle

    def keep(self, held: Sequence[object], comms: Sequence[Membership] = ()) -> None:
        """Keeps these alive, and the communicators in mind, until what was queued just now is done."""
        self._comms.update(comms)
        self._work.add(held, comms)

    def synchronize(self, timeout: float | None = None) -> None:
        """Waits until all that is queued is done, at most `timeout` seconds. The first error since the last time is raised: the
        library's, or what a launched function raised. After a LimitError the work goes on, and may be waited for again."""
        self._use("synchronize")
        if self._running_in != threading.get_ident():  # else the library says why that would never end
            timeout = calls.time_of("synchronize", timeout)
            until = None if timeout is None else time.monotonic() + timeout
            if not self._work.wait(until):
                raise LimitError(
                    "synchronize",
                    Result.TIMEOUT,
                    f"work on the stream still goes on after {timeout:g} s: wait again, or abort its communicators",
                )
        result = lib.load().hcclStreamSynchronize(self._work.handle)
        self._work.reclaim()
        if result:
            told = error("hcclStreamSynchronize", result, lib.text(result))
            for comm in self._comms:
                comm.told_elsewhere()
            raise told
        if self._failures:
            raise self._failures.pop(0)

    def query(self) -> bool:
        """Whether all that was queued is done. An error is raised, and left for synchronize to raise again."""
        self._use("query")
        result = lib.load().hcclStreamQuery(self._work.handle)
        if result == Result.IN_PROGRESS:
            return False
        self._work.reclaim()
        if result:
            raise error("hcclStreamQuery", result, lib.text(result))
        if self._failures:
            raise self._failures[0]
        return True

    def launch(self, function: Callable[..., object], *arguments: Any) -> None:
        """Calls function(*arguments) in the stream's order, on a thread of the library. It may queue more, and should return soon:
        the stream waits for it. What it raises is raised by synchronize."""
        self._use("launch")
        if not callable(function):
            raise TypeError(f"launch: function is of type {type(function).__name__}, which cannot be called")
        number = next(_numbers)
        _launched[number] = self, function, arguments
        try:
            lib.must(lib.load().hcclStreamLaunchHostFunc, self._work.handle, _RUN, number)
        except Error:
            del _launched[number]
            raise
        self._work.add(())

    def wait_event(self, event: Event) -> None:
        """What is queued from now on waits for what the event was last recorded behind."""
        self._use("wait_event")
        if not isinstance(event, Event):
            raise TypeError(f"wait_event: event is of type {type(event).__name__}: give an hccl.Event")
        lib.must(lib.load().hcclStreamWaitEvent, self._work.handle, event.handle)
        self._work.add(())

    def close(self) -> None:
        """Waits until all that is queued is done, and gives the stream back. What went wrong is raised."""
        if not self._open:
            return
        try:
            self.synchronize()
        finally:
            self._drop()

    def _drop(self) -> None:
        if self._end():
            self._work.close()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self._drop()

    def __del__(self) -> None:
        if self._open and self._owner == os.getpid():
            warnings.warn(f"{self!r} was never closed: use it in a with block", ResourceWarning, source=self)
            self._drop()


class Event(_Owned):
    """A point in a stream, which other streams and threads can wait for. `close`, or the end of a `with` block, gives it back;
    streams that wait for it still do."""

    _name = "event"

    def __init__(self) -> None:
        self._handle = c.c_void_p()
        lib.must(lib.load().hcclEventCreate, c.byref(self._handle))
        self._begin()

    @property
    def handle(self) -> c.c_void_p:
        """The library's handle."""
        self._use("handle")
        return self._handle

    def record(self, stream: Stream | None = None) -> None:
        """Puts the event behind what is queued on the stream now; without one it is reached at once."""
        lib.must(lib.load().hcclEventRecord, self.handle, stream_handle("record", stream))
        if stream is not None:
            stream.keep(())

    def query(self) -> bool:
        """Whether it has been reached, or was never recorded."""
        result = lib.load().hcclEventQuery(self.handle)
        if result not in (Result.SUCCESS, Result.IN_PROGRESS):
            raise error("hcclEventQuery", result, lib.text(result))
        return bool(result == Result.SUCCESS)

    def synchronize(self, timeout: float | None = None) -> None:
        """Waits until it has been reached, at most `timeout` seconds."""
        if self.query():
            return
        timeout = calls.time_of("synchronize", timeout)
        until = None if timeout is None else time.monotonic() + timeout
        waits = pending.Work()  # a stream that does nothing but wait for the event
        try:
            lib.must(lib.load().hcclStreamWaitEvent, waits.handle, self.handle)
            if not waits.wait(until):
                raise LimitError("synchronize", Result.TIMEOUT, f"the event has not been reached within {timeout:g} s")
        finally:
            waits.close()

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from this event to `end`; both must have been reached."""
        value = c.c_float()
        result = lib.load().hcclEventElapsedTime(c.byref(value), self.handle, end.handle)
        if result == Result.IN_PROGRESS:
            raise Error("hcclEventElapsedTime", result, "one of the events has not been reached yet: synchronize it first")
        if result:
            raise error("hcclEventElapsedTime", result, lib.text(result))
        return value.value

    def close(self) -> None:
        if self._end():
            lib.must(lib.load().hcclEventDestroy, self._handle)

    def __enter__(self) -> Event:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


def stream_handle(call: str, stream: Stream | None) -> c.c_void_p | None:
    """What a call is told of its stream."""
    if stream is None:
        return None
    if not isinstance(stream, Stream):
        raise TypeError(
            f"{call}: stream is of type {type(stream).__name__}: give an hccl.Stream, or None to wait for the result"
        )
    return stream.handle


_numbers = itertools.count(1)
_launched: dict[int, tuple[Stream, Callable[..., object], tuple[Any, ...]]] = {}  # by what the library hands back


def _run(number: int) -> None:
    stream, function, arguments = _launched.pop(number)
    stream._running_in = threading.get_ident()
    try:
        function(*arguments)
    except BaseException as e:  # it must not end in the library's thread, where nobody sees it
        stream._failures.append(e)
    finally:
        stream._running_in = 0


_RUN = c.CFUNCTYPE(None, c.c_void_p)(_run)
