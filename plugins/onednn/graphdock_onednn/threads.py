"""Threads of a library: those of its OpenMP runtime, which one step at a time has.

While one thread of Python computes with them, another that calls computes alone: together they are no more than the process's
cores. A static division of the work has to wait for its slowest part: a kernel whose parts wait for a core that is busy is computed
alone where that takes less. A process that forks gives the threads up before: a child has none of them, and the runtime would wait
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
#: Seconds that several threads may lose in the mean before one is tried, and over how many calls.
_SLACK, _CALLS = 100e-6, 8
#: Calls at the beginning that find cold memory, and tell nothing.
_COLD = 2
#: Calls of a trial; calls that a choice holds, at least and at most.
_TRIAL, _SHORT, _LONG = 4, 16, 1024

_USED: list[Library] = []


class Pace:
    """Times of one kernel's calls on all threads and on one, and the choice of the next one's.

    Alone on its core, one thread takes at most as many times the shortest call as there are threads. Where all threads take longer
    than that in the mean, one is tried for some calls: on a machine with much else to do it gets half of the time that two would
    get, and may be as slow. What took less holds for some calls, and for twice as many each time. The first calls don't count.
    """

    __slots__ = ("_alone", "_best", "_calls", "_hold", "_least", "_mean", "_threads", "_tried")

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._best, self._mean = float("inf"), 0.0
        self._alone, self._calls, self._least, self._hold = False, -_COLD, _CALLS, _SHORT
        self._tried: float | None = None

    @property
    def several(self) -> bool:
        """Return whether the next call is for all threads."""
        return not self._alone

    def took(self, seconds: float) -> None:
        """Count a call as it was chosen."""
        self._calls += 1
        if self._calls <= 0:
            return
        self._mean += (seconds - self._mean) / min(self._calls, _CALLS)
        if self._alone:
            if self._calls >= self._least:
                self._tried = self._mean
                self._turn(False, _TRIAL)
            return
        self._best = min(self._best, seconds)
        if self._calls < self._least:
            return
        if self._mean <= self._threads * self._best + _SLACK:
            self._hold, self._tried = _SHORT, None
        elif self._tried is None:
            self._turn(True, _TRIAL)
        else:
            self._turn(self._tried < self._mean, self._hold)
            self._hold = min(2 * self._hold, _LONG)
            self._tried = None

    def _turn(self, alone: bool, least: int) -> None:
        self._alone, self._calls, self._least, self._mean = alone, 0, least, 0.0


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
