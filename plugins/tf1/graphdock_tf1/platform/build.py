"""Facts of the build that programs print: ``tf.GIT_VERSION``, ``tf.COMPILER_VERSION`` and kin, and flags for compilers.

Versions are those of the TensorFlow whose names and formats these are, as ``tf.VERSION`` is; graphdock's own is ``tf.__version__``.
"""

from __future__ import annotations

import platform

import graphdock as _tf
from graphdock.errors import UnimplementedError

GIT_VERSION = "v1.15.0"
COMPILER_VERSION = platform.python_compiler()
CXX11_ABI_FLAG = 0
MONOLITHIC_BUILD = 0
#: The version of TensorFlow 1.15's GraphDefs, and what they ask of readers and writers.
GRAPH_DEF_VERSION = 134
GRAPH_DEF_VERSION_MIN_CONSUMER = 0
GRAPH_DEF_VERSION_MIN_PRODUCER = 0


def get_include() -> str:
    """The folder of graphdock's headers for kernels in C; TensorFlow's own headers are not here.

    Raises:
      AttributeError: the plugin ``native`` is not installed.
    """
    return str(_tf.native.include_directory())


def get_compile_flags() -> list[str]:
    """Flags for a compiler of kernels: where the headers are. Errors as of :func:`get_include`."""
    return [f"-I{get_include()}"]


def get_lib() -> str:
    """The folder of a library that kernels are linked with: there is none.

    Raises:
      UnimplementedError: always.
    """
    raise UnimplementedError(
        "there is no library to link kernels with: they are given what they call",
        hint="docs/write-a-native-kernel.md; tf.sysconfig.get_include() has the headers",
    )


def get_link_flags() -> list[str]:
    """Flags for a linker of kernels: none."""
    return []
