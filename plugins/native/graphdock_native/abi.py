"""The C interface as Python sees it: declarations read from the header, numbers of dtypes and statuses, opening a library."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

from graphdock import errors
from graphdock.dtypes import ALL
from graphdock.errors import GraphdockError, PluginError
from graphdock.locks import new_lock

__all__ = ["DTYPES", "HEADER", "STATUSES", "VERSION", "cffi_interface", "cffi_of", "open_library", "symbol_of"]

#: The header, which is the interface's only declaration.
HEADER = Path(__file__).parent / "include" / "graphdock" / "kernel.h"
#: Of the structs in the header.
VERSION = 1

#: dtype name -> its number in C; string, resource and variant have none.
DTYPES: dict[str, int] = {name: number for number, name in enumerate([d.name for d in ALL.values() if d.size], 1)}

#: Status -> the error class that it becomes. What is not here is an InternalError.
STATUSES: dict[int, type[GraphdockError]] = {
    1: errors.CancelledError,
    3: errors.InvalidArgumentError,
    4: errors.DeadlineExceededError,
    5: errors.NotFoundError,
    6: errors.AlreadyExistsError,
    8: errors.ResourceExhaustedError,
    9: errors.FailedPreconditionError,
    10: errors.AbortedError,
    11: errors.OutOfRangeError,
    12: errors.UnimplementedError,
    13: errors.InternalError,
    14: errors.UnavailableError,
}

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_lock = new_lock()


@functools.cache
def cffi_interface() -> Any:
    """cffi's FFI with the declarations of kernels. Raises PluginError: cffi is not installed."""
    return cffi_of("kernel.h", "declarations", "const gd_abi *graphdock_abi(void);")


def cffi_of(header: str, part: str, function: str) -> Any:
    """cffi's FFI with a part of a header and a function, in ABI mode: nothing is compiled, and calls release Python's lock.

    Raises:
      PluginError: cffi is not installed.
    """
    try:
        import cffi
    except ImportError as error:
        raise PluginError(
            f"native kernels are called through cffi, which can't be imported: {error}",
            hint="pip install 'graphdock[native]'",
        ) from error
    text = HEADER.with_name(header).read_text(encoding="utf-8")
    declarations = text.partition(f"/* begin {part}")[2].partition("*/")[2].partition(f"/* end {part} */")[0]
    ffi = cffi.FFI()
    ffi.cdef(declarations + function)
    return ffi


def open_library(path: Path) -> Any:
    """The library at ``path``, open, of this version of the interface.

    Raises:
      PluginError: there is no such file; it can't be loaded; it exports no ``graphdock_abi``, or another version's.
    """
    ffi = cffi_interface()
    if not path.is_file():
        raise PluginError(
            f"the native library {path} is not there",
            hint="reinstall its package; where that is built from source, it needs a C compiler",
        )
    try:
        library = ffi.dlopen(str(path.resolve()))
    except OSError as error:
        raise PluginError(
            f"the native library {path} can't be loaded: {error}", hint="was it built for this system?"
        ) from error
    try:
        abi = library.graphdock_abi()
    except AttributeError as error:
        raise PluginError(
            f"the native library {path} does not say which interface it was compiled for: it exports no graphdock_abi",
            hint="put GRAPHDOCK_LIBRARY into one of its source files",
        ) from error
    _check_version(path, abi)
    return library


def _check_version(path: Path, abi: Any) -> None:
    if abi.version != VERSION:
        raise PluginError(
            f"the native library {path} was compiled for another version of graphdock's interface",
            expected=f"version {VERSION}",
            got=f"version {abi.version}",
            hint="compile it again with this graphdock's kernel.h",
        )
    ffi = cffi_interface()
    for struct, size in (("gd_call", abi.call_size), ("gd_tensor", abi.tensor_size), ("gd_attr", abi.attr_size)):
        if size != ffi.sizeof(struct):
            raise PluginError(
                f"the native library {path} has another {struct} than graphdock",
                expected=f"{ffi.sizeof(struct)} bytes",
                got=f"{size}",
                hint="compile it without options that pack structs, for this system",
            )


def symbol_of(library: Any, path: Path, symbol: str) -> Any:
    """The kernel of that name, callable with a pointer to a ``gd_call``.

    Raises:
      PluginError: it is no name in C, or the library does not export it.
    """
    if not _IDENTIFIER.fullmatch(symbol):
        raise PluginError(f"{symbol!r} is no name of a C function")
    ffi = cffi_interface()
    with _lock:
        ffi.cdef(f"int32_t {symbol}(const gd_call *call);", override=True)
    try:
        return getattr(library, symbol)
    except AttributeError as error:
        raise PluginError(
            f"the native library {path} has no function {symbol!r}",
            hint=f"define it with GRAPHDOCK_KERNEL({symbol})",
        ) from error
