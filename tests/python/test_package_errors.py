"""Wrong inputs at every turn: each is refused by a sentence that says what, where and what to do, before anything moves."""

import array
import ctypes
import os
import subprocess
import sys
import tempfile
import unittest

import nccl
from package import hccl, job, needs_numpy, numpy, together
from hccl import elements

F = lambda *values: array.array("f", values)  # noqa: E731


class Pair(ctypes.Structure):
    _fields_ = [("a", ctypes.c_short), ("b", ctypes.c_short)]


def refusals(cases):
    """What each case raises, on each of two ranks, after which an all-reduce must still be right on both."""

    def body(comm):
        said = []
        for call in cases:
            try:
                call(comm)
                said.append("it was accepted")
            except (TypeError, ValueError) as e:
                said.append(f"{type(e).__name__}: {e}")
        assert comm.all_reduce(F(1))[0] == 2
        return said

    return job(2, body)


class Arguments(unittest.TestCase):
    def expect(self, *cases):
        for rank, said in enumerate(refusals([call for call, _ in cases])):
            for (_, pattern), sentence in zip(cases, said):
                with self.subTest(pattern, rank=rank):
                    self.assertRegex(sentence, pattern)

    def test_buffers(self):
        self.expect(
            (lambda c: c.all_reduce([1, 2]), "TypeError: all_reduce: send is of type list: give a numpy array"),
            (lambda c: c.all_reduce(None), "TypeError: all_reduce: send is of type NoneType"),
            (lambda c: c.all_reduce(b"abc"), "ValueError: all_reduce: send is read-only"),
            (lambda c: c.all_reduce(F(1), bytes(4)), "ValueError: all_reduce: recv is read-only"),
            (
                lambda c: c.all_reduce(memoryview(F(1, 2, 3, 4))[::2]),
                "ValueError: all_reduce: send cannot be used where it lies .*contiguous",
            ),
            (
                lambda c: c.all_reduce(F(1), array.array("d", [1])),
                "TypeError: all_reduce: send .* float32, recv .* float64: both",
            ),
            (
                lambda c: c.all_reduce((Pair * 1)()),
                "TypeError: all_reduce: elements of type format .* can be moved, but not computed with",
            ),
        )

    def test_sizes(self):
        self.expect(
            (
                lambda c: c.all_reduce(F(1, 2), F(1)),
                "ValueError: all_reduce: send with 2 elements and recv with 1 elements do not fit",
            ),
            (
                lambda c: c.all_gather(F(1), F(1)),
                "ValueError: all_gather: .* recv with 1 elements in 2 blocks do not fit .* 2 ranks",
            ),
            (lambda c: c.reduce_scatter(F(1, 2, 3), F(1)), "ValueError: reduce_scatter: send with 3 elements in 2 blocks"),
            (lambda c: c.all_to_all(F(1, 2, 3), F(1, 2, 3)), "ValueError: all_to_all: "),
            (lambda c: c.all_gather_v(F(1), F(1, 2), [1]), "ValueError: all_gather_v: recv: counts has 1 entries for 2 ranks"),
            (
                lambda c: c.all_gather_v(F(1), F(1), [1, 1]),
                "ValueError: all_gather_v: recv has 1 elements, .* rank 1's block of 1 would end at 2",
            ),
            (
                lambda c: c.all_gather_v(F(1), F(1, 1), [-1, 1]),
                "ValueError: all_gather_v: recv: counts .* has a negative entry",
            ),
            (
                lambda c: c.all_gather_v(F(1, 2, 3), F(1, 1), [1, 1]),
                "ValueError: all_gather_v: send has 3 elements, but counts",
            ),
        )

    def test_ranks_and_reductions(self):
        self.expect(
            (lambda c: c.broadcast(F(1), root=2), r"ValueError: broadcast: root 2 is none of 2 ranks \(0 to 1\)"),
            (lambda c: c.broadcast(F(1), root=1 << 32), "ValueError: broadcast: root 4294967296 is none of 2 ranks"),
            (lambda c: c.send(F(1), -1), "ValueError: send: peer -1 is none"),
            (lambda c: c.broadcast(F(1), root=0.0), "TypeError: .*float.* cannot be interpreted as an integer"),
            (lambda c: c.all_reduce(F(1), op="sum"), "TypeError: all_reduce: op is 'sum': choose hccl.SUM"),
            (lambda c: c.all_reduce(F(1), op=7), "TypeError: all_reduce: op is 7: choose"),
            (
                lambda c: c.all_reduce(array.array("d", [1]), op=c.scaled_sum(2, "float32")),
                "TypeError: .* scaled sum of float32, .* float64",
            ),
            (lambda c: c.scaled_sum(2, "float31"), "TypeError: 'float31' is no type of elements .* float32"),
            (lambda c: c.scaled_sum(0.5, "int32"), "ValueError: factor 0.5 is not a whole number"),
            (lambda c: c.scaled_sum(1000, "int8"), "ValueError: factor 1000 does not fit int8"),
            (
                lambda c: c.scaled_sum(1e6, "float8_e5m2"),
                "ValueError: factor 1000000.0 does not fit float8_e5m2, whose greatest value is 57344",
            ),
            (lambda c: c.split(-3), "ValueError: split: color -3 is negative: give None"),
            (lambda c: c.split(1 << 40), "ValueError: color 1099511627776 does not fit 32 bits"),
        )

    def test_a_root_without_its_buffer(self):
        def body(comm):
            try:
                comm.gather(F(1), root=comm.rank)
            except TypeError as e:
                return str(e)

        self.assertEqual(job(2, body), [f"gather: recv is None, but rank {r} is the root and needs it" for r in range(2)])

    @needs_numpy
    def test_numpy(self):
        frozen = numpy.zeros(2)
        frozen.flags.writeable = False
        self.expect(
            (
                lambda c: c.all_reduce(numpy.zeros((4, 4))[:, 1]),
                r"ValueError: all_reduce: send is not contiguous \(shape \(4,\), strides \(32,\)\)",
            ),
            (lambda c: c.all_reduce(numpy.zeros((2, 3), order="F")), "ValueError: all_reduce: send is not contiguous"),
            (lambda c: c.all_reduce(frozen), "ValueError: all_reduce: send is read-only"),
            (
                lambda c: c.all_reduce(numpy.zeros(3, ">f4")),
                "TypeError: all_reduce: send .* '>f4', which have the other byte order",
            ),
            (lambda c: c.all_reduce(numpy.zeros(3, object)), "TypeError: all_reduce: send has Python objects as elements"),
            (lambda c: c.broadcast(numpy.zeros(3, object)), "TypeError: broadcast: buffer has Python objects"),
            (
                lambda c: c.all_reduce(numpy.zeros(3, complex)),
                "TypeError: all_reduce: elements of type complex128 can be moved, but not",
            ),
            (
                lambda c: c.all_reduce(numpy.zeros(3, bool), op=hccl.AVG),
                "TypeError: all_reduce: AVG of bool makes no sense: take BOR, BAND or BXOR",
            ),
        )


class Making(unittest.TestCase):
    def test_wrong_ids_and_ranks(self):
        unique_id = hccl.unique_id()
        for arguments, kind, text in (
            ((0, 1, b"short"), ValueError, "unique_id has 5 bytes: give the 128 of hccl.unique_id"),
            ((0, 1 << 33, unique_id), ValueError, "size 8589934592 does not fit 32 bits"),
            ((2, 2, unique_id), hccl.Error, r"rank 2 is none of 2 ranks .*\[INVALID_ARGUMENT\]"),
            ((0, 1, bytes(128)), hccl.Error, r"\[INVALID"),
        ):
            with self.subTest(text), self.assertRaisesRegex(kind, text):

                def made(arguments=arguments):
                    hccl.Communicator(*arguments)

                ranks_error(made)

    def test_a_rank_that_does_not_come_is_named(self):
        unique_id = hccl.unique_id()

        def lonely():
            os.environ["HCCL_INIT_TIMEOUT"] = "0.3"
            try:
                hccl.Communicator(0, 3, unique_id)
            except hccl.LimitError as e:
                return e.result, e.text, isinstance(e, TimeoutError)

        ((result, text, is_timeout),) = together([lonely])
        self.assertEqual((result, is_timeout), (hccl.Result.TIMEOUT, True))
        self.assertRegex(text, "missing: ranks 1, 2")

    def test_two_ranks_of_one_number(self):
        unique_id = hccl.unique_id()

        def twin():
            try:
                hccl.Communicator(0, 2, unique_id)
            except hccl.Error as e:
                return str(e)

        for said in together([twin, twin]):
            self.assertRegex(said, "rank 0")

    def test_within_a_group(self):
        def made():
            with hccl.group():
                hccl.Communicator(0, 1, bytes(128))

        with self.assertRaisesRegex(ValueError, "cannot be made within a group"):
            ranks_error(made)


class Library(unittest.TestCase):
    """Each in a process of its own: the package loads the library once."""

    def run_with(self, code, **env):
        clean = {k: v for k, v in os.environ.items() if k != "HCCL_LIB"}
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**clean, "PYTHONPATH": os.path.join(nccl.ROOT, "python"), **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )
        return done.returncode, done.stdout.strip()

    def test_a_folder_without_it(self):
        status, said = self.run_with("import hccl; hccl.version()", HCCL_LIB="/nowhere")
        self.assertEqual(status, 1)
        self.assertIn("hccl.results.LibraryError: HCCL_LIB is /nowhere, and there is no libnccl.so.2: name the folder", said)

    def test_another_library(self):
        with tempfile.TemporaryDirectory() as folder:
            source, made = os.path.join(folder, "other.c"), os.path.join(folder, "libnccl.so.2")
            with open(source, "w", encoding="utf-8") as f:
                f.write("int ncclGetVersion(int* v) { return *v = 0; }\n")
            subprocess.run(
                [*os.environ.get("CC", "cc").split(), "-shared", "-fPIC", source, "-o", made], check=True, timeout=60
            )
            status, said = self.run_with("import hccl; hccl.version()", HCCL_LIB=folder)
        self.assertEqual(status, 1)
        self.assertRegex(said, "libnccl.so.2 is not this version of HCCL .*undefined symbol: .*: set HCCL_LIB")

    def test_a_copy_of_the_package(self):
        """Far from a checkout: the library beside it, then the system's, then none."""
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["cp", "-r", os.path.join(nccl.ROOT, "python", "hccl"), folder], check=True)
            code = "import hccl; print(hccl.lib.path())"
            status, said = self.run_with(code, PYTHONPATH=folder)
            self.assertEqual(status, 1)
            self.assertRegex(
                said, "LibraryError: the HCCL library is not there: looked for .*Run make in the checkout .*or set HCCL_LIB"
            )
            found = os.path.join(folder, "libhccl_compat.so")
            os.symlink(nccl.PATH, found)
            self.assertEqual(self.run_with(code, PYTHONPATH=folder, LD_LIBRARY_PATH=folder), (0, found))
            os.mkdir(os.path.join(folder, "hccl", "lib"))
            beside = os.path.join(folder, "hccl", "lib", "libnccl.so.2")
            os.symlink(nccl.PATH, beside)
            self.assertEqual(self.run_with(code, PYTHONPATH=folder, LD_LIBRARY_PATH=folder), (0, beside))


class Factors(unittest.TestCase):
    def test_small_floats_without_numpy(self):
        for name, value, want in (
            ("bfloat16", 1.0, "803f"),
            ("bfloat16", -2.0, "00c0"),
            ("float8_e4m3fn", 448, "7e"),
            ("float8_e4m3fn", 1, "38"),
            ("float8_e5m2", 57344, "7b"),
            ("float8_e5m2", -1, "bc"),
            ("float16", 1, "003c"),
        ):
            self.assertEqual(elements.pack(elements.named(name), value).hex(), want, name)


def ranks_error(body):
    """Runs a body that must fail in a forked process, because a process that has started the core cannot fork ranks any more;
    raises what it raised."""

    def run():
        try:
            body()
        except Exception as e:
            return type(e).__name__, str(e), getattr(e, "call", ""), getattr(e, "result", 0)
        return None

    (got,) = together([run])
    if got is None:
        return
    name, text, call, result = got
    raise ValueError(text) if name == "ValueError" else hccl.Error(call, result, text)


if __name__ == "__main__":
    unittest.main()
