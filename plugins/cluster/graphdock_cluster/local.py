"""The transport inside of one process: addresses of its own tasks, called on threads of theirs."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import numpy as np
from graphdock.contracts import errors
from graphdock.contracts.cluster import Transport
from graphdock.contracts.waiting_threads import WaitingThreads
from graphdock.locks import new_lock

from graphdock_cluster.answers import answer
from graphdock_cluster.task import TaskServer

__all__ = ["LocalTransport"]


class LocalTransport(Transport):
    """Carries calls between tasks of this process. Arrays are copied, so that no task writes what another reads."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._tasks: dict[str, TaskServer] = {}
        self._threads = WaitingThreads("graphdock task")

    def add(self, address: str, task: TaskServer) -> None:
        """Let a task be reached. Raises UnavailableError: another one has the address."""
        with self._lock:
            if address in self._tasks:
                raise errors.UnavailableError(
                    f"the address {address} is that of {self._tasks[address].name} of this process already"
                )
            self._tasks[address] = task

    def remove(self, address: str) -> None:
        """Let a task be reached no more."""
        with self._lock:
            self._tasks.pop(address, None)

    def find(self, address: str) -> TaskServer | None:
        """The task of this process at an address."""
        with self._lock:
            return self._tasks.get(address)

    def call(self, address: str, method: str, arguments: Mapping[str, Any]) -> Future[Any]:
        task = self.find(address)
        if task is None:
            lost: Future[Any] = Future()
            lost.set_exception(errors.UnavailableError(f"there is no task at {address}"))
            return lost
        return self._threads.submit(answer, task, method, copied(arguments))

    def post(self, address: str, method: str, arguments: Mapping[str, Any]) -> None:
        task = self.find(address)
        if task is not None:
            answer(task, method, copied(arguments))


def copied(value: Any) -> Any:
    """Plain data with copies of its arrays."""
    if isinstance(value, (np.ndarray, np.generic)):
        return np.array(value)
    if isinstance(value, Mapping):
        return {key: copied(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [copied(v) for v in value]
    return value
