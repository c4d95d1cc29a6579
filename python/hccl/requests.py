"""Requests: operations that go on while the program does something else, and are waited for one by one.

    request = comm.start(comm.all_reduce, gradients, op=hccl.AVG)     # returns at once
    compute()
    request.wait()                                                    # the result is there, or an exception says why not

docs/requests.md says what is done in which order. Waiting gives up the interpreter's lock; a Ctrl-C is handled within a tenth of a
second and ends the wait, not the request. Buffers are kept alive until the request is over, also if the program drops it.
"""

from __future__ import annotations

import atexit
import ctypes as c
import itertools
import math
import os
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Sequence

from . import calls, lib
from .calls import Status
from .results import Error, LimitError, Result, error

if TYPE_CHECKING:
    from .membership import Membership

_SLICE = 100  # milliseconds: as long as a signal may have to wait for its handler


class _Open:
    """A request of the library, with what it needs until it is over. It outlives the program's Request."""

    def __init__(self, call: calls.Call, held: Sequence[object], comm: Membership) -> None:
        self.handle, self.held, self.comm, self.dropped = c.c_void_p(), held, comm, False
        self.result = int(lib.load().hcclStart(c.byref(call), comm.handle, c.byref(self.handle)))
        if self.result == 0:
            _sweep()
            _all.add(self)

    def over(self) -> bool:
        """Whether it is, and nothing needs to be known of it any more."""
        if lib.load().hcclRequestTest(self.handle) == Result.IN_PROGRESS:
            return False
        self.held = ()
        if self.dropped:
            lib.load().hcclRequestFree(self.handle)
        return True

    def drop(self) -> None:
        """Its Request is gone. The handle is kept as long as it goes on: only that tells when its buffers may go."""
        self.dropped = True
        if self.over():
            _all.discard(self)


_all: set[_Open] = set()  # those that are not over, and some that are
_look_at = 64  # when so many are there they are looked through


def _sweep() -> None:
    global _look_at
    if len(_all) >= _look_at:
        _all.difference_update([each for each in list(_all) if each.over()])
        _look_at = max(64, 2 * len(_all))


class Request:
    """An operation that was begun by Communicator.start. Its methods may be called from any thread, and again and again."""

    def __init__(self, name: str, call: calls.Call, held: Sequence[object], comm: Membership) -> None:
        self._name, self._comm, self._owner = name, comm, os.getpid()
        self._value: Any = None  # what the operation gives back
        self._mu = threading.RLock()
        self._callbacks: list[Callable[[Request], object]] | None = []  # guarded by _mu; None: the request is over
        self._open = _Open(call, held, comm)

    @property
    def result(self) -> int:
        """What the library said when it was started."""
        return self._open.result

    def gives(self, value: Any) -> Request:
        self._value = value
        return self

    def test(self) -> bool:
        """Whether it is over. How it failed is raised, as by wait."""
        return self._over(lib.load().hcclRequestTest(self._open.handle))

    def wait(self, timeout: float | None = None) -> Any:
        """Waits until it is over, at most `timeout` seconds, and gives back what the operation gives back. A LimitError with
        call "wait" ends the wait alone."""
        wait, handle = lib.load().hcclRequestWait, self._open.handle
        timeout = calls.time_of("wait", timeout)
        if not _until(timeout, lambda limit: self._over(wait(handle, limit))):
            raise LimitError("wait", Result.TIMEOUT, f"{self._name} still goes on after {timeout:g} s: wait again, or abort")
        return self._value

    @property
    def status(self) -> Status:
        """What a receive has taken; waits until it is over."""
        self.wait()
        made = Status()
        lib.must(lib.load().hcclRequestGetStatus, self._open.handle, c.byref(made))
        return made

    def cancel(self) -> None:
        """Takes back a receive that no message has met: it ends with an error. Anything else goes on; wait tells how it ended."""
        lib.must(lib.load().hcclRequestCancel, self._open.handle)

    def add_done_callback(self, function: Callable[[Request], object]) -> None:
        """Calls function(request) once it is over, on a thread of the library; here and now if that is known. What it raises is
        shown by sys.unraisablehook."""
        if not callable(function):
            raise TypeError(f"add_done_callback: function is of type {type(function).__name__}, which cannot be called")
        with self._mu:
            if self._callbacks is not None:
                self._callbacks.append(function)
                if len(self._callbacks) == 1:  # the library tells each request once
                    number = next(_numbers)
                    _awaited[number] = self
                    lib.must(lib.load().hcclRequestSetCallback, self._open.handle, _TELL, number)
                return
        function(self)

    def tell(self) -> None:
        with self._mu:
            callbacks, self._callbacks = self._callbacks or [], None
        for function in callbacks:
            function(self)

    def _over(self, result: int) -> bool:
        if result == Result.IN_PROGRESS:
            return False
        self._open.held = ()
        if result:
            self._comm.told_elsewhere()
            said: bytes = lib.load().hcclRequestGetLastError(self._open.handle)
            raise error(self._name, result, said.decode(errors="replace") or lib.text(result))
        return True

    @property
    def handle(self) -> c.c_void_p:
        return self._open.handle

    def __del__(self) -> None:
        begun = self.__dict__.get("_open")
        if begun is not None and begun.result == 0 and self._owner == os.getpid():
            begun.drop()


def wait_all(requests: Sequence[Request], timeout: float | None = None) -> list[Any]:
    """Waits until all are over, at most `timeout` seconds; what their operations give back. The first in the list that failed
    raises its error."""
    many, wait = _handles("wait_all", requests), lib.load().hcclRequestWaitAll
    timeout = calls.time_of("wait_all", timeout)
    if not _until(timeout, lambda limit: wait(many, len(requests), limit) != Result.IN_PROGRESS):
        raise LimitError("wait_all", Result.TIMEOUT, f"some of {len(requests)} requests still go on after {timeout:g} s")
    return [each.wait() for each in requests]


def wait_any(requests: Sequence[Request], timeout: float | None = None) -> int:
    """Waits until one is over, at most `timeout` seconds: its place in the list. How it ended is told by its own wait."""
    if not requests:
        raise ValueError("wait_any: there is no request to wait for")
    many, wait, place = _handles("wait_any", requests), lib.load().hcclRequestWaitAny, c.c_size_t()
    timeout = calls.time_of("wait_any", timeout)
    if not _until(timeout, lambda limit: wait(many, len(requests), limit, c.byref(place)) != Result.IN_PROGRESS):
        raise LimitError("wait_any", Result.TIMEOUT, f"all of {len(requests)} requests still go on after {timeout:g} s")
    return place.value


def _handles(who: str, requests: Sequence[Request]) -> c.Array[c.c_void_p]:
    for k, each in enumerate(requests):
        if not isinstance(each, Request):
            raise TypeError(f"{who}: entry {k} of the list is of type {type(each).__name__}: give what Communicator.start gave")
    return (c.c_void_p * len(requests))(*(each.handle.value for each in requests))


def _until(timeout: float | None, wait: Callable[[int], bool]) -> bool:
    """Waits by wait(milliseconds) in slices, between which signals are handled; whether it came to its end in time."""
    until = math.inf if timeout is None else time.monotonic() + timeout
    while True:
        left = max(0.0, until - time.monotonic())
        if wait(min(_SLICE, math.ceil(left * 1000) if left < math.inf else _SLICE)):
            return True
        if time.monotonic() >= until:
            return False


_numbers = itertools.count(1)
_awaited: dict[int, Request] = {}  # whose callbacks the library will make, by what it hands back


def _tell(request: object, result: int, number: int) -> None:
    try:
        _awaited[number].tell()
    finally:
        del _awaited[number]


_TELL = c.CFUNCTYPE(None, c.c_void_p, c.c_int, c.c_void_p)(_tell)


def _at_exit() -> None:
    """As for streams: communicators whose requests go on are aborted, and callbacks are waited for."""
    for begun in [each for each in list(_all) if not each.over()]:
        try:
            begun.comm.abort()
        except Error:
            pass  # there is nobody to tell
        while not begun.over():
            lib.load().hcclRequestWait(begun.handle, _SLICE)
    while _awaited:
        time.sleep(0.001)


def _forked() -> None:
    """Requests stay with the parent: in the child nothing runs, and nothing ends."""
    _all.clear()
    _awaited.clear()


atexit.register(_at_exit)
os.register_at_fork(after_in_child=_forked)
