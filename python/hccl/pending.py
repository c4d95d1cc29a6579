"""What a stream has not done yet, and what must live until then.

The library's threads read and write buffers of the program after the calls have returned. So each piece of work on a stream is
followed by a mark in the stream, which posts a semaphore, and its buffers are kept until that has been posted:

    the stream       operation ── mark ── operation ── mark ──► each mark is sem_post(done)
    pieces           [buffers, communicators] [buffers, ...]    as often as done was posted the first is let go

A mark is a function of libc and not of Python: it runs without the interpreter's lock, so a program that computes in Python does
not hold up its own communication. Appending to the pieces and posting need no order among threads: a piece stands in the list
before its mark is queued, and its operation is queued before that, so k posts mean that the first k pieces are done.
"""

from __future__ import annotations

import atexit
import collections
import ctypes as c
import os
import time
from typing import TYPE_CHECKING, Sequence

from . import lib
from .results import Error, Result

if TYPE_CHECKING:
    from .membership import Membership

_SLICE = 0.1  # seconds: a signal that comes just before the wait in C does not end it, so it is looked for as often

_libc = c.CDLL(None)
_post = c.cast(_libc.sem_post, c.c_void_p)  # int(sem_t*), called as void(void*): the result is left in a register
for _name, _arguments in {"sem_init": [c.c_void_p, c.c_int, c.c_uint], "sem_trywait": [c.c_void_p]}.items():
    getattr(_libc, _name).argtypes = _arguments
_libc.sem_timedwait.argtypes = [c.c_void_p, c.c_void_p]


class Semaphore:
    """One of POSIX. A wait gives up the interpreter's lock, and a signal of the main thread ends it for its handler."""

    def __init__(self) -> None:
        self._room = (c.c_long * 4)()  # a sem_t: 32 bytes where a long has 8
        _libc.sem_init(self._room, 0, 0)

    @property
    def address(self) -> int:
        return c.addressof(self._room)

    def take(self) -> bool:
        """Whether it had been posted."""
        return bool(_libc.sem_trywait(self._room) == 0)

    def wait(self, until: float | None = None) -> bool:
        """Waits for a post, to this time of time.monotonic; whether it came."""
        while True:
            left = _SLICE if until is None else min(_SLICE, max(0.0, until - time.monotonic()))
            at = time.time() + left
            if _libc.sem_timedwait(self._room, (c.c_long * 2)(int(at), int(at % 1 * 1e9))) == 0:
                return True
            if until is not None and time.monotonic() >= until:
                return False


class Piece:
    """Something that a stream will do, and what it needs until then."""

    __slots__ = ("held", "comms")

    def __init__(self, held: Sequence[object], comms: Sequence[Membership]) -> None:
        self.held, self.comms = held, comms


class Work:
    """What was queued on one stream of the library. It outlives the program's Stream, until all is done."""

    def __init__(self) -> None:
        self.handle = c.c_void_p()
        lib.must(lib.load().hcclStreamCreate, c.byref(self.handle))
        self._pieces: collections.deque[Piece] = collections.deque()
        self._done = Semaphore()
        self._closed = False
        _all.add(self)

    def add(self, held: Sequence[object], comms: Sequence[Membership] = ()) -> Piece:
        """Keeps these for what was queued just now."""
        self.reclaim()
        piece = Piece(held, comms)
        self._pieces.append(piece)
        lib.must(lib.load().hcclStreamLaunchHostFunc, self.handle, _post, self._done.address)
        return piece

    def reclaim(self) -> None:
        """Lets go of what is done."""
        while self._pieces and self._done.take():
            self._pieces.popleft()

    def wait(self, until: float | None) -> bool:
        """Waits until all that is queued is done; False says that the time came first."""
        while lib.load().hcclStreamQuery(self.handle) == Result.IN_PROGRESS:
            here = Semaphore()
            lib.must(lib.load().hcclStreamLaunchHostFunc, self.handle, _post, here.address)
            mine = self.add((here,))
            if not here.wait(until):
                return False
            if self._last() in (mine, None):  # else another thread, or one of the stream's functions, has queued more
                break
        return True

    def _last(self) -> Piece | None:
        try:
            return self._pieces[-1]
        except IndexError:  # another thread has just let go of it
            return None

    def close(self) -> None:
        """Gives the stream back; what is queued goes on, and is kept."""
        self._closed = True
        lib.must(lib.load().hcclStreamDestroy, self.handle)
        collect()

    def over(self) -> bool:
        self.reclaim()
        return self._closed and not self._pieces

    def abandon(self) -> None:
        """Aborts the communicators that have something queued."""
        for comm in {id(comm): comm for piece in list(self._pieces) for comm in piece.comms}.values():
            try:
                comm.abort()
            except Error:
                pass  # there is nobody to tell

    def settle(self) -> None:
        """Waits for the marks of all pieces, also of a stream that was closed."""
        while self._pieces:
            if self._done.wait():
                self._pieces.popleft()

    def keep_for_ever(self) -> None:
        c.pythonapi.Py_IncRef(c.py_object(self))


_all: set[Work] = set()  # those that are open, or closed and not done


def collect() -> None:
    """Lets go of what streams have done that nobody uses any more."""
    _all.difference_update([work for work in list(_all) if work.over()])


def _at_exit() -> None:
    """The interpreter frees its memory after this, so nothing may still read or write there: what other ranks may keep waiting is
    aborted, what the program's own functions do is waited for, as Python waits for threads."""
    collect()
    for work in list(_all):
        work.abandon()
    try:
        for work in list(_all):
            work.settle()
    except KeyboardInterrupt:
        for work in list(_all):
            work.keep_for_ever()


def _forked() -> None:
    """Streams stay with the parent: in the child nothing runs, and nothing ends."""
    _all.clear()


atexit.register(_at_exit)
os.register_at_fork(after_in_child=_forked)
