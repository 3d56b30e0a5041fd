"""Exchanges: what gives and what takes, and waits for one another without holding a thread.

An exchange is two lines of attempts under one lock: those that put and those that take. An attempt that can't end yet gets a
Future, which whoever lets it end completes, on its own thread and behind the lock. A Future that is cancelled takes nothing: who
would complete it asks it first, and an attempt that had gathered something gives it back.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

from graphdock.contracts import Answer, errors
from graphdock.locks import new_lock

from graphdock_data.resources.late_waits import LATE_WAITS

__all__ = ["Attempt", "Exchange"]


class Attempt:
    """One call that may have to wait.

    Attributes:
      items: what is left to put, or what was gathered so far.
      count: how many a call that takes asks for. fewer: it takes fewer where no more will come.
      finish: makes the result of what was gathered, behind the lock; None where the result is None.
      looks: what it takes stays where it is. after: it takes tokens of later steps than this one; None where it takes anything.
      since: when it began to wait.
    """

    __slots__ = ("after", "count", "error", "fewer", "finish", "future", "items", "looks", "since")

    def __init__(
        self,
        items: deque[Any],
        count: int = 0,
        finish: Callable[[list[Any]], Any] | None = None,
        fewer: bool = False,
        looks: bool = False,
    ) -> None:
        self.items, self.count, self.finish, self.fewer, self.looks = items, count, finish, fewer, looks
        self.after: int | None = None
        self.future: Future[Any] | None = None
        self.error: Exception | None = None
        self.since = 0.0

    def claim(self) -> bool:
        """Return whether it may end now: False where its wait was cancelled. To be asked once, and last before it ends."""
        return self.future is None or self.future.set_running_or_notify_cancel()

    def result(self) -> Any:
        """What it gives. Raises its error."""
        if self.error is not None:
            raise self.error
        return None if self.finish is None else self.finish(list(self.items))

    def deliver(self) -> None:
        """Complete its Future."""
        assert self.future is not None
        try:
            result = self.result()
        except Exception as error:  # noqa: BLE001 - it is the wait's, whose step raises it
            self.future.set_exception(error)
        else:
            self.future.set_result(result)


def _deliver(ended: list[Attempt], mine: Attempt | None = None) -> None:
    """Complete what has ended, but for the caller's own, and take each off the list."""
    while ended:
        if (attempt := ended.pop(0)) is not mine:
            attempt.deliver()


class Exchange:
    """Base of what waits. A subclass says how attempts go on: ``_put(attempt)`` and ``_take(attempt)``, called under the lock.

    Each moves what it can and returns True when the attempt has ended (its result or error is set and it was claimed, or its wait
    turned out cancelled and it gave back what it held), False when it must wait.

    Any thread may call any method. No callback of a Future runs under the lock.

    Attributes:
      name: for messages.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = new_lock()
        self._puts: deque[Attempt] = deque()
        self._takes: deque[Attempt] = deque()
        self._watched = False
        self._moves = 0  # attempts that ended, and items that went in or out: while it changes, others may go on
        self._cancelled: set[Attempt] = set()

    def _put(self, attempt: Attempt) -> bool:
        raise NotImplementedError

    def _take(self, attempt: Attempt) -> bool:
        raise NotImplementedError

    def _give_back(self, attempt: Attempt) -> None:
        """Put what a cancelled attempt had gathered where it was."""

    def _describe(self) -> str:
        """The state, for the log: its size, say."""
        return ""

    # -- lines -----------------------------------------------------------------------------------------------------------

    def _line_up(self, line: deque[Attempt], attempt: Attempt) -> Any:
        """The attempt's result, or the Future of it. An interrupt takes the attempt back."""
        ended: list[Attempt] = []
        try:
            with self._lock:
                line.append(attempt)
                ended = self._go_on()
                waits = attempt not in ended
                if waits:
                    attempt.since = time.monotonic()
                    attempt.future = Answer()
                    if not self._watched:
                        self._watched = True
                        LATE_WAITS.add(self)
            _deliver(ended, attempt)
            if waits:
                assert attempt.future is not None
                attempt.future.add_done_callback(partial(self._done, line, attempt))
                return attempt.future
        except BaseException:
            if attempt.future is not None:
                attempt.future.cancel()
            self._withdraw(line, attempt)
            _deliver(ended, attempt)
            raise
        return attempt.result()

    def _go_on(self) -> list[Attempt]:
        """Let attempts go on until none can; those that ended and have something to deliver. Under the lock."""
        ended: list[Attempt] = []
        before = -1
        while before != self._moves:
            before = self._moves
            for line, advance in ((self._puts, self._put), (self._takes, self._take)):
                while (attempt := self._next_ended(line, advance)) is not None:
                    self._moves += 1
                    if attempt in self._cancelled:
                        self._cancelled.discard(attempt)
                    else:
                        ended.append(attempt)
        return ended

    def _next_ended(self, line: deque[Attempt], advance: Callable[[Attempt], bool]) -> Attempt | None:
        """Take out of a line the next attempt that ends; None where none does. Here they end in the order in which they came."""
        return line.popleft() if line and advance(line[0]) else None

    def _lost(self, attempt: Attempt) -> bool:
        """An attempt's wait was cancelled: give back, and say that it has ended. Under the lock."""
        self._give_back(attempt)
        self._cancelled.add(attempt)
        return True

    def _done(self, line: deque[Attempt], attempt: Attempt, future: Future[Any]) -> None:
        if future.cancelled():
            self._withdraw(line, attempt)

    def _withdraw(self, line: deque[Attempt], attempt: Attempt) -> None:
        """Take a cancelled wait out of its line, and let the others go on."""
        with self._lock:
            if attempt in line:
                line.remove(attempt)
                self._give_back(attempt)
            ended = self._go_on()
        _deliver(ended)

    def _end_all(self, lines: tuple[deque[Attempt], ...], error: Callable[[], Exception]) -> list[Attempt]:
        """End all attempts of some lines with an error; those to deliver. Under the lock."""
        ended = []
        for line in lines:
            while line:
                attempt = line.popleft()
                self._give_back(attempt)
                if attempt.claim():
                    attempt.error = error()
                    ended.append(attempt)
        return ended

    def abandon(self) -> None:
        """Wake all who wait: the container was reset, or the session closed."""
        with self._lock:
            ended = self._end_all(
                (self._puts, self._takes),
                lambda: errors.CancelledError(f"{self.name!r} was closed with its session or container"),
            )
        for attempt in ended:
            attempt.deliver()

    # -- waits that are late --------------------------------------------------------------------------------------------

    def oldest_wait(self) -> tuple[float, str] | None:
        """When the longest wait began, and what to say of it; None where nobody waits, and then it is watched no more."""
        with self._lock:
            waiting = [(line[0].since, line is self._takes) for line in (self._puts, self._takes) if line]
            if not waiting:
                self._watched = False
                return None
            since, takes = min(waiting)
            state = self._describe()
        what = "something to take; were queue runners started?" if takes else "room"
        return since, f"{self.name!r} ({state}): a step waits for {what}"
