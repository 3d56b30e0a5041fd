"""Threads that the BLAS which NumPy calls may use: one, while threads of our own share a kernel."""

from __future__ import annotations

import ctypes
import itertools
import os
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, NamedTuple

import numpy as np

__all__ = ["OneThread", "one_thread"]

#: How builds of OpenBLAS begin and end the names of its functions.
_PREFIXES, _SUFFIXES = ("scipy_", ""), ("64_", "", "_64")
#: What threadpoolctl sets in the environment where it is imported.
_SET = "KMP_DUPLICATE_LIB_OK"


class _Library(NamedTuple):
    """A loaded OpenBLAS with threads of its own: its functions that get and set their number."""

    get: Callable[[], int]
    set: Callable[[int], None]


class OneThread:
    """A context in which OpenBLAS computes on the thread that calls it, in the whole process. Any thread may enter, many at once.

    OpenBLAS's own threads spin for tens of milliseconds after a product, in the way of any other thread: where threads of ours
    share the work, they must do the products too. What it was allowed before holds again when the last one has left. A thread may
    enter within, from another function: where a step's Python function runs a step.
    """

    def __init__(self) -> None:
        self._libraries = _libraries()
        self._lock = threading.Lock()
        # By thread: the functions that have entered and not left. One that Ctrl-C kept from leaving is not on the thread's stack
        # any more when the next one leaves.
        self._inside: dict[int, set[FrameType]] = {}
        self._before: list[int] | None = None

    @property
    def holds(self) -> bool:
        """Return whether every BLAS of the process is an OpenBLAS that listens. The threads of any other stay its own business."""
        return bool(self._libraries)

    @property
    def holding(self) -> bool:
        """Return whether any thread is inside, so that BLAS computes on one thread already."""
        return self._before is not None

    @property
    def held(self) -> bool:
        """Return whether the calling thread is inside."""
        return threading.get_ident() in self._inside

    def __enter__(self) -> None:
        frame = sys._getframe(1)
        try:
            with self._lock:
                first = not self._inside
                threading.current_thread()  # lists a thread that Python did not start, too
                self._inside.setdefault(threading.get_ident(), set()).add(frame)
                if first:
                    self._keep_to_one()
        except BaseException:  # Ctrl-C
            self._leave(frame)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._leave(sys._getframe(1))
        except BaseException:  # Ctrl-C
            self._leave(sys._getframe(1))
            raise

    def _keep_to_one(self) -> None:
        if self._before is None:  # else Ctrl-C kept the last one from giving back
            self._before = [library.get() for library in self._libraries]
        for library in self._libraries:
            library.set(1)

    def _leave(self, frame: FrameType) -> None:
        """May be called again, where it was kept from its end."""
        with self._lock:
            mine = self._inside.get(threading.get_ident(), set())
            mine.discard(frame)
            if mine:
                mine.intersection_update(_stack(frame))
            if not mine:
                self._inside.pop(threading.get_ident(), None)
            # Not sys._current_frames(): CPython 3.11.7 stops for ever where the garbage collector runs in it (gh-106883).
            if self._inside:
                for thread in self._inside.keys() - {thread.ident for thread in threading.enumerate()}:
                    del self._inside[thread]
            self._give_back()

    def _give_back(self) -> None:
        if not self._inside and self._before is not None:
            for library, number in zip(self._libraries, self._before, strict=True):
                library.set(number)
            self._before = None

    def after_fork(self) -> None:
        """In a child: nobody is inside but the thread that forked, if it is."""
        self._lock = threading.Lock()
        self._inside = {thread: frames for thread, frames in self._inside.items() if thread == threading.get_ident()}
        self._give_back()


def _stack(frame: FrameType | None) -> list[FrameType]:
    frames = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


def _libraries() -> list[_Library]:
    """Every BLAS of the process; none of them where one does not listen, for NumPy may be the one that calls it."""
    had = os.environ.get(_SET)
    from threadpoolctl import threadpool_info

    assert np.dot is not None  # NumPy has loaded its BLAS
    made = [_found(found) for found in threadpool_info() if found["user_api"] == "blas"]
    if had is None:
        os.environ.pop(_SET, None)  # the environment is the program's
    listening = [library for library in made if library is not None]
    return listening if len(listening) == len(made) else []


def _found(found: dict[str, Any]) -> _Library | None:
    if found["internal_api"] != "openblas" or found["threading_layer"] != "pthreads":
        return None
    # threadpoolctl sets a number from one thread of a process only. Python's lock is kept: these functions take nanoseconds.
    return _library(ctypes.PyDLL(found["filepath"]))


def _library(loaded: Any) -> _Library | None:
    for prefix, suffix in itertools.product(_PREFIXES, _SUFFIXES):
        names = [f"{prefix}openblas_{verb}_num_threads{suffix}" for verb in ("get", "set")]
        if all(hasattr(loaded, name) for name in names):
            return _Library(*(getattr(loaded, name) for name in names))
    return None


_MADE: dict[str, OneThread] = {}


def one_thread() -> OneThread:
    """The process's context; the first call looks for OpenBLAS, which takes milliseconds."""
    return _MADE.get("one") or _MADE.setdefault("one", OneThread())


def _forked() -> None:
    for made in _MADE.values():
        made.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
