"""oneDNN in the process: where its library lies, what it must be, and objects of it that are given back by themselves.

It is opened when a plan first chooses a kernel, never by an import. Its threads are those of the OpenMP runtime that it was linked
with, libgomp in the wheel, which reads once, when it is loaded, how long a thread looks for work before it sleeps: that is said in
the environment while the library is opened, unless the program has said it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from graphdock.contracts import KernelRefused, errors
from graphdock.locks import new_lock

from graphdock_onednn.interface import DECLARATIONS, Kind, Status, isa_name

__all__ = ["INSTALL", "Library", "Unimplemented", "find", "library"]

#: The wheel that carries the library, and how it is installed.
_WHEEL, INSTALL = "onednn-cpu-gomp", "pip install graphdock-onednn onednn-cpu-gomp"
#: The wheel that wants SYCL.
_SYCL = "onednn"
#: How often a thread of libgomp looks for work before it sleeps, some 50 us; and the names under which a program says it.
_LOOKS, _SAID = "1000", ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")


class Unimplemented(KernelRefused):
    """The library has no primitive for what it is asked, or only one that is for reference."""


class Library:
    """One opened library. Any thread may use it.

    Attributes:
      api: its functions. ``engine``: its cpu.
      version: such as ``3.2.0``; ``isa``: the largest instruction set that it uses here, in words.
    """

    def __init__(self, path: str, api: Any, ffi: Any) -> None:
        self.path, self.api, self.ffi = path, api, ffi
        told = api.dnnl_version()
        self.version = f"{told.major}.{told.minor}.{told.patch}"
        self.isa = isa_name(api.dnnl_get_effective_cpu_isa())
        self._forget = {
            f"dnnl_{name}_t": getattr(api, f"dnnl_{name}_destroy")
            for name in ("stream", "memory_desc", "memory", "primitive_desc", "primitive", "primitive_attr", "post_ops")
        }
        self.engine = self.made("dnnl_engine_t", api.dnnl_engine_create, Kind.CPU, 0)

    def made(self, kind: str, make: Any, *args: Any) -> Any:
        """Object of a C type that a function makes, destroyed with what is returned here.

        Raises:
          Unimplemented: the library has none. InternalError: it fails.
        """
        place = self.ffi.new(f"{kind} *")
        self.check(make(place, *args), make)
        forget = self._forget.get(kind)
        return place[0] if forget is None else self.ffi.gc(place[0], forget)

    def check(self, status: int, what: Any) -> None:
        """Raise what a status stands for."""
        if status == Status.SUCCESS:
            return
        if status in (Status.UNIMPLEMENTED, Status.INVALID_ARGUMENTS, Status.LAST_IMPL_REACHED):
            raise Unimplemented(f"oneDNN {self.version} has no primitive for it on {self.isa}")
        word = next((s.name.lower().replace("_", " ") for s in Status if s == status), str(status))
        if status == Status.OUT_OF_MEMORY:
            raise errors.ResourceExhaustedError(f"oneDNN has no memory: {word}", hint="use a smaller batch")
        raise errors.InternalError(f"oneDNN fails: {word}", got=repr(what))


_LOCK = new_lock()
_OPENED: dict[str, Library] = {}


def find(path: str = "") -> str:
    """File of the library: the one that the option names, else the one in the wheel.

    Raises:
      FailedPreconditionError: there is none, with what to install.
    """
    if path:
        if not Path(path).expanduser().is_file():
            raise errors.FailedPreconditionError(
                "options.onednn.library names no file", got=path, hint=f"leave it out, and {INSTALL}"
            )
        return str(Path(path).expanduser().resolve())
    found = _in_wheel()
    if found:
        return found
    sycl = f"; the wheel {_SYCL!r} that is installed is not supported, for it wants SYCL" if _version(_SYCL) else ""
    raise errors.FailedPreconditionError(
        f"the backend 'onednn' finds no library of oneDNN{sycl}",
        hint=f"{INSTALL} (Linux, x86-64); or say in options.onednn.library where a libdnnl.so of version 3 with OpenMP lies",
    )


def library(path: str = "") -> Library:
    """The library, opened at the first call.

    Raises:
      FailedPreconditionError: it is not there, can't be opened, or is not one that can be used.
    """
    with _LOCK:
        if path not in _OPENED:
            file = find(path)
            _OPENED[path] = next((o for o in _OPENED.values() if o.path == file), None) or _open(file)
        return _OPENED[path]


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _in_wheel() -> str | None:
    """The library of the wheel; names of sonames are links or copies of one file."""
    try:
        files = metadata.files(_WHEEL) or ()
    except metadata.PackageNotFoundError:
        return None
    found = sorted(f for f in files if f.name.startswith("libdnnl.so"))
    return next((str(Path(str(f.locate())).resolve()) for f in found if Path(str(f.locate())).is_file()), None)


@contextmanager
def _sleeping_soon() -> Iterator[None]:
    """Say to a runtime that is loaded within that threads look for work for some microseconds only."""
    if any(name in os.environ for name in _SAID):
        yield
        return
    os.environ[_SAID[0]] = _LOOKS
    try:
        yield
    finally:
        os.environ.pop(_SAID[0], None)


def _is_whole(file: str) -> bool:
    """Return whether an ELF file of 64 bits reaches as far as it says; of another one the loader tells more."""
    with Path(file).open("rb") as opened:
        head = opened.read(64)
    if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
        return True
    start, size, count = struct.unpack_from("<Q", head, 40) + struct.unpack_from("<HH", head, 58)
    return bool(start + size * count <= Path(file).stat().st_size)


def _open(file: str) -> Library:
    import cffi

    ffi = cffi.FFI()
    ffi.cdef(DECLARATIONS)
    if not _is_whole(file):
        raise errors.FailedPreconditionError(
            f"{file} is cut short: opening it would end the process", hint="install it again; or leave the option out"
        )
    try:
        with _sleeping_soon():
            api = ffi.dlopen(file)
        told = api.dnnl_version()
    except (OSError, AttributeError) as error:
        raise errors.FailedPreconditionError(
            f"{file} can't be opened as a library of oneDNN: {error}",
            hint="it wants libgomp and libstdc++ of the system: apt install libgomp1 libstdc++6",
        ) from error
    if told.major != 3 or told.cpu_runtime != Kind.OPENMP:
        raise errors.FailedPreconditionError(
            f"{file} is no oneDNN that can be used here",
            expected="version 3 whose threads are OpenMP's",
            got=f"version {told.major}.{told.minor}.{told.patch}, runtime {told.cpu_runtime}",
            hint=INSTALL,
        )
    return Library(file, api, ffi)
