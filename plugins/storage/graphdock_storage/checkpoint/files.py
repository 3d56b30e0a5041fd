"""Files that are there whole or not at all, and what the system's refusals are called.

A file is written under a temporary name, brought to the disk, and renamed. A process that dies leaves a file whose name ends in
``.tmp``, and everything else as it was. A file of a store (:mod:`graphdock_storage.stores`) is written here and brought there as a
whole; stores have no locks.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any

from graphdock.errors import (
    DataLossError,
    FailedPreconditionError,
    GraphdockError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnavailableError,
)

from graphdock_storage.checkpoint.locking import lock, unlock
from graphdock_storage.stores import is_url, system

__all__ = [
    "BINARY",
    "TEMPORARY",
    "Sink",
    "explained",
    "held",
    "make_folder",
    "read_into",
    "replaced",
    "sync_folder",
    "token",
]

_log = logging.getLogger("graphdock")
#: What names of unfinished files end with.
TEMPORARY = ".tmp"
#: Bytes are to be left as they are: Windows asks for it.
BINARY: int = getattr(os, "O_BINARY", 0)
#: Bytes that are handed to the system at once.
CHUNK = 4 << 20

_CLASSES: dict[int, type[GraphdockError]] = {
    errno.ENOENT: NotFoundError,
    errno.EACCES: PermissionDeniedError,
    errno.EPERM: PermissionDeniedError,
    errno.EROFS: PermissionDeniedError,
    errno.ENOSPC: ResourceExhaustedError,
    errno.EDQUOT: ResourceExhaustedError,
    errno.EFBIG: ResourceExhaustedError,
    errno.EMFILE: ResourceExhaustedError,
    errno.ENFILE: ResourceExhaustedError,
    errno.ENOMEM: ResourceExhaustedError,
    errno.ENOTDIR: FailedPreconditionError,
    errno.EISDIR: FailedPreconditionError,
    errno.EEXIST: FailedPreconditionError,
    errno.ENOTEMPTY: FailedPreconditionError,
    errno.ENOLCK: FailedPreconditionError,
    errno.EINVAL: InvalidArgumentError,
    errno.ENAMETOOLONG: InvalidArgumentError,
}


def explained(error: OSError | ValueError, doing: str, path: str, hint: str | None = None) -> GraphdockError:
    """The error of graphdock's for one of the system's: what was being done to which file. Raise it ``from error``."""
    kind = InvalidArgumentError if isinstance(error, ValueError) else _CLASSES.get(error.errno or 0, UnavailableError)
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return kind(f"{doing} {path!r}: {reason}", hint=hint)


def token() -> str:
    """Eight characters that no other file's name has."""
    return os.urandom(4).hex()


def make_folder(path: str) -> None:
    """Make a folder in one that exists; nothing when it is there. ``""`` is the working directory.

    Raises:
      GraphdockError: of the class that fits: NotFoundError when the folder around it is not there either.
    """
    if not path:
        return
    try:
        if is_url(path):
            system(path).makedirs(path)
            return
        os.mkdir(path)
    except FileExistsError:
        return
    except (OSError, ValueError) as error:
        raise explained(error, "cannot make the folder", path) from error
    sync_folder(os.path.dirname(path.rstrip(os.sep)))


def sync_folder(path: str) -> None:
    """Bring the names in a folder to the disk.

    Raises:
      GraphdockError: of the class that fits.
    """
    if not hasattr(os, "O_DIRECTORY") or is_url(path):
        return  # Windows opens no folders, and keeps names in order by itself
    path = path or os.curdir
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        raise explained(error, "cannot bring to the disk the folder", path) from error


class Sink:
    """An open file that bytes are written to. Several threads may write, each to places of its own."""

    def __init__(self, fd: int, path: str) -> None:
        self._fd = fd
        self._path = path

    def write(self, data: Any, offset: int) -> None:
        """Write bytes: anything with the buffer protocol whose elements are bytes.

        Raises:
          GraphdockError: of the class that fits: ResourceExhaustedError when the disk is full.
        """
        view = memoryview(data)
        try:
            while len(view):
                written = _write_at(self._fd, view[:CHUNK], offset)
                view, offset = view[written:], offset + written
        except OSError as error:
            raise explained(error, "cannot write", self._path) from error


#: Held where the system knows no place but that of the file's own pointer.
_pointer = threading.Lock()


def _write_at(fd: int, data: Any, offset: int) -> int:
    if hasattr(os, "pwrite"):
        return os.pwrite(fd, data, offset)
    with _pointer:
        os.lseek(fd, offset, os.SEEK_SET)
        return os.write(fd, data)


def _read_at(fd: int, data: memoryview, offset: int) -> int:
    if hasattr(os, "preadv"):
        return os.preadv(fd, [data], offset)
    with _pointer:
        os.lseek(fd, offset, os.SEEK_SET)
        found = os.read(fd, len(data))
    data[: len(found)] = found
    return len(found)


@contextlib.contextmanager
def replaced(path: str) -> Iterator[Sink]:
    """A new file that gets its name when the block ends, in the place of one that has it. It is on the disk then, its name is
    not before :func:`sync_folder`. When the block raises, nothing has changed.

    Raises:
      GraphdockError: of the class that fits.
    """
    store = system(path) if is_url(path) else None
    draft = f"{path if store is None else os.path.join(tempfile.gettempdir(), 'graphdock')}.{token()}{TEMPORARY}"
    try:
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o666)
    except (OSError, ValueError) as error:
        raise explained(error, "cannot write", path) from error
    done = False
    try:
        try:
            yield Sink(fd, path)
            if store is None:
                os.fsync(fd)
        finally:
            os.close(fd)
        if store is None:
            os.replace(draft, path)
            done = True
        else:
            store.put(draft, path)
    except OSError as error:
        raise explained(error, "cannot write", path) from error
    finally:
        if not done:
            with contextlib.suppress(OSError):
                os.unlink(draft)


@contextlib.contextmanager
def held(prefix: str, seconds: float = 0.0, suffix: str = ".lock") -> Iterator[None]:
    """Be the only writer of a checkpoint, among all threads and processes. A process that dies holds nothing.

    Nobody is kept from a checkpoint in a store: of two writers the index that comes last stays.

    Args:
      seconds: as long another writer is waited for, which is told in the log. ``suffix``: of the file that is locked.

    Raises:
      FailedPreconditionError: another one writes it. GraphdockError: the file system refuses, of the class that fits.
    """
    if is_url(prefix):
        yield
        return
    path = prefix + suffix
    until, told = time.monotonic() + seconds, False
    while True:
        try:
            fd = _locked(path, prefix)
            break
        except FailedPreconditionError as error:
            if time.monotonic() >= until:
                raise
            if not told:
                told = True
                _log.warning("%s; waiting for it (%s)", error.message, error.hint)
            time.sleep(0.01)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)  # while it is held: who opened it meanwhile sees that it is gone
        try:
            unlock(fd)  # a forked child has the descriptor too
            os.close(fd)
        except OSError as error:
            raise explained(error, "cannot unlock the checkpoint", prefix) from error


def _locked(path: str, prefix: str) -> int:
    while True:
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except (OSError, ValueError) as error:
            raise explained(error, "cannot write the checkpoint", prefix) from error
        try:
            lock(fd)
            if _is_at(fd, path):
                return fd
        except BlockingIOError as error:
            os.close(fd)
            raise FailedPreconditionError(
                f"the checkpoint {prefix!r} is being written by another saver",
                hint="save from one process only, or under another path",
            ) from error
        except OSError as error:
            os.close(fd)
            raise explained(error, "cannot lock the checkpoint", prefix) from error
        os.close(fd)


def _is_at(fd: int, path: str) -> bool:
    """Return whether an open file still has this name."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return False
    return os.path.samestat(found, os.fstat(fd))


def read_into(fd: int, offset: int, data: Any, path: str) -> None:
    """Fill a writable buffer of bytes from a file, beginning at an offset.

    Raises:
      DataLossError: the file ends before. GraphdockError: the file system refuses, of the class that fits.
    """
    view = memoryview(data)
    try:
        while len(view):
            count = _read_at(fd, view[:CHUNK], offset)
            if not count:
                raise DataLossError(
                    f"the file {path!r} is cut off", expected=f"at least {offset + len(view)} bytes", got=f"{offset}"
                )
            view, offset = view[count:], offset + count
    except OSError as error:
        raise explained(error, "cannot read", path) from error
