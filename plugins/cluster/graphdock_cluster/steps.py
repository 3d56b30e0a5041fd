"""RunningStep: one step on several tasks, from the messages that start its parts to the last answer, or to the first error."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from graphdock.contracts import errors
from graphdock.contracts.cluster import TaskName, Transport
from graphdock.contracts.failures import failure_of
from graphdock.contracts.interrupts import Interrupts
from graphdock.locks import new_lock

from graphdock_cluster.registered import Kept
from graphdock_cluster.started import fetched
from graphdock_cluster.task import TaskServer

__all__ = ["RunningStep", "noted"]

#: Seconds behind the deadline of a step after which a task that has not said so itself is given up.
GRACE = 1.0
#: Task, address, the task itself where it is of this process, handle of the part, and what it is fed.
_Part = tuple[TaskName, str, "TaskServer | None", int, "list[Any]"]


class RunningStep:
    """The first error of any part ends the others, wherever they wait.

    Args:
      session, number: which step. ``addresses``: of its tasks. ``home``: the master's own task, if it is of this process.
    """

    def __init__(
        self,
        session: str,
        number: int,
        transport: Transport,
        addresses: Sequence[str],
        home: TaskServer | None = None,
    ) -> None:
        self._session, self._number, self._transport, self._addresses = session, number, transport, addresses
        self._home = home
        self._lock = new_lock()
        self._error: BaseException | None = None
        self._calls: list[Future[Any]] = []

    def run(self, parts: Sequence[_Part], seconds: float | None) -> list[list[Any]]:
        """Run the parts: what each fetches. Those of this process stand last; the last one runs on this thread.

        Raises:
          The first error of a part, with its task noted.
        """
        made: list[list[Any]] = []
        limit = None if seconds is None else seconds + GRACE
        others = parts if parts[-1][2] is None else parts[:-1]
        try:
            if others is parts:
                self._begin(others, seconds, {})
            else:
                made = [self._here(parts[-1], others, seconds)]
            self._wait(self._calls, limit)
        except errors.GraphdockError as error:
            self.abort(error)
            self._wait(self._calls, limit)
        except BaseException as stopped:
            with Interrupts():  # a second one would leave parts running
                self.abort(errors.CancelledError(f"the step was interrupted by {type(stopped).__name__}"))
            raise
        ended = list(zip(self._calls, [part[0] for part in others], strict=False))
        late = [str(task) for call, task in ended if not call.done()]
        if late:
            what = f"{', '.join(late)} did not answer within {seconds:g} s"
            self.abort(errors.DeadlineExceededError(what, hint="its process may be frozen, or its network cut"))
        for call, task in ended:
            if call.done():
                self._done(call, task)  # who waits for a Future may be woken before its callbacks run
        if self._error is not None:
            raise self._error
        return [*[fetched(call.result()) for call in self._calls], *made]

    def _begin(self, parts: Sequence[_Part], seconds: float | None, kept: Kept) -> None:
        """Send the messages that start parts, and what goes with them to each task."""
        for task, address, local, handle, feeds in parts:
            arguments = {
                "session": self._session,
                "handle": handle,
                "step": self._number,
                "seconds": seconds,
                "feeds": feeds,
            }
            if local is None and (held := kept.get(str(task))) and held[0]:
                arguments["edges"], arguments["values"] = held
            call = self._transport.call(address, "run", arguments)
            self._calls.append(call)
            if self._home is not None:
                call.add_done_callback(self._bring)
            call.add_done_callback(lambda done, task=task: self._done(done, task))  # type: ignore[misc]

    def _bring(self, call: Future[Any]) -> None:
        """Hand on what came with an answer for the master's own task. In the place of a message, so that nobody waits for it."""
        if self._home is None or call.cancelled() or call.exception() is not None:
            return
        answer = call.result()
        if isinstance(answer, dict):
            self._home.arrive(self._session, self._number, answer["edges"], answer["values"])

    def lost(self, addresses: Sequence[str], task: TaskName, error: BaseException) -> None:
        """End the step if it touches what is lost, one task or the way between two, though its parts may have ended there."""
        if all(address in self._addresses for address in addresses):
            noted(error, task)
            self.abort(error, str(task))

    def abort(self, error: BaseException, source: str = "") -> None:
        """End the step everywhere; the first error stays."""
        with self._lock:
            if self._error is not None:
                return
            self._error = error
        failure = failure_of(error, source)
        failure["kind"] = failure["kind"] if failure["kind"] in _STOPS else "AbortedError"
        for address in dict.fromkeys(self._addresses):
            arguments = {"session": self._session, "step": self._number, "failure": failure}
            self._transport.post(address, "abort", arguments)

    def _here(self, part: _Part, others: Sequence[_Part], seconds: float | None) -> list[Any]:
        """Run a part on this thread, and have the others started before it waits for anything or takes long."""
        task, _, local, handle, feeds = part
        assert local is not None
        names = [str(other[0]) for other in others if other[2] is None]
        try:
            return local.run(
                self._session,
                handle,
                self._number,
                seconds,
                feeds,
                functools.partial(self._begin, others, seconds),
                names,
            )
        except errors.GraphdockError as error:
            noted(error, task)
            self.abort(error, str(task))
            raise

    def _done(self, call: Future[Any], task: TaskName) -> None:
        error = None if call.cancelled() else call.exception()
        if error is not None:
            noted(error, task)
            self.abort(error, str(task))

    def _wait(self, calls: Sequence[Future[Any]], seconds: float | None) -> None:
        """Wait until all have ended, well or not, or the time is over."""
        until = None if seconds is None else time.monotonic() + seconds
        for call in calls:
            if not call.done():
                self._transport.wait(call, None if until is None else max(0.0, until - time.monotonic()))


def noted(error: BaseException, task: object) -> None:
    """Note the task that raised an error, unless one is noted."""
    if not any(note.startswith("raised on /job:") for note in getattr(error, "__notes__", ())):
        error.add_note(f"raised on {task}")


#: Errors that mean the same wherever they are raised.
_STOPS = ("CancelledError", "DeadlineExceededError", "UnavailableError")
