"""The examples in README.md, taken from it and run as they stand there."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

import nccl
from package import packaged

LIMIT = 60


def examples(language):
    with open(os.path.join(nccl.ROOT, "README.md"), encoding="utf-8") as f:
        return re.findall(rf"^```{language}\n(.*?)^```", f.read(), re.M | re.S)


class Readme(unittest.TestCase):
    def run_in(self, folder, *command):
        env = {**packaged(), "LD_LIBRARY_PATH": os.path.dirname(nccl.PATH)}
        done = subprocess.run(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_c(self):
        found = examples("c")
        self.assertEqual(len(found), 1, "README.md has one C example")
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "sum.c"), "w", encoding="utf-8") as f:
                f.write(found[0])
            self.run_in(folder, *os.environ.get("CC", "cc").split(), "-Wall", "-Wextra", "-Werror", "sum.c",
                        "-I", os.path.join(nccl.ROOT, "include"), "-L", os.path.dirname(nccl.PATH), "-lnccl", "-o", "sum")
            said = self.run_in(folder, "./sum")
        self.assertEqual(sorted(said.split("\n")), ["", "rank 0: 3", "rank 1: 3"])

    def test_python(self):
        found = examples("python")
        self.assertEqual(len(found), 1, "README.md has one Python example")
        with tempfile.TemporaryDirectory() as folder:
            said = self.run_in(folder, sys.executable, "-c", found[0])
        self.assertEqual(sorted(said.split("\n")), ["", "rank 0: [3.0, 3.0, 3.0, 3.0]", "rank 1: [3.0, 3.0, 3.0, 3.0]"])

    def test_preload(self):
        """A shell that starts Python, both under LD_PRELOAD: names are found in the process itself. By way of a link, as blanks part
        the names in LD_PRELOAD and a checkout's path may have some."""
        code = "import ctypes; v = ctypes.c_int(); print(ctypes.CDLL(None).ncclGetVersion(ctypes.byref(v)), v.value)"
        with tempfile.TemporaryDirectory() as folder:
            link = os.path.join(folder, "libnccl.so.2")
            os.symlink(nccl.PATH, link)
            env = {**os.environ, "LD_PRELOAD": link}
            done = subprocess.run(["sh", "-c", '"$0" -c "$1"', sys.executable, code], env=env, stdout=subprocess.PIPE, text=True,
                                  timeout=LIMIT)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "0 23203"))


if __name__ == "__main__":
    unittest.main()
