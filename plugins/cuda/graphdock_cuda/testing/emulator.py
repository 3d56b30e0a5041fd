"""A compiler that makes CUDA C++ run on the CPU: g++ and ``emulator.h``.

An image is a shared object, which holds what runs its kernels too; :mod:`graphdock_cuda.testing.image` opens it.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from graphdock_cuda.driver.errors import CompileError

__all__ = ["Emulator", "find_compiler", "kernels_of"]

_HERE = Path(__file__).parent
_FILES = ("emulator.h", "emulator_functions.h", "emulator.cc")
_KERNEL = re.compile(
    r"(?:extern\s+\"C\"\s+__global__\s+void(?:\s+__launch_bounds__\s*\((?P<bound>[^,)]*)[^)]*\))?\s+(?P<name>\w+)"
    r"|\bGD_KERNEL\s*\(\s*(?P<macro>\w+)\s*\))\s*\("
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_OPTIONS = (
    "-std=c++17",
    "-O1",
    "-fPIC",
    # images that are open at once share nothing, not even by name
    "-fvisibility=hidden",
    "-fno-exceptions",
    "-fno-rtti",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-ffp-contract=off",
    "-w",
    "-pipe",
)
#: What a GPU leaves undefined; emulator.cc says it.
_CHECKS = ("-fsanitize=alignment,shift-exponent,bounds,bool,integer-divide-by-zero",)
#: Products and sums are one operation where a GPU's compiler makes them one, which it does unless it is told not to.
_FUSED = ("-ffp-contract=fast", "-fexpensive-optimizations", *(("-mfma",) if platform.machine() == "x86_64" else ()))
#: Each access calls a function of emulator.cc, which notes it.
_TRACED = (
    "-fsanitize=kernel-address",
    *(
        f"--param={name}={value}"
        for name, value in (("asan-instrumentation-with-call-threshold", 0), ("asan-stack", 0), ("asan-globals", 0))
    ),
)
#: The CUDA that it is of: 13.5. Drivers of before load what is compiled to the end (``sm_``), and no PTX (``compute_``).
_CUDA = 13050
#: Without the library of the checks: emulator.cc has what is needed of it.
_LIBRARIES = ("-nodefaultlibs", "-lm", "-lc", "-lgcc")


@functools.cache
def find_compiler() -> str | None:
    """Return what ``CXX`` names, else g++; None where there is none."""
    return shutil.which(os.environ.get("CXX") or "g++")


def kernels_of(source: str) -> dict[str, str]:
    """Names of a source's kernels, and the bound of their launches, ``0`` for none.

    They are written ``extern "C" __global__ void NAME(``, with ``__launch_bounds__(N)`` where wanted, or ``GD_KERNEL(NAME)(``.
    """
    found = _KERNEL.finditer(_COMMENT.sub(" ", source))
    return {match["name"] or match["macro"]: match["bound"] or "0" for match in found}


class Emulator:
    """See Compiler. Safe from any thread.

    Args:
      fma: products and sums are fused, as NVRTC fuses them. ``traced``: images tell which bytes they read and write.

    Raises RuntimeError when it is made where there is no g++.
    """

    def __init__(self, fma: bool = False, traced: bool = False) -> None:
        command = find_compiler()
        if command is None or platform.system() != "Linux":
            raise RuntimeError("the emulated CUDA needs Linux and a C++ compiler: install g++, or name one with CXX")
        self._command = command
        self._options = (*_OPTIONS, *_CHECKS, *(_FUSED if fma else ()), *(_TRACED if traced else ()))
        text = "".join((_HERE / name).read_text(encoding="utf-8") for name in _FILES)
        release = subprocess.run(
            [command, "-dumpfullversion"], capture_output=True, text=True, check=True
        ).stdout.strip()
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        self.version = f"emulator {digest} {' '.join(self._options)} g++ {release}"

    def compile(self, source: str, name: str, architecture: str) -> bytes:
        """See Compiler.compile: the image is a shared object.

        Raises CompileError, also for a source without a kernel.
        """
        kernels = kernels_of(source)
        if not kernels:
            raise CompileError(
                name, source, 'no kernel: expected extern "C" __global__ void NAME(...) or GD_KERNEL(NAME)(...)'
            )
        with tempfile.TemporaryDirectory(prefix="graphdock-cuda-") as folder:
            out = Path(folder) / "image.so"
            done = subprocess.run(
                [
                    self._command,
                    *self._options,
                    "-shared",
                    "-o",
                    out,
                    "-x",
                    "c++",
                    "-",
                    "-x",
                    "none",
                    _core(self._command),
                    *_LIBRARIES,
                ],
                input=_unit(source, name, architecture, kernels),
                capture_output=True,
                text=True,
            )
            if done.returncode != 0:
                raise CompileError(name, source, done.stderr)
            return out.read_bytes()


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="graphdock-cuda-")


@functools.cache
def _core(command: str) -> Path:
    """Return what is in every image, compiled once in a process."""
    out = Path(_folder().name) / "emulator.o"
    subprocess.run(
        [command, *_OPTIONS, "-DGD_EMULATED_ARCH=0", "-c", _HERE / "emulator.cc", "-o", out],
        check=True,
        capture_output=True,
        text=True,
    )
    return out


def _unit(source: str, name: str, architecture: str, kernels: dict[str, str]) -> str:
    """The source as a unit of C++: after the emulator's headers, and with a table of its kernels."""
    number = re.sub(r"\D", "", architecture)
    table = ", ".join(
        f'gd_emulator::Entry<&{kernel}>::kernel("{kernel}", {bound})' for kernel, bound in kernels.items()
    )
    return f"""#define GD_EMULATED_ARCH {number}0
#include "{_HERE / "emulator.h"}"
namespace {{
#include "{_HERE / "emulator_functions.h"}"
#line 1 "{name}"
{source}
}}
static const gd_emulator::Kernel gd_kernels[] = {{{table}}};
#define GD_EXPORT extern "C" __attribute__((visibility("default")))
GD_EXPORT unsigned gd_count() {{ return {len(kernels)}; }}
GD_EXPORT unsigned gd_ptx() {{ return {_CUDA if architecture.startswith("compute_") else 0}; }}
GD_EXPORT const gd_emulator::Kernel* gd_kernel(unsigned i) {{ return &gd_kernels[i]; }}
GD_EXPORT void gd_run(unsigned i, const unsigned* grid, const unsigned* block, unsigned shared, void** params,
                       gd_emulator::Machine* machine) {{
  gd_emulator::run(gd_kernels[i], grid, block, shared, params, machine);
}}
"""
