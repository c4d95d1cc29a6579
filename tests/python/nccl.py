"""The library through ctypes, by NCCL's names alone, as a framework binds it. Nothing here knows HCCL.

`lib` is loaded when this module is imported; that must not start anything, which test_fork.py relies on. HCCL_TEST_LIB names
another library than the one that was built.
"""
import ctypes as c
import os

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PATH = os.environ.get("HCCL_TEST_LIB", os.path.join(ROOT, "build", "lib", "libnccl.so.2"))

SUCCESS, INTERNAL, INVALID_ARGUMENT, INVALID_USAGE, REMOTE_ERROR, IN_PROGRESS = 0, 3, 4, 5, 6, 7
SUM, PROD, MAX, MIN, AVG = range(5)
# name: (value of ncclDataType_t, ctypes element)
TYPES = {"int8": (0, c.c_int8), "uint8": (1, c.c_uint8), "int32": (2, c.c_int32), "uint32": (3, c.c_uint32),
         "int64": (4, c.c_int64), "uint64": (5, c.c_uint64), "float32": (7, c.c_float), "float64": (8, c.c_double)}
FLOAT32 = 7


class UniqueId(c.Structure):
    _fields_ = [("internal", c.c_char * 128)]


lib = c.CDLL(PATH)
_p, _i, _z = c.c_void_p, c.c_int, c.c_size_t
_SIGNATURES = {
    "ncclGetVersion": [c.POINTER(_i)], "ncclGetUniqueId": [c.POINTER(UniqueId)],
    "ncclCommInitRank": [c.POINTER(_p), _i, UniqueId, _i], "ncclCommInitAll": [c.POINTER(_p), _i, c.POINTER(_i)],
    "ncclCommDestroy": [_p], "ncclCommAbort": [_p], "ncclCommSplit": [_p, _i, _i, c.POINTER(_p), _p],
    "ncclCommCount": [_p, c.POINTER(_i)], "ncclCommUserRank": [_p, c.POINTER(_i)], "ncclCommGetAsyncError": [_p, c.POINTER(_i)],
    "ncclAllReduce": [_p, _p, _z, _i, _i, _p, _p], "ncclReduce": [_p, _p, _z, _i, _i, _i, _p, _p],
    "ncclBroadcast": [_p, _p, _z, _i, _i, _p, _p], "ncclAllGather": [_p, _p, _z, _i, _p, _p],
    "ncclReduceScatter": [_p, _p, _z, _i, _i, _p, _p], "ncclAlltoAll": [_p, _p, _z, _i, _p, _p],
    "ncclGather": [_p, _p, _z, _i, _i, _p, _p], "ncclScatter": [_p, _p, _z, _i, _i, _p, _p],
    "ncclSend": [_p, _z, _i, _i, _p, _p], "ncclRecv": [_p, _z, _i, _i, _p, _p], "ncclGroupStart": [], "ncclGroupEnd": [],
}
for _name, _args in _SIGNATURES.items():
    getattr(lib, _name).argtypes, getattr(lib, _name).restype = _args, _i
lib.ncclGetErrorString.argtypes, lib.ncclGetErrorString.restype = [_i], c.c_char_p
lib.ncclGetLastError.argtypes, lib.ncclGetLastError.restype = [_p], c.c_char_p


class Error(Exception):
    """A call's result other than success, with the library's text."""

    def __init__(self, name, result, text):
        super().__init__(f"{name} returned {result}: {text}")
        self.result, self.text = result, text


def call(name, *args, comm=None):
    result = getattr(lib, name)(*args)
    if result != SUCCESS:
        raise Error(name, result, lib.ncclGetLastError(comm).decode())


def unique_id():
    uid = UniqueId()
    call("ncclGetUniqueId", c.byref(uid))
    return uid


def init(n, uid, rank):
    comm = _p()
    call("ncclCommInitRank", c.byref(comm), n, uid, rank)
    return comm


def init_all(n):
    comms = (_p * n)()
    call("ncclCommInitAll", comms, n, None)
    return [_p(value) for value in comms]


def number(name, comm):
    """What a query such as ncclCommCount answers."""
    value = _i(-1)
    call(name, comm, c.byref(value))
    return value.value


def split(comm, color, key):
    made = _p()
    call("ncclCommSplit", comm, color, key, c.byref(made), None)
    return made


def all_reduce(values, comm, kind="float32", red=SUM):
    """The reduction of a list over all ranks, as a list."""
    number_of_type, element = TYPES[kind]
    send, recv = (element * len(values))(*values), (element * len(values))()
    call("ncclAllReduce", send, recv, len(values), number_of_type, red, comm, None, comm=comm)
    return list(recv)
