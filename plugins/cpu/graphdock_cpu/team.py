"""Threads that share the parts of a kernel.

NumPy lets other threads run while it computes, so two halves of a large array are computed in little more than the time of one.
The thread of the step takes part, and takes whatever no other thread has begun: a team whose threads get no turn, since other
Python code runs, costs nothing but the parallelism. Handing over takes some 20 us, which the parts must be worth.
"""

from __future__ import annotations

import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

__all__ = ["Part", "Team", "Threads", "team"]

#: One part of a kernel's work. Parts of one run write different memory.
Part: TypeAlias = Callable[[], Any]
#: Number and part, in the order in which they are begun; what went wrong, by number; held by the thread at work.
_Job: TypeAlias = "tuple[deque[tuple[int, Part]], dict[int, BaseException], threading.Lock]"


class Threads:
    """Threads that wait for jobs. They begin when a team asks for them, and end with the process."""

    def __init__(self) -> None:
        self.jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self.begun = 0
        self._lock = threading.Lock()

    def begin(self, number: int) -> None:
        """See to it that there are as many. Raises RuntimeError where the system gives no more."""
        with self._lock:
            while self.begun < number:
                name = f"graphdock-cpu-{self.begun + 1}"
                threading.Thread(target=_serve, args=(self.jobs,), name=name, daemon=True).start()
                self.begun += 1


class Team:
    """``size`` threads, of which the one that calls is one. Any number of threads may call at once; they share the others.

    Args:
      threads: the others, which several teams may share; None for some of its own.
    """

    def __init__(self, size: int, threads: Threads | None = None) -> None:
        self.size = size
        self._threads = Threads() if threads is None else threads

    def run(self, parts: Sequence[Part]) -> None:
        """Call every part, each once, in any order. When this returns or raises, none is at work any more.

        Raises what a part raises: of several that fail, the first of ``parts``. The parts behind it may have been left out.
        """
        others = min(self.size, len(parts)) - 1
        if self._threads.begun < others:
            self._threads.begin(others)
        left = deque(enumerate(parts))
        failed: dict[int, BaseException] = {}
        held = [threading.Lock() for _ in range(others)]
        # Ctrl-C may come at any call: the outer `finally` waits where the inner one was kept from it.
        try:
            try:
                for lock in held:
                    self._threads.jobs.put((left, failed, lock))
                _work(left, failed, Exception)
            finally:
                _wait(left, held)
        finally:
            _wait(left, held)
        if failed:
            raise failed[min(failed)]


def _serve(jobs: queue.SimpleQueue[_Job]) -> None:
    np.seterr(all="ignore")  # as in a step: what overflows is infinite
    while True:
        _take(*jobs.get())  # nothing is kept of a job that is done


def _take(left: deque[tuple[int, Part]], failed: dict[int, BaseException], held: threading.Lock) -> None:
    # before the first look at what is left: whoever empties it knows then that this lock is held, or that nothing was taken
    with held:
        _work(left, failed, BaseException)  # nobody else hears of a SystemExit of another thread


def _work(left: deque[tuple[int, Part]], failed: dict[int, BaseException], caught: type[BaseException]) -> None:
    while left:
        try:
            number, part = left.popleft()
        except IndexError:  # another thread was quicker
            return
        try:
            part()
        except caught as error:  # whatever a part raises, its caller raises
            failed[number] = error
            left.clear()


def _wait(left: deque[tuple[int, Part]], held: list[threading.Lock]) -> None:
    """Until nobody is at work, however often Ctrl-C is pressed meanwhile; ``held`` is empty then."""
    pressed = None
    left.clear()
    while held:
        try:
            with held[-1]:
                pass
            held.pop()
        except KeyboardInterrupt as error:
            pressed = error
    if pressed is not None:
        raise pressed


#: The teams of the process, by size; and their threads, of which there are no more than the largest team needs.
_TEAMS: dict[int, Team] = {}
_THREADS = Threads()


def team(size: int) -> Team:
    """The process's team of that size."""
    return _TEAMS.get(size) or _TEAMS.setdefault(size, Team(size, _THREADS))


def _begin_anew() -> None:
    """A child has none of its parent's threads."""
    global _THREADS
    _THREADS = Threads()
    _TEAMS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
