"""The shared library: where it is, and its functions through ctypes.

`path()` looks in this order and takes the first that is there:

1. HCCL_LIB, a folder or a file;
2. `lib/` in this package, where `pip install` of a built tree puts it;
3. `build/lib` of the checkout that this package lies in;
4. what the system's loader knows as libhccl_compat.so. That name and not libnccl.so.2, which may be NVIDIA's library.

Loading starts nothing: a process may import this package, make ids and fork, and make communicators in the children.
ctypes.CDLL gives up the interpreter's lock during each call.
"""

from __future__ import annotations

import ctypes as c
import functools
import os
import re
import subprocess
from typing import Callable, Iterator

from .results import LibraryError, error

FILE = "libnccl.so.2"
_ALIAS = "libhccl_compat.so"
_HERE = os.path.dirname(os.path.abspath(__file__))
_SYSTEM = ("/usr/local/lib", "/usr/lib", "/usr/lib64")


class UniqueId(c.Structure):
    """ncclUniqueId."""

    _fields_ = [("internal", c.c_ubyte * 128)]


@functools.lru_cache(maxsize=1)
def path() -> str:
    """The library's file. LibraryError says where it was looked for."""
    named = os.environ.get("HCCL_LIB")
    if named:
        found = os.path.join(named, FILE) if os.path.isdir(named) else named
        if os.path.isfile(found):
            return os.path.abspath(found)
        raise LibraryError(
            f"HCCL_LIB is {named}, and there is no {FILE}: name the folder that holds it, such as build/lib of a built tree"
        )
    beside = [os.path.join(_HERE, "lib", FILE), os.path.join(_HERE, "..", "..", "build", "lib", FILE)]
    for found in beside + [os.path.join(folder, _ALIAS) for folder in _folders()]:
        if os.path.isfile(found):
            return os.path.abspath(found)
    cached = _cached()
    if cached is not None:
        return cached
    raise LibraryError(
        "the HCCL library is not there: looked for "
        + ", ".join(os.path.normpath(p) for p in beside)
        + f", and for {_ALIAS} in the "
        "system's folders. Run make in the checkout and install again, or set HCCL_LIB to the folder that holds " + FILE
    )


def _folders() -> Iterator[str]:
    yield from filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":"))
    yield from _SYSTEM


def _cached() -> str | None:
    """What the loader's cache says; ldconfig may be missing, as in small containers."""
    for tool in ("/sbin/ldconfig", "/usr/sbin/ldconfig"):
        try:
            said = subprocess.run(
                [tool, "-p"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
            ).stdout
        except OSError:
            continue
        found = re.search(rf"^\s*{re.escape(_ALIAS)} .*=> (.+)$", said, re.M)
        return found.group(1) if found else None
    return None


_p, _i, _z, _id = c.c_void_p, c.c_int, c.c_size_t, UniqueId
_TYPE, _OP, _ROOT, _PEER, _COMM, _STREAM, _EVENT, _REQUEST = _i, _i, _i, _i, _p, _p, _p, _p
_SIGNATURES: dict[str, list[type]] = {
    "ncclGetVersion": [_p],
    "ncclGetUniqueId": [_p],
    "ncclCommInitRankConfig": [_p, _i, _id, _i, _p],
    "ncclCommInitAll": [_p, _i, _p],
    "ncclCommSplit": [_COMM, _i, _i, _p, _p],
    "ncclCommFinalize": [_COMM],
    "ncclCommDestroy": [_COMM],
    "ncclCommAbort": [_COMM],
    "ncclCommGetAsyncError": [_COMM, _p],
    "ncclCommCount": [_COMM, _p],
    "ncclCommUserRank": [_COMM, _p],
    "ncclMemAlloc": [_p, _z],
    "ncclMemFree": [_p],
    "ncclCommRegister": [_COMM, _p, _z, _p],
    "ncclCommDeregister": [_COMM, _p],
    "ncclRedOpCreatePreMulSum": [_p, _p, _TYPE, _i, _COMM],
    "ncclRedOpDestroy": [_OP, _COMM],
    "ncclAllReduce": [_p, _p, _z, _TYPE, _OP, _COMM, _STREAM],
    "ncclReduce": [_p, _p, _z, _TYPE, _OP, _ROOT, _COMM, _STREAM],
    "ncclBroadcast": [_p, _p, _z, _TYPE, _ROOT, _COMM, _STREAM],
    "ncclAllGather": [_p, _p, _z, _TYPE, _COMM, _STREAM],
    "ncclReduceScatter": [_p, _p, _z, _TYPE, _OP, _COMM, _STREAM],
    "ncclGather": [_p, _p, _z, _TYPE, _ROOT, _COMM, _STREAM],
    "ncclScatter": [_p, _p, _z, _TYPE, _ROOT, _COMM, _STREAM],
    "ncclAlltoAll": [_p, _p, _z, _TYPE, _COMM, _STREAM],
    "ncclSend": [_p, _z, _TYPE, _PEER, _COMM, _STREAM],
    "ncclRecv": [_p, _z, _TYPE, _PEER, _COMM, _STREAM],
    "ncclGroupStart": [],
    "ncclGroupEnd": [],
    "ncclGroupSimulateEnd": [_p],
    "hcclAllGatherV": [_p, _p, _p, _p, _TYPE, _COMM, _STREAM],
    "hcclReduceScatterV": [_p, _p, _p, _p, _TYPE, _OP, _COMM, _STREAM],
    "hcclAlltoAllV": [_p, _p, _p, _p, _p, _p, _TYPE, _COMM, _STREAM],
    "hcclSend": [_p, c.c_uint64, _TYPE, _PEER, _i, _COMM, _STREAM],
    "hcclBarrier": [c.c_int64, _COMM, _STREAM],
    "hcclRun": [_p, _COMM, _STREAM],
    "hcclStart": [_p, _COMM, _p],
    "hcclRequestTest": [_REQUEST],
    "hcclRequestWait": [_REQUEST, c.c_int64],
    "hcclRequestWaitAll": [_p, _z, c.c_int64],
    "hcclRequestWaitAny": [_p, _z, c.c_int64, _p],
    "hcclRequestGetStatus": [_REQUEST, _p],
    "hcclRequestSetCallback": [_REQUEST, _p, _p],
    "hcclRequestCancel": [_REQUEST],
    "hcclRequestFree": [_REQUEST],
    "hcclCommSetTimeout": [_COMM, c.c_int64],
    "hcclCommGetTimeout": [_COMM, _p],
    "hcclStreamCreate": [_p],
    "hcclStreamDestroy": [_STREAM],
    "hcclStreamSynchronize": [_STREAM],
    "hcclStreamQuery": [_STREAM],
    "hcclStreamLaunchHostFunc": [_STREAM, _p, _p],
    "hcclStreamWaitEvent": [_STREAM, _EVENT],
    "hcclEventCreate": [_p],
    "hcclEventDestroy": [_EVENT],
    "hcclEventRecord": [_EVENT, _STREAM],
    "hcclEventQuery": [_EVENT],
    "hcclEventElapsedTime": [_p, _EVENT, _EVENT],
}


@functools.lru_cache(maxsize=1)
def load() -> c.CDLL:
    """The library with its functions declared."""
    found = path()
    try:
        made = c.CDLL(found)
        for name, arguments in _SIGNATURES.items():
            function = getattr(made, name)
            function.argtypes, function.restype = arguments, _i
        made.ncclGetLastError.argtypes, made.ncclGetLastError.restype = [_COMM], c.c_char_p
        made.hcclRequestGetLastError.argtypes, made.hcclRequestGetLastError.restype = [_REQUEST], c.c_char_p
        made.ncclGetErrorString.argtypes, made.ncclGetErrorString.restype = [_i], c.c_char_p
    except OSError as e:
        raise LibraryError(f"{found} cannot be loaded: {e}") from e
    except AttributeError as e:
        raise LibraryError(
            f"{found} is not this version of HCCL ({e}): set HCCL_LIB to the folder of the one that belongs here"
        ) from e
    return made


def text(result: int, comm: c.c_void_p | None = None) -> str:
    """The library's sentence for a call that the calling thread has just made."""
    said: bytes = load().ncclGetLastError(comm) or load().ncclGetErrorString(result)
    return said.decode(errors="replace")


def must(function: Callable[..., int], *arguments: object) -> None:
    """Calls a function that concerns no communicator."""
    result = function(*arguments)
    if result:
        raise error(function.__name__, result, text(result))


def version() -> int:
    """The version of NCCL's interface that the library has, such as 23203."""
    value = c.c_int()
    must(load().ncclGetVersion, c.byref(value))
    return value.value


def unique_id() -> bytes:
    """An id for one new communicator: 128 bytes for all ranks. The process that makes it must live until the ranks have met."""
    made = UniqueId()
    must(load().ncclGetUniqueId, c.byref(made))
    return bytes(made)
