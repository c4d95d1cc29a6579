"""A rank's hold on the library's communicator: how calls are made on it, how they are waited for, and how it ends."""

from __future__ import annotations

import ctypes as c
import os
import threading
import time
import warnings
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Sequence, TypeVar

from . import calls, groups, interrupt, lib
from .config import Config
from .operations import Operations
from .results import ClosedError, LimitError, Result, error
from .streams import stream_handle

if TYPE_CHECKING:
    from .streams import Stream

_Self = TypeVar("_Self", bound="Membership")


class Membership(Operations):
    """The handle, and what belongs to it. One who ends it takes it under a lock, so that it is ended once."""

    def begin(self, config: Config | None) -> None:
        self.handle = c.c_void_p()  # the library's; written by it, and by _take under _mu
        self._mu = threading.Lock()
        self._gone = "was not made"  # why there is no handle
        self._owner = os.getpid()
        self.blocking = config is None or config.blocking
        self._told = False  # an error of the library has been raised
        self._held: list[object] = []  # buffers of a non-blocking communicator, until wait
        self._at_close: Callable[[], None] | None = None  # lets go of what the making needed

    def make(self, name: str, *arguments: Any) -> None:
        result = interrupt.call((self,), getattr(lib.load(), name), *arguments)
        if result and result != Result.IN_PROGRESS:
            raise error(name, result, lib.text(result))

    def when_made(self, release: Callable[[], None]) -> None:
        """Lets go of what the ranks met by: now, when all have come, or at the end of a communicator that does not wait for
        them."""
        if self.blocking:
            release()
        else:
            self._at_close = release

    def __getattr__(self, name: str) -> int:
        # A child of a split learns both numbers when it is asked, because in a group they are not known before its end.
        if name not in ("rank", "size") or "handle" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no {name}")
        if not self.blocking:
            self.wait()
        value = c.c_int()
        self.ask("ncclCommUserRank" if name == "rank" else "ncclCommCount", self.handle, c.byref(value))
        setattr(self, name, value.value)
        return value.value

    # ---- Calls ----

    def run(
        self, name: str, *arguments: Any, held: Sequence[object] = (), stream: Stream | None = None, own_form: bool = False
    ) -> None:
        handle, group = self.handle, groups.current()
        if not handle:
            self._refuse(name)
        start = calls.take_starter()
        if start is not None:
            if stream is not None:
                raise ValueError("start: a request is on no stream: call the operation itself with it")
            start(name, calls.as_data(name, arguments, calls.current_limit()), held)
            return
        if group is not None and stream is None and not own_form:
            stream = group.stream
        function, given = self._form(name, arguments, stream, own_form)
        if group is not None:
            group.add(self, stream, *held)
            result = function(*given)
        else:
            result = interrupt.call((self,), function, *given)
        if result:
            self._ended(name, result, held)
        elif stream is not None and group is None:
            stream.keep(held, (self,))

    def _form(self, name: str, arguments: Sequence[Any], stream: Stream | None, own_form: bool) -> tuple[Any, Sequence[Any]]:
        """The library's function and what it is given: the plain form, or a call as data where that has no room for something."""
        library = lib.load()
        if own_form:  # a split has the communicator in front and no stream
            return getattr(library, name), (self.handle, *arguments)
        on, limit = stream_handle(name, stream), calls.current_limit()
        if limit or name == "hcclRecv":  # whose plain form has an argument behind the stream
            return library.hcclRun, (c.byref(calls.as_data(name, arguments, limit)), self.handle, on)
        return getattr(library, name), (*arguments, self.handle, on)

    def _ended(self, name: str, result: int, held: Sequence[object]) -> None:
        if result != Result.IN_PROGRESS:
            raise self._error(name, result)
        self.hold(*held)

    def told(self) -> None:
        """An error of this communicator has been raised: its end need not raise it again."""
        self._told = True

    def told_elsewhere(self) -> None:
        """A stream or request has raised the error of a communicator: if this is the one, its end need not raise it again."""
        state = c.c_int()
        if self.handle and lib.load().ncclCommGetAsyncError(self.handle, c.byref(state)) == 0:
            self._told = self._told or state.value not in (Result.SUCCESS, Result.IN_PROGRESS)

    def _error(self, name: str, result: int) -> Exception:
        self.told()
        return error(name, result, self._text(result))

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

    @property
    def timeout(self) -> float | None:
        """Seconds for which an operation may stand still, also one that is under way; None: for ever. At first HCCL_TIMEOUT."""
        value = c.c_int64()
        self.ask("hcclCommGetTimeout", self.handle, c.byref(value))
        return value.value / 1000 if value.value > 0 else None

    @timeout.setter
    def timeout(self, seconds: float | None) -> None:
        self.ask("hcclCommSetTimeout", self.handle, calls.milliseconds("timeout", seconds))

    def done(self) -> bool:
        """Whether nothing goes on: always so on a blocking communicator. An error that came later, such as the death of another
        rank, is raised here."""
        state = c.c_int()
        self.ask("ncclCommGetAsyncError", self.handle, c.byref(state))
        if state.value == Result.IN_PROGRESS:
            return False
        self._held.clear()
        if state.value:
            raise self._error("ncclCommGetAsyncError", state.value)
        return True

    def wait(self, timeout: float | None = None) -> None:
        """Waits until nothing goes on, at most `timeout` seconds; LimitError says that something still does."""
        until = None if timeout is None else time.monotonic() + timeout
        pause = 20e-6
        try:
            while not self.done():
                if until is not None and time.monotonic() >= until:
                    raise LimitError(
                        "wait", Result.TIMEOUT, f"rank {self.rank}: calls still go on after {timeout:g} s; wait again or abort"
                    )
                time.sleep(pause)
                pause = min(2 * pause, 5e-3)
        except KeyboardInterrupt:
            self.interrupt()
            raise

    # ---- Ends ----

    def close(self) -> None:
        """Finishes what was started, requests too, and leaves. Waits for no other rank beyond that. A fault that no call has told
        is raised here."""
        if not self.handle:
            return
        try:
            result = interrupt.call((self,), lib.load().ncclCommFinalize, self.handle)
            if result == Result.IN_PROGRESS:
                self.wait()
            elif result and not self._told:
                raise self._error("ncclCommFinalize", result)
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

    def __enter__(self: _Self) -> _Self:
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
        return (
            f"<hccl.Communicator, rank {known['rank']} of {known['size']}>"
            if "rank" in known and "size" in known
            else "<hccl.Communicator>"
        )
