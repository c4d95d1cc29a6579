"""A communicator: the ranks that call operations together."""

from __future__ import annotations

import ctypes as c
import operator
from typing import TYPE_CHECKING, Any, Callable, Sequence

from . import calls, groups, interrupt, lib
from .buffers import Data
from .calls import Call
from .config import Config
from .membership import Membership
from .memory import Registration
from .operations import Operations
from .reductions import ScaledSum
from .requests import Request
from .results import error

if TYPE_CHECKING:
    from .meeting import Store

_NO_COLOR = -1


class Communicator(Membership):
    """One rank's membership. Made from an id that all ranks share, or by one of from_environment, from_file, from_tcp,
    from_store, all.

    At the end of a `with` block it is finished and closed; if the block is left by an exception it is aborted, so that the other
    ranks do not wait for this one. A Ctrl-C while the main thread waits in it aborts it, and KeyboardInterrupt is raised.
    """

    def __init__(self, rank: int, size: int, unique_id: bytes, config: Config | None = None) -> None:
        if len(bytes(unique_id)) != c.sizeof(lib.UniqueId):
            raise ValueError(
                f"unique_id has {len(bytes(unique_id))} bytes: give the {c.sizeof(lib.UniqueId)} of hccl.unique_id()"
            )
        rank, size = _int("rank", rank), _int("size", size)
        if groups.current() is not None:
            raise ValueError(
                "a communicator cannot be made within a group: make it before, or all of one process by Communicator.all"
            )
        self.begin(config)
        self.rank, self.size = rank, size
        made, settings = lib.UniqueId.from_buffer_copy(bytes(unique_id)), (config or Config()).struct()
        self.make("ncclCommInitRankConfig", c.byref(self.handle), size, made, rank, c.byref(settings))

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
    def from_tcp(
        cls, host: str, port: int, rank: int, size: int, config: Config | None = None, timeout: float = 300
    ) -> Communicator:
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
            comm.begin(None)
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
        """The ranks that give the same colour get a communicator of their own, in the order of (key, rank). Without a colour:
        None. All ranks must call it. In a group the new one can be used when the group has ended."""
        color, key = _NO_COLOR if color is None else _int("color", color), self.rank if key is None else _int("key", key)
        if color < 0 and color != _NO_COLOR:
            raise ValueError(f"split: color {color} is negative: give None to take part without a communicator")
        child = type(self).__new__(type(self))
        child.begin(config if config is not None else Config(blocking=self.blocking))
        settings = config.struct() if config is not None else None
        self.run(
            "ncclCommSplit",
            color,
            key,
            c.byref(child.handle),
            settings and c.byref(settings),
            held=(child, settings),
            own_form=True,
        )
        return None if color == _NO_COLOR else child

    def start(self, operation: Callable[..., Any], *arguments: Any, **named: Any) -> Request:
        """Begins one of this communicator's operations and returns at once: start(comm.all_reduce, a, op=MAX). Also within a group,
        to which it does not belong. The request's wait gives back what the operation does."""
        name = getattr(operation, "__name__", "")
        if getattr(operation, "__self__", None) is not self or name.startswith("_") or name not in vars(Operations):
            raise ValueError(f"start: {operation!r} is no operation of this communicator: give one such as comm.all_reduce")
        made: list[Request] = []

        def start(name: str, call: Call, held: Sequence[object]) -> None:
            made.append(Request(name, call, held, self))
            if made[0].result:
                raise self._error(name, made[0].result)

        with calls.starting(start):
            value = operation(*arguments, **named)
        return made[0].gives(value)

    def scaled_sum(self, factor: float, element: Any) -> ScaledSum:
        """A reduction that multiplies this rank's input by `factor` and sums; `element` is the type, such as "float32"."""
        return ScaledSum(self, factor, element)

    def register(self, buffer: Data) -> Registration:
        """Tells the library of a buffer that will be used often."""
        return Registration(self, buffer)


def _int(name: str, value: int) -> int:
    """An int that C's int holds: ctypes would cut it silently."""
    number = operator.index(value)
    if not -(2**31) <= number < 2**31:
        raise ValueError(f"{name} {number} does not fit 32 bits")
    return number
