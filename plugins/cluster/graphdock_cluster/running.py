"""RunningPart: the step that one thread of a task runs of a session, so that another thread can stop it."""

from __future__ import annotations

import threading
import time
from typing import Any

from graphdock.contracts import CancellationToken
from graphdock.contracts.deadlines import DEADLINES, DeadlineClock
from graphdock.locks import new_lock

__all__ = ["CLOCK", "NO_LIMIT", "RunningPart"]

#: Seconds of a step without a limit: every step of a part has a deadline, by which it is known.
NO_LIMIT = 1e9


class _Current(threading.local):
    part: RunningPart | None = None


_current = _Current()


class RunningPart:
    """A part while it runs. ``with`` makes it what this thread runs; any thread may cancel it."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._tokens: list[tuple[CancellationToken, float | None]] = []
        self._error: BaseException | None = None
        self._outer: RunningPart | None = None

    def __enter__(self) -> RunningPart:
        self._outer, _current.part = _current.part, self
        return self

    def __exit__(self, *unused: Any) -> None:
        _current.part = self._outer

    def began(self, token: CancellationToken) -> None:
        """Take note of a step that begins on this thread; it is cancelled at once where the part is."""
        with self._lock:
            self._tokens.append((token, token.deadline))
            error = self._error
        if error is not None:
            token.cancel(error, token.deadline)

    def cancel(self, error: BaseException) -> None:
        """Stop what runs of it, and what will; the first error stays. A step that has ended is let be."""
        with self._lock:
            if self._error is not None:
                return
            self._error = error
            tokens = list(self._tokens)
        for token, deadline in tokens:
            token.cancel(error, deadline)


class _PartClock(DeadlineClock):
    """Tells the part that this thread runs of each step that begins, and the process's own clock of its deadline."""

    def __init__(self) -> None:
        super().__init__(time.monotonic, runs=False)

    def schedule(self, token: CancellationToken) -> None:
        part = _current.part
        if part is not None:
            part.began(token)
        if token.limit is None or token.limit < NO_LIMIT:
            DEADLINES.schedule(token)


CLOCK = _PartClock()
