"""Groups: calls of one thread that are one thing to do.

    with hccl.group():
        comm.send(a, peer=1)
        comm.recv(b, peer=1)

The calls are carried out together at the end of the outermost group; until then their buffers are kept alive. A group that is
left by an exception is dropped: nothing of it is done. Groups belong to the thread, as in NCCL.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Iterator

from . import interrupt, lib
from .results import Result, error

if TYPE_CHECKING:
    from .membership import Membership


class Group:
    """What a thread's open group needs until its end."""

    def __init__(self) -> None:
        self.depth = 0
        self.comms: dict[int, Membership] = {}  # by id(): those that the group's calls are on
        self.held: list[object] = []

    def add(self, comm: Membership, *held: object) -> None:
        self.comms[id(comm)] = comm
        self.held.extend(held)


class _Thread(threading.local):
    group: Group | None = None


_thread = _Thread()


def current() -> Group | None:
    """The calling thread's open group."""
    return _thread.group


@contextlib.contextmanager
def group() -> Iterator[None]:
    """Carries out the calls of its block together, when the outermost block ends."""
    mine = _thread.group
    if mine is None:
        mine = _thread.group = Group()
        lib.must(lib.load().ncclGroupStart)
    mine.depth += 1
    try:
        yield
    except BaseException:
        if _leave(mine):
            lib.load().ncclGroupSimulateEnd(None)  # ends a group without doing it
        raise
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
    result = interrupt.call(comms, lib.load().ncclGroupEnd)
    if result == Result.IN_PROGRESS:
        for comm in comms:
            comm.hold(*mine.held)
    elif result:
        for comm in comms:
            comm.told()
        raise error("ncclGroupEnd", result, lib.text(result))
