"""A communicator's life in the package: splits, all ranks of one process, non-blocking ones, aborts, deaths, closing."""

import array
import gc
import importlib.util
import os
import pickle
import subprocess
import sys
import threading
import time
import unittest
import warnings

import ranks
from package import hccl, job, packaged, raised, together

F = lambda *values: array.array("f", values)  # noqa: E731


class Life(unittest.TestCase):
    def test_split(self):
        def body(comm):
            half = comm.split(comm.rank % 2, key=-comm.rank)
            with half:
                got = half.rank, half.size, half.all_reduce(F(comm.rank))[0]
            nobody = comm.split(None if comm.rank else 5)
            if nobody is not None:
                nobody.close()
            return got, nobody is None, comm.all_reduce(F(1))[0]

        want = [((1, 2, 2), False, 4), ((1, 2, 4), True, 4), ((0, 2, 2), True, 4), ((0, 2, 4), True, 4)]
        self.assertEqual(job(4, body), want)

    def test_all_ranks_of_one_process(self):
        def body():
            comms = hccl.Communicator.all(4)
            values = [F(c.rank) for c in comms]
            with hccl.group():
                for c, v in zip(comms, values):
                    c.all_reduce(v)
            with hccl.group():
                children = [c.split(c.rank // 2) for c in comms]
            numbers = [(c.rank, c.size) for c in children]
            for c in children + comms:
                c.close()
            return [v[0] for v in values], numbers

        self.assertEqual(together([body]), [([6] * 4, [(0, 2), (1, 2)] * 2)])

    def test_threads(self):
        def body():
            unique_id, got = hccl.unique_id(), [None] * 4

            def run(rank):
                with hccl.Communicator(rank, 4, unique_id) as comm:
                    got[rank] = comm.all_reduce(F(rank))[0]

            running = [threading.Thread(target=run, args=(rank,)) for rank in range(4)]
            for t in running:
                t.start()
            for t in running:
                t.join(ranks.LIMIT)
            return got

        self.assertEqual(together([body]), [[6] * 4])

    def test_not_blocking(self):
        def body(comm):
            comm.wait(timeout=ranks.LIMIT)
            sums = [F(comm.rank), F(comm.rank)]
            for each in sums:
                comm.all_reduce(each)
            with hccl.group():
                comm.all_reduce(F(1))  # held by the communicator until wait
            comm.wait(ranks.LIMIT)
            child = comm.split(0)
            size = child.size
            child.close()
            return [s[0] for s in sums], comm.done(), size

        self.assertEqual(job(3, body, hccl.Config(blocking=False)), [([3, 3], True, 3)] * 3)

    def test_wait_with_a_limit(self):
        """Both ranks wait for a message that nobody sends. One has a limit, and aborts, which ends the other's wait."""

        def body(comm):
            comm.wait(ranks.LIMIT)
            comm.recv(F(0), 1 - comm.rank)
            said = raised(comm.wait, 0.05 if comm.rank == 0 else ranks.LIMIT)
            comm.abort()
            return (type(said).__name__, str(said)) if comm.rank == 0 else str(said)

        (kind, text), other = job(2, body, hccl.Config(blocking=False))
        self.assertEqual(kind, "LimitError")
        self.assertIn("rank 0: calls still go on after 0.05 s", text)
        self.assertIn("rank 0", other)

    def test_config(self):
        self.assertEqual(
            job(2, lambda c: c.all_reduce(F(1))[0], hccl.Config(name="mine", min_channels=1, max_channels=2)), [2, 2]
        )

        def wrong():
            return str(raised(hccl.Communicator, 0, 1, hccl.unique_id(), hccl.Config(min_channels=-4)))

        self.assertRegex(together([wrong])[0], r"minCTAs.*\[INVALID_ARGUMENT\]")

    def test_an_exception_aborts(self):
        """A rank that leaves its block by an exception does not let the other wait."""
        unique_id = hccl.unique_id()

        def leaves():
            with hccl.Communicator(1, 2, unique_id) as comm:
                comm.barrier()
                raise KeyError("of the program")

        def waits():
            with hccl.Communicator(0, 2, unique_id) as comm:
                comm.barrier()
                said = raised(comm.all_reduce, F(1))
                return type(said).__name__, said.result, "rank 1" in said.text

        self.assertEqual(together([waits, lambda: type(raised(leaves)).__name__]), [("RemoteError", 6, True), "KeyError"])

    def test_ranks_that_disagree(self):
        def body(comm):
            said = raised(comm.all_reduce, F(*[1] * (1 + comm.rank)))
            comm.abort()
            return said.result == hccl.Result.INVALID_USAGE and said.call == "ncclAllReduce", str(said)

        for right, text in job(2, body):
            self.assertTrue(right, text)

    def test_a_fault_is_told_once(self):
        def body(comm):
            first = raised(comm.all_reduce, F(*[1] * (1 + comm.rank)))
            return "disagree" in str(first), raised(comm.close), repr(comm)

        self.assertEqual(job(2, body), [(True, None, "<hccl.Communicator that was closed>")] * 2)

    def test_errors_travel_by_pickle(self):
        before = hccl.LimitError("ncclAllReduce", 8, "rank 1 is late")
        after = pickle.loads(pickle.dumps(before))
        self.assertEqual((type(after), after.args, vars(after)), (type(before), before.args, vars(before)))

    def test_closed(self):
        def body(comm):
            comm.close()
            comm.close()  # again: nothing
            calls = (comm.barrier, comm.done, comm.abort, lambda: comm.split(0), lambda: comm.scaled_sum(1, "float32"))
            return [str(raised(call)) for call in calls], repr(comm)

        text = "the communicator was closed [INVALID_USAGE]"
        for said, shown in job(2, body):
            self.assertEqual([each[-len(text) :] for each in said], [text, text, "None", text, text])
            self.assertEqual(shown, "<hccl.Communicator that was closed>")

    def test_never_closed(self):
        def body():
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                hccl.Communicator(0, 1, hccl.unique_id())
                gc.collect()
            return [str(w.message) for w in caught]

        self.assertEqual(together([body]), [["<hccl.Communicator, rank 0 of 1> was never closed: use it in a with block"]])

    def test_subinterpreter(self):
        """It has no signals, and may have no threads: calls do without being ready for Ctrl-C."""
        for name in ("_interpreters", "_xxsubinterpreters"):
            if importlib.util.find_spec(name) is not None:
                break
        else:
            self.skipTest("this Python has no subinterpreters")
        code = (
            f"import sys; sys.path[:0] = {sys.path!r}\n"
            "import array, hccl\n"
            "with hccl.Communicator(0, 1, hccl.unique_id()) as comm:\n"
            "    print([comm.all_reduce(array.array('f', [2]))[0] for _ in range(2)], flush=True)"
        )
        program = f"import {name} as i; said = i.run_string(i.create(), {code!r}); print(said or 'done')"
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=packaged(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )
        if "does not support loading in subinterpreters" in done.stdout:
            self.skipTest("this Python's ctypes does not load in subinterpreters")
        self.assertEqual(done.stdout.splitlines(), ["[2.0, 2.0]", "done"])

    def test_child_of_a_fork(self):
        """A forked child may drop its parent's communicator, and cannot use it; the parent goes on."""

        def body(comm):
            child = ranks.Child(lambda: (str(raised(comm.all_reduce, F(1))), raised(comm.close)))
            said, closing = child.result(time.monotonic() + ranks.LIMIT)
            return "fork" in said, closing is None or "fork" in str(closing), comm.all_reduce(F(1))[0]

        self.assertEqual(job(2, body), [(True, True, 2)] * 2)


if __name__ == "__main__":
    unittest.main()
