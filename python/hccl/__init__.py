"""HCCL for Python: collective communication among processes and threads, on host memory, through ctypes and without a build step.

    import hccl, numpy

    with hccl.Communicator.from_environment() as comm:
        gradients = numpy.ones(1000, numpy.float32)
        comm.all_reduce(gradients, op=hccl.AVG)

Buffers are numpy arrays, torch CPU tensors and anything with the buffer protocol; nothing is copied. Operations return when
their result is there, and give up the interpreter's lock while they wait; on a Stream they return at once. What is wrong with an
argument is a TypeError or a ValueError before the library is called; what the library answers is an hccl.Error with its sentence.
docs/python.md has it all.

The files: communicator (the class), operations (its operations) and checks (of their arguments), buffers and elements (what an
argument is), vectors (blocks of different sizes), calls (as data: limits and tags), groups, streams, pending (what a stream has
not done yet), requests, reductions, memory, config, meeting and store (how ranks find each other), interrupt (Ctrl-C), lib (the shared
library), results (errors).
"""

from . import lib
from .calls import ANY_SOURCE, ANY_TAG, Status, limit
from .checks import AVG, BAND, BOR, BXOR, MAX, MIN, PROD, SUM, Op
from .communicator import Communicator
from .config import Config
from .groups import group
from .lib import unique_id, version
from .memory import Registration, empty
from .reductions import ScaledSum
from .requests import Request, wait_all, wait_any
from .results import ClosedError, Error, LibraryError, LimitError, MeetingError, RemoteError, Result
from .store import TCPStore
from .streams import Event, Stream

__version__ = "0.1.0"
__all__ = [
    "ANY_SOURCE",
    "ANY_TAG",
    "AVG",
    "BAND",
    "BOR",
    "BXOR",
    "MAX",
    "MIN",
    "PROD",
    "SUM",
    "ClosedError",
    "Communicator",
    "Config",
    "Error",
    "Event",
    "LibraryError",
    "LimitError",
    "MeetingError",
    "Op",
    "Registration",
    "RemoteError",
    "Request",
    "Result",
    "ScaledSum",
    "Status",
    "Stream",
    "TCPStore",
    "empty",
    "group",
    "lib",
    "limit",
    "unique_id",
    "version",
    "wait_all",
    "wait_any",
]
