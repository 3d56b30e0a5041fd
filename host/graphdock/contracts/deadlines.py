"""Deadlines: a clock that cancels what is late, so that nobody else needs to look at the time."""

from __future__ import annotations

import math
import os
import threading
import time
import weakref
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from graphdock.locks import new_lock

if TYPE_CHECKING:
    from graphdock.contracts.step import CancellationToken

__all__ = ["DEADLINES", "DeadlineClock"]

#: Seconds that the clock sleeps at most: what a system call takes.
_LONGEST = 1e6


class DeadlineClock:
    """Cancels tokens whose deadline has passed, on a thread of its own that the first deadline starts.

    The thread sleeps until the earliest deadline that it knows of. A step that takes less than its limit costs one comparison: the
    deadline of the next step is later than the one that the thread sleeps for.

    Args:
      now: seconds that never run backwards.
      runs: whether there is a thread; without it, for tests, :meth:`look` must be called.

    Threads: every method may be called from any thread. In a forked child the clock begins anew.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic, runs: bool = True) -> None:
        self.now = now
        self._runs = runs
        self._tokens: weakref.WeakSet[CancellationToken] = weakref.WeakSet()
        self._lock = new_lock()
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget the thread, which a forked child does not have."""
        self._mailbox: SimpleQueue[None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._sleeps_until = math.inf

    def schedule(self, token: CancellationToken) -> None:
        """Cancel the token once its ``deadline`` has passed, unless it has none by then or a later one."""
        if token not in self._tokens:
            with self._lock:
                self._tokens.add(token)
        deadline = token.deadline
        if deadline is None or deadline >= self._sleeps_until or not self._runs:
            return
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="graphdock deadlines", daemon=True)
                    self._thread.start()
        self._mailbox.put(None)

    def look(self) -> float:
        """Cancel what is late; the earliest deadline that is left, ``inf`` where there is none."""
        with self._lock:
            tokens = list(self._tokens)
        now, earliest = self.now(), math.inf
        for token in tokens:
            deadline = token.deadline
            if deadline is not None and not token.expire(now):
                earliest = min(earliest, deadline)
        return earliest

    def _run(self) -> None:
        while True:
            # whoever schedules while the clock looks wakes it once more
            self._sleeps_until = math.inf
            self._sleeps_until = earliest = self.look()
            try:
                self._mailbox.get(timeout=min(max(0.0, earliest - self.now()), _LONGEST))
                while True:
                    self._mailbox.get_nowait()
            except Empty:
                continue


#: The clock of this process.
DEADLINES = DeadlineClock()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=DEADLINES.begin_anew)
