"""SeededTransport: tasks of several hosts in one process, whose messages are delayed, come in another order, or are cut off.

    network = SeededTransport(seed=3)
    host.register("network", network.plugin())      # of each task's Host

All messages are packed and unpacked as between processes. No host knows another's tasks but through this.
"""

from __future__ import annotations

import heapq
import random
import threading
import types
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from graphdock.contracts import Transport, WaitingThreads, errors, failure_of, hookimpl, pack, raised, unpack

__all__ = ["SeededTransport"]

_Answer = Callable[[str, Mapping[str, Any]], Any]


class SeededTransport(Transport):
    """A network of threads. What is sent is delivered by one thread, in an order drawn at random.

    Args:
      seed: of the order. ``window``: among how many messages the next is drawn.

    Attributes:
      delivered: how many messages arrived. ``cut``: addresses that nothing reaches any more, and that answer nothing.
    """

    scheme = "grpc"

    def __init__(self, seed: int = 0, window: int = 8) -> None:
        self._random = random.Random(seed)
        self._window = window
        self._served: dict[str, tuple[_Answer, Callable[[str], None]]] = {}
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._ready = threading.Condition()
        self._threads = WaitingThreads("seeded call")
        self._waiting: dict[str, set[Future[Any]]] = {}
        self.delivered = 0
        self.cut: set[str] = set()
        threading.Thread(target=self._deliver, name="seeded transport", daemon=True).start()

    def plugin(self) -> Any:
        """What registers it with a host."""
        return types.SimpleNamespace(register_transports=hookimpl(lambda: [self]), __name__="seeded_network")

    def serve(self, address: str, answer: _Answer, gone: Callable[[str], None]) -> str:
        if address in self._served:
            raise errors.UnavailableError(f"a server can't listen at {address}: it is taken")
        self._served[address] = answer, gone
        return address

    def forget(self, address: str) -> None:
        self._served.pop(address, None)

    def call(self, address: str, method: str, arguments: Mapping[str, Any]) -> Future[Any]:
        frames, future = _frames(method, arguments), Future[Any]()
        self._waiting.setdefault(address, set()).add(future)
        self._send(lambda: self._begin(address, frames, future))
        return future

    def post(self, address: str, method: str, arguments: Mapping[str, Any]) -> None:
        frames = _frames(method, arguments)
        self._send(lambda: self._post(address, frames))

    def kill(self, address: str) -> None:
        """Cut a task off, as a process that dies: who waits for it is told."""
        self.cut.add(address)
        for future in list(self._waiting.pop(address, ())):
            _end(future, error=errors.UnavailableError(f"the task at {address} is lost"))

    def _post(self, address: str, frames: list[bytes]) -> None:
        if address in self._served and address not in self.cut:
            method, arguments = unpack(frames)
            self._served[address][0](method, arguments)

    def _begin(self, address: str, frames: list[bytes], future: Future[Any]) -> None:
        self._threads.submit(self._call, address, frames, future)

    def _call(self, address: str, frames: list[bytes], future: Future[Any]) -> None:
        if address in self.cut or address not in self._served:
            _end(future, error=errors.UnavailableError(f"no task listens at {address}"))
            return
        method, arguments = unpack(frames)
        try:
            made, error = [bytes(f) for f in pack(self._served[address][0](method, arguments))], None
        except Exception as raised_there:  # noqa: BLE001 - it is the caller's
            made, error = [bytes(f) for f in pack(failure_of(raised_there))], True
        if address not in self.cut:
            result = unpack(made)
            self._send(lambda: _end(future, error=raised(result)) if error else _end(future, result))

    def _send(self, act: Callable[[], None]) -> None:
        with self._ready:
            self._count += 1
            heapq.heappush(self._queue, (self._count + self._random.random() * self._window, self._count, act))
            self._ready.notify()

    def _deliver(self) -> None:
        while True:
            with self._ready:
                while not self._queue:
                    self._ready.wait()
                _, _, act = heapq.heappop(self._queue)
            self.delivered += 1
            act()


def _frames(method: str, arguments: Mapping[str, Any]) -> list[bytes]:
    return [bytes(f) for f in pack([method, dict(arguments)])]


def _end(future: Future[Any], result: Any = None, error: BaseException | None = None) -> None:
    if future.done() or not future.set_running_or_notify_cancel():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
