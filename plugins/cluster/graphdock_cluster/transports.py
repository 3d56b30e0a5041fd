"""Transports by address: tasks of this process by the local one, others by the plugin that reaches them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from graphdock.contracts import errors
from graphdock.contracts.cluster import Place, TaskName, Transport
from graphdock.locks import new_lock
from graphdock.plugin.host import Host

from graphdock_cluster.local import LocalTransport

__all__ = ["RoutedTransport"]

#: Host -> its tasks of this process.
_locals: weakref.WeakKeyDictionary[Host, LocalTransport] = weakref.WeakKeyDictionary()
_lock = new_lock()


def _tasks_of(host: Host) -> LocalTransport:
    with _lock:
        found = _locals.get(host)
        if found is None:
            found = _locals[host] = LocalTransport()
        return found


class RoutedTransport(Transport):
    """Calls tasks of this process directly, others by a plugin's transport, which is brought when one is first asked for.

    Args:
      host: whose plugins are asked. Its tasks are those of this process; a process has one host, but in tests.
      scheme: of the plugin's transport.
    """

    def __init__(self, host: Host, scheme: str = "grpc") -> None:
        self.scheme = scheme
        self._host = host
        self.local = _tasks_of(host)
        self._far: Transport | None = None

    def call(self, address: str, method: str, arguments: Mapping[str, Any]) -> Future[Any]:
        if self.local.find(address) is not None:
            return self.local.call(address, method, arguments)
        try:
            return self._other(address).call(address, method, arguments)
        except errors.UnavailableError as error:
            lost: Future[Any] = Future()
            lost.set_exception(error)
            return lost

    def post(self, address: str, method: str, arguments: Mapping[str, Any]) -> None:
        if self.local.find(address) is not None:
            self.local.post(address, method, arguments)
        elif self.reaches_others:
            self._other(address).post(address, method, arguments)

    def wait(self, future: Future[Any], seconds: float | None = None) -> None:
        if self._far is None:
            super().wait(future, seconds)
        else:
            self._far.wait(future, seconds)

    def serve(self, address: str, answer: Callable[[str, Mapping[str, Any]], Any], gone: Callable[[str], None]) -> str:
        return self._other(address).serve(address, answer, gone)

    def forget(self, address: str) -> None:
        self._other(address).forget(address)

    def start(self, address: str, tasks: Sequence[TaskName]) -> None:
        self._other(address).start(address, tasks)

    def places(self, address: str, tasks: Sequence[TaskName]) -> dict[TaskName, Place]:
        return self._other(address).places(address, tasks)

    def tasks(self, address: str, said: Mapping[str, Any]) -> dict[TaskName, str]:
        if self.local.find(address) is not None and not self.reaches_others:
            return super().tasks(address, said)
        return self._other(address).tasks(address, said)

    def needs_others(self) -> None:
        """Return at once where a plugin reaches other processes. Raises UnavailableError with what to install."""
        self._other("")

    @property
    def reaches_others(self) -> bool:
        """Return whether a plugin reaches other processes."""
        try:
            self._other("")
        except errors.UnavailableError:
            return False
        return True

    def _other(self, address: str) -> Transport:
        if self._far is None:
            try:
                self._far = self._host.transport(self.scheme)
            except errors.NotFoundError as error:
                raise errors.UnavailableError(
                    f"no installed plugin reaches tasks of other processes, such as {address or 'a server'}: {error.message}",
                    hint="pip install graphdock-ray" if self.scheme in ("grpc", "ray") else None,
                ) from None
        return self._far
