"""RunningStep: one step on several tasks, from the messages that start its parts to the last answer, or to the first error."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from graphdock.contracts import errors
from graphdock.contracts.cluster import TaskName, Transport
from graphdock.contracts.failures import failure_of
from graphdock.locks import new_lock

from graphdock_cluster.task import TaskServer

__all__ = ["RunningStep"]

#: Seconds behind the deadline of a step after which a task that has not said so itself is given up.
GRACE = 1.0
#: Task, address, the task itself where it is of this process, handle of the part, and what it is fed.
_Part = tuple[TaskName, str, "TaskServer | None", int, "list[Any]"]


class RunningStep:
    """The first error of any part ends the others, wherever they wait.

    Args:
      session, number: which step. ``addresses``: of its tasks.
    """

    def __init__(self, session: str, number: int, transport: Transport, addresses: Sequence[str]) -> None:
        self._session, self._number, self._transport, self._addresses = session, number, transport, addresses
        self._lock = new_lock()
        self._error: BaseException | None = None

    def run(self, parts: Sequence[_Part], seconds: float | None) -> list[list[Any]]:
        """Run the parts: what each fetches. Those of this process that stand last run on this thread.

        Raises:
          The first error of a part, with its task noted.
        """
        calls: list[Future[Any]] = []
        tasks: list[TaskName] = []
        here = sum(local is not None for _, _, local, _, _ in parts)
        made: list[list[Any]] = []
        limit = None if seconds is None else seconds + GRACE
        try:
            for number, (task, address, local, handle, feeds) in enumerate(parts):
                if local is not None and here == len(parts) - number == 1:
                    made = [self._here(task, local, handle, feeds, seconds)]
                    break
                here -= local is not None
                arguments = {
                    "session": self._session,
                    "handle": handle,
                    "step": self._number,
                    "seconds": seconds,
                    "feeds": feeds,
                }
                call = self._transport.call(address, "run", arguments)
                call.add_done_callback(lambda done, task=task: self._done(done, task))  # type: ignore[misc]
                calls.append(call)
                tasks.append(task)
            self._wait(calls, limit)
        except errors.GraphdockError:
            self._wait(calls, limit)
        except BaseException as stopped:
            self.abort(errors.CancelledError(f"the step was interrupted by {type(stopped).__name__}"))
            raise
        late = [str(task) for call, task in zip(calls, tasks, strict=True) if not call.done()]
        if late:
            what = f"{', '.join(late)} did not answer within {seconds:g} s"
            self.abort(errors.DeadlineExceededError(what, hint="its process may be frozen, or its network cut"))
        for call, task in zip(calls, tasks, strict=True):
            if call.done():
                self._done(call, task)  # who waits for a Future may be woken before its callbacks run
        if self._error is not None:
            raise self._error
        return [*[call.result() for call in calls], *made]

    def lost(self, addresses: Sequence[str], task: TaskName, error: BaseException) -> None:
        """End the step if it touches what is lost, one task or the way between two, though its parts may have ended there."""
        if all(address in self._addresses for address in addresses):
            self._noted(error, task)
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

    def _here(
        self, task: TaskName, local: TaskServer, handle: int, feeds: Sequence[Any], seconds: float | None
    ) -> list[Any]:
        try:
            return local.run(self._session, handle, self._number, seconds, feeds)
        except errors.GraphdockError as error:
            self._noted(error, task)
            self.abort(error, str(task))
            raise

    def _done(self, call: Future[Any], task: TaskName) -> None:
        error = None if call.cancelled() else call.exception()
        if error is not None:
            self._noted(error, task)
            self.abort(error, str(task))

    def _wait(self, calls: Sequence[Future[Any]], seconds: float | None) -> None:
        """Wait until all have ended, well or not, or the time is over."""
        until = None if seconds is None else time.monotonic() + seconds
        for call in calls:
            if not call.done():
                self._transport.wait(call, None if until is None else max(0.0, until - time.monotonic()))

    @staticmethod
    def _noted(error: BaseException, task: TaskName) -> None:
        if not any(note.startswith("raised on /job:") for note in getattr(error, "__notes__", ())):
            error.add_note(f"raised on {task}")


#: Errors that mean the same wherever they are raised.
_STOPS = ("CancelledError", "DeadlineExceededError", "UnavailableError")
