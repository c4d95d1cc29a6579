"""What a rank does in several tests: every operation, with the result that it must have."""
import ctypes as c

import nccl
from nccl import FLOAT32, SUM, call

COUNTS = (1, 7, 1000, 20000)  # by mail, by mail, around its end, by plans


def value(rank, k):
    return rank * 3 + k % 11


def vector(rank, count):
    return (c.c_float * count)(*(value(rank, k) for k in range(count)))


def total(n, k):
    return sum(value(r, k) for r in range(n))


def check(got, want, what):
    wrong = next((k for k, w in enumerate(want) if got[k] != w), None)
    assert wrong is None, f"{what}: element {wrong} is {got[wrong]}, not {want[wrong]}"


def every_operation(rank, comm):
    """Runs all operations and returns how many were checked."""
    n = nccl.number("ncclCommCount", comm)
    assert nccl.number("ncclCommUserRank", comm) == rank
    for m in COUNTS:
        reductions(rank, n, m, comm)
        movements(rank, n, m, comm)
        messages(rank, n, m, comm)
    return len(COUNTS) * 9


def reductions(rank, n, m, comm):
    root, sums = n - 1, [total(n, k) for k in range(m)]
    a, b = vector(rank, m), vector(rank, m)
    call("ncclAllReduce", a, b, m, FLOAT32, SUM, comm, None, comm=comm)
    check(b, sums, "all-reduce")
    call("ncclAllReduce", a, a, m, FLOAT32, SUM, comm, None, comm=comm)
    check(a, sums, "all-reduce in place")
    a = vector(rank, m)
    call("ncclReduce", a, b, m, FLOAT32, SUM, root, comm, None, comm=comm)
    if rank == root:
        check(b, sums, "reduce")
    wide, part = vector(rank, m * n), (c.c_float * m)()
    call("ncclReduceScatter", wide, part, m, FLOAT32, SUM, comm, None, comm=comm)
    check(part, [total(n, rank * m + k) for k in range(m)], "reduce-scatter")


def movements(rank, n, m, comm):
    root, a = n - 1, vector(rank, m)
    wide, got = vector(rank, m * n), (c.c_float * (m * n))()
    b = (c.c_float * m)()
    call("ncclBroadcast", a, b, m, FLOAT32, root, comm, None, comm=comm)
    check(b, [value(root, k) for k in range(m)], "broadcast")
    call("ncclAllGather", a, got, m, FLOAT32, comm, None, comm=comm)
    check(got, [value(r, k) for r in range(n) for k in range(m)], "all-gather")
    call("ncclAlltoAll", wide, got, m, FLOAT32, comm, None, comm=comm)
    check(got, [value(r, rank * m + k) for r in range(n) for k in range(m)], "all-to-all")
    call("ncclScatter", wide, b, m, FLOAT32, root, comm, None, comm=comm)
    check(b, [value(root, rank * m + k) for k in range(m)], "scatter")
    call("ncclGather", a, got, m, FLOAT32, root, comm, None, comm=comm)
    if rank == root:
        check(got, [value(r, k) for r in range(n) for k in range(m)], "gather")


def messages(rank, n, m, comm):
    """Each rank sends to the next one, all in a group."""
    a, b = vector(rank, m), (c.c_float * m)()
    before = (rank - 1) % n
    call("ncclGroupStart")
    call("ncclSend", a, m, FLOAT32, (rank + 1) % n, comm, None, comm=comm)
    call("ncclRecv", b, m, FLOAT32, before, comm, None, comm=comm)
    call("ncclGroupEnd", comm=comm)
    check(b, [value(before, k) for k in range(m)], "message")
