"""How ranks come by one id: from a launcher's variables, through a file, or through a store.

Rank 0 makes the id and passes it on; the others wait for it. Ranks that then do not come are the library's business, which names
them.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple, Protocol

from . import lib
from .config import Config
from .results import MeetingError
from .store import TCPStore

if TYPE_CHECKING:
    from .communicator import Communicator


class Store(Protocol):
    """What passes the id on: a store of torch.distributed, or hccl.TCPStore."""

    def set(self, key: str, value: Any) -> Any: ...

    def get(self, key: str) -> Any: ...


# How often this process has met in one place as one rank: the next communicator is another meeting.
_met: dict[tuple[str, int, int], int] = {}
_mu = threading.Lock()


def _meeting(place: str, rank: int, size: int) -> int:
    with _mu:
        _met[place, rank, size] = number = _met.get((place, rank, size), 0) + 1
        return number


def _check(rank: int, size: int) -> None:
    if size < 1 or not 0 <= rank < size:
        raise ValueError(
            f"rank {rank} is none of {size} ranks (0 to {size - 1})" if size > 0 else f"size {size} is not positive"
        )


def from_store(cls: type[Communicator], store: Store, rank: int, size: int, config: Config | None, name: str) -> Communicator:
    _check(rank, size)
    key = f"{name}/{_meeting(name, rank, size)}"
    if rank == 0:
        unique_id = lib.unique_id()
        store.set(key, f"{size} {unique_id.hex()}")
        return cls(0, size, unique_id, config)
    said = store.get(key)
    return cls(
        rank,
        size,
        _parse(said.encode() if isinstance(said, str) else bytes(said), rank, size, f"key {key!r} of the store"),
        config,
    )


def _parse(said: bytes, rank: int, size: int, where: str) -> bytes:
    count, _, digits = said.partition(b" ")
    try:
        ranks, unique_id = int(count), bytes.fromhex(digits.decode())
    except ValueError:
        raise MeetingError(f"rank {rank}: {where} holds no id: somebody else uses the same name") from None
    if ranks != size:
        raise MeetingError(
            f"rank {rank} was started as one of {size} ranks, rank 0 as one of {ranks}: start all with the same size"
        )
    return unique_id


def from_tcp(
    cls: type[Communicator], host: str, port: int, rank: int, size: int, config: Config | None, timeout: float
) -> Communicator:
    _check(rank, size)
    with contextlib.ExitStack() as undo:
        store = TCPStore(host, port, serve=rank == 0, timeout=timeout)
        undo.callback(store.close)
        made = from_store(cls, store, rank, size, config, f"hccl/{host}:{port}")
        made.when_made(undo.pop_all().close)
    return made


def from_file(cls: type[Communicator], path: str, rank: int, size: int, config: Config | None, timeout: float) -> Communicator:
    _check(rank, size)
    path = os.path.abspath(path)
    if rank == 0:
        unique_id = lib.unique_id()
        with contextlib.ExitStack() as undo:
            _write(path, f"{size} {unique_id.hex()}".encode(), undo)
            made = cls(0, size, unique_id, config)
            made.when_made(undo.pop_all().close)
        return made
    return cls(rank, size, _parse(_read(path, rank, timeout), rank, size, f"file {path}"), config)


def _write(path: str, said: bytes, undo: contextlib.ExitStack) -> None:
    """Puts the file there in one piece, and holds a lock on it: a file without one is left over from a job that died."""
    try:
        into = undo.enter_context(
            tempfile.NamedTemporaryFile(dir=os.path.dirname(path), prefix=os.path.basename(path) + ".", delete=False)
        )
    except OSError as e:
        raise MeetingError(
            f"rank 0 cannot write the id beside {path}: {e.strerror}; name a file in a folder that all ranks share"
        ) from e
    undo.callback(_remove, into.name)
    fcntl.flock(into, fcntl.LOCK_EX)
    into.write(said)
    into.flush()
    os.rename(into.name, path)
    undo.callback(_remove, path)


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _read(path: str, rank: int, timeout: float) -> bytes:
    until, why = time.monotonic() + timeout, "it is not there"
    while True:
        try:
            with open(path, "rb") as f:
                if not _abandoned(f):
                    return f.read()
                why = "it is left over from another job"
        except FileNotFoundError:
            why = "it is not there"
        except OSError as e:
            why = e.strerror or str(e)
        if time.monotonic() >= until:
            raise MeetingError(
                f"rank {rank} waited {timeout:g} s for the id in file {path} ({why}): is rank 0 running, with the same path?"
            )
        time.sleep(0.01)


def _abandoned(f: Any) -> bool:
    try:
        fcntl.flock(f, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class Launcher(NamedTuple):
    """What a launcher calls the things that a rank must know. local_size and job serve to meet on one host without an address."""

    name: str
    rank: str
    size: str
    local_size: str
    job: tuple[str, ...]


LAUNCHERS = (
    Launcher("torchrun", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", ()),
    Launcher(
        "Open MPI",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"),
    ),
    Launcher("MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", ()),
    Launcher("Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_NTASKS", ("SLURM_JOB_ID", "SLURM_STEP_ID")),
)


def from_environment(cls: type[Communicator], config: Config | None, timeout: float) -> Communicator:
    env = os.environ
    launcher = next((each for each in LAUNCHERS if each.rank in env and each.size in env), None)
    if launcher is None:
        raise MeetingError(
            "no launcher's variables are set ("
            + ", ".join(f"{each.rank} and {each.size} of {each.name}" for each in LAUNCHERS)
            + "): start the program by one of them, or make the communicator from a file, a store or an id"
        )
    rank, size = _number(env, launcher.rank), _number(env, launcher.size)
    if env.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        return _from_agent(cls, env, rank, size, config, timeout)
    if "MASTER_ADDR" in env and "MASTER_PORT" in env:
        return from_tcp(cls, env["MASTER_ADDR"], _number(env, "MASTER_PORT"), rank, size, config, timeout)
    if not _one_host(env, launcher, size):
        raise MeetingError(
            f"rank {rank} of {launcher.name} does not know where rank 0 is: set MASTER_ADDR to its host and MASTER_PORT to a "
            "free port there, the same for all ranks"
        )
    return from_file(cls, _job_file(env, launcher, rank, size), rank, size, config, timeout)


def _number(env: Mapping[str, str], name: str) -> int:
    try:
        return int(env[name])
    except ValueError:
        raise MeetingError(f"{name} is {env[name]!r}, which is no number") from None


def _from_agent(
    cls: type[Communicator], env: Mapping[str, str], rank: int, size: int, config: Config | None, timeout: float
) -> Communicator:
    """torchrun itself serves a store at the address, for this run and those after a restart."""
    from datetime import timedelta

    from torch.distributed import TCPStore as TorchStore  # type: ignore[import-not-found, unused-ignore]

    store = TorchStore(env["MASTER_ADDR"], _number(env, "MASTER_PORT"), is_master=False, timeout=timedelta(seconds=timeout))
    return from_store(cls, store, rank, size, config, f"hccl/attempt_{env.get('TORCHELASTIC_RESTART_COUNT', '0')}")


def _one_host(env: Mapping[str, str], launcher: Launcher, size: int) -> bool:
    if launcher.name == "Slurm":
        return env.get("SLURM_STEP_NUM_NODES", env.get("SLURM_JOB_NUM_NODES")) == "1"
    return env.get(launcher.local_size) == str(size)


def _job_file(env: Mapping[str, str], launcher: Launcher, rank: int, size: int) -> str:
    """A path that the ranks of one job on one host have in common, and no other job has: by the job's name, or the launcher's
    process, whose children they are."""
    job = "-".join(env[name] for name in launcher.job if name in env) or f"parent{os.getppid()}"
    safe = "".join(ch if ch.isalnum() else "_" for ch in job)
    number = _meeting(f"job {job}", rank, size)
    return os.path.join(tempfile.gettempdir(), f"hccl-{os.getuid()}-{safe}-{number}")
