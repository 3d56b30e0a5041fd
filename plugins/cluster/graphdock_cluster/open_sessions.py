"""OpenSessions: the sessions that are open on one task, until a master closes them, is lost, or a reset ends them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

from graphdock.contracts import errors
from graphdock.contracts.cluster import TaskName
from graphdock.locks import new_lock

from graphdock_cluster.opened import Opened

__all__ = ["LOST", "OpenSessions"]

#: How the steps of a session end whose process is gone.
LOST = "the connection to the session's process has ended"
#: Sessions that were ended by a reset, or with a lost connection, are remembered as far back.
_REMEMBERED = 4096
#: Seconds at most that it takes a step to end once it is cancelled.
_ENDING = 5.0


class OpenSessions:
    """The records of a task's sessions, by name. From any thread.

    Args:
      task: whose they are.
    """

    def __init__(self, task: TaskName) -> None:
        self._task = task
        self._lock = new_lock()
        self._open: dict[str, Opened] = {}
        self._ending: dict[str, Opened] = {}
        #: Names that a reset has ended, the last ones of them.
        self._aborted: deque[str] = deque(maxlen=_REMEMBERED)
        #: Names of those that ended with the connection to their process.
        self._lost: deque[str] = deque(maxlen=_REMEMBERED)
        self._ended = threading.Condition(self._lock)

    def open(self, session: str, master: str, make: Callable[[], Opened]) -> Opened:
        """The record of a session, made where there is none, once the steps of those that are being closed have ended.

        Raises:
          AbortedError: it was ended by a reset of its master's task.
        """
        with self._lock:
            self._ended.wait_for(lambda: not self._ending, _ENDING)
            opened = self._open.get(session)
            if opened is None:
                if session in self._aborted:
                    raise errors.AbortedError(f"the session was ended: its target {master} was reset")
                opened = self._open[session] = make()
            return opened

    def find(self, session: str) -> Opened | None:
        """The record of a session, if it is open."""
        with self._lock:
            return self._open.get(session)

    def known(self, session: str) -> Opened:
        """The record of a session. Raises AbortedError where it is not open, UnavailableError where its connection was lost."""
        opened = self.find(session)
        if opened is None and session in self._lost:  # a message that was on its way
            raise errors.UnavailableError(LOST)
        if opened is None:
            raise errors.AbortedError(
                f"{self._task} does not know the session; it has started anew since, was reset, or the session was closed"
            )
        return opened

    def all(self) -> dict[str, Opened]:
        """The records of all that are open, by name."""
        with self._lock:
            return dict(self._open)

    def end(self, session: str, error: errors.GraphdockError) -> None:
        """Forget a session, whose steps end with an error; what its own containers hold is freed."""
        with self._lock:
            opened = self._open.pop(session, None)
            if opened is None:
                self._ended.wait_for(lambda: session not in self._ending, _ENDING)
                return
            self._ending[session] = opened
            if isinstance(error, errors.UnavailableError):
                self._lost.append(session)
        for running in list(opened.running.values()):
            running.cancel(error)
        opened.exchange.abort_all(error)
        with self._lock:
            self._ended.wait_for(lambda: not opened.running, _ENDING)
        for parts in list(opened.parts.values()):
            for part in parts:
                part.session.close()
        if opened.containers is not None:
            opened.containers.clear()
        with self._lock:
            self._ended.wait_for(lambda: not opened.running, _ENDING)  # one may have begun until its part was closed
            self._ending.pop(session, None)
            self._ended.notify_all()
        opened.close()

    def reset(self, target: str, names: Sequence[str] | None) -> list[str]:
        """End sessions, which are not opened again: of these names, or all whose master is the target. Their names."""
        with self._lock:
            if names is None:
                names = [name for name, opened in self._open.items() if target and opened.master == target]
            self._aborted.extend(names)
        for name in names:
            self.end(name, errors.AbortedError(f"the session was ended: its target {target} was reset"))
        return list(names)

    def step_ended(self) -> None:
        """Let go on who waits for the steps of sessions that are being closed."""
        if self._ending:
            with self._lock:
                self._ended.notify_all()
