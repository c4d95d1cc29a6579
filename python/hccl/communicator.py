"""A communicator: the ranks that call operations together."""
from __future__ import annotations

import ctypes as c
import operator
import os
import threading
import time
import warnings
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Sequence

from . import groups, interrupt, lib
from .buffers import Data
from .config import Config
from .memory import Registration
from .operations import Operations
from .reductions import ScaledSum
from .results import ClosedError, LimitError, Result, error

if TYPE_CHECKING:
    from .meeting import Store

_NO_COLOR = -1


class Communicator(Operations):
    """One rank's membership. Made from an id that all ranks share, or by one of from_environment, from_file, from_tcp, from_store, all.

    At the end of a `with` block it is finished and closed; if the block is left by an exception it is aborted, so that the other ranks
    do not wait for this one. A Ctrl-C while the main thread waits in it aborts it, and KeyboardInterrupt is raised.
    """

    def __init__(self, rank: int, size: int, unique_id: bytes, config: Config | None = None) -> None:
        if len(bytes(unique_id)) != c.sizeof(lib.UniqueId):
            raise ValueError(f"unique_id has {len(bytes(unique_id))} bytes: give the {c.sizeof(lib.UniqueId)} of hccl.unique_id()")
        rank, size = _int("rank", rank), _int("size", size)
        if groups.current() is not None:
            raise ValueError("a communicator cannot be made within a group: make it before, or all of one process by Communicator.all")
        self._begin(config)
        self.rank, self.size = rank, size
        made, settings = lib.UniqueId.from_buffer_copy(bytes(unique_id)), (config or Config()).struct()
        self._make("ncclCommInitRankConfig", c.byref(self.handle), size, made, rank, c.byref(settings))

    def _begin(self, config: Config | None) -> None:
        self.handle = c.c_void_p()  # the library's; written by it, and by _take under _mu
        self._mu = threading.Lock()
        self._gone = "was not made"  # why there is no handle
        self._owner = os.getpid()
        self._blocking = config is None or config.blocking
        self._held: list[object] = []  # buffers of a non-blocking communicator, until wait
        self._at_close: Callable[[], None] | None = None  # lets go of what the making needed

    def _make(self, name: str, *arguments: Any) -> None:
        result = interrupt.call((self,), getattr(lib.load(), name), *arguments)
        if result and result != Result.IN_PROGRESS:
            raise error(name, result, lib.text(result))

    def when_made(self, release: Callable[[], None]) -> None:
        """Lets go of what the ranks met by: now, when all have come, or at the end of a communicator that does not wait for them."""
        if self._blocking:
            release()
        else:
            self._at_close = release

    # ---- Other ways to one ----

    @classmethod
    def from_environment(cls, config: Config | None = None, timeout: float = 300) -> Communicator:
        """By the variables of torchrun, `hccl run`, Open MPI, MPICH or Slurm: see docs/python.md."""
        from . import meeting
        return meeting.from_environment(cls, config, timeout)

    @classmethod
    def from_file(cls, path: str, rank: int, size: int, config: Config | None = None, timeout: float = 300) -> Communicator:
        """Rank 0 writes the id into a file that all ranks can read, and removes it when all have come."""
        from . import meeting
        return meeting.from_file(cls, path, rank, size, config, timeout)

    @classmethod
    def from_tcp(cls, host: str, port: int, rank: int, size: int, config: Config | None = None, timeout: float = 300) -> Communicator:
        """Rank 0 listens at host:port and gives the id to the others."""
        from . import meeting
        return meeting.from_tcp(cls, host, port, rank, size, config, timeout)

    @classmethod
    def from_store(cls, store: Store, rank: int, size: int, config: Config | None = None, name: str = "hccl") -> Communicator:
        """By a store with `set` and a `get` that waits: those of torch.distributed, or hccl.TCPStore."""
        from . import meeting
        return meeting.from_store(cls, store, rank, size, config, name)

    @classmethod
    def all(cls, size: int) -> list[Communicator]:
        """All ranks in this process; one thread then calls their operations in a group."""
        size = _int("size", size)
        if size < 1:
            raise ValueError(f"size {size} is not positive")
        made = [cls.__new__(cls) for _ in range(size)]
        for rank, comm in enumerate(made):
            comm._begin(None)
            comm.rank, comm.size = rank, size
        handles = (c.c_void_p * size)()
        for rank, comm in enumerate(made):
            comm.handle = c.c_void_p.from_buffer(handles, rank * c.sizeof(c.c_void_p))
        name = "ncclCommInitAll"
        result = interrupt.call(made, lib.load().ncclCommInitAll, handles, size, None)
        if result:
            raise error(name, result, lib.text(result))
        return made

    def split(self, color: int | None, key: int | None = None, config: Config | None = None) -> Communicator | None:
        """The ranks that give the same colour get a communicator of their own, in the order of (key, rank). Without a colour: None.
        All ranks must call it. In a group the new one can be used when the group has ended."""
        color, key = _NO_COLOR if color is None else _int("color", color), self.rank if key is None else _int("key", key)
        if color < 0 and color != _NO_COLOR:
            raise ValueError(f"split: color {color} is negative: give None to take part without a communicator")
        child = type(self).__new__(type(self))
        child._begin(config if config is not None else Config(blocking=self._blocking))
        settings = config.struct() if config is not None else None
        self.run("ncclCommSplit", color, key, c.byref(child.handle), settings and c.byref(settings), held=(child, settings), own_form=True)
        return None if color == _NO_COLOR else child

    def __getattr__(self, name: str) -> int:
        # A child of a split learns both numbers when it is asked, because in a group they are not known before its end.
        if name not in ("rank", "size") or "handle" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no {name}")
        if not self._blocking:
            self.wait()
        value = c.c_int()
        self.ask("ncclCommUserRank" if name == "rank" else "ncclCommCount", self.handle, c.byref(value))
        setattr(self, name, value.value)
        return value.value

    # ---- Calls ----

    def run(self, name: str, *arguments: Any, held: Sequence[object] = (), own_form: bool = False) -> None:
        handle, group = self.handle, groups.current()
        if not handle:
            self._refuse(name)
        # A split has the communicator in front and no stream.
        given = (handle, *arguments) if own_form else (*arguments, handle, None)
        if group is not None:
            group.add(self, *held)
            result = getattr(lib.load(), name)(*given)
        else:
            result = interrupt.call((self,), getattr(lib.load(), name), *given)
        if result:
            self._ended(name, result, held)

    def _ended(self, name: str, result: int, held: Sequence[object]) -> None:
        if result != Result.IN_PROGRESS:
            raise error(name, result, self._text(result))
        self.hold(*held)

    def ask(self, name: str, *arguments: Any) -> None:
        """Makes a call that never waits."""
        if not self.handle:
            self._refuse(name)
        result = getattr(lib.load(), name)(*arguments)
        if result:
            raise error(name, result, self._text(result))

    def hold(self, *things: object) -> None:
        """Keeps what a call that goes on still needs, until wait."""
        self._held.extend(things)

    def _text(self, result: int) -> str:
        return lib.text(result, self.handle if self.handle else None)

    def _refuse(self, name: str) -> None:
        raise ClosedError(name, Result.INVALID_USAGE, f"the communicator {self._gone}")

    # ---- State ----

    def done(self) -> bool:
        """Whether nothing goes on: always so on a blocking communicator. An error that came later, such as the death of another
        rank, is raised here."""
        state = c.c_int()
        self.ask("ncclCommGetAsyncError", self.handle, c.byref(state))
        if state.value == Result.IN_PROGRESS:
            return False
        self._held.clear()
        if state.value:
            raise error("ncclCommGetAsyncError", state.value, self._text(state.value))
        return True

    def wait(self, timeout: float | None = None) -> None:
        """Waits until nothing goes on, at most `timeout` seconds; LimitError says that something still does."""
        until = None if timeout is None else time.monotonic() + timeout
        pause = 20e-6
        try:
            while not self.done():
                if until is not None and time.monotonic() >= until:
                    raise LimitError("wait", Result.TIMEOUT, f"rank {self.rank}: calls still go on after {timeout:g} s; wait again or abort")
                time.sleep(pause)
                pause = min(2 * pause, 5e-3)
        except KeyboardInterrupt:
            self.interrupt()
            raise

    def scaled_sum(self, factor: float, element: Any) -> ScaledSum:
        """A reduction that multiplies this rank's input by `factor` and sums; `element` is the type, such as "float32"."""
        return ScaledSum(self, factor, element)

    def register(self, buffer: Data) -> Registration:
        """Tells the library of a buffer that will be used often."""
        return Registration(self, buffer)

    # ---- Ends ----

    def close(self) -> None:
        """Finishes what was started and leaves. Does not wait for the others."""
        if not self.handle:
            return
        try:
            result = interrupt.call((self,), lib.load().ncclCommFinalize, self.handle)
            if result == Result.IN_PROGRESS:
                self.wait()
            elif result:
                raise error("ncclCommFinalize", result, self._text(result))
        finally:
            self._leave("ncclCommDestroy", "was closed")

    def abort(self) -> None:
        """Leaves at once and ends every wait on this communicator, from any thread; the other ranks get a RemoteError."""
        self._leave("ncclCommAbort", "was aborted")

    def interrupt(self) -> None:
        """As abort, for a Ctrl-C: what goes wrong is not told, a KeyboardInterrupt follows."""
        handle = self._take("was aborted by Ctrl-C")
        if handle:
            lib.load().ncclCommAbort(handle)

    def _leave(self, name: str, why: str) -> None:
        handle = self._take(why)
        if not handle or os.getpid() != self._owner:  # a forked child only lets go of its parent's
            return
        result = getattr(lib.load(), name)(handle)
        self._held.clear()
        if self._at_close is not None:
            self._at_close()
        if result:
            raise error(name, result, lib.text(result))

    def _take(self, why: str) -> c.c_void_p:
        """The handle, for the one who ends it."""
        with self._mu:
            handle = c.c_void_p(self.handle.value)
            if handle:
                self.handle.value, self._gone = None, why
            return handle

    def __enter__(self) -> Communicator:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def __del__(self) -> None:
        if self.__dict__.get("handle") and os.getpid() == self._owner:
            warnings.warn(f"{self!r} was never closed: use it in a with block", ResourceWarning, source=self)
            self._leave("ncclCommDestroy", "was closed")

    def __repr__(self) -> str:
        if not self.handle:
            return f"<hccl.Communicator that {self._gone}>"
        known = self.__dict__
        return f"<hccl.Communicator, rank {known['rank']} of {known['size']}>" if "rank" in known and "size" in known else "<hccl.Communicator>"


def _int(name: str, value: int) -> int:
    """An int that C's int holds: ctypes would cut it silently."""
    number = operator.index(value)
    if not -(2**31) <= number < 2**31:
        raise ValueError(f"{name} {number} does not fit 32 bits")
    return number
