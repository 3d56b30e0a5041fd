"""How many threads the BLAS that NumPy calls may use: one, while threads of our own share a kernel."""

from __future__ import annotations

import ctypes
import functools
import itertools
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

__all__ = ["OneThread", "one_thread"]

#: How builds of OpenBLAS begin and end the names of its functions.
_PREFIXES, _SUFFIXES = ("scipy_", ""), ("64_", "", "_64")


class _Library(NamedTuple):
    """A loaded OpenBLAS with threads of its own: its functions that get and set their number."""

    get: Callable[[], int]
    set: Callable[[int], None]


class OneThread:
    """A context in which OpenBLAS computes on the thread that calls it, in the whole process. Any thread may enter, many at once.

    OpenBLAS's own threads spin for tens of milliseconds after a product, in the way of any other thread: where threads of ours
    share the work, they must do the products too. What it was allowed before holds again when the last one has left.
    """

    def __init__(self) -> None:
        self._libraries = _libraries()
        self._lock = threading.Lock()
        self._inside: dict[int, int] = {}
        self._before: list[int] = []

    @property
    def holds(self) -> bool:
        """Whether there is an OpenBLAS that listens. The threads of any other BLAS stay its own business."""
        return bool(self._libraries)

    @property
    def held(self) -> bool:
        """Whether the calling thread is inside."""
        return threading.get_ident() in self._inside

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._before = [library.get() for library in self._libraries]
                for library in self._libraries:
                    library.set(1)
            # by thread: what an interrupt keeps from leaving, the thread's next turn takes along
            self._inside[threading.get_ident()] = 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._inside.pop(threading.get_ident(), None)
            if not self._inside:
                for library, number in zip(self._libraries, self._before, strict=True):
                    library.set(number)


def _libraries() -> list[_Library]:
    from threadpoolctl import threadpool_info

    assert np.dot is not None  # NumPy has loaded its BLAS
    paths = [
        found["filepath"]
        for found in threadpool_info()
        if found["internal_api"] == "openblas" and found["threading_layer"] == "pthreads"
    ]
    # threadpoolctl sets a number from one thread of a process only
    made = [_library(ctypes.CDLL(path)) for path in paths]
    return [library for library in made if library is not None]


def _library(loaded: Any) -> _Library | None:
    for prefix, suffix in itertools.product(_PREFIXES, _SUFFIXES):
        names = [f"{prefix}openblas_{verb}_num_threads{suffix}" for verb in ("get", "set")]
        if all(hasattr(loaded, name) for name in names):
            return _Library(*(getattr(loaded, name) for name in names))
    return None


@functools.cache
def one_thread() -> OneThread:
    """The process's context; the first call looks for OpenBLAS, which takes milliseconds."""
    return OneThread()
