"""ThreadCluster: tasks as if each was a process, for tests of what becomes of training when they die."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import graphdock as _tf
from graphdock.contracts import errors
from graphdock.plugin.host import Host

from graphdock_testing.transport import SeededTransport

__all__ = ["ThreadCluster"]


class ThreadCluster:
    """Servers with a host each, which know one another by a :class:`SeededTransport` alone. Used with ``with``.

    Args:
      jobs: how many tasks each job has. seed: of the network.

    Attributes:
      network: the transport, which knows tasks by their addresses. spec: job -> addresses of its tasks, as ``tf.train.ClusterSpec``
        takes it; the address of a task such as ``ps0`` is ``ps0:1``.
    """

    def __init__(self, jobs: Mapping[str, int], seed: int = 0) -> None:
        self.network = SeededTransport(seed)
        self.spec = {job: [f"{job}{i}:1" for i in range(count)] for job, count in jobs.items()}
        self._tasks = {f"{job}{i}": (job, i) for job, count in jobs.items() for i in range(count)}
        self._servers: dict[str, Any] = {}
        for name in self._tasks:
            self.start(name)

    def start(self, name: str) -> Any:
        """Start a task, such as ``"ps0"``, for the first time or anew: without variables. Returns its server."""
        if name in self._servers:
            raise errors.AlreadyExistsError(f"the task {name} runs")
        self.network.heal(f"{name}:1")
        host = Host()
        host.register("network", self.network.plugin(f"{name}:1"))
        made = self._servers[name] = _tf.train.Server(self.spec, *self._tasks[name], host=host)
        return made

    def cut_off(self, name: str) -> None:
        """Cut a task's connections, as where its process is frozen; ``heal`` lets it be reached again."""
        self.network.cut_off(f"{name}:1")

    def silence(self, name: str) -> None:
        """Lose all messages of a task from now on, and those to it, without a word."""
        self.network.silent.add(f"{name}:1")

    def heal(self, name: str) -> None:
        """Let a task that was cut off or silenced be reached again."""
        self.network.heal(f"{name}:1")

    def server(self, name: str) -> Any:
        """The server of a task that runs."""
        return self._servers[name]

    def kill(self, name: str) -> None:
        """End a task as if its process died: its own calls end with a CancelledError, those of others with UnavailableError."""
        server = self._servers.pop(name)
        self.network.kill(f"{name}:1")
        server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in list(self._servers):
            server = self._servers[name]
            self.kill(name)
            server.host.close()
        self.network.close()
