"""Requests of the package: operations that are started, waited for one by one, and told of by callbacks."""

import array
import gc
import math
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import weakref

import ranks
from package import hccl, job, packaged, raised

F = lambda *values: array.array("f", values)  # noqa: E731


class Requests(unittest.TestCase):
    def test_all_operations(self):
        def body(comm):
            r, counts = comm.rank, [1, 2]
            many = [
                comm.start(comm.all_reduce, F(r, 1), op=hccl.MAX),
                comm.start(comm.reduce, F(r), root=1),
                comm.start(comm.reduce_scatter, F(r, 10 + r), F(0)),
                comm.start(comm.broadcast, F(r, r), root=1),
                comm.start(comm.all_gather, F(r), F(0, 0)),
                comm.start(comm.gather, F(r), F(0, 0), root=0),
                comm.start(comm.scatter, F(7, 8) if r == 0 else None, F(0)),
                comm.start(comm.all_to_all, F(r, 10 + r), F(0, 0)),
                comm.start(comm.all_gather_v, F(*[r] * counts[r]), F(0, 0, 0), counts),
                comm.start(comm.reduce_scatter_v, F(*range(3)), F(*[0] * counts[r]), counts),
                comm.start(comm.all_to_all_v, F(*[r] * 3), counts, F(*[0] * (counts[r] * 2)), [counts[r]] * 2),
                comm.start(comm.recv, F(9), 1 - r, tag=3),
                comm.start(comm.send, F(r), 1 - r, tag=3),
                comm.start(comm.barrier, timeout=ranks.LIMIT),
            ]
            return [each and list(each) for each in hccl.wait_all(many, ranks.LIMIT)]

        first, second = job(2, body)
        self.assertEqual(
            first, [[1, 1], None, [1], [1, 1], [0, 1], [0, 1], [7], [0, 1], [0, 1, 1], [0], [0, 1], [1], None, None]
        )
        self.assertEqual(second[1:4], [[1], [21], [1, 1]])
        self.assertEqual(second[5:9], [None, [8], [10, 11], [0, 1, 1]])
        self.assertEqual(second[9:], [[2, 4], [0, 0, 1, 1], [0], None, None])

    def test_odd_arguments_of_waits(self):
        """Times that are none and lists that hold other things are refused by a sentence; infinity is no limit."""

        def body(comm):
            request = comm.start(comm.all_reduce, F(1))
            comm.timeout = math.inf
            with hccl.limit(math.inf):
                comm.barrier(math.inf)
            request.wait(math.inf)
            said = [raised(request.wait, time_of) for time_of in ("3", math.nan, [])]
            said += [raised(hccl.wait_any, [request], "3"), raised(hccl.wait_all, [request], math.nan)]
            said += [raised(hccl.wait_any, [request, 7]), raised(hccl.wait_all, [None])]
            said += [raised(comm.barrier, "3"), raised(setattr, comm, "timeout", "3")]
            with hccl.Stream() as stream, hccl.Event() as event:
                said += [raised(stream.synchronize, "3")]
                event.record(stream)
            return [f"{type(each).__name__}: {each}" for each in said], comm.timeout

        for said, limit in job(2, body):
            self.assertIsNone(limit)
            self.assertEqual(said[0], "TypeError: wait: a time of '3': give a number of seconds, or None for no limit")
            self.assertEqual(said[1], "TypeError: wait: a time of nan: give a number of seconds, or None for no limit")
            self.assertEqual(said[5], "TypeError: wait_any: entry 1 of the list is of type int: give what Communicator.start gave")
            for text in said:
                self.assertRegex(text, "^TypeError: .*: give ")

    def test_receives_before_sends(self):
        """In whatever order: messages wait for their other side alone. The status says what came."""

        def body(comm):
            peer = 1 - comm.rank
            into = [F(*[0] * 100000) for _ in range(3)]
            got = [comm.start(comm.recv, into[t], hccl.ANY_SOURCE, t) for t in range(3)]
            for tag in (2, 0, 1):
                comm.start(comm.send, F(*[tag] * (1000 * tag + 1)), peer, tag).wait(ranks.LIMIT)
            return [(each.status.source, each.status.tag, each.status.bytes, each.wait()[0]) for each in got]

        for r, got in enumerate(job(2, body)):
            self.assertEqual(got, [(1 - r, t, 4 * (1000 * t + 1), t) for t in range(3)])

    def test_waiting(self):
        def body(comm):
            if comm.rank:
                comm.barrier()
                comm.send(F(2), 0, tag=2)
                comm.barrier()
                comm.send(F(1), 0, tag=1)
                return None
            one, two = (comm.start(comm.recv, F(0), 1, tag) for tag in (1, 2))
            early = one.test(), two.test(), str(raised(one.wait, 0.01)), str(raised(hccl.wait_any, [one, two], 0))
            comm.barrier()
            first = hccl.wait_any([one, two])
            late = str(raised(hccl.wait_all, [one, two], 0.01))
            comm.barrier()
            return early, first, late, one.wait()[0], two.wait()[0], one.test(), hccl.wait_all([one, two])[1][0]

        early, first, late, *rest = job(2, body)[0]
        self.assertEqual((early[:2], first, rest), ((False, False), 1, [1, 2, True, 2]))
        self.assertIn("hcclRecv still goes on after 0.01 s", early[2])
        self.assertIn("all of 2 requests still go on", early[3])
        self.assertIn("some of 2 requests still go on", late)

    def test_callbacks(self):
        def body(comm):
            seen, done = [], threading.Event()

            def last(request):
                seen.append(("last", request.test(), threading.get_ident() == me))
                done.set()

            me = threading.get_ident()
            for k in range(5):
                comm.start(comm.all_reduce, F(k)).add_done_callback(lambda r, k=k: seen.append((k, r.wait()[0])))
            comm.start(comm.barrier).add_done_callback(last)
            done.wait(ranks.LIMIT)
            request = comm.start(comm.barrier)
            request.wait()
            request.add_done_callback(lambda r: seen.append("later"))
            request.add_done_callback(lambda r: seen.append("too"))
            until = time.monotonic() + ranks.LIMIT
            while len(seen) < 8 and time.monotonic() < until:
                time.sleep(0.001)
            return seen

        want = [(k, 2 * k) for k in range(5)] + [("last", True, False), "later", "too"]
        self.assertEqual(job(2, body), [want] * 2)

    def test_kept_alive(self):
        """A request that the program drops goes on, with its buffers."""

        def body(comm):
            mine, refs = F(*[comm.rank + 1] * 100000), []
            refs.append(weakref.ref(mine))
            if comm.rank:
                comm.barrier()
                comm.send(mine, 0)
                return None
            comm.start(comm.recv, mine, 1)
            del mine
            gc.collect()
            alive = refs[0]() is not None
            comm.barrier()
            until = time.monotonic() + ranks.LIMIT
            while refs[0]()[99999] != 2 and time.monotonic() < until:
                time.sleep(0.001)
            many = [comm.start(comm.recv, F(0), 1, 7) for _ in range(200)]  # looks through those that are over
            gone = refs[0]() is None
            for each in many:
                each.cancel()
            return alive, gone, {str(raised(each.wait)).rpartition(" [")[2] for each in many}

        self.assertEqual(job(2, body)[0], (True, True, {"INVALID_USAGE]"}))

    def test_errors(self):
        def body(comm):
            comm.barrier()
            if comm.rank:
                comm.abort()
                return None
            requests = [comm.start(comm.recv, F(0), 1), comm.start(comm.all_reduce, F(1))]
            said = [raised(each.wait) for each in requests]
            again = raised(hccl.wait_all, requests)
            return [(type(s).__name__, s.call, "rank 1" in str(s)) for s in said], type(again).__name__

        want = [("RemoteError", "ncclRecv", True), ("RemoteError", "ncclAllReduce", True)]
        self.assertEqual(job(2, body)[0], (want, "RemoteError"))

    def test_limit(self):
        def body(comm):
            if comm.rank:
                comm.barrier()
                return None
            with hccl.limit(0.05):
                request = comm.start(comm.recv, F(0), 1)
            said = raised(request.wait)
            comm.barrier()
            return type(said).__name__, said.call, "rank 1" in str(said)

        self.assertEqual(job(2, body)[0], ("LimitError", "ncclRecv", True))

    def test_wrong_inputs(self):
        def body(comm):
            calls = (
                lambda: comm.start(comm.abort),
                lambda: comm.start(print),
                lambda: comm.start(comm.all_reduce, [1]),
                lambda: comm.start(comm.all_reduce, F(1), stream=stream),
                lambda: comm.start(comm.all_reduce, F(1), op=hccl.BOR),
                lambda: hccl.wait_any([]),
                lambda: comm.start(comm.barrier).add_done_callback(3),
            )
            with hccl.Stream() as stream:
                said = [str(raised(call)) for call in calls]
            return said, comm.all_reduce(F(1))[0]  # an all-reduce that was refused has not begun

        for said, total in job(2, body):
            for got, want in zip(
                said,
                (
                    "is no operation of this communicator",
                    "start: <built-in function print> is no operation of this communicator",
                    "all_reduce: send is of type list",
                    "start: a request is on no stream",
                    "BOR of float32 makes no sense",
                    "wait_any: there is no request to wait for",
                    "add_done_callback: function is of type int",
                ),
            ):
                self.assertIn(want, got)
            self.assertEqual(total, 2)

    def test_exit(self):
        """What goes on at the interpreter's end is aborted, and callbacks have been made."""
        code = """
import array, sys, hccl
rank, folder = int(sys.argv[1]), sys.argv[2]
comm = hccl.Communicator.from_file(folder + "/id", rank, 2)
mine = array.array("f", [1] * 1000000)
comm.start(comm.barrier).add_done_callback(lambda r: print("told", flush=True))
if rank == 0:
    waits = comm.start(comm.recv, mine, 1)
else:
    try:
        comm.recv(mine, 0)
    except hccl.RemoteError:
        comm.abort()
"""
        with tempfile.TemporaryDirectory() as folder:
            running = [
                subprocess.Popen(
                    [sys.executable, "-W", "ignore", "-c", code, str(rank), folder],
                    env=packaged(),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
                for rank in range(2)
            ]
            self.assertEqual([(p.communicate(timeout=ranks.LIMIT)[0], p.returncode) for p in running], [("told\n", 0)] * 2)


if __name__ == "__main__":
    unittest.main()
