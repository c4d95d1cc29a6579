"""Streams and events of the package: operations, order, buffers that are kept, functions."""

import array
import gc
import os
import threading
import time
import unittest
import weakref

import ranks
from package import hccl, job, needs_numpy, needs_torch, numpy, raised, together, torch

F = lambda *values: array.array("f", values)  # noqa: E731
N = 3


class Operations(unittest.TestCase):
    def test_all_on_a_stream(self):
        """As without one, once the stream has been synchronised."""

        def calls(comm, stream):
            r, counts = comm.rank, [1, 2, 3]
            got = [
                comm.all_reduce(F(r, 1), op=hccl.MAX, stream=stream),
                comm.reduce(F(r), root=1, stream=stream),
                comm.reduce_scatter(F(r, 10 + r, 20 + r), F(0), stream=stream),
                comm.broadcast(F(r, r), root=2, stream=stream),
                comm.all_gather(F(r), F(0, 0, 0), stream=stream),
                comm.gather(F(r), F(0, 0, 0), root=1, stream=stream),
                comm.scatter(F(7, 8, 9) if r == 0 else None, F(0), stream=stream),
                comm.all_to_all(F(r, 10 + r, 20 + r), F(0, 0, 0), stream=stream),
                comm.all_gather_v(F(*[r] * counts[r]), F(*[9] * 8), counts, displs=[7, 0, 4], stream=stream),
                comm.reduce_scatter_v(F(*range(6)), F(*[0] * counts[r]), counts, stream=stream),
                comm.all_to_all_v(F(*[r] * 6), counts, F(*[0] * (counts[r] * N)), [counts[r]] * N, stream=stream),
            ]
            with hccl.group(stream=stream):
                into = F(0)
                comm.send(F(r), (r + 1) % N)
                comm.recv(into, (r - 1) % N)
            comm.barrier(stream=stream)
            if stream is not None:
                stream.synchronize()
            return [each and list(each) for each in [*got, into]]

        def body(comm):
            with hccl.Stream() as stream:
                return calls(comm, None), calls(comm, stream)

        for plain, streamed in job(N, body):
            self.assertEqual(plain, streamed)
            self.assertEqual(plain[0], [2, 1])

    def test_returns_at_once(self):
        """The call is back before the other rank has come, the work goes on while this one computes in Python."""

        unique_id = hccl.unique_id()

        def first():
            with hccl.Communicator(0, 2, unique_id) as comm, hccl.Stream() as stream:
                mine = F(*[1] * 100000)
                comm.all_reduce(mine, stream=stream)
                early = stream.query(), mine[0]
                os.write(tell, b"x")
                until = time.monotonic() + ranks.LIMIT
                while not stream.query() and time.monotonic() < until:
                    sum(range(1000))  # holds the interpreter's lock
                return early, mine[0], mine[99999]

        def second():
            with hccl.Communicator(1, 2, unique_id) as comm:
                os.read(told, 1)
                return comm.all_reduce(F(*[2] * 100000))[7]

        told, tell = os.pipe()
        self.assertEqual(together([first, second]), [((False, 1), 3, 3), 3])

    def test_group_over_two_streams(self):
        def body():
            comms = hccl.Communicator.all(2)
            with hccl.Stream() as a, hccl.Stream() as b:
                values = [F(c.rank + 1) for c in comms]
                with hccl.group():
                    for c, v, s in zip(comms, values, (a, b)):
                        c.all_reduce(v, stream=s)
                a.synchronize()
                b.synchronize()
                with hccl.group(stream=a), hccl.group():  # the inner one has the outer one's
                    for c, v in zip(comms, values):
                        c.all_reduce(v)
                done = a.query()
                a.synchronize()
            for c in comms:
                c.close()
            return [v[0] for v in values], done

        for values, _ in together([body]):
            self.assertEqual(values, [6, 6])

    @needs_numpy
    @needs_torch
    def test_numpy_and_torch(self):
        def body(comm):
            with hccl.Stream() as stream:
                a, t = numpy.full(1000, comm.rank, "float64"), torch.full((10, 10), float(comm.rank))
                comm.all_reduce(a, stream=stream)
                comm.all_reduce(t, op=hccl.MAX, stream=stream)
                stream.synchronize()
                return a.sum(), t.sum().item()

        self.assertEqual(job(2, body), [(1000, 100)] * 2)

    def test_not_blocking(self):
        def body(comm):
            comm.wait(ranks.LIMIT)
            with hccl.Stream() as stream:
                mine = comm.all_reduce(F(comm.rank), stream=stream)
                stream.synchronize(ranks.LIMIT)
                return mine[0], comm.done()

        self.assertEqual(job(2, body, hccl.Config(blocking=False)), [(1, True)] * 2)


class Buffers(unittest.TestCase):
    def test_kept_until_done(self):
        """What the program has dropped lives until the operation is done, and no longer than the next call on the stream."""

        def body(comm):
            with hccl.Stream() as stream, hccl.Event() as event:
                gate = threading.Event()
                stream.launch(gate.wait, ranks.LIMIT)
                mine, kept = F(*[comm.rank + 1] * 10), bytearray(4)
                gone = weakref.ref(mine)
                comm.all_reduce(mine, stream=stream)
                comm.all_reduce(kept, op=hccl.MAX, stream=stream)
                event.record(stream)
                del mine
                gc.collect()
                alive, fixed = gone() is not None, type(raised(kept.append, 1)).__name__
                gate.set()
                event.synchronize()  # says nothing to the stream
                stream.synchronize()
                kept.append(1)
                return alive, fixed, gone()

        self.assertEqual(job(2, body), [(True, "BufferError", None)] * 2)

    def test_many_without_a_synchronisation(self):
        """A program that only waits for events does not pile up what it has sent."""

        def body(comm):
            with hccl.Stream() as stream, hccl.Event() as event:
                refs = []
                for _ in range(50):
                    mine = F(*[1] * 1000)
                    refs.append(weakref.ref(mine))
                    comm.all_reduce(mine, stream=stream)
                    event.record(stream)
                    event.synchronize(ranks.LIMIT)
                del mine
                return sum(ref() is not None for ref in refs) <= 2

        self.assertEqual(job(2, body), [True] * 2)

    def test_kept_after_the_stream(self):
        """A stream that is left by an exception does not wait, and what it has to do still has its buffers."""
        told, tell = os.pipe()

        def body(comm):
            if comm.rank == 1:
                os.read(told, 1)
                return comm.all_reduce(F(*[1] * 100000))[0]
            refs = []

            def leaves():
                with hccl.Stream() as stream:
                    mine = F(*[2] * 100000)
                    refs.append(weakref.ref(mine))
                    comm.all_reduce(mine, stream=stream)
                    raise KeyError("of the program")

            said = type(raised(leaves)).__name__
            gc.collect()
            alive = refs[0]() is not None
            os.write(tell, b"x")
            got = refs[0]()
            until = time.monotonic() + ranks.LIMIT
            while got[0] != 3 and time.monotonic() < until:
                time.sleep(0.001)
            return said, alive, got[0]

        self.assertEqual(job(2, body), [("KeyError", True, 3), 3])


class Order(unittest.TestCase):
    def test_events(self):
        def body():
            done, gate = [], threading.Event()
            with hccl.Stream() as a, hccl.Stream() as b, hccl.Event() as start, hccl.Event() as end:
                never = start.query(), type(raised(start.elapsed_time, end)).__name__
                start.record()
                a.launch(gate.wait, ranks.LIMIT)
                a.launch(done.append, "a")
                end.record(a)
                b.wait_event(end)
                b.launch(done.append, "b")
                held = (
                    end.query(),
                    b.query(),
                    list(done),
                    str(raised(end.synchronize, 0.01)),
                    str(raised(start.elapsed_time, end)),
                )
                gate.set()
                end.synchronize(ranks.LIMIT)
                reached = end.query(), start.elapsed_time(end) >= 10
                b.synchronize()
                return never, held, reached, done

        never, held, reached, done = together([body])[0]
        self.assertEqual(never, (True, "Error"))
        self.assertEqual(held[:3], (False, False, []))
        self.assertIn("the event has not been reached within 0.01 s", held[3])
        self.assertIn("one of the events has not been reached yet", held[4])
        self.assertEqual((reached, done), ((True, True), ["a", "b"]))

    def test_functions(self):
        def body():
            got, inside, queued = [], [], threading.Event()
            with hccl.Stream() as stream:
                stream.launch(queued.wait, ranks.LIMIT)  # none of what follows runs before all of it is queued
                stream.launch(lambda: inside.append((threading.get_ident(), stream.query(), str(raised(stream.synchronize)))))
                stream.launch(lambda: stream.launch(got.append, "later"))  # queues more on its own stream
                stream.launch(got.append, "first")
                queued.set()
                stream.synchronize()
                ((thread, query, waits),) = inside
                return got, thread != threading.get_ident(), query, waits

        got, elsewhere, query, waits = together([body])[0]
        self.assertEqual((got, elsewhere, query), (["first", "later"], True, False))
        self.assertIn("waits for the stream that runs it", waits)

    def test_function_that_raises(self):
        """The stream goes on; the exception itself comes out where the stream is waited for, once."""

        def body():
            with hccl.Stream() as stream:
                got = []
                stream.launch(int, "x")
                stream.launch(got.append, 1)
                first, second = raised(stream.synchronize), raised(stream.synchronize)
                stream.launch(int, "y")
                shown = None
                while shown is None and raised(stream.query) is None:
                    pass
                shown = raised(stream.query)
                left = type(raised(stream.close)).__name__
            return type(first).__name__, second, got, type(shown).__name__, left

        self.assertEqual(together([body]), [("ValueError", None, [1], "ValueError", "ValueError")])


if __name__ == "__main__":
    unittest.main()
