"""The package as pip makes it, with and without a built library, and the programs of docs/python.md."""

import glob
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import nccl
from package import free_port, packaged


def run(*command, **env):
    done = subprocess.run(
        command, env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300
    )
    return done.returncode, done.stdout


def builds():
    """Whether pip can build the package without fetching anything. By version: importing setuptools patches Python."""
    try:
        version = importlib.metadata.version("setuptools").split(".")
        return importlib.util.find_spec("pip") is not None and tuple(map(int, version[:2])) >= (70, 1)
    except importlib.metadata.PackageNotFoundError:
        return False


@unittest.skipUnless(builds(), "pip and setuptools 70.1 or newer are not installed")
class Wheel(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        # A copy, because building leaves folders in the tree, and because there is no build/lib beside it.
        shutil.copytree(os.path.join(nccl.ROOT, "python"), os.path.join(self.folder, "tree", "python"))

    def wheel(self, **env):
        status, said = run(
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "-v",
            "--no-build-isolation",
            "--no-deps",
            "--no-index",
            "-w",
            self.folder,
            os.path.join(self.folder, "tree", "python"),
            **env,
        )
        self.assertEqual(status, 0, said)
        (made,) = glob.glob(os.path.join(self.folder, "*.whl"))
        return made, said

    def test_with_the_library(self):
        made, _ = self.wheel(HCCL_LIB=os.path.dirname(nccl.PATH))
        self.assertRegex(os.path.basename(made), "^hccl-.*-py3-none-linux_")
        into = os.path.join(self.folder, "site")
        with zipfile.ZipFile(made) as z:
            z.extractall(into)
            self.assertIn("hccl/py.typed", z.namelist())
        env = {k: v for k, v in os.environ.items() if k != "HCCL_LIB"}
        code = (
            "import array, hccl\n"
            "with hccl.Communicator(0, 1, hccl.unique_id()) as comm:\n"
            "    print(hccl.lib.path(), comm.all_reduce(array.array('f', [3]))[0])"
        )
        said = subprocess.run(
            [sys.executable, "-c", code], env={**env, "PYTHONPATH": into}, stdout=subprocess.PIPE, text=True, timeout=60
        )
        self.assertEqual(said.stdout.split(), [os.path.join(into, "hccl", "lib", "libnccl.so.2"), "3.0"])

    def test_without_it(self):
        made, said = self.wheel(HCCL_LIB="")
        self.assertRegex(os.path.basename(made), "^hccl-.*-py3-none-any")
        self.assertRegex(
            said,
            "build/lib does not hold libnccl.so.2 and libhccl_core.so: the package is installed without the library. Run make",
        )


class Manual(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(nccl.ROOT, "docs", "python.md"), encoding="utf-8") as f:
            self.programs = [code for code in re.findall(r"^```python\n(.*?)^```", f.read(), re.M | re.S) if "import" in code]

    def test_first_program(self):
        env = {**packaged(), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        running = [
            subprocess.Popen(
                [sys.executable, "-c", self.programs[0]], env={**env, "RANK": str(rank)}, stdout=subprocess.PIPE, text=True
            )
            for rank in range(2)
        ]
        self.assertEqual(
            [each.communicate(timeout=60)[0] for each in running], [f"{rank} [1.0, 1.0, 1.0, 1.0]\n" for rank in range(2)]
        )

    def test_by_fork(self):
        status, said = run(sys.executable, "-c", self.programs[1], **packaged())
        self.assertEqual((status, sorted(said.splitlines())), (0, ["rank 0: 3", "rank 1: 3"]))


if __name__ == "__main__":
    unittest.main()
