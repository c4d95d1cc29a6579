"""The interpreter's end while streams still have work: nothing crashes, nothing hangs, and the other ranks hear of it."""

import subprocess
import sys
import tempfile
import unittest

import ranks
from package import packaged

BEGIN = """
import array, os, sys, threading, time, hccl
rank, folder = int(sys.argv[1]), sys.argv[2]
comm = hccl.Communicator.from_file(folder + "/id", rank, 2)
stream = hccl.Stream()
"""
LEAVES = """
mine = array.array("f", [1] * 1000000)
if rank == 0:
    for _ in range(5):
        comm.all_reduce(mine, stream=stream)
    comm.recv(mine, 1, stream=stream)
"""
HEARS = """
if rank == 1:
    try:
        comm.recv(mine, 0)
    except hccl.RemoteError as e:
        print("rank 0" in str(e))
        comm.abort()
"""


def programs(code):
    """What the code prints and how it ends, as each of two ranks."""
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
        try:
            return [(process.communicate(timeout=ranks.LIMIT)[0], process.returncode) for process in running]
        finally:
            for process in running:
                process.kill()


class Exit(unittest.TestCase):
    def test_with_operations_that_wait(self):
        """The communicator is aborted, since its peer may never come."""
        self.assertEqual(programs(BEGIN + LEAVES + HEARS), [("", 0), ("True\n", 0)])

    def test_with_an_exception(self):
        """As a program fails whose objects stand in its frames and not in with blocks."""
        code = (
            BEGIN + "def main():\n    s = hccl.Stream()" + LEAVES.replace("\n", "\n    ").replace("stream=stream", "stream=s")
        )
        code += "\n    if rank == 0: raise SystemExit(3)\nmain()" + HEARS.replace("mine", "array.array('f', [0])")
        self.assertEqual(programs(code), [("", 3), ("True\n", 0)])

    def test_with_a_function_that_runs(self):
        """It is waited for, as a thread is."""
        code = BEGIN + "\nstream.launch(lambda: (time.sleep(0.05), print('done', flush=True)))"
        self.assertEqual(programs(code), [("done\n", 0)] * 2)

    def test_with_everything_done(self):
        code = BEGIN + "\nmine = comm.all_reduce(array.array('f', [1]), stream=stream); stream.synchronize(); print(mine[0])"
        self.assertEqual(programs(code), [("2.0\n", 0)] * 2)


if __name__ == "__main__":
    unittest.main()
