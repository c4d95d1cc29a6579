"""Groups: calls of one thread that are one thing to do.

    with hccl.group():
        comm.send(a, peer=1)
        comm.recv(b, peer=1)

The calls are carried out together at the end of the outermost group; until then their buffers are kept alive. A group that is
left by an exception is dropped: nothing of it is done. Groups belong to the thread, as in NCCL. On streams a group is one piece
of work, which begins when all of its streams have come so far.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Iterator

from . import interrupt, lib
from .results import Result, error
from .streams import stream_handle

if TYPE_CHECKING:
    from .membership import Membership
    from .streams import Stream


class Group:
    """What a thread's open group needs until its end."""

    def __init__(self) -> None:
        self.depth = 0
        self.stream: Stream | None = None  # for calls that name none
        self.used: Stream | None = None  # one of those that calls are on: all go on when the whole group is done
        self.comms: dict[int, Membership] = {}  # by id(): those that the group's calls are on
        self.held: list[object] = []

    def add(self, comm: Membership, stream: Stream | None, *held: object) -> None:
        self.comms[id(comm)] = comm
        self.used = self.used if self.used is not None else stream
        self.held.extend(held)


class _Thread(threading.local):
    group: Group | None = None


_thread = _Thread()


def current() -> Group | None:
    """The calling thread's open group."""
    return _thread.group


@contextlib.contextmanager
def group(stream: Stream | None = None) -> Iterator[None]:
    """Carries out the calls of its block together, when the outermost block ends. `stream` is for those that name none."""
    stream_handle("group", stream)
    mine = _thread.group
    if mine is None:
        mine = _thread.group = Group()
        lib.must(lib.load().ncclGroupStart)
    mine.depth += 1
    before = mine.stream
    mine.stream = before if stream is None else stream
    try:
        yield
    except BaseException:
        if _leave(mine):
            lib.load().ncclGroupSimulateEnd(None)  # ends a group without doing it
        raise
    finally:
        mine.stream = before
    if _leave(mine):
        _finish(mine)


def _leave(mine: Group) -> bool:
    """Whether this was the outermost block."""
    mine.depth -= 1
    if mine.depth == 0:
        _thread.group = None
    return mine.depth == 0


def _finish(mine: Group) -> None:
    comms = tuple(mine.comms.values())
    try:
        result = interrupt.call(comms, lib.load().ncclGroupEnd)
    finally:
        if mine.used is not None:
            mine.used.keep(mine.held, comms)
    if result == Result.IN_PROGRESS:
        for comm in comms:
            comm.hold(*mine.held)
    elif result:
        for comm in comms:
            comm.told()
        raise error("ncclGroupEnd", result, lib.text(result))
