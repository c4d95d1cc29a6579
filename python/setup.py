"""Copies the shared objects of a built tree into the package, as hccl/lib. There is nothing to compile.

They are looked for in HCCL_LIB, else in build/lib of the checkout. Without them the package is installed all the same, and finds
the library when it is used: by HCCL_LIB or as libhccl_compat.so of the system; hccl.lib.path() says which.
"""

import os
import shutil

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

HERE = os.path.dirname(os.path.abspath(__file__))
FROM = os.environ.get("HCCL_LIB") or os.path.join(HERE, "..", "build", "lib")
FROM = os.path.dirname(FROM) if os.path.isfile(FROM) else FROM  # HCCL_LIB may name the file itself
FILES = ("libnccl.so.2", "libhccl_core.so")
BUILT = all(os.path.isfile(os.path.join(FROM, name)) for name in FILES)


class Build(build_py):
    """The package, and the shared objects beside it where they are built."""

    def run(self):
        super().run()
        into = os.path.join(self.build_lib, "hccl", "lib")
        shutil.rmtree(into, ignore_errors=True)  # of an earlier build
        if not BUILT:
            self.warn(
                f"{os.path.normpath(FROM)} does not hold {' and '.join(FILES)}: the package is installed without the library. "
                "Run make and install again, or set HCCL_LIB when the package is used"
            )
            return
        os.makedirs(into)
        for name in FILES:
            shutil.copy2(os.path.join(FROM, name), into)

    def get_outputs(self, include_bytecode=1):
        libraries = [os.path.join(self.build_lib, "hccl", "lib", name) for name in FILES] if BUILT else []
        return super().get_outputs(include_bytecode) + libraries


class Machine(Distribution):
    """A wheel that holds shared objects fits one kind of machine."""

    def has_ext_modules(self):
        return BUILT


class Wheel(bdist_wheel):
    """Every Python 3 can use it: ctypes needs no Python ABI."""

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2] if BUILT else "any")


setup(cmdclass={"build_py": Build, "bdist_wheel": Wheel}, distclass=Machine)
