"""An emulator's image, opened: its kernels, and running one."""

from __future__ import annotations

import _ctypes
import ctypes
import functools
import mmap
import os
import struct
import tempfile
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["ORDERS", "Image", "Kernel", "KernelFailure"]

#: As emulator.h has them.
_THREADS = 1024
_STACK = 64 << 10
_SHARED = 232 << 10
_NO_ACCESS = 0
#: Forwards or backwards, warp by warp or not.
ORDERS = 4


class _Machine(ctypes.Structure):
    _fields_ = (
        ("stacks", ctypes.c_void_p),
        ("shared", ctypes.c_void_p),
        ("fixed", ctypes.c_void_p),
        ("fixed_count", ctypes.c_uint),
        ("order", ctypes.c_uint),
        ("watched", ctypes.c_void_p),
        ("watched_count", ctypes.c_uint),
        ("status", ctypes.c_int),
        ("line", ctypes.c_uint),
        ("block", ctypes.c_uint * 3),
        ("thread", ctypes.c_uint * 3),
        ("fault", ctypes.c_void_p),
        ("file", ctypes.c_char * 64),
        ("message", ctypes.c_char * 256),
    )


class _Range(ctypes.Structure):
    _fields_ = (("start", ctypes.c_void_p), ("size", ctypes.c_size_t))


class _Watched(ctypes.Structure):
    _fields_ = (("start", ctypes.c_uint64), ("size", ctypes.c_uint64), ("marks", ctypes.c_void_p))


class _Entry(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("entry", ctypes.c_void_p),
        ("count", ctypes.c_uint),
        ("sizes", ctypes.POINTER(ctypes.c_uint)),
        ("bound", ctypes.c_uint),
    )


_Numbers = ctypes.c_uint * 3


class KernelFailure(RuntimeError):
    """A kernel failed while it ran. ``status`` is CUDA's number; ``fault`` the address that it should not have used, or None."""

    def __init__(self, text: str, status: int, fault: int | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.fault = fault


@dataclass(frozen=True, slots=True)
class Kernel:
    """One of an image. ``sizes``: bytes of each parameter; ``bound``: most threads of a block."""

    image: Image
    index: int
    name: str
    sizes: tuple[int, ...]
    bound: int


class Image:
    """An image that is open.

    Attributes:
      kernels: by name.
      fixed_shared: bytes of shared memory that its kernels declare, all together.

    Raises ValueError for bytes that are no image.
    """

    def __init__(self, image: bytes) -> None:
        # the loader knows libraries by their inode: while one is open, no other file may get it, though it has no name any more
        self._file = tempfile.NamedTemporaryFile(prefix="graphdock-cuda-", suffix=".so", delete=False)  # noqa: SIM115
        try:
            self._file.write(image)
            self._file.flush()
            self._library = ctypes.CDLL(self._file.name)
        except OSError as error:
            self._file.close()
            raise ValueError(f"not an image of the emulator: {error}") from error
        finally:
            os.unlink(self._file.name)
        self._closing = weakref.finalize(self, _ctypes.dlclose, self._library._handle)
        self._closing.atexit = False
        self._library.gd_kernel.restype = ctypes.POINTER(_Entry)
        self._library.gd_run.restype = None
        found = _shared_variables(image)
        bias = (ctypes.cast(self._library.gd_run, ctypes.c_void_p).value or 0) - found.pop("gd_run")[0]
        self._fixed = (_Range * len(found))(*[_Range(bias + start, size) for start, size in found.values()])
        self.fixed_shared = sum(size for _, size in found.values())
        #: the CUDA whose PTX it is; 0 for code of one architecture
        self.ptx: int = self._library.gd_ptx()
        self.kernels: dict[str, Kernel] = {}
        for index in range(self._library.gd_count()):
            entry = self._library.gd_kernel(index).contents
            name = entry.name.decode()
            sizes = tuple(entry.sizes[i] for i in range(entry.count))
            self.kernels[name] = Kernel(self, index, name, sizes, entry.bound or _THREADS)

    def close(self) -> None:
        """Its kernels are gone."""
        self.kernels.clear()
        self._closing()
        self._file.close()

    def run(
        self,
        kernel: Kernel,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared: int,
        params: int,
        order: int = 0,
        watched: Sequence[tuple[int, bytearray]] = (),
    ) -> None:
        """Run a grid; one at a time in the process.

        Args:
          params: address of an array of addresses, one per parameter.
          order: in which the threads of a block run, below ``ORDERS``.
          watched: addresses, each with a byte for every byte that lies there: a traced image adds 1 where it reads, and 2
            where it writes.

        Raises KernelFailure.
        """
        with _lock:
            machine = _machine()
            machine.status, machine.fault, machine.order = 0, None, order
            machine.fixed, machine.fixed_count = ctypes.addressof(self._fixed), len(self._fixed)
            marks = [(ctypes.c_ubyte * len(held)).from_buffer(held) for _, held in watched]
            table = (_Watched * len(watched))(
                *[_Watched(at, len(m), ctypes.addressof(m)) for (at, _), m in zip(watched, marks, strict=True)]
            )
            machine.watched, machine.watched_count = ctypes.addressof(table), len(table)
            self._library.gd_run(
                kernel.index,
                _Numbers(*grid),
                _Numbers(*block),
                shared,
                ctypes.c_void_p(params),
                ctypes.byref(machine),
            )
            if machine.status:
                where = f"block {tuple(machine.block)}, thread {tuple(machine.thread)}"
                line = f", {machine.file.decode()} line {machine.line}" if machine.line else ""
                at = f" ({machine.fault:#x})" if machine.status == 700 else ""
                text = f"{kernel.name}: {machine.message.decode()}{at} in {where}{line}"
                raise KernelFailure(text, machine.status, machine.fault)


_lock = threading.Lock()


def _shared_variables(image: bytes) -> dict[str, tuple[int, int]]:
    """Address within the image and size of its ``__shared__`` variables and of ``gd_run``, from the symbols of the ELF file."""
    (sections,) = struct.unpack_from("<Q", image, 40)
    size, count = struct.unpack_from("<HH", image, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", image, sections + i * size) for i in range(count)]
    found = {}
    for _, kind, _, _, offset, nbytes, link, _, _, step in headers:
        if kind != 2:  # the table of symbols
            continue
        names = headers[link][4]
        for at in range(offset, offset + nbytes, step):
            name_at, info, _, _, value, length = struct.unpack_from("<IBBHQQ", image, at)
            name = image[names + name_at : image.index(b"\0", names + name_at)].decode()
            # an object (1) within a function is called _ZZ...
            if name == "gd_run" or (info & 15 == 1 and name.startswith("_ZZ")):
                found[name] = (value, length)
    return found


@functools.cache
def _machine() -> _Machine:
    """Stacks and shared memory, one set for the process; the lowest page of each stack is not to be touched."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
    libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    page = mmap.PAGESIZE
    size = (_THREADS + 1) * _STACK + _SHARED + page
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    base = libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if base in (None, ctypes.c_void_p(-1).value):
        raise MemoryError(os.strerror(ctypes.get_errno()))
    for stack in range(_THREADS + 1):
        libc.mprotect(base + stack * _STACK, page, _NO_ACCESS)
    # beyond the end of shared memory lies a page that nobody owns
    shared = base + (_THREADS + 1) * _STACK
    libc.mprotect(shared + _SHARED, page, _NO_ACCESS)
    return _Machine(stacks=base, shared=shared)
