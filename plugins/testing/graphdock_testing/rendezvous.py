"""A rendezvous inside one process: executors on several threads exchange the tensors of one step.

Nothing here waits. A receive leaves a continuation; it runs on the thread that sends, or that aborts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphdock.contracts.rendezvous import Rendezvous, RendezvousKey
from graphdock.errors import AlreadyExistsError
from graphdock.locks import new_lock

__all__ = ["LocalRendezvous"]

Done = Callable[[Any, BaseException | None], None]


class LocalRendezvous(Rendezvous):
    """One step's exchange. All methods may be called from any thread; continuations run without its lock."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._values: dict[RendezvousKey, Any] = {}
        self._sent: set[RendezvousKey] = set()
        self._waiting: dict[RendezvousKey, list[Done]] = {}
        self._error: BaseException | None = None

    def send(self, key: RendezvousKey, value: Any) -> None:
        with self._lock:
            if self._error is not None:
                raise self._error
            if key in self._sent:
                raise AlreadyExistsError(
                    f"the rendezvous was sent {key.edge!r} (frame {key.frame!r}) twice in one step"
                )
            self._sent.add(key)
            waiting = self._waiting.pop(key, [])
            if not waiting:
                self._values[key] = value
        for done in waiting:
            done(value, None)

    def receive(self, key: RendezvousKey, done: Done) -> None:
        value: Any = None
        error: BaseException | None = None
        with self._lock:
            if self._error is not None:
                error = self._error
            elif key in self._sent:
                # a value that nobody waited for is handed over once, so that its memory is free again
                if key in self._values:
                    value = self._values.pop(key)
                else:
                    error = AlreadyExistsError(f"{key.edge!r} was received already in this step")
            else:
                self._waiting.setdefault(key, []).append(done)
                done = _nothing
        done(value, error)

    def abort(self, error: BaseException) -> None:
        with self._lock:
            if self._error is None:
                self._error = error
            error = self._error
            waiting = [done for group in self._waiting.values() for done in group]
            self._waiting.clear()
            self._values.clear()
        for done in waiting:
            done(None, error)

    @property
    def waiting(self) -> int:
        """Number of continuations that have not run."""
        with self._lock:
            return sum(len(group) for group in self._waiting.values())


def _nothing(value: Any, error: BaseException | None) -> None:
    return None
