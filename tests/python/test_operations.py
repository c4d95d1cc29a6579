"""Every operation, by ranks as processes, as threads, and by one thread that holds all ranks."""
import ctypes as c
import unittest

import bodies
import nccl
import ranks

WANT = len(bodies.COUNTS) * 9


class Operations(unittest.TestCase):
    def test_two_and_four_processes(self):
        for n in (1, 2, 4):
            with self.subTest(ranks=n):
                self.assertEqual(ranks.processes(n, bodies.every_operation), [WANT] * n)

    def test_threads(self):
        # In a process of its own: a process whose core has started cannot fork ranks any more, and other tests do.
        for n in (2, 4):
            with self.subTest(ranks=n):
                child = ranks.Child(ranks.threads, n, bodies.every_operation)
                self.assertEqual(child.result(until=ranks.time.monotonic() + ranks.LIMIT), [WANT] * n)

    def test_types_and_reductions(self):
        def body(rank, comm):
            for kind in nccl.TYPES:
                for red, want in ((nccl.SUM, 9), (nccl.PROD, 24), (nccl.MAX, 4), (nccl.MIN, 2), (nccl.AVG, 3)):
                    got = nccl.all_reduce([rank + 2] * 33, comm, kind, red)
                    assert got == [want] * 33, f"{kind}, reduction {red}: {got[0]}, not {want}"
            return True
        self.assertEqual(ranks.processes(3, body), [True] * 3)

    def test_one_thread_holds_all(self):
        def body():
            n, m = 4, 1000
            comms = nccl.init_all(n)
            a = [bodies.vector(r, m) for r in range(n)]
            b = [(c.c_float * m)() for _ in range(n)]
            nccl.call("ncclGroupStart")
            for r in range(n):
                nccl.call("ncclAllReduce", a[r], b[r], m, nccl.FLOAT32, nccl.SUM, comms[r], None)
            nccl.call("ncclGroupEnd")
            for r in range(n):
                bodies.check(b[r], [bodies.total(n, k) for k in range(m)], f"rank {r}")
            for comm in comms:
                nccl.call("ncclCommDestroy", comm)
            return True
        self.assertTrue(ranks.Child(body).result(until=ranks.time.monotonic() + ranks.LIMIT))

    def test_split(self):
        def body(rank, comm):
            half = nccl.split(comm, rank % 2, -rank)
            mine, count = nccl.number("ncclCommUserRank", half), nccl.number("ncclCommCount", half)
            got = nccl.all_reduce([rank], half)
            nccl.call("ncclCommDestroy", half)
            return mine, count, got
        self.assertEqual(ranks.processes(4, body), [(1, 2, [2.0]), (1, 2, [4.0]), (0, 2, [2.0]), (0, 2, [4.0])])


if __name__ == "__main__":
    unittest.main()
