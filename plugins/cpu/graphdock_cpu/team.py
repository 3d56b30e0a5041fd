"""Threads that share the parts of a kernel.

NumPy lets other threads run while it computes, so two halves of a large array are computed in little more than the time of one.
The thread of the step takes part, and takes whatever no other thread has begun: a team whose threads get no turn, since other
Python code runs, costs nothing but the parallelism. Handing over takes some 20 us, which the parts must be worth.
"""

from __future__ import annotations

import functools
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

__all__ = ["Part", "Team", "team"]

#: One part of a kernel's work. Parts of one run write different memory.
Part: TypeAlias = Callable[[], Any]
#: Number and part, in the order in which they are begun; what went wrong, by number; held by the thread at work.
_Job: TypeAlias = "tuple[deque[tuple[int, Part]], dict[int, BaseException], threading.Lock]"


class Team:
    """``size`` threads, of which the one that calls is one. Any number of threads may call at once; they share the others.

    The threads begin with the first run, and end with the process.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._started = False

    def run(self, parts: Sequence[Part]) -> None:
        """Call every part, each once, in any order. When this returns or raises, none is at work any more.

        Raises what a part raises: of several that fail, the first of ``parts``. The parts behind it may have been left out.
        """
        if not self._started:
            self._start()
        left = deque(enumerate(parts))
        failed: dict[int, BaseException] = {}
        held = [threading.Lock() for _ in range(min(self.size, len(parts)) - 1)]
        # Ctrl-C may come at any call: the outer `finally` waits where the inner one was kept from it.
        try:
            try:
                for lock in held:
                    self._jobs.put((left, failed, lock))
                _work(left, failed)
            finally:
                _wait(left, held)
        finally:
            _wait(left, held)
        if failed:
            raise failed[min(failed)]

    def _start(self) -> None:
        with self._lock:
            if not self._started:
                for number in range(1, self.size):
                    threading.Thread(
                        target=_serve, args=(self._jobs,), name=f"graphdock-cpu-{number}", daemon=True
                    ).start()
                self._started = True


def _serve(jobs: queue.SimpleQueue[_Job]) -> None:
    np.seterr(all="ignore")  # as in a step: what overflows is infinite
    while True:
        _take(*jobs.get())  # nothing is kept of a job that is done


def _take(left: deque[tuple[int, Part]], failed: dict[int, BaseException], held: threading.Lock) -> None:
    # before the first look at what is left: whoever empties it knows then that this lock is held, or that nothing was taken
    with held:
        _work(left, failed)


def _work(left: deque[tuple[int, Part]], failed: dict[int, BaseException]) -> None:
    while left:
        try:
            number, part = left.popleft()
        except IndexError:  # another thread was quicker
            return
        try:
            part()
        except Exception as error:  # noqa: BLE001 - whatever a part raises, its caller raises
            failed[number] = error
            left.clear()


def _wait(left: deque[tuple[int, Part]], held: Sequence[threading.Lock]) -> None:
    left.clear()
    for lock in held:
        with lock:
            pass


@functools.cache
def team(size: int) -> Team:
    """The process's team of that size."""
    return Team(size)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=team.cache_clear)  # a child has none of its parent's threads
