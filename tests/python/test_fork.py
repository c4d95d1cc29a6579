"""Import, fork, use: what data loaders and launchers do to every library that a framework has loaded."""
import os
import signal
import subprocess
import sys
import time
import unittest

import nccl
import ranks


def soon(child, seconds=10):
    return child.result(until=time.monotonic() + seconds)


class Fork(unittest.TestCase):
    def test_loading_starts_no_thread(self):
        """A Go runtime would be threads: none may be there after loading and a query."""
        code = "import nccl, os; nccl.call('ncclGetVersion', nccl.c.byref(nccl.c.c_int())); print(len(os.listdir('/proc/self/task')))"
        done = subprocess.run([sys.executable, "-c", code], cwd=os.path.dirname(os.path.abspath(__file__)), stdout=subprocess.PIPE,
                              text=True, timeout=20, check=True)
        self.assertEqual(done.stdout.strip(), "1")

    def test_many_jobs_of_one_parent(self):
        for _ in range(5):
            self.assertEqual(ranks.processes(2, lambda rank, comm: nccl.all_reduce([rank + 1], comm)), [[3.0], [3.0]])

    def test_ids_that_are_outstanding(self):
        ids = [nccl.unique_id() for _ in range(3)]
        for uid in reversed(ids):
            def body(rank, uid=uid):
                comm = nccl.init(2, uid, rank)
                got = nccl.all_reduce([rank + 1], comm)
                nccl.call("ncclCommDestroy", comm)
                return got
            children = [ranks.Child(body, rank) for rank in range(2)]
            self.assertEqual([soon(child) for child in children], [[3.0], [3.0]])

    def test_a_call_in_a_child_of_a_rank_is_an_error(self):
        """init, fork, call: no hang, an error with a text, and the rank itself is undisturbed."""
        def grandchild(comm):
            try:
                nccl.all_reduce([1], comm)
            except nccl.Error as e:
                return e.text
            return "it succeeded"

        def body(rank, comm):
            text = soon(ranks.Child(grandchild, comm), 5) if rank == 0 else ""
            return text, nccl.all_reduce([rank + 1], comm)
        (text, got), other = ranks.processes(2, body)
        self.assertIn("fork", text)
        self.assertEqual((got, other[1]), ([3.0], [3.0]))

    def test_a_child_of_a_rank_does_not_hide_its_death(self):
        """kill -9 of a rank whose forked child lives on, as a data loader's workers do: the other rank hears of it at once."""
        hold, release = os.pipe()
        uid = nccl.unique_id()

        def victim():
            comm = nccl.init(2, uid, 0)
            nccl.all_reduce([1], comm)
            if os.fork() == 0:
                os.close(release)
                os.read(hold, 1)  # lives until the test ends
                os._exit(0)
            os.kill(os.getpid(), signal.SIGKILL)

        def survivor():
            comm = nccl.init(2, uid, 1)
            nccl.all_reduce([1], comm)
            try:
                nccl.all_reduce([1], comm)
            except nccl.Error as e:
                nccl.call("ncclCommAbort", comm)
                return e.result, e.text
            return 0, "it succeeded"

        children = ranks.Child(victim), ranks.Child(survivor)
        try:
            result, text = soon(children[1])
        finally:
            os.write(release, b"x")
            children[0].wait()
        self.assertEqual(result, nccl.REMOTE_ERROR, text)
        self.assertRegex(text, r"rank 0\b")


if __name__ == "__main__":
    unittest.main()
