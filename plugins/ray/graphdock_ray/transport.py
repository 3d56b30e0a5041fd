"""RayTransport: tasks that Ray starts, watches and names, called over ZeroMQ.

An address is a cluster and a task, ``demo/job:ps/task:0``. Ray says where that is at present, and hands out the key that opens it;
the calls themselves are ZeroMQ's. A task that was lost is asked for anew: no call is ever repeated.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from graphdock.contracts import Transport, WaitingThreads, errors, pack, unpack
from graphdock.contracts.cluster import Place, TaskName
from graphdock.locks import new_lock

from graphdock_ray.directory import Directory, parse
from graphdock_ray.keys import Keys
from graphdock_ray.zeromq import ZeroMQTransport

__all__ = ["RayTransport"]


class RayTransport(Transport):
    """Reaches tasks by their names. Any thread may call any method; Ray is joined, or started, by the first call.

    Args:
      carrier: by which messages go.
    """

    scheme = "ray"

    def __init__(self, carrier: ZeroMQTransport) -> None:
        self._carrier, self._directory = carrier, Directory()
        self._known: dict[str, str] = {}
        self._served: dict[str, str] = {}
        self._asked: dict[str, Future[str]] = {}
        self._lock = new_lock()
        self._threads = WaitingThreads("graphdock ray")
        carrier.lost = self._lost

    def call(self, address: str, method: str, arguments: Mapping[str, Any]) -> Future[Any]:
        endpoint = self._known.get(address)
        if endpoint is not None:
            return self._carrier.call(endpoint, method, arguments)
        future: Future[Any] = Future()
        kept = _copied(arguments)

        def found(where: Future[str]) -> None:
            if where.exception() is None:
                self._carrier.call(where.result(), method, kept).add_done_callback(ended)
            else:
                ended(where)

        def ended(made: Future[Any]) -> None:
            error = made.exception()
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(made.result())

        self._found(address).add_done_callback(found)
        return future

    def post(self, address: str, method: str, arguments: Mapping[str, Any]) -> None:
        endpoint = self._known.get(address)
        if endpoint is not None:
            self._carrier.post(endpoint, method, arguments)
            return
        kept = _copied(arguments)

        def found(where: Future[str]) -> None:
            if where.exception() is None:  # who waits for a lost task learns so by its calls
                self._carrier.post(where.result(), method, kept)

        self._found(address).add_done_callback(found)

    def wait(self, future: Future[Any], seconds: float | None = None) -> None:
        self._carrier.wait(future, seconds)

    def serve(self, address: str, answer: Callable[[str, Mapping[str, Any]], Any], gone: Callable[[str], None]) -> str:
        if parse(address)[1] is None:
            raise errors.InvalidArgumentError(
                f"{address!r} is no address of a task on Ray", expected="a form such as 'demo/job:ps/task:0'"
            )
        keys = Keys.drawn()
        host = self._directory.ray.util.get_node_ip_address()
        endpoint = self._carrier.serve(f"[{host}]:0" if ":" in host else f"{host}:0", answer, gone, keys)
        try:
            self._directory.announce(address, endpoint, keys.public)
        except BaseException:
            self._carrier.forget(endpoint)
            raise
        self._served[address] = endpoint
        return address

    def forget(self, address: str) -> None:
        endpoint = self._served.pop(address, None)
        if endpoint is not None:
            self._carrier.forget(endpoint)
            self._directory.withdraw(address)

    def sample_address(self) -> str | None:
        if importlib.util.find_spec("ray") is None:
            return None
        return f"sample-{os.urandom(8).hex()}/job:worker/task:0"

    def start(self, address: str, tasks: Sequence[TaskName]) -> None:
        self._directory.start(parse(address)[0], tasks)

    def places(self, address: str, tasks: Sequence[TaskName]) -> dict[TaskName, Place]:
        from graphdock_ray.places import places

        return places(self._directory, parse(address)[0], tasks)

    def tasks(self, address: str, said: Mapping[str, Any]) -> dict[TaskName, str]:
        cluster = parse(address)[0]
        return {
            TaskName.parse(name): where if "/job:" in where else f"{cluster}{name}"
            for name, where in said["cluster"].items()
        }

    def close(self) -> None:
        for address in list(self._served):
            self.forget(address)
        self._threads.close()

    def _found(self, address: str) -> Future[str]:
        """The task's ``host:port`` at present, asked for once however many wait for it; its key is known to the carrier then."""
        parse(address)
        self._directory.ray  # noqa: B018 - it is joined by this thread, which may be the main one
        with self._lock:
            found = self._asked.get(address)
            if found is None:
                found = self._asked[address] = self._threads.submit(self._find, address)
        return found

    def _find(self, address: str) -> str:
        try:
            endpoint, key = self._directory.where(address)
            self._carrier.trust(endpoint, Keys(key))
            self._known[address] = endpoint
        finally:
            with self._lock:
                self._asked.pop(address, None)
        return endpoint

    def _lost(self, endpoint: str) -> None:
        """Ask anew for the tasks that were called there: Ray may have restarted them elsewhere."""
        for address in [a for a, where in list(self._known.items()) if where == endpoint]:
            self._known.pop(address, None)


def _copied(arguments: Mapping[str, Any]) -> Any:
    """Arguments of a call that is made later: its caller may change them meanwhile."""
    return unpack([bytes(f) for f in pack(dict(arguments))])
