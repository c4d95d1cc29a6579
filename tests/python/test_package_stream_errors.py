"""What goes wrong on streams of the package, and where it is told."""

import array
import gc
import os
import time
import unittest
import warnings

import ranks
from package import hccl, job, raised, together

F = lambda *values: array.array("f", values)  # noqa: E731


class Errors(unittest.TestCase):
    def test_told_by_synchronize_once(self):
        def body(comm):
            with hccl.Stream() as stream:
                comm.all_reduce(F(*[1] * (1 + comm.rank)), stream=stream)
                first = raised(stream.synchronize)
                again, later = raised(stream.synchronize), raised(comm.all_reduce, F(1), stream=stream)
                return type(first).__name__, first.call, str(first), again, str(later)

        for kind, call, text, again, later in job(2, body):
            self.assertEqual((kind, call, again), ("Error", "hcclStreamSynchronize", None))
            self.assertIn("disagree", text)
            self.assertIn("disagree", later)

    def test_rank_that_gives_up(self):
        def body(comm):
            with hccl.Stream() as stream:
                comm.barrier(stream=stream)
                stream.synchronize()
                if comm.rank == 1:
                    comm.abort()
                    return None
                comm.recv(F(0), 1, stream=stream)
                said = raised(stream.synchronize)
                return type(said).__name__, "rank 1" in str(said)  # and close does not tell it again

        self.assertEqual(job(2, body)[0], ("RemoteError", True))

    def test_limit(self):
        """A LimitError ends the wait and nothing else."""
        told, tell = os.pipe()

        def body(comm):
            if comm.rank == 1:
                os.read(told, 1)
                comm.send(F(5), 0)
                return None
            with hccl.Stream() as stream:
                mine = comm.recv(F(0), 1, stream=stream)
                said = [raised(stream.synchronize, limit) for limit in (0, 0.05)]
                os.write(tell, b"x")
                stream.synchronize(ranks.LIMIT)
                return [(type(s).__name__, "still goes on after" in str(s)) for s in said], mine[0], stream.synchronize(0)

        self.assertEqual(job(2, body)[0], ([("LimitError", True)] * 2, 5, None))

    def test_wrong_inputs(self):
        def body(comm):
            stream, event = hccl.Stream(), hccl.Event()
            stream.close()
            event.close()
            stream.close()
            event.close()
            calls = [
                lambda: comm.all_reduce(F(1), stream=7),
                lambda: comm.all_reduce(F(1), stream=stream),
                lambda: hccl.group(stream=event).__enter__(),
                stream.synchronize,
                stream.query,
                lambda: stream.launch(int),
                lambda: event.record(),
                event.query,
                lambda: hccl.Event().record(3),
            ]
            with hccl.Stream() as sound:
                calls += [lambda: sound.launch(7), lambda: sound.wait_event(sound), lambda: sound.wait_event(event)]
                said = [raised(call) for call in calls]
            return [f"{type(s).__name__}: {s}" for s in said], comm.all_reduce(F(1))[0]

        for said, total in job(2, body):
            for got, want in zip(
                said,
                (
                    "TypeError: ncclAllReduce: stream is of type int: give an hccl.Stream, or None to wait for the result",
                    "ClosedError: handle: the stream was closed",
                    "TypeError: group: stream is of type Event",
                    "ClosedError: synchronize: the stream was closed",
                    "ClosedError: query: the stream was closed",
                    "ClosedError: launch: the stream was closed",
                    "ClosedError: handle: the event was closed",
                    "ClosedError: handle: the event was closed",
                    "TypeError: record: stream is of type int",
                    "TypeError: launch: function is of type int, which cannot be called",
                    "TypeError: wait_event: event is of type Stream: give an hccl.Event",
                    "ClosedError: handle: the event was closed",
                ),
            ):
                self.assertIn(want, got)
            self.assertEqual(total, 2)

    def test_never_closed(self):
        def body():
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                hccl.Stream()
                gc.collect()
            return [str(w.message).partition(" object")[2].partition("> ")[2] for w in caught]

        self.assertEqual(together([body]), [["was never closed: use it in a with block"]])

    def test_child_of_a_fork(self):
        def body(comm):
            with hccl.Stream() as stream:
                comm.all_reduce(F(1), stream=stream)
                child = ranks.Child(lambda: (str(raised(stream.synchronize)), raised(stream.close)))
                said, closing = child.result(time.monotonic() + ranks.LIMIT)
                mine = comm.all_reduce(F(1), stream=stream)
                stream.synchronize()
                return "fork" in said, closing is None or "fork" in str(closing), mine[0]

        self.assertEqual(job(2, body), [(True, True, 2)] * 2)


if __name__ == "__main__":
    unittest.main()
