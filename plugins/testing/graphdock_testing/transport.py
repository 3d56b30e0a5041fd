"""SeededTransport: tasks of several hosts in one process, whose messages are delayed, come in another order, or are lost.

    network = SeededTransport(seed=3)
    host.register("network", network.plugin("worker:1"))      # of each task's Host

All messages are packed and unpacked as between processes. No host knows another's tasks but through this. Who is named when the
plugin is made may be killed, cut off or silenced by that name, which is the address of its server.
"""

from __future__ import annotations

import contextlib
import heapq
import random
import threading
import types
from collections.abc import Callable, Mapping
from concurrent.futures import Future, InvalidStateError
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
      silent: addresses whose messages, in both directions, are lost without a word.
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
        #: Calls that wait: the Future of each -> who called, and whom.
        self._waiting: dict[Future[Any], tuple[str, str]] = {}
        #: Sessions: who opened which, and where.
        self._opened: set[tuple[str, str, str]] = set()
        self.delivered = 0
        self.cut: set[str] = set()
        self.silent: set[str] = set()
        self._killed: set[str] = set()
        self._is_closed = False
        self._sampled = 0
        threading.Thread(target=self._deliver, name="seeded transport", daemon=True).start()

    def plugin(self, name: str = "") -> Any:
        """A hook that registers it with a host. ``name``: of the process that the host stands for, the address of its server."""
        end: Transport = _End(self, name) if name else self
        return types.SimpleNamespace(register_transports=hookimpl(lambda: [end]), __name__="seeded_network")

    def serve(self, address: str, answer: _Answer, gone: Callable[[str], None]) -> str:
        if address in self._served:
            raise errors.UnavailableError(f"a server can't listen at {address}: it is taken")
        self._served[address] = answer, gone
        return address

    def forget(self, address: str) -> None:
        self._served.pop(address, None)

    def sample_address(self) -> str | None:
        self._sampled += 1
        return f"sample{self._sampled}:1"

    def call(self, address: str, method: str, arguments: Mapping[str, Any]) -> Future[Any]:
        return self.call_from("", address, method, arguments)

    def post(self, address: str, method: str, arguments: Mapping[str, Any]) -> None:
        self.post_from("", address, method, arguments)

    def call_from(self, caller: str, address: str, method: str, arguments: Mapping[str, Any]) -> Future[Any]:
        """Call a task for a process. One that was killed gets a CancelledError, so that its threads end."""
        frames, future = _frames(method, arguments), Future[Any]()
        with self._ready:
            self._waiting[future] = caller, address
        future.add_done_callback(self._waited)
        if caller in self._killed:
            _end(future, error=errors.CancelledError(f"{caller} was killed"))
        elif {caller, address} & self.cut:
            _end(future, error=errors.UnavailableError(f"no task is reached at {address}"))
        else:
            if method == "open":
                self._opened.add((caller, address, arguments["session"]))
            self._send(lambda: self._threads.submit(self._call, caller, address, frames, future))
        return future

    def post_from(self, caller: str, address: str, method: str, arguments: Mapping[str, Any]) -> None:
        """Post for a process. What was sent before its connections were cut arrives."""
        frames = _frames(method, arguments)
        if not {caller, address} & self.cut:
            self._send(lambda: self._post(caller, address, frames))

    # -- faults -------------------------------------------------------------------------------------------------------

    def kill(self, address: str) -> None:
        """End a process: whom it waits for is cancelled, who waits for it is told, and what it opened elsewhere is closed."""
        self._killed.add(address)
        self.cut_off(address)

    def cut_off(self, address: str) -> None:
        """Cut the connections of a process. Who waits for it is told, and it is told so too."""
        self.cut.add(address)
        with self._ready:
            lost = [(f, who) for f, who in self._waiting.items() if address in who]
            opened = [each for each in self._opened if address in each[:2]]
            self._opened.difference_update(opened)
        for future, (caller, other) in lost:
            if caller in self._killed:
                _end(future, error=errors.CancelledError(f"{caller} was killed"))
            else:
                _end(future, error=errors.UnavailableError(f"the task at {other} is lost"))
        for _, where, session in opened:
            found = self._served.get(where)
            if found is not None and where not in self._killed:
                self._threads.submit(found[1], session)

    def heal(self, address: str) -> None:
        """Let a process be reached again: one that was cut off or silenced, or one that came in the place of a killed one."""
        for lost in (self.cut, self.silent, self._killed):
            lost.discard(address)

    def close(self) -> None:
        with self._ready:
            self._is_closed = True
            self._ready.notify()
        for future in list(self._waiting):
            _end(future, error=errors.UnavailableError("the transport was closed"))
        self._threads.close()

    # -- messages -----------------------------------------------------------------------------------------------------

    def _waited(self, future: Future[Any]) -> None:
        with self._ready:
            self._waiting.pop(future, None)

    def _post(self, caller: str, address: str, frames: list[bytes]) -> None:
        found = self._served.get(address)
        if found is not None and address not in self.cut and not {caller, address} & self.silent:
            method, arguments = unpack(frames)
            with contextlib.suppress(
                errors.GraphdockError
            ):  # a post has no answer: what is wrong with it is nobody's else
                found[0](method, arguments)

    def _call(self, caller: str, address: str, frames: list[bytes], future: Future[Any]) -> None:
        found = self._served.get(address)
        if {caller, address} & self.silent:
            return
        if found is None or {caller, address} & self.cut:
            _end(future, error=errors.UnavailableError(f"no task listens at {address}"))
            return
        method, arguments = unpack(frames)
        try:
            answered = found[0](method, arguments)
            answered = answered.result() if isinstance(answered, Future) else answered
            made, error = [bytes(f) for f in pack(answered)], None
        except Exception as raised_there:  # noqa: BLE001 - it is the caller's
            made, error = [bytes(f) for f in pack(failure_of(raised_there))], True
        if not {caller, address} & (self.cut | self.silent):
            result = unpack(made)
            self._send(lambda: _end(future, error=raised(result)) if error else _end(future, result))

    def _send(self, act: Callable[[], Any]) -> None:
        with self._ready:
            self._count += 1
            heapq.heappush(self._queue, (self._count + self._random.random() * self._window, self._count, act))
            self._ready.notify()

    def _deliver(self) -> None:
        while True:
            with self._ready:
                while not self._queue and not self._is_closed:
                    self._ready.wait()
                if self._is_closed:
                    return
                _, _, act = heapq.heappop(self._queue)
            self.delivered += 1
            act()


class _End(Transport):
    """One process's end of the network: what it sends bears its name."""

    scheme = "grpc"

    def __init__(self, network: SeededTransport, name: str) -> None:
        self._network, self._name = network, name
        self.serve, self.forget = network.serve, network.forget  # type: ignore[method-assign]
        self.sample_address = network.sample_address  # type: ignore[method-assign]

    def call(self, address: str, method: str, arguments: Mapping[str, Any]) -> Future[Any]:
        return self._network.call_from(self._name, address, method, arguments)

    def post(self, address: str, method: str, arguments: Mapping[str, Any]) -> None:
        self._network.post_from(self._name, address, method, arguments)


def _frames(method: str, arguments: Mapping[str, Any]) -> list[bytes]:
    return [bytes(f) for f in pack([method, dict(arguments)])]


def _end(future: Future[Any], result: Any = None, error: BaseException | None = None) -> None:
    try:
        if future.done() or not future.set_running_or_notify_cancel():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)
    except InvalidStateError:
        return  # it was lost and answered at once
