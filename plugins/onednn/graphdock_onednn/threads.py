"""Threads of a library: those of its OpenMP runtime, which one step at a time has.

While one thread of Python computes with them, another that calls computes alone: together they are no more than the process's
cores. A kernel whose parts wait for a core that is busy is computed alone for some calls, for a static division of the work has to
wait for its slowest part. A process that forks gives the threads up before: a child has none of them, and the runtime would wait
for them there.
"""

from __future__ import annotations

import os
from threading import get_ident

from graphdock_onednn.interface import Kind
from graphdock_onednn.library import Library

__all__ = ["CLAIMS", "Pace", "use"]

#: The threads of Python that are inside of the library: one alone has its threads. Each adds and removes itself, in one call.
CLAIMS: dict[int, None] = {}
#: Seconds that several threads may lose to one in the mean before they are left, over so many calls.
_SLACK, _CALLS = 100e-6, 8
#: Calls that one thread computes before several are tried again, at least and at most.
_SHORT, _LONG = 16, 1024

_USED: list[Library] = []


class Pace:
    """Times of one kernel's calls on several threads, and the choice whether the next one is for them.

    One thread takes at most as many times the shortest call as there are threads. Where several take longer than that in the mean,
    they are left for some calls, for twice as many each time.
    """

    __slots__ = ("_best", "_mean", "_pause", "_rest", "_threads")

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._best, self._mean = float("inf"), 0.0
        self._pause, self._rest = _SHORT, 0

    def several(self) -> bool:
        """Return whether the next call is for all threads."""
        if self._rest:
            self._rest -= 1
            return False
        return True

    def took(self, seconds: float) -> None:
        """Count a call on all threads."""
        if seconds < self._best:
            self._best = seconds
        alone = self._threads * self._best
        self._mean += (seconds - self._mean) / _CALLS
        if self._mean > alone + _SLACK:
            self._rest, self._pause, self._mean = self._pause, min(2 * self._pause, _LONG), alone
        elif self._mean < alone:
            self._pause = _SHORT


def use(library: Library) -> None:
    """Remember that threads of a library may be at work, for a fork."""
    if library not in _USED:
        _USED.append(library)


def _before_fork() -> None:
    for library in _USED:
        library.api.omp_pause_resource_all(Kind.HARD_PAUSE)


def _in_child() -> None:
    mine = get_ident()
    for thread in [t for t in CLAIMS if t != mine]:
        CLAIMS.pop(thread, None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_in_child)
