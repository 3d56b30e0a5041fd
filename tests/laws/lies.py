"""Measures of reading what lies: steps of Python, bytes asked of files and held in memory; memory that nobody wrote to shows."""

from __future__ import annotations

import contextlib
import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from graphdock.errors import GraphdockError, InternalError
from graphdock_storage.checkpoint import files as system

#: What memory that nobody wrote to is full of.
CANARY = 0xA7


@contextlib.contextmanager
def canaries(monkeypatch: Any) -> Iterator[None]:
    """Let ``np.empty`` give arrays full of :data:`CANARY`, so that what nobody wrote is seen."""
    empty = np.empty

    def filled(*args: Any, **kwargs: Any) -> Any:
        made = empty(*args, **kwargs)
        if made.dtype != object and made.size:
            made.reshape(-1).view(np.uint8)[:] = CANARY
        return made

    with monkeypatch.context() as patch:
        patch.setattr(np, "empty", filled)
        yield


def steps(function: Callable[[], Any]) -> int:
    """How many lines of Python run in a call, errors of graphdock's included. A loop in C counts as one."""
    count = 0

    def line(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        count += 1
        return line

    before, collects = sys.gettrace(), gc.isenabled()
    gc.disable()  # what other tests left may have finalizers, whose lines are none of the call's
    sys.settrace(line)
    try:
        refused(function)
    finally:
        sys.settrace(before)
        (gc.enable if collects else gc.disable)()
    return count


def held(function: Callable[[], Any]) -> int:
    """The most bytes of memory that a call holds at once, errors of graphdock's included."""
    tracemalloc.start()
    try:
        refused(function)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def read_bytes(monkeypatch: Any, function: Callable[[], Any]) -> int:
    """How many bytes of checkpoints' files are asked of the system in a call, errors of graphdock's included."""
    count, read = 0, system._read_at

    def counted(fd: int, data: memoryview, offset: int) -> int:
        nonlocal count
        found = read(fd, data, offset)
        count += found
        return found

    with monkeypatch.context() as patch:
        patch.setattr(system, "_read_at", counted)
        refused(function)
    return count


def refused(function: Callable[[], Any]) -> GraphdockError | None:
    """The error of graphdock's that a call raises, which is no InternalError and is of a sane length; None when it returns."""
    try:
        function()
    except InternalError:
        raise
    except GraphdockError as error:
        text = str(error)
        assert text and len(text) < 20_000
        text.encode()  # what can't be printed is no message
        return error
    return None
