"""Kernels in C that the tests compile, for the ops of lab.yaml; each plan uses the one that it pins."""

from __future__ import annotations

from pathlib import Path

import graphdock as tf
import pytest
from graphdock_native import NativeLibrary, compile_library

HERE = Path(__file__).parent
#: Whose the kernels of std's ops are: other tests ask the same host which kernels these ops have.
FOR_STD = "native_lab"
STRICT = ("-O2", "-Wall", "-Wextra", "-Werror", "-pedantic")


class Lab:
    """The ops of lab.yaml, and libraries of kernels for them."""

    def __init__(self, folder):
        self.folder = folder
        self.ops = tf.load_op_library(str(HERE / "lab.yaml"))
        self._made = 0

    def compile(self, source, suffix=".c", flags=STRICT, head="#include <graphdock/kernel.h>\nGRAPHDOCK_LIBRARY\n"):
        """The file of a library, from the text of its only source."""
        self._made += 1
        file = self.folder / f"lab{self._made}{suffix}"
        file.write_text(head + source)
        return compile_library([file], self.folder / f"lab{self._made}", flags)

    def pin(self, source, op, symbol="kernel", suffix=".c", **fields):
        """A configuration in which a kernel of that source computes the op."""
        library = NativeLibrary(self.compile(source, suffix))
        return self.register(library.kernel(op, symbol, name=f"lab{self._made}", label="lab", **fields))

    def register(self, kernel):
        host = tf.default_host()
        plugin = "user" if kernel.op.startswith("lab.") else FOR_STD
        host.kernels.add(kernel, plugin, host.ops.get(kernel.op).package)
        return tf.SessionConfig(kernels={f"{kernel.op}@cpu": f"{plugin}.{kernel.name}"})


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    pytest.importorskip("cffi")
    return Lab(tmp_path_factory.mktemp("lab"))


@pytest.fixture(autouse=True)
def _std_as_it_was():
    yield
    tf.default_host().kernels.discard(FOR_STD)
