"""Opened: one session on a task, with its parts, the exchange where they meet, and the containers of its own."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from graphdock.config.session_config import SessionConfig
from graphdock.contracts import errors
from graphdock.contracts.deadlines import DeadlineClock
from graphdock.contracts.runtime.resources import ResourceStore
from graphdock.contracts.streams import RandomOrdinals
from graphdock.locks import new_lock
from graphdock.session.session import Session

from graphdock_cluster.constants import Constants
from graphdock_cluster.exchange import Exchange
from graphdock_cluster.registered import Registered
from graphdock_cluster.running import CLOCK, RunningPart

if TYPE_CHECKING:
    from graphdock_cluster.task import TaskServer

__all__ = ["Containers", "Opened", "PartSession"]


class Containers:
    """Stores by the names of their containers: of a task, or of one isolated session on it."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._stores: dict[str, ResourceStore] = {}

    def store(self, name: str) -> ResourceStore:
        with self._lock:
            found = self._stores.get(name)
            if found is None:
                found = self._stores[name] = ResourceStore(name)
            return found

    def clear(self, names: Sequence[str] | None = None) -> None:
        """Free what is in containers: of these names, or of all."""
        with self._lock:
            stores = [self._stores.get(n) for n in (list(self._stores) if names is None else names)]
        for store in stores:
            if store is not None:
                store.clear()


class PartSession(Session):
    """A session over the graph of one part: its random ordinals are those of the whole session, its resources the task's or, where
    the session is isolated, the session's."""

    _is_part = True

    def __init__(self, graph: Any, task: TaskServer, opened: Opened) -> None:
        self._task, self._opened = task, opened
        super().__init__("", graph, opened.config or task.config, task.host)

    def _deadline_clock(self) -> DeadlineClock:
        return CLOCK

    def _make_ordinals(self) -> RandomOrdinals:
        return self._opened.ordinals

    def _container(self, name: str) -> ResourceStore:
        return (self._opened.containers or self._task.containers).store(name)


class Opened:
    """The record of one session on a task: its parts, where they meet, how often its random ops ran, its own containers, the task
    of its master, and the configuration of its steps here."""

    def __init__(
        self, exchange: Exchange, isolated: bool, master: str = "", config: SessionConfig | None = None
    ) -> None:
        self.exchange, self.master, self.config = exchange, master, config
        self.containers = Containers() if isolated else None
        self.ordinals = RandomOrdinals()
        self.constants = Constants()
        self.parts: dict[int, list[Registered]] = {}
        self.running: dict[int, RunningPart] = {}
        self._lock = new_lock()
        #: Taken by the thread that sets it.
        self._watched: Future[dict[str, Any]] | None = None
        #: Tasks that are not reached, each with the last step of which tensors may be lost: of what nobody was told yet.
        self._unseen: dict[str, int] = {}
        self._ended = False

    def begin(self, step: int, part: RunningPart) -> None:
        """Take note of a step that begins here. None does so twice, whatever is sent again.

        Raises:
          AlreadyExistsError: it runs. AbortedError: it has ended.
        """
        self.exchange.check_begins(step)
        with self._lock:
            if step in self.running:
                raise errors.AlreadyExistsError(f"step {step} of the session runs on this task already")
            self.running[step] = part

    def end(self, step: int, part: RunningPart) -> None:
        """Forget a step, which runs no more; one that another part runs is let be."""
        if self.running.get(step, part) is part:
            self.exchange.end(step)
            self.running.pop(step, None)

    def watch(self) -> Future[dict[str, Any]]:
        """The Future of what becomes of the session next: ``unreached``, a task that tensors of steps up to ``step`` may not have
        reached; empty at its end."""
        with self._lock:
            if not self._ended and not self._unseen:
                if self._watched is None:
                    self._watched = Future()
                return self._watched
            said: dict[str, Any] = {}
            if self._unseen:
                said["unreached"], said["step"] = self._unseen.popitem()
        told: Future[dict[str, Any]] = Future()
        told.set_result(said)
        return told

    def tell(self, unreached: str, step: int) -> None:
        """Tell who watches, now or later, that tensors of steps up to one may be lost on their way to a task."""
        with self._lock:
            told, self._watched = self._watched, None
            if told is None:
                self._unseen[unreached] = max(step, self._unseen.get(unreached, step))
        if told is not None:
            told.set_result({"unreached": unreached, "step": step})

    def close(self) -> None:
        """Tell who watches that the session has ended."""
        with self._lock:
            self._ended = True
            told, self._watched = self._watched, None
        if told is not None:
            told.set_result({})
