"""Calls as data (hcclCall_t): an operation with what its plain form has no room for, such as a limit of its own."""

from __future__ import annotations

import contextlib
import ctypes as c
import math
import operator
import threading
from typing import Callable, Iterator, Sequence

_MAGIC = 0x48434331
NO_LIMIT = -1
ANY_SOURCE = -1  # instead of a rank, in receives
ANY_TAG = -1


class Status(c.Structure):
    """What a receive has taken; filled when the receive is done. `source` and `tag` of the message, and its length in bytes."""

    _fields_ = [("source", c.c_int), ("tag", c.c_int), ("bytes", c.c_uint64)]
    source: int
    tag: int
    bytes: int

    def __repr__(self) -> str:
        return f"hccl.Status(source={self.source}, tag={self.tag}, bytes={self.bytes})"


class Call(c.Structure):
    """hcclCall_t."""

    _fields_ = [
        ("size", c.c_size_t),
        ("magic", c.c_uint),
        ("func", c.c_int),
        ("type", c.c_int),
        ("op", c.c_int),
        ("root", c.c_int),
        ("tag", c.c_int),
        ("timeout", c.c_int64),
        ("send", c.c_void_p),
        ("recv", c.c_void_p),
        ("count", c.c_uint64),
        ("sendCounts", c.c_void_p),
        ("sendDispls", c.c_void_p),
        ("recvCounts", c.c_void_p),
        ("recvDispls", c.c_void_p),
        ("config", c.c_void_p),
        ("status", c.c_void_p),
    ]


_V = ("recvCounts", "recvDispls")
# The plain forms: the function's number and what their arguments are, but for communicator and stream.
_FORMS: dict[str, tuple[int, tuple[str, ...]]] = {
    "ncclAllReduce": (0, ("send", "recv", "count", "type", "op")),
    "ncclReduce": (1, ("send", "recv", "count", "type", "op", "root")),
    "ncclBroadcast": (2, ("send", "recv", "count", "type", "root")),
    "ncclAllGather": (3, ("send", "recv", "count", "type")),
    "ncclReduceScatter": (4, ("send", "recv", "count", "type", "op")),
    "ncclAlltoAll": (5, ("send", "recv", "count", "type")),
    "ncclGather": (6, ("send", "recv", "count", "type", "root")),
    "ncclScatter": (7, ("send", "recv", "count", "type", "root")),
    "hcclAllGatherV": (8, ("send", "recv", *_V, "type")),
    "hcclReduceScatterV": (9, ("send", "recv", *_V, "type", "op")),
    "hcclAlltoAllV": (10, ("send", "sendCounts", "sendDispls", "recv", *_V, "type")),
    "ncclSend": (11, ("send", "count", "type", "root")),
    "ncclRecv": (12, ("recv", "count", "type", "root")),
    "hcclSend": (11, ("send", "count", "type", "root", "tag")),
    "hcclRecv": (12, ("recv", "count", "type", "root", "tag", "status")),
    "hcclBarrier": (14, ("timeout",)),
}


def as_data(name: str, arguments: Sequence[object], timeout: int) -> Call:
    """The call that the plain form `name` would make of these arguments; timeout in milliseconds, 0 for the communicator's."""
    func, members = _FORMS[name]
    made = Call(size=c.sizeof(Call), magic=_MAGIC, func=func, timeout=timeout)
    for member, value in zip(members, arguments):
        if member != "timeout" or value:
            setattr(made, member, c.addressof(value) if isinstance(value, (c.Array, c.Structure)) else value)
    return made


def time_of(what: str, seconds: float | None) -> float | None:
    """A time in seconds, checked; None and infinity are no limit."""
    if seconds is None:
        return None
    try:
        number = float(seconds)
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(seconds, str) or math.isnan(number):
        raise TypeError(f"{what}: a time of {seconds!r}: give a number of seconds, or None for no limit")
    return number if number != math.inf else None


def milliseconds(what: str, seconds: float | None) -> int:
    """A limit as the library counts it. None is no limit."""
    seconds = time_of(what, seconds)
    if seconds is None:
        return NO_LIMIT
    if not seconds > 0:
        raise ValueError(f"{what}: a limit of {seconds:g} s: give a positive number of seconds, or None for no limit")
    return min(math.ceil(seconds * 1000), 2**62)


def tag_of(what: str, tag: int, least: int) -> int:
    number = operator.index(tag)
    if not least <= number < 2**31:
        raise ValueError(f"{what}: tag {number} is none: take 0 to {2**31 - 1}" + (", or ANY_TAG" if least < 0 else ""))
    return number


class _Thread(threading.local):
    limit = 0  # milliseconds, of each call; 0: the communicator's
    starting: Starter | None = None


_thread = _Thread()


@contextlib.contextmanager
def limit(seconds: float | None) -> Iterator[None]:
    """Each operation that this thread asks for within the block may take so long, from when it begins to its end, whatever the
    limit of its communicator; None: for ever. LimitError says then which ranks have not come, and the communicator has failed,
    but for a receive that no message has met: that is only taken back."""
    before, _thread.limit = _thread.limit, milliseconds("limit", seconds)
    try:
        yield
    finally:
        _thread.limit = before


def current_limit() -> int:
    return _thread.limit


Starter = Callable[[str, Call, Sequence[object]], None]


@contextlib.contextmanager
def starting(start: Starter) -> Iterator[None]:
    """The operation that this thread asks for within the block is given to `start`, with its name and what it needs."""
    _thread.starting = start
    try:
        yield
    finally:
        _thread.starting = None


def take_starter() -> Starter | None:
    """Who is given the operation that is asked for now; once."""
    start, _thread.starting = _thread.starting, None
    return start
