"""What overlap.c measures, through the Python package: an all-reduce on a stream beside a computation of numpy's.

usage: overlap_numpy.py RANKS BYTES ROUNDS

numpy gives up the interpreter's lock while it computes; the loop around it holds the lock. Prints the same line of JSON.
"""

import json
import os
import resource
import sys
import time

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python"))
import hccl  # noqa: E402, the path comes first

THINGS = ("null", "stream", "work", "both", "parts")
PARTS = 8


class Rank:
    def __init__(self, comm, size, rounds):
        self.comm, self.rounds, self.steps = comm, rounds, 100
        self.stream, self.begun, self.ended = hccl.Stream(), hccl.Event(), hccl.Event()
        self.part = [hccl.Event() for _ in range(PARTS)]
        self.send, self.recv = numpy.zeros(size // 4, numpy.float32), numpy.zeros(size // 4, numpy.float32)
        self.x = numpy.linspace(0, 1, 4096)  # stays in a processor's cache
        self.y = numpy.empty_like(self.x)

    def compute(self):
        for _ in range(self.steps):
            numpy.sqrt(self.x, out=self.y)

    def once(self, what):
        """How many parts are done when the computation ends."""
        done = 0
        if what == "null":
            self.comm.all_reduce(self.send, self.recv)
        if what in ("stream", "both"):
            self.begun.record(self.stream)
            self.comm.all_reduce(self.send, self.recv, stream=self.stream)
            self.ended.record(self.stream)
        if what == "parts":
            for send, recv, event in zip(numpy.split(self.send, PARTS), numpy.split(self.recv, PARTS), self.part):
                self.comm.all_reduce(send, recv, stream=self.stream)
                event.record(self.stream)
        if what in ("work", "both", "parts"):
            self.compute()
        if what == "parts":
            done = sum(event.query() for event in self.part)
        self.stream.synchronize()
        return done

    def measure(self, what):
        """Seconds, processor seconds, when the event behind the all-reduce was reached, and parts done."""
        self.comm.barrier()
        start, used = time.perf_counter(), processor()
        done = self.once(what)
        took = time.perf_counter() - start, processor() - used
        reached = self.begun.elapsed_time(self.ended) / 1e3 if what in ("stream", "both") else 0
        self.comm.barrier()
        return [*took, reached, done]

    def rows(self, what):
        """The figures of one thing in all rounds of all ranks: [round, rank, figure]."""
        return self.shared([self.measure(what) for _ in range(self.rounds)])

    def shared(self, mine):
        mine = numpy.array(mine)
        everyone = numpy.empty((self.comm.size, *mine.shape))
        self.comm.all_gather(mine, everyone)
        return everyone.swapaxes(0, 1)

    def calibrate(self):
        for _ in range(2):
            alone, work = (slowest(self.rows(what)) for what in ("stream", "work"))
            self.steps = max(1, round(self.steps * alone / work))

    def run(self):
        self.calibrate()
        rounds = [[self.measure(what) for what in THINGS] for _ in range(self.rounds)]
        everyone = self.shared(rounds)  # [round, rank, thing, figure]
        return {what: everyone[:, :, k] for k, what in enumerate(THINGS)}


def processor():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def slowest(rows, figure=0):
    """The lower quartile over the rounds of the slowest rank, as in overlap.c."""
    return numpy.sort(rows[:, :, figure].max(axis=1))[len(rows) // 4]


def together(rows):
    return numpy.sort(rows[:, :, 1].sum(axis=1))[len(rows) // 4]


def main():
    ranks, size, rounds = map(int, sys.argv[1:])
    unique_id = hccl.unique_id()
    children = []
    for rank in range(1, ranks):
        pid = os.fork()
        if pid == 0:
            with hccl.Communicator(rank, ranks, unique_id) as comm:
                Rank(comm, size, rounds).run()
            os._exit(0)
        children.append(pid)
    with hccl.Communicator(0, ranks, unique_id) as comm:
        rows = Rank(comm, size, rounds).run()
    for pid in children:
        if os.waitpid(pid, 0)[1]:
            sys.exit("a rank failed")
    row = {"ranks": ranks, "bytes": size, **{what: slowest(rows[what]) for what in THINGS[:-1]}}
    row.update({f"{what}_cpu": together(rows[what]) for what in ("stream", "work", "both")})
    row.update(reached=slowest(rows["both"], 2), parts=numpy.median(rows["parts"][:, :, 3].min(axis=1)))
    print(json.dumps({name: float(value) if isinstance(value, numpy.floating) else value for name, value in row.items()}))


if __name__ == "__main__":
    main()
