"""The package hccl from the checkout, on the library that the other tests use, and jobs of forked ranks on it."""

import os
import socket
import sys
import time
import unittest

import nccl
import ranks

os.environ["HCCL_LIB"] = nccl.PATH
sys.path.insert(0, os.path.join(nccl.ROOT, "python"))
import hccl  # noqa: E402, the path comes first

try:
    import numpy
except ImportError:
    numpy = None
try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None
try:
    import torch

    torch.set_num_threads(1)  # its pool of threads would not survive the forks of the tests
except ImportError:
    torch = None

needs_numpy = unittest.skipIf(numpy is None, "numpy is not installed")
needs_ml_dtypes = unittest.skipIf(ml_dtypes is None, "ml_dtypes is not installed")
needs_torch = unittest.skipIf(torch is None, "torch is not installed")


def job(n, body, config=None):
    """body(comm) on n forked ranks; the list of what they return."""
    unique_id = hccl.unique_id()

    def rank_main(rank):
        with hccl.Communicator(rank, n, unique_id, config) as comm:
            return body(comm)

    return together([lambda rank=rank: rank_main(rank) for rank in range(n)])


def together(bodies):
    """Each function in a forked process of its own; the list of what they return."""
    children = [ranks.Child(body) for body in bodies]
    until = time.monotonic() + ranks.LIMIT
    try:
        return [child.result(until) for child in children]
    finally:
        for child in children:
            if child.pipe is not None:
                child.kill()


def raised(call, *arguments, **named):
    """The exception of a call, or None."""
    try:
        call(*arguments, **named)
    except Exception as e:
        return e
    return None


def packaged():
    """The environment of another program that uses this package. Buffered: a line is one write, and ranks' lines do not mix."""
    return {**os.environ, "PYTHONPATH": os.path.join(nccl.ROOT, "python"), "HCCL_LIB": nccl.PATH, "PYTHONUNBUFFERED": ""}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
