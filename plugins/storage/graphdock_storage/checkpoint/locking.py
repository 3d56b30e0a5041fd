"""Locks on files that die with their process, on every system that Python runs on."""

from __future__ import annotations

import errno
import importlib
from typing import Any

__all__ = ["lock", "unlock"]


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


#: POSIX has the one, Windows the other.
_fcntl, _msvcrt = _module("fcntl"), _module("msvcrt")


def lock(fd: int) -> None:
    """Be the only one who has locked this file, among all threads and processes that opened it.

    Raises:
      BlockingIOError: another one has. OSError: the file system knows no locks.
    """
    if _fcntl is not None:
        _fcntl.flock(fd, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
    elif _msvcrt is not None:
        try:
            _msvcrt.locking(fd, _msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(errno.EAGAIN, "the file is locked") from error
    else:
        raise OSError(errno.ENOLCK, "this Python has neither fcntl nor msvcrt")


def unlock(fd: int) -> None:
    """Let another one lock the file."""
    if _fcntl is not None:
        _fcntl.flock(fd, _fcntl.LOCK_UN)
    elif _msvcrt is not None:
        _msvcrt.locking(fd, _msvcrt.LK_UNLCK, 1)
