"""Exchange: where the parts of the steps of one session meet on one task, each step by its number.

A value may arrive before its step has begun there, and is kept. Nothing here waits: whoever takes a value that is not there yet
gets a Future, which the thread that brings the value completes.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from typing import Any

from graphdock.contracts import Answer, errors
from graphdock.locks import new_lock

__all__ = ["Exchange", "find_exchange"]

#: Name -> exchange, of all tasks of the process. An exchange lives as long as its session on its task.
_exchanges: weakref.WeakValueDictionary[str, Exchange] = weakref.WeakValueDictionary()
_lock = new_lock()
_numbers = itertools.count()
#: Steps that ended are remembered as far back, so that what arrives for them late is dropped.
_REMEMBERED = 4096


def find_exchange(name: str) -> Exchange:
    """The exchange of that name. Raises AbortedError: its session was closed."""
    with _lock:
        found = _exchanges.get(name)
    if found is None:
        raise errors.AbortedError(f"the session of the exchange {name!r} is closed on this task")
    return found


class _Meeting:
    """Values that have arrived for one step, and Futures of those that are waited for."""

    __slots__ = ("error", "met", "missing", "values", "waiting")

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.waiting: dict[str, Future[Any]] = {}
        self.error: BaseException | None = None
        self.missing: set[str] = set()
        self.met: Callable[[], None] | None = None

    def complete(self) -> Callable[[], None] | None:
        """Function to be called now, once, if nothing is missing any more."""
        if self.missing and self.error is None:
            return None
        met, self.met = self.met, None
        return met


class Exchange:
    """Values on their way, by step and edge. All methods may be called from any thread.

    Args:
      send: hands ``(task, step, edge, value)`` to another task, where it ``arrives``; it never waits, and has read the value when
        it returns.

    Attributes:
      name: what ``Send`` and ``Recv`` find it by; no two of a process have one.
    """

    def __init__(self, send: Callable[[str, int, str, Any], None]) -> None:
        self.name = f"exchange-{next(_numbers)}"
        self.send = send
        self._lock = new_lock()
        self._meetings: dict[int, _Meeting] = {}
        self._ended: dict[int, None] = {}
        with _lock:
            _exchanges[self.name] = self

    def check_begins(self, step: int) -> None:
        """Return at once, unless the step has ended here. Raises AbortedError."""
        with self._lock:
            if step in self._ended:
                raise errors.AbortedError(f"step {step} has ended on this task")

    def check(self, step: int) -> None:
        """Return at once, unless the step was aborted before it began here. Raises the error."""
        with self._lock:
            meeting = self._meetings.get(step)
        if meeting is not None and meeting.error is not None:
            raise meeting.error

    def meet(self, step: int, edges: Collection[str], met: Callable[[], None]) -> bool:
        """Return whether there is nothing to wait for: all values are there, or never will be, for the step was aborted.

        If there is, ``met`` is called once there is not, by whoever brings the last value or aborts the step.
        """
        with self._lock:
            meeting = self._meeting(step)
            if meeting is None or meeting.error is not None:
                return True
            meeting.missing = set(edges).difference(meeting.values)
            if meeting.missing:
                meeting.met = met
            return not meeting.missing

    def take(self, step: int, edge: str) -> Any:
        """The value of an edge in a step, once; or the Future of it.

        Raises:
          The error that the step was aborted with, as the Future does. AlreadyExistsError: it was taken before.
        """
        with self._lock:
            meeting = self._going(step)
            if edge in meeting.values:
                return meeting.values.pop(edge)
            if edge in meeting.waiting:
                raise errors.AlreadyExistsError(f"{edge} is taken twice in step {step}")
            future = Answer()
            meeting.waiting[edge] = future
            return future

    def take_all(self, step: int, edges: Sequence[str]) -> list[Any] | None:
        """The values of edges in a step, each once; None where one is not there, and then none is taken.

        Raises:
          The error that the step was aborted with. AbortedError: it has ended.
        """
        with self._lock:
            values = self._going(step).values
            if not all([edge in values for edge in edges]):
                return None
            return [values.pop(edge) for edge in edges]

    def arrive(self, step: int, edge: str, value: Any) -> None:
        """Bring a value. Of a step that has ended, or was aborted, it is dropped.

        Raises:
          AlreadyExistsError: it is there already.
        """
        with self._lock:
            meeting = self._meeting(step)
            if meeting is None or meeting.error is not None:
                return
            future = meeting.waiting.pop(edge, None)
            if future is None:
                if edge in meeting.values:
                    raise errors.AlreadyExistsError(f"{edge} was sent twice in step {step}")
                meeting.values[edge] = value
                meeting.missing.discard(edge)
                met = meeting.complete()
        if future is None:
            if met is not None:
                met()
        elif future.set_running_or_notify_cancel():
            future.set_result(value)

    def abort(self, step: int, error: BaseException) -> None:
        """Poison a step: what waits in it, and what will, gets ``error``; the first error stays."""
        with self._lock:
            meeting = self._meeting(step)
            if meeting is None or meeting.error is not None:
                return
            waiting, met = self._poison(meeting, error), meeting.complete()
        _fail(waiting, error)
        if met is not None:
            met()

    def abort_all(self, error: BaseException) -> None:
        """Poison every step that has not ended."""
        with self._lock:
            open_ones = [m for m in self._meetings.values() if m.error is None]
            waiting = [f for m in open_ones for f in self._poison(m, error)]
            all_met = [m.complete() for m in open_ones]
        _fail(waiting, error)
        for met in all_met:
            if met is not None:
                met()

    def end(self, step: int) -> None:
        """Forget a step, which runs no more on this task."""
        with self._lock:
            self._meetings.pop(step, None)
            self._ended[step] = None
            while len(self._ended) > _REMEMBERED:
                del self._ended[next(iter(self._ended))]

    @property
    def steps(self) -> list[int]:
        """Numbers of the steps of which something is here."""
        with self._lock:
            return list(self._meetings)

    def _meeting(self, step: int) -> _Meeting | None:
        found = self._meetings.get(step)
        if found is None and step not in self._ended:
            found = self._meetings[step] = _Meeting()
        return found

    def _going(self, step: int) -> _Meeting:
        """Meeting of a step that goes on. Raises the error that it was aborted with. AbortedError: it has ended."""
        found = self._meeting(step)
        if found is None:
            raise errors.AbortedError(f"step {step} has ended on this task")
        if found.error is not None:
            raise found.error
        return found

    def _poison(self, meeting: _Meeting, error: BaseException) -> list[Future[Any]]:
        meeting.error = error
        waiting = list(meeting.waiting.values())
        meeting.waiting.clear()
        meeting.values.clear()
        return waiting


def _fail(waiting: list[Future[Any]], error: BaseException) -> None:
    for future in waiting:
        if future.set_running_or_notify_cancel():
            future.set_exception(error)
