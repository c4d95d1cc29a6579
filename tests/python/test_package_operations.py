"""Operations of the package on array.array, numpy arrays and torch tensors, against sums written out."""

import array
import unittest

from package import hccl, job, ml_dtypes, needs_ml_dtypes, needs_numpy, needs_torch, numpy, torch

N = 3


def floats(*values):
    return array.array("f", values)


class Buffers(unittest.TestCase):
    """The buffer protocol alone."""

    def test_reductions(self):
        def body(comm):
            r = comm.rank
            got = [list(comm.all_reduce(floats(r, 1), op=op)) for op in (hccl.SUM, hccl.PROD, hccl.MAX, hccl.MIN, hccl.AVG)]
            into = floats(0, 0)
            own = comm.all_reduce(floats(r, r), into) is into
            at_root = comm.reduce(floats(r), root=1)
            part = comm.reduce_scatter(floats(r, 10 + r, 20 + r), floats(0))
            return got, own, list(into), at_root and list(at_root), list(part)

        for rank, (got, own, into, at_root, part) in enumerate(job(N, body)):
            self.assertEqual(got, [[3, 3], [0, 1], [2, 1], [0, 1], [1, 1]])
            self.assertTrue(own, "the result's buffer is given back")
            self.assertEqual((into, at_root, part), ([3, 3], [3] if rank == 1 else None, [30 * rank + 3]))

    def test_moving(self):
        def body(comm):
            r, zeros = comm.rank, lambda n: floats(*[0] * n)
            return [
                list(comm.broadcast(floats(r, r), root=2)),
                list(comm.all_gather(floats(r), zeros(N))),
                list(comm.gather(floats(r), zeros(N) if r == 1 else None, root=1) or []),
                list(comm.scatter(floats(7, 8, 9) if r == 0 else None, zeros(1))),
                list(comm.all_to_all(floats(r, 10 + r, 20 + r), zeros(N))),
            ]

        for r, got in enumerate(job(N, body)):
            self.assertEqual(got, [[2, 2], [0, 1, 2], [0, 1, 2] if r == 1 else [], [7 + r], [10 * r, 10 * r + 1, 10 * r + 2]])

    def test_blocks_of_different_sizes(self):
        def body(comm):
            r, counts = comm.rank, [1, 2, 3]
            all_of = comm.all_gather_v(floats(*[r] * counts[r]), floats(*[9] * 8), counts, displs=[7, 0, 4])
            part = comm.reduce_scatter_v(floats(*range(6)), floats(*[0] * counts[r]), counts)
            sent = comm.all_to_all_v(floats(*[r] * 6), counts, floats(*[0] * (counts[r] * N)), [counts[r]] * N)
            return list(all_of), list(part), list(sent)

        for r, (all_of, part, sent) in enumerate(job(N, body)):
            self.assertEqual(all_of, [1, 1, 9, 9, 2, 2, 2, 0])
            self.assertEqual(part, [[0], [3, 6], [9, 12, 15]][r])
            self.assertEqual(sent, [p for p in range(N) for _ in range(r + 1)])

    def test_group_of_messages(self):
        def body(comm):
            r, got = comm.rank, floats(0)
            with hccl.group():
                with hccl.group():  # nested: the outermost one counts
                    comm.send(floats(r), (r + 1) % N)  # nobody but the group holds this buffer
                comm.recv(got, (r - 1) % N)
            return got[0]

        self.assertEqual(job(N, body), [2, 0, 1])

    def test_group_left_by_an_exception_does_nothing(self):
        def body(comm):
            mine = floats(1)
            try:
                with hccl.group():
                    comm.all_reduce(mine)
                    raise KeyError("of the caller")
            except KeyError:
                pass
            return mine[0], comm.all_reduce(mine)[0]

        self.assertEqual(job(N, body), [(1, N)] * N)

    def test_kinds_of_buffers(self):
        def body(comm):
            import ctypes

            got = [comm.all_reduce(array.array(code, [1, 2])).tolist() for code in "bBiIlLqQfd"]
            got.append(list(comm.all_reduce(bytearray(b"\1\2"))))
            got.append(list(comm.all_reduce((ctypes.c_int64 * 2)(1, 2))))
            got.append(list(comm.all_reduce(memoryview(array.array("d", [0, 1, 2, 0]))[1:3])))
            into = bytearray(2 * N)
            comm.all_gather(b"ab", into)
            shorts = comm.broadcast(array.array("h", [comm.rank, -5]), root=1)
            return got, bytes(into), shorts.tolist()

        for got, into, shorts in job(N, body):
            self.assertEqual(got, [[N, 2 * N]] * 13)
            self.assertEqual((into, shorts), (b"ab" * N, [1, -5]))

    def test_scaled_sum(self):
        def body(comm):
            got = []
            for kind, code in (("float32", "f"), ("float64", "d"), ("int64", "q")):
                with comm.scaled_sum(comm.rank + 1, kind) as op:
                    got.append(comm.all_reduce(array.array(code, [10]), op=op)[0])
            try:
                comm.all_reduce(array.array("q", [1]), op=op)
            except ValueError as e:
                got.append(str(e))
            return got

        self.assertEqual(job(N, body), [[60, 60, 60, "all_reduce: op is a scaled sum that was closed"]] * N)

    def test_memory_and_registration(self):
        def body(comm):
            shared = hccl.empty(4096)
            view = shared.cast("f")
            view[:] = floats(*[comm.rank] * 1024)
            with comm.register(view):
                comm.all_reduce(view)
            return shared.nbytes, view[0], view[1023]

        self.assertEqual(job(N, body), [(4096, 3, 3)] * N)

    def test_many_turns(self):
        """Small and large ones in turn, so that every path of the library is taken from Python."""

        def body(comm):
            wrong = 0
            for turn in range(60):
                mine = array.array("d", [turn + comm.rank]) * (1 << turn % 15)
                comm.all_reduce(mine)
                wrong += mine[0] != 3 * turn + 3 or mine[-1] != mine[0]
                comm.barrier()
            return wrong

        self.assertEqual(job(N, body), [0] * N)


@needs_numpy
class Numpy(unittest.TestCase):
    def test_types(self):
        def body(comm):
            kinds = ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64")
            return [comm.all_reduce(numpy.full((2, 3), comm.rank + 1, kind)).tolist() for kind in kinds]

        self.assertEqual(job(N, body), [[[[6] * 3] * 2] * 9] * N)

    def test_bool(self):
        def body(comm):
            mine = numpy.array([comm.rank == 1, True, False])
            return comm.all_reduce(mine.copy(), op=hccl.MAX).tolist(), comm.all_reduce(mine.copy(), op=hccl.MIN).tolist()

        self.assertEqual(job(N, body), [([True, True, False], [False, True, False])] * N)

    def test_nothing_is_copied(self):
        def body(comm):
            whole = numpy.zeros((N, 4), "f4")
            whole[comm.rank] = comm.rank + 1
            same = comm.all_gather(whole[comm.rank], whole) is whole  # in place
            return (
                same,
                whole.tolist(),
                comm.broadcast(numpy.zeros(3, "i2") + comm.rank, root=2).tolist(),
                comm.all_reduce(numpy.zeros(0)).size,
            )

        self.assertEqual(job(N, body), [(True, [[r + 1] * 4 for r in range(N)], [2, 2, 2], 0)] * N)

    def test_zero_dimensions(self):
        self.assertEqual(job(N, lambda comm: float(comm.all_reduce(numpy.array(2.5)))), [7.5] * N)

    @needs_ml_dtypes
    def test_small_floats(self):
        def body(comm):
            kinds = (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)
            sums = [comm.all_reduce(numpy.full(9, comm.rank + 1, kind)).astype("f4").tolist() for kind in kinds]
            for kind in kinds:
                with comm.scaled_sum(0.5, kind) as op:
                    sums.append(comm.all_reduce(numpy.full(9, 2 * (comm.rank + 1), kind), op=op).astype("f4").tolist())
            return sums

        self.assertEqual(job(N, body), [[[6] * 9] * 6] * N)

    @needs_ml_dtypes
    def test_factors_are_rounded_as_ml_dtypes_rounds(self):
        from hccl import elements

        values = [0, 1, -1, 0.1, 1 / 3, 3.14159, 17.3, 1e-3, 2.5e-3, 240, 447, -0.0, 1.0625, 1.1875, 0.001953125, 0.0009765625]
        for kind in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
            for value in values:
                with self.subTest(kind=kind.__name__, value=value):
                    self.assertEqual(elements.pack(elements.named(kind), value), numpy.array([value]).astype(kind).tobytes())


@needs_torch
class Torch(unittest.TestCase):
    def test_types(self):
        def body(comm):
            kinds = (
                torch.float32,
                torch.float64,
                torch.bfloat16,
                torch.float16,
                torch.int64,
                torch.int32,
                torch.uint8,
                torch.int8,
            )
            sums = [comm.all_reduce(torch.full((2, 2), comm.rank + 1, dtype=kind)).tolist() for kind in kinds]
            small = torch.full((4,), comm.rank + 1.0).to(torch.float8_e4m3fn)
            return sums + [comm.all_reduce(small).to(torch.float32).reshape(2, 2).tolist()]

        self.assertEqual(job(N, body), [[[[6, 6], [6, 6]]] * 9] * N)

    def test_a_slice_and_a_parameter(self):
        def body(comm):
            whole = torch.zeros(4, 3)
            comm.all_reduce(whole[1].fill_(comm.rank))
            weight = torch.nn.Parameter(torch.full((2,), float(comm.rank)))
            comm.broadcast(weight, root=2)
            return whole.tolist(), weight.tolist()

        self.assertEqual(job(N, body), [([[0] * 3, [3] * 3, [0] * 3, [0] * 3], [2, 2])] * N)

    def test_what_cannot_be_used(self):
        from hccl import buffers

        for tensor, text in (
            (torch.zeros(3, 3).t(), "contiguous"),
            (torch.zeros(3, device="meta"), "device meta"),
            (torch.zeros(3).to_sparse(), "layout"),
            (torch.zeros(3, dtype=torch.complex64).conj(), "resolve_conj"),
        ):
            with self.subTest(text), self.assertRaisesRegex(ValueError, "^send .*" + text):
                buffers.view(tensor, "send")


if __name__ == "__main__":
    unittest.main()
