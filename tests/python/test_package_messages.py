"""Messages with tags and from any rank, limits, and the types and reductions that NCCL does not have."""

import array
import ctypes
import unittest

import ranks
from package import hccl, job, needs_numpy, numpy, raised

F = lambda *values: array.array("f", values)  # noqa: E731


class Messages(unittest.TestCase):
    def test_tags(self):
        """A receive takes the message with its tag, whatever came before it."""

        def body(comm):
            if comm.rank == 0:
                for tag in (3, 1, 2, 1):
                    comm.send(F(tag, tag), 1, tag)
                return None
            return [list(comm.recv(F(0, 0), 0, tag)) for tag in (1, 2, 3, 1)]

        self.assertEqual(job(2, body)[1], [[1, 1], [2, 2], [3, 3], [1, 1]])

    def test_any(self):
        """From whoever sends, of any length up to the buffer's; the status says what it was."""

        def body(comm):
            if comm.rank:
                comm.send(F(*[comm.rank] * comm.rank), 0, tag=comm.rank + 10)
                return None
            got = []
            for _ in range(comm.size - 1):
                buffer, status = F(0, 0, 0, 0), hccl.Status()
                comm.recv(buffer, hccl.ANY_SOURCE, hccl.ANY_TAG, status)
                got.append((status.source, status.tag, status.bytes, sum(buffer), repr(status)))
            return sorted(got)

        want = [(r, r + 10, 4 * r, r * r, f"hccl.Status(source={r}, tag={r + 10}, bytes={4 * r})") for r in (1, 2, 3)]
        self.assertEqual(job(4, body)[0], want)

    def test_in_groups_and_on_streams(self):
        def body(comm):
            peer, buffers = 1 - comm.rank, [F(0), F(0)]
            status = [hccl.Status(), hccl.Status()]
            with hccl.Stream() as stream:
                for s, tag in zip((None, stream), (5, 6)):
                    with hccl.group(stream=s):
                        comm.send(F(comm.rank), peer, tag)
                        comm.recv(buffers[tag - 5], hccl.ANY_SOURCE, tag, status[tag - 5])
                stream.synchronize()
            return [b[0] for b in buffers], [(s.source, s.tag) for s in status]

        self.assertEqual(job(2, body), [([1, 1], [(1, 5), (1, 6)]), ([0, 0], [(0, 5), (0, 6)])])

    def test_wrong_inputs(self):
        def body(comm):
            calls = (
                lambda: comm.send(F(1), 1, tag=-1),
                lambda: comm.send(F(1), hccl.ANY_SOURCE),
                lambda: comm.recv(F(1), 0, tag=2**31),
                lambda: comm.recv(F(1), -2),
                lambda: comm.recv(F(1), 0, 0, status={}),
            )
            return [str(raised(call)) for call in calls], comm.all_reduce(F(1))[0]

        for said, total in job(2, body):
            for got, want in zip(
                said,
                (
                    "send: tag -1 is none: take 0 to 2147483647",
                    "send: peer -1 is none of 2 ranks",
                    "recv: tag 2147483648 is none: take 0 to 2147483647, or ANY_TAG",
                    "recv: peer -2 is none of 2 ranks",
                    "recv: status is of type dict: give an hccl.Status",
                ),
            ):
                self.assertIn(want, got)
            self.assertEqual(total, 2)


class Limits(unittest.TestCase):
    def test_barrier_names_the_absent(self):
        def body(comm):
            comm.barrier(timeout=ranks.LIMIT)
            if comm.rank:
                with hccl.limit(None):  # longer than the other's
                    said = raised(comm.recv, F(0), 0)
                comm.abort()
                return type(said).__name__
            said = raised(comm.barrier, timeout=0.3)
            comm.abort()
            return type(said).__name__, str(said), isinstance(said, TimeoutError)

        (kind, text, late), *others = job(3, body)
        self.assertEqual((kind, late, others), ("LimitError", True, ["RemoteError"] * 2))
        self.assertRegex(text, "a barrier; missing: ranks 1, 2")

    def test_receive_that_is_taken_back(self):
        """It ends alone, and the communicator goes on."""

        def body(comm):
            if comm.rank:
                comm.barrier()
                comm.send(F(7), 0)
                return None
            with hccl.limit(0.05):
                said = raised(comm.recv, F(0), 1)
            comm.barrier()
            return type(said).__name__, "rank 1" in str(said) or "missing: rank 1" in str(said), comm.recv(F(0), 1)[0]

        self.assertEqual(job(2, body)[0], ("LimitError", True, 7))

    def test_all_operations_within_a_limit(self):
        def body(comm):
            r, counts = comm.rank, [1, 2]
            with hccl.limit(ranks.LIMIT), hccl.Stream() as stream:
                got = [
                    comm.all_reduce(F(r, 1), op=hccl.MAX),
                    comm.reduce(F(r), root=1),
                    comm.reduce_scatter(F(r, 10 + r), F(0)),
                    comm.broadcast(F(r, r), root=1),
                    comm.all_gather(F(r), F(0, 0), stream=stream),
                    comm.gather(F(r), F(0, 0), root=0),
                    comm.scatter(F(7, 8) if r == 0 else None, F(0)),
                    comm.all_to_all(F(r, 10 + r), F(0, 0)),
                    comm.all_gather_v(F(*[r] * counts[r]), F(0, 0, 0), counts, stream=stream),
                    comm.reduce_scatter_v(F(*range(3)), F(*[0] * counts[r]), counts),
                    comm.all_to_all_v(F(*[r] * 3), counts, F(*[0] * (counts[r] * 2)), [counts[r]] * 2),
                ]
                with hccl.group():
                    comm.send(F(r), 1 - r)
                    got.append(comm.recv(F(9), 1 - r))
                half = comm.split(0)  # as ever
                half.close()
            return [each and list(each) for each in got]

        first, second = job(2, body)
        self.assertEqual(
            first,
            [[1, 1], None, [1], [1, 1], [0, 1], [0, 1], [7], [0, 1], [0, 1, 1], [0], [0, 1], [1]],
        )
        self.assertEqual(
            second, [[1, 1], [1], [21], [1, 1], [0, 1], None, [8], [10, 11], [0, 1, 1], [2, 4], [0, 0, 1, 1], [0]]
        )

    def test_of_the_communicator(self):
        def body(comm):
            before = comm.timeout
            comm.timeout = 0.2
            after = comm.timeout
            wrong = str(raised(setattr, comm, "timeout", 0))
            if comm.rank == 0:
                comm.timeout = None
            said = raised(comm.recv, F(0), 1 - comm.rank)
            comm.abort()
            return before, after, wrong, type(said).__name__

        text = "timeout: a limit of 0 s: give a positive number of seconds, or None for no limit"
        self.assertEqual(job(2, body), [(None, 0.2, text, "RemoteError"), (None, 0.2, text, "LimitError")])


class Elements(unittest.TestCase):
    def test_integers_of_16_bits(self):
        def body(comm):
            a, b = array.array("h", [-5, 30000]), array.array("H", [5, 65535])
            with comm.scaled_sum(3, "int16") as op:
                scaled = comm.all_reduce(array.array("h", [comm.rank]), op=op)[0]
            return list(comm.all_reduce(a)), list(comm.all_reduce(b)), scaled

        self.assertEqual(job(2, body), [([-10, -5536], [10, 65534], 3)] * 2)

    def test_bits(self):
        def body(comm):
            mine = [6, 3][comm.rank]
            got = [comm.all_reduce(array.array("i", [mine]), op=op)[0] for op in (hccl.BAND, hccl.BOR, hccl.BXOR)]
            truth = (ctypes.c_bool * 2)(True, comm.rank == 0)
            ops = (hccl.BAND, hccl.BOR, hccl.BXOR, hccl.SUM, hccl.PROD, hccl.MAX, hccl.MIN)
            return got, [list(comm.all_reduce((ctypes.c_bool * 2)(*truth), op=op)) for op in ops]

        both, one = [True, True], [True, False]
        self.assertEqual(job(2, body), [([2, 7, 5], [one, both, [False, True], both, one, both, one])] * 2)

    @needs_numpy
    def test_numpy(self):
        def body(comm):
            a = numpy.array([comm.rank == 0, True])
            return comm.all_reduce(a, op=hccl.BXOR).tolist(), comm.all_reduce(numpy.array([2], "int16"), op=hccl.PROD).tolist()

        self.assertEqual(job(2, body), [([True, False], [4])] * 2)

    def test_refused(self):
        def body(comm):
            return (
                str(raised(comm.all_reduce, F(1), op=hccl.BAND)),
                str(raised(comm.all_reduce, (ctypes.c_bool * 1)(), op=hccl.AVG)),
                str(raised(comm.scaled_sum, 2, "bool")),
                comm.all_reduce(F(1))[0],
            )

        for bits, mean, scaled, total in job(2, body):
            self.assertIn("BAND of float32 makes no sense: only integers and bool have bits", bits)
            self.assertIn("AVG of bool makes no sense", mean)
            self.assertIn("a factor of type bool makes no sense", scaled)
            self.assertEqual(total, 2)


if __name__ == "__main__":
    unittest.main()
