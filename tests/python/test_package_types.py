"""The package as a type checker sees it, and a program that uses it wrongly."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

import nccl

WRONG = """
import hccl
comm = hccl.Communicator.from_environment(timeout="soon")
comm.all_reduce([1, 2])
comm.broadcast(bytearray(3), root="none")
right: hccl.Communicator | None = comm.split(3)
"""


@unittest.skipIf(importlib.util.find_spec("mypy") is None, "mypy is not installed")
class Types(unittest.TestCase):
    def mypy(self, *arguments):
        with tempfile.TemporaryDirectory() as cache:
            done = subprocess.run(
                [sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, *arguments],
                cwd=cache,
                text=True,
                env={**os.environ, "MYPYPATH": os.path.join(nccl.ROOT, "python")},
                timeout=300,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        return done.returncode, done.stdout

    def test_package(self):
        status, said = self.mypy("-p", "hccl")
        self.assertEqual(status, 0, said)

    def test_wrong_use_is_seen(self):
        status, said = self.mypy("-c", WRONG)
        self.assertEqual(status, 1, said)
        self.assertEqual([line.split(":")[1] for line in said.splitlines() if "error:" in line], ["3", "4", "5"], said)


if __name__ == "__main__":
    unittest.main()
