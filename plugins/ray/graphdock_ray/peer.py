"""Peer: the connection to one address, and the calls that wait for its answers."""

from __future__ import annotations

import json
import os
import struct
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import zmq
import zmq.backend
from graphdock.contracts import errors
from graphdock.locks import new_lock
from zmq.utils.monitor import parse_monitor_message

from graphdock_ray.keys import Keys
from graphdock_ray.segments import machine, opened
from graphdock_ray.way import Way

__all__ = [
    "CALL",
    "FAILED",
    "HELLO",
    "POST",
    "RESULT",
    "SMALL",
    "Peer",
    "has_come",
    "join",
    "received",
    "returned",
    "send_small",
    "set_up",
    "split",
]

#: Kinds of messages.
CALL, POST, RESULT, FAILED = b"C", b"P", b"R", b"E"
#: The first message of a connection, and its answer: which machine its sender is of.
HELLO = b"H"
#: Bytes up to which a message travels as one frame, which any thread may send: nothing interrupts it halfway.
SMALL = 1 << 16
#: Seconds after which an address that does not answer counts as unreachable.
PATIENCE = 3.0
#: Milliseconds between heartbeats, and after which a peer without any is lost.
HEARTBEAT, LOST = 400, 1600
_ENDS = zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED | zmq.EVENT_CONNECT_RETRIED
#: Methods of sockets without what pyzmq's own add to each call, and options as plain numbers.
_Raw = zmq.backend.Socket
_EVENTS, _POLLIN, _NOBLOCK, _SNDMORE = int(zmq.EVENTS), int(zmq.POLLIN), int(zmq.NOBLOCK), int(zmq.SNDMORE)
_REFUSED = zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL


def set_up(socket: Any) -> None:
    """Options of every socket: no limit on what is queued, heartbeats, nothing sent after it is closed."""
    socket.setsockopt(zmq.SNDHWM, 0)
    socket.setsockopt(zmq.RCVHWM, 0)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.HEARTBEAT_IVL, HEARTBEAT)
    socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, LOST)
    socket.setsockopt(zmq.IPV6, 1)


def has_come(socket: Any) -> bool:
    """Return whether a socket has a message."""
    return bool(int(_Raw.get(socket, _EVENTS)) & _POLLIN)


def received(socket: Any) -> list[Any] | None:
    """The frames of a message that has come to a socket; None where there is none."""
    if not has_come(socket):
        return None
    frames = [_Raw.recv(socket, _NOBLOCK, False, False)]
    while frames[-1].more:
        frames.append(_Raw.recv(socket, _NOBLOCK, False, False))
    return frames


def send_small(socket: Any, *frames: bytes) -> None:
    """Send a message of small frames."""
    for frame in frames[:-1]:
        _Raw.send(socket, frame, _SNDMORE, True, False)
    _Raw.send(socket, frames[-1], 0, True, False)


def join(head: bytes, frames: Sequence[Any]) -> bytes | None:
    """One frame for a small message; None for one that is not small."""
    lengths = [len(f) for f in frames]
    if sum(lengths) > SMALL:
        return None
    return b"".join([head, struct.pack(f"<{len(frames) + 1}I", len(frames), *lengths), *frames])


def split(text: memoryview, more: Sequence[Any] = ()) -> tuple[bytes, list[Any]]:
    """Head and frames of a message, of its first frame, and of those that follow. Raises DataLossError: it is damaged."""
    if more:
        return bytes(text[:9]), [f.buffer for f in more]
    try:
        (count,) = struct.unpack_from("<I", text, 9)
        lengths = struct.unpack_from(f"<{count}I", text, 13)
    except struct.error:
        raise errors.DataLossError("a message is damaged: it is cut") from None
    at, found = 13 + 4 * count, []
    for length in lengths:
        found.append(text[at : at + length])
        at += length
    if at != len(text):
        raise errors.DataLossError("a message is damaged: it is of another length")
    return bytes(text[:9]), found


def returned(head: bytes, frames: list[Any]) -> tuple[bytes, list[Any]]:
    """A message with what lies in shared memory in its place. Raises DataLossError: it is damaged."""
    if not head[:1].islower():
        return head, frames
    try:
        return head.upper()[:1] + head[1:], opened(frames[:-1], json.loads(bytes(frames[-1])))
    except (ValueError, TypeError, IndexError) as error:
        raise errors.DataLossError(f"a message is damaged: {error}") from None


class Peer:
    """A connection. Any thread may send small messages; all else is done by the transport's own thread.

    Args:
      address: ``host:port``. ``found``: is given the way to it, where there is one.
    """

    def __init__(self, context: Any, address: str, keys: Keys | None, found: Callable[[Peer, Way], None]) -> None:
        self.address = address
        self._found = found
        self.way: Way | None = None
        self._secret = keys is not None
        self.socket = context.socket(zmq.DEALER)
        set_up(self.socket)
        self.socket.setsockopt(zmq.RECONNECT_IVL, -1)
        if keys is not None:
            keys.dial(self.socket)
        self.monitor = self.socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | _ENDS | _REFUSED)
        self.lock = new_lock()
        #: Sessions of which tensors were posted by this connection, each with the last step of them.
        self.posted: dict[str, int] = {}
        self._calls: dict[int, Future[Any]] = {}
        self._next = 0
        self._since = time.monotonic()
        self._up = self.near = False
        self.reader = os.urandom(8)
        self.error: errors.GraphdockError | None = None
        try:
            self.socket.connect(f"tcp://{address}")
        except zmq.ZMQError as error:
            self.fail(f"{address} is no address that can be reached: {error}")
        self.send(HELLO, [machine()], None)

    def send(
        self, kind: bytes, frames: list[Any], future: Future[Any] | None, tensor: tuple[str, int] | None = None
    ) -> bool | None:
        """Send a call or what is posted; whether something has come that :meth:`receive` must be called for. None: the peer has
        failed, and nothing was sent.

        A socket may go from thread to thread within a lock. Whoever uses it takes its sign that something has come.

        Args:
          tensor: session and step of the one that is posted.
        """
        number = 0
        with self.lock:
            if self.error is not None:
                return None
            if future is not None:
                number = self._next = self._next + 1
                self._calls[number] = future
            if tensor is not None:
                self.posted[tensor[0]] = max(tensor[1], self.posted.get(tensor[0], 0))
            head = kind + struct.pack("<q", number)
            one = join(head, frames)
            if one is None:
                self.socket.send_multipart([head, *frames], copy=False)
            elif self.way is not None and self.way.send(one):
                return False
            else:
                send_small(self.socket, one)
            return has_come(self.socket)

    def receive(self, unpack: Any, failed: Any) -> None:
        """Complete the calls whose answers are there."""
        while self.error is None:
            with self.lock:
                came = received(self.socket)
            if came is None:
                return
            self._take(unpack, failed, came[0].buffer, came[1:])

    def receive_on_way(self, unpack: Any, failed: Any, buffer: bytearray) -> None:
        """Complete the calls whose answers have come by the way."""
        text = memoryview(buffer).toreadonly()
        while self.error is None and self.way is not None and (size := self.way.receive(buffer)) is not None:
            if size:
                self._take(unpack, failed, text[:size])
            else:
                self.fail(f"the task at {self.address} is lost: its connection ended")

    def _take(self, unpack: Any, failed: Any, text: memoryview, more: Sequence[Any] = ()) -> None:
        """Complete the call that a message answers."""
        try:
            head, frames = returned(*split(text, more))
        except errors.DataLossError as error:
            self.fail(f"the task at {self.address} sent what is no answer: {error.message}")
            return
        if head[:1] == HELLO:
            self._greeted([bytes(f) for f in frames])
            return
        future = self._calls.pop(struct.unpack("<q", head[1:])[0] if len(head) == 9 else 0, None)
        if future is None or not future.set_running_or_notify_cancel():
            return
        try:
            value = unpack(frames)
        except errors.GraphdockError as error:
            future.set_exception(error)
            return
        if head[:1] == RESULT:
            future.set_result(value)
        else:
            future.set_exception(failed(value))

    def _greeted(self, said: list[bytes]) -> None:
        """Take note of whether the other end is of this machine, and go the way to it."""
        self.near = bool(machine()) and said[:1] == [machine()]
        way = Way.dialled(*said[1:]) if self.near and len(said) == 3 and self.way is None else None
        if way is not None:
            self._found(self, way)
            with self.lock:
                self.way = way

    def look(self) -> None:
        """Take note of what became of the connection."""
        while self.error is None:
            try:
                event = parse_monitor_message(self.monitor.recv_multipart(zmq.NOBLOCK))["event"]
            except zmq.Again:
                return
            if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self._up = True
            elif event & _REFUSED:
                self.fail(
                    f"the task at {self.address} refused the key",
                    "set the same GRAPHDOCK_CLUSTER_KEY for all processes",
                )
            elif self._up:
                self.fail(f"the task at {self.address} is lost: its connection ended")
            else:
                self.fail(f"no task listens at {self.address}")

    def late(self) -> None:
        """Give up an address that has not answered for long."""
        if self.error is None and not self._up and time.monotonic() - self._since > PATIENCE:
            hint = "it may want another GRAPHDOCK_CLUSTER_KEY" if self._secret else None
            self.fail(f"the task at {self.address} did not answer within {PATIENCE:g} s", hint)

    def fail(self, message: str, hint: str | None = None) -> None:
        """Fail all calls. What was queued is dropped: nothing is sent twice."""
        with self.lock:
            self.error = errors.UnavailableError(message, hint=hint)
            calls, self._calls = list(self._calls.values()), {}
        for future in calls:
            if future.set_running_or_notify_cancel():
                future.set_exception(errors.UnavailableError(message, hint=hint))

    def close(self) -> None:
        """Close the sockets of a peer that has failed."""
        with self.lock:
            if self.way is not None:
                self.way.close()
            self.socket.disable_monitor()
            self.monitor.close(0)
            self.socket.close(0)
