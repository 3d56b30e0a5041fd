"""NVRTC, NVIDIA's compiler as a library, without CuPy and without a driver: it compiles where there is no GPU."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from graphdock_cuda.driver.errors import CompileError

__all__ = ["OPTIONS", "Nvrtc", "find_libraries"]

OPTIONS = ("-std=c++17", "-default-device")
_FILE = re.compile(r"libnvrtc\.so\.(\d+)(?:\.[\d.]+)?$")
#: Where wheels put it, below site-packages: those of CUDA 13, and those of CUDA 12.
_WHEELS = ("nvidia/cu*/lib", "nvidia/cuda_nvrtc/lib")
_SYSTEM = ("/usr/local/cuda/lib64", "/usr/local/cuda-*/lib64", "/usr/lib/*-linux-gnu", "/usr/lib64")


def find_libraries() -> list[Path]:
    """Files of NVRTC: of wheels, of the toolkit that CUDA_PATH or CUDA_HOME names, of the system; of each the newest CUDA first.

    A library that is loaded by name alone, from LD_LIBRARY_PATH, is not among them.
    """
    found: list[Path] = []
    for folders in (_wheels(), _named(), _system()):
        numbered = [
            (int(match[1]), path) for folder in folders for path in _files(folder) if (match := _FILE.match(path.name))
        ]
        for _, path in sorted(numbered, key=lambda item: -item[0]):
            if path.resolve() not in [other.resolve() for other in found]:
                found.append(path)
    return found


def _wheels() -> Iterator[Path]:
    for root in sys.path:
        for pattern in _WHEELS:
            yield from sorted(Path(root or ".").glob(pattern))


def _named() -> Iterator[Path]:
    for name in ("CUDA_PATH", "CUDA_HOME"):
        if os.environ.get(name):
            yield Path(os.environ[name]) / "lib64"


def _system() -> Iterator[Path]:
    for pattern in _SYSTEM:
        yield from sorted(Path("/").glob(pattern[1:]))


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("libnvrtc.so.*")) if folder.is_dir() else []


class Nvrtc:
    """See Compiler; images are cubins; PTX, to be read, for ``compute_90``. Safe from any thread.

    Args:
      major: of CUDA, as the driver supports it; a newer library is passed over. None: any will do.
      library: the file, where it is known.

    Attributes:
      path: of the library. ``architectures``: what it compiles for, as ``90``.

    Raises FileNotFoundError when there is none.
    """

    def __init__(self, major: int | None = None, library: Path | None = None) -> None:
        self.path = library or _choose(major)
        self._library = ctypes.CDLL(str(self.path))
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
        first, second, count = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        self._check(self._library.nvrtcVersion(ctypes.byref(first), ctypes.byref(second)))
        self.version = f"nvrtc {first.value}.{second.value} {' '.join(OPTIONS)}"
        self._check(self._library.nvrtcGetNumSupportedArchs(ctypes.byref(count)))
        numbers = (ctypes.c_int * count.value)()
        self._check(self._library.nvrtcGetSupportedArchs(numbers))
        self.architectures: Sequence[int] = tuple(numbers)

    def compile(self, source: str, name: str, architecture: str) -> bytes:
        """See Compiler.compile. Raises CompileError with the log, and with what architectures there are for one that is not."""
        number = int(re.sub(r"\D", "", architecture))
        if number not in self.architectures:
            raise CompileError(
                name, source, f"{self.version} knows no {architecture}; it knows {list(self.architectures)}"
            )
        with self._program(source, name) as program:
            options = [f"-arch={architecture}", *OPTIONS]
            array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
            status = self._library.nvrtcCompileProgram(program, len(options), array)
            if status != 0:
                raise CompileError(name, source, self._log(program) or self._text(status))
            return self._image(program, "PTX" if architecture.startswith("compute_") else "CUBIN")

    @contextlib.contextmanager
    def _program(self, source: str, name: str) -> Iterator[ctypes.c_void_p]:
        program = ctypes.c_void_p()
        self._check(
            self._library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name.encode(), 0, None, None)
        )
        try:
            yield program
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _log(self, program: ctypes.c_void_p) -> str:
        size = ctypes.c_size_t()
        self._check(self._library.nvrtcGetProgramLogSize(program, ctypes.byref(size)))
        text = ctypes.create_string_buffer(size.value)
        self._check(self._library.nvrtcGetProgramLog(program, text))
        return text.value.decode(errors="replace").strip()

    def _image(self, program: ctypes.c_void_p, kind: str) -> bytes:
        size = ctypes.c_size_t()
        self._check(getattr(self._library, f"nvrtcGet{kind}Size")(program, ctypes.byref(size)))
        image = ctypes.create_string_buffer(size.value)
        self._check(getattr(self._library, f"nvrtcGet{kind}")(program, image))
        return image.raw

    def _check(self, status: int) -> None:
        if status != 0:
            raise RuntimeError(f"{self.path.name}: {self._text(status)}")

    def _text(self, status: int) -> str:
        return str(self._library.nvrtcGetErrorString(status).decode())


def _choose(major: int | None) -> Path:
    found = find_libraries()
    for path in found:
        match = _FILE.match(path.name)
        if major is None or (match is not None and int(match[1]) <= major):
            return path
    seen = f"; found only {', '.join(map(str, found))}" if found else ""
    wheel = "nvidia-cuda-nvrtc-cu12" if major == 12 else "nvidia-cuda-nvrtc"
    raise FileNotFoundError(
        f"no NVRTC{f' of CUDA {major} or older' if major else ''}{seen}: pip install {wheel}, or set CUDA_PATH"
    )
