"""Runs a training on several ranks and compares what comes out: with one process to rounding, and of two reproducible runs to the
bit.

Under a launcher it is one rank of that job instead."""

import multiprocessing
import os
import sys

# Ranks share the processors: each computes with one thread. To be set before numpy or torch are imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))

RANKS = 4
LIMIT = 300  # seconds
LAUNCHERS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")


def main(train, name):
    if any(variable in os.environ for variable in LAUNCHERS):
        part_of_a_job(train, name)
    else:
        compare(train, name)


def part_of_a_job(train, name):
    import hccl

    with hccl.Communicator.from_environment() as comm:
        _, right = train(comm)
        if comm.rank == 0:
            print(f"digits with {name}: {comm.size} ranks tell {100 * right:.1f} % of the test's digits right")


def compare(train, name):
    """Exits with status 1 if anything is not as promised."""
    import numpy

    (alone, right_alone), *_ = run(train, 1)
    together = run(train, RANKS)
    weights, right = together[0]
    apart = float(numpy.abs(weights - alone).max())
    print(f"digits with {name}: one process tells {100 * right_alone:.1f} % right, {RANKS} processes {100 * right:.1f} %")
    print(f"  greatest difference between their weights: {apart:.1e}, of weights up to {numpy.abs(alone).max():.2f}")
    expect(right > 0.9, f"only {100 * right:.1f} % are right: the network has not learned")
    expect(apart < 1e-4, "the weights differ by more than rounding explains")
    expect(all(same(weights, other) for other, _ in together), "the ranks end with different weights")

    os.environ["HCCL_DETERMINISTIC"] = "1"
    (first, _), *_ = run(train, RANKS)
    (second, _), *_ = run(train, RANKS)
    expect(same(first, second), "two runs with HCCL_DETERMINISTIC=1 end with different bits")
    print("  two runs with HCCL_DETERMINISTIC=1 end with the same bits")


def same(a, b):
    return a.tobytes() == b.tobytes()


def expect(right, otherwise):
    if not right:
        sys.exit(f"wrong: {otherwise}")


def run(train, size):
    """What train gives on each rank. The ranks are forked: this process makes ids only, and no communicator, which would not
    survive it; nor does it compute."""
    import hccl

    context, unique_id = multiprocessing.get_context("fork"), hccl.unique_id()
    with context.Pool(size) as pool:
        waiting = [pool.apply_async(rank_main, (train, rank, size, unique_id)) for rank in range(size)]
        return [each.get(LIMIT) for each in waiting]


def rank_main(train, rank, size, unique_id):
    import hccl

    if size == 1:
        return train(None)
    with hccl.Communicator(rank, size, unique_id) as comm:
        return train(comm)
