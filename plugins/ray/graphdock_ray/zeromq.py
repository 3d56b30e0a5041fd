"""The transport over ZeroMQ: one thread per process receives all messages, or a thread that waits for one does in its place; small
ones are sent by who has them. A thread that has received what may wait does it, and another one receives meanwhile.

A call that failed is not repeated, and what was queued for a lost address is dropped. A lost process is noticed when its connection
ends, one that is frozen by heartbeats.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import logging
import os
import select
import socket
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

import zmq
from graphdock.contracts import Answer, Transport, WaitingThreads, keep_a_call, pack, raised, unpack
from graphdock.contracts.interrupts import Interrupts
from graphdock.locks import new_lock

from graphdock_ray.keys import Keys
from graphdock_ray.listener import Listener
from graphdock_ray.peer import CALL, POST, SMALL, Peer
from graphdock_ray.segments import LEAST, Segments
from graphdock_ray.service import Service
from graphdock_ray.way import Way

__all__ = ["ZeroMQTransport"]

_log = logging.getLogger("graphdock")
#: Threads at most that sleep until something comes, ready to act on it.
RECEIVERS = 4
#: Seconds at most for which a thread that waits receives in the place of the transport's own, and between two looks whether another
#: one has done it.
DRIVEN, LOOK = 0.02, 0.001


class ZeroMQTransport(Transport):
    """Reaches tasks of other processes. Any thread may call any method; in a forked child it begins anew."""

    scheme = "grpc"

    def __init__(self) -> None:
        self._lock = new_lock()
        self._loop: _Loop | None = None
        #: Is told of each address whose connection ended, on the thread that noticed it.
        self.lost: Callable[[str], None] = lambda address: None

    def call(self, address: str, method: str, arguments: Mapping[str, Any]) -> Future[Any]:
        future = Answer()
        self._send(address, CALL, method, arguments, future)
        return future

    def post(self, address: str, method: str, arguments: Mapping[str, Any]) -> None:
        self._send(address, POST, method, arguments, None)

    def wait(self, future: Future[Any], seconds: float | None = None) -> None:
        until = None if seconds is None else time.monotonic() + seconds
        with Interrupts() as interrupts:
            self._running().drive(future, DRIVEN if seconds is None else min(seconds, DRIVEN), interrupts)
            if not future.done():
                woken = threading.Lock()
                woken.acquire()
                future.add_done_callback(lambda done: woken.release())
                interrupts.during(woken.acquire, True, -1 if until is None else max(0.0, until - time.monotonic()))

    def serve(
        self,
        address: str,
        answer: Callable[[str, Mapping[str, Any]], Any],
        gone: Callable[[str], None],
        keys: Keys | None = None,
    ) -> str:
        made = self._running().ask(lambda loop: loop.listen(address, answer, gone, keys))
        return str(made.result())

    def sample_address(self) -> str | None:
        with socket.create_server(("localhost", 0)) as free:
            return f"localhost:{free.getsockname()[1]}"

    def trust(self, address: str, keys: Keys) -> None:
        """Take a task at an address for one only where it has these keys."""
        self._running().trusted[address] = keys

    def forget(self, address: str) -> None:
        self._running().ask(lambda loop: loop.forget(address)).result()

    def close(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None and loop.process == os.getpid():
            loop.ask(lambda loop: loop.stop()).result()

    def _send(
        self, address: str, kind: bytes, method: str, arguments: Mapping[str, Any], future: Future[Any] | None
    ) -> None:
        loop = self._running()
        peer = loop.peers.get(address)
        frames = pack([method, dict(arguments)])
        tensor = (arguments["session"], arguments["step"]) if method == "arrive" else None
        if peer is not None and peer.error is not None:
            peer = None
        if peer is not None and peer.near:
            kind, frames = loop.lend(kind, frames, peer.reader)
        if peer is None or sum(map(len, frames)) > SMALL:
            frames = [bytes(f) if isinstance(f, memoryview) else f for f in frames]
            to = peer if kind.islower() else None  # others can't read what was lent to it
            loop.give(lambda loop: loop.send(to or loop.peer(address), kind, frames, future, tensor))
        elif (came := peer.send(kind, frames, future, tensor)) is None:
            loop.give(lambda loop: loop.failed(peer, future, tensor))
        elif came:
            loop.give(lambda loop: peer.receive(unpack, raised))

    def _running(self) -> _Loop:
        loop = self._loop
        if loop is None or loop.process != os.getpid():
            with self._lock:
                loop = self._loop
                if loop is None or loop.process != os.getpid():
                    loop = self._loop = _Loop(self)
                    atexit.register(self.close)
        return loop


class _Turns(threading.local):
    here = False


#: Whether this thread handles what has come.
_turns = _Turns()


class _Loop:
    """The thread that owns the sockets of this process, and who acts in its place."""

    def __init__(self, transport: ZeroMQTransport) -> None:
        self.process = os.getpid()
        self._transport = weakref.ref(transport)
        self._context = zmq.Context()
        self._keys = Keys.of_environment()
        self._todo: deque[Callable[[_Loop], Any]] = deque()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        weakref.finalize(self, os.close, self._wake)  # not by the thread that ends: who woke it may be about to write
        self._epoll = select.epoll()
        self._epoll.register(self._wake, select.EPOLLIN | select.EPOLLET)
        self.peers: dict[str, Peer] = {}
        self.trusted: dict[str, Keys] = {}
        self._served: dict[str, Service] = {}
        self._ready: dict[int, Callable[[], None]] = {}
        self._threads = WaitingThreads("graphdock call")
        self._stopped = False
        self._lock = new_lock()
        #: Held by who handles what has come; and by the thread, of those that wait, that receives.
        self._handling, self._driving = new_lock(), new_lock()
        self._segments: Segments | None = None
        #: What comes by a way, until it is read.
        self.buffer = bytearray(2 * SMALL)
        self._count_lock = new_lock()
        #: Threads that receive, or are about to.
        self._receiving = 0
        self._receive()

    def _receive(self) -> None:
        """Have one more thread receive."""
        self._receiving += 1
        threading.Thread(target=self._run, name="graphdock zeromq", daemon=True).start()

    def give(self, action: Callable[[_Loop], Any]) -> None:
        """Have the thread do something."""
        self._todo.append(action)
        os.eventfd_write(self._wake, 1)

    def ask(self, action: Callable[[_Loop], Any]) -> Future[Any]:
        """Have the thread do something; the Future of its result."""
        future: Future[Any] = Future()

        def act(loop: _Loop) -> None:
            try:
                future.set_result(action(loop))
            except BaseException as error:  # noqa: BLE001 - it is the asker's
                future.set_exception(error)

        self.give(act)
        while self._stopped and self._todo:  # after the last turn
            with contextlib.suppress(IndexError):
                self._do(self._todo.popleft(), self)
        return future

    def drive(self, future: Future[Any], seconds: float, interrupts: Interrupts) -> None:
        """Receive, in the place of the thread, until a Future is done or the time is over; at once, where another thread does.

        An event wakes one of the threads that wait for it, the one that came last: this one, not the loop's own.
        """
        if future.done() or _turns.here or not self._driving.acquire(blocking=False):
            return
        until = time.monotonic() + seconds
        try:
            while not (future.done() or self._stopped or time.monotonic() >= until):
                if found := interrupts.during(self._epoll.poll, LOOK):
                    self._turn(found)
        except BaseException:
            self.give(_Loop._look)  # what it was told of is not handled
            raise
        finally:
            self._driving.release()

    # -- on the thread, or on one that drives ------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopped:
            found = self._epoll.poll(1.0)
            if not found:  # who was interrupted between a send and its look at what has come has told nobody
                self._todo.append(_Loop._look)
            kept = keep_a_call(self._turn, found)
            if kept is not None:
                self._leave()
                kept()
                del kept
                if not self._come_back():
                    return
        with self._count_lock:
            self._receiving -= 1
            is_last = not self._receiving
        if is_last:
            with self._driving:
                self._epoll.close()

    def _leave(self) -> None:
        """Have another thread receive while this one does something that may wait."""
        with self._count_lock:
            self._receiving -= 1
            if not self._receiving:
                self._receive()

    def _come_back(self) -> bool:
        """Return whether this thread is to receive again: not where there are some, or none is to any more."""
        with self._count_lock:
            if self._stopped or self._receiving >= RECEIVERS:
                return False
            self._receiving += 1
            return True

    def _turn(self, found: list[tuple[int, int]]) -> None:
        with self._handling:
            _turns.here = True
            try:
                for ready, _ in found:
                    if ready == self._wake:
                        self._awake()
                    elif ready in self._ready:
                        self._do(self._ready[ready])
                while self._todo:
                    self._do(self._todo.popleft(), self)
                for peer in list(self.peers.values()):
                    peer.late()
                    if peer.error is not None:
                        self._drop(peer)
            finally:
                _turns.here = False

    def _awake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._wake)

    def _look(self) -> None:
        """Look at all sockets, whether or not something is said to have come."""
        for act in list(self._ready.values()):
            self._do(act)

    @staticmethod
    def _do(act: Callable[..., None], *args: Any) -> None:
        """Act, and go on whatever becomes of it: all connections of the process hang on this thread."""
        try:
            act(*args)
        except Exception:  # noqa: BLE001 - it is logged, and the next message has nothing to do with it
            _log.exception("a connection could not be served")

    def send(
        self, peer: Peer, kind: bytes, frames: list[Any], future: Future[Any] | None, tensor: tuple[str, int] | None
    ) -> None:
        """Send a message that is large, or the first one to an address."""
        came = peer.send(kind, frames, future, tensor)
        if came is None:
            self.failed(peer, future, tensor)
        elif came:
            peer.receive(unpack, raised)

    def failed(self, peer: Peer, future: Future[Any] | None, tensor: tuple[str, int] | None) -> None:
        """Tell who waits for it that a message was not sent, for its peer has failed."""
        self.forget_reader(peer.reader)
        if future is not None:
            future.set_exception(peer.error)
        if tensor is not None:
            self._unreached(peer.address, *tensor)

    def lend(self, kind: bytes, frames: list[Any], reader: bytes) -> tuple[bytes, list[Any]]:
        """The message with its large frames in shared memory, of which its last frame tells then, and its kind in small letters."""
        if all(len(f) < LEAST for f in frames):
            return kind, frames
        with self._lock:
            if self._segments is None:
                self._segments = Segments()
        frames, lent = self._segments.lend(frames, reader)
        return (kind.lower(), [*frames, json.dumps(lent).encode()]) if lent else (kind, frames)

    def forget_reader(self, reader: bytes) -> None:
        """Give up what a process that is lost had lent to it."""
        if self._segments is not None:
            self._segments.forget(reader)

    def peer(self, address: str) -> Peer:
        """The connection to an address, made where there is none."""
        found = self.peers.get(address)
        if found is None or found.error is not None:
            if found is not None:
                self._drop(found)
            made = found = Peer(self._context, address, self.trusted.get(address, self._keys), self._go)
            self.peers[address] = made
            self.watch(made.socket.FD, lambda: made.receive(unpack, raised))
            self.watch(made.monitor.FD, made.look)
        return found

    def _go(self, peer: Peer, way: Way) -> None:
        self.watch(way.fd, lambda: peer.receive_on_way(unpack, raised, self.buffer))

    def listen(
        self,
        address: str,
        answer: Callable[[str, Mapping[str, Any]], Any],
        gone: Callable[[str], None],
        keys: Keys | None,
    ) -> str:
        """Serve an address."""
        listener = Listener(
            self._context, address, answer, functools.partial(self._threads.submit, gone), keys or self._keys
        )
        made = self._served[listener.address] = Service(self, listener)
        made.begin()
        return listener.address

    def forget(self, address: str) -> None:
        """Serve an address no more."""
        made = self._served.pop(address, None)
        if made is not None:
            made.close()

    def stop(self) -> None:
        """End the thread, and what waits."""
        for address in list(self._served):
            self.forget(address)
        for peer in list(self.peers.values()):
            if peer.error is None:
                peer.fail("the transport was closed")
            self._drop(peer)
        self._context.destroy(0)
        if self._segments is not None:
            self._segments.close()
        self._threads.close()
        self._stopped = True

    def _drop(self, peer: Peer) -> None:
        if self.peers.get(peer.address) is peer:
            del self.peers[peer.address]
        self.unwatch(peer.socket.FD, peer.monitor.FD, *([] if peer.way is None else [peer.way.fd]))
        peer.close()
        self.forget_reader(peer.reader)
        for session, step in peer.posted.items():
            self._unreached(peer.address, session, step)
        if (transport := self._transport()) is not None:
            transport.lost(peer.address)

    def _unreached(self, address: str, session: str, step: int) -> None:
        for service in list(self._served.values()):
            service.post("unreached", {"session": session, "address": address, "step": step})

    def watch(self, fd: int, act: Callable[[], None]) -> None:
        """Act whenever something has come to a descriptor, which is read until it is empty."""
        self._epoll.register(fd, select.EPOLLIN | select.EPOLLET)
        self._ready[fd] = act
        act()  # the descriptor tells of what comes, not of what is there

    def unwatch(self, *fds: int) -> None:
        """Act on them no more."""
        for fd in fds:
            if self._ready.pop(fd, None) is not None:
                self._epoll.unregister(fd)
