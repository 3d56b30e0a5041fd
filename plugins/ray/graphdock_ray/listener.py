"""Listener: the socket of a task that is served, and whose sessions came by which connection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import zmq
from graphdock.contracts import errors
from graphdock.locks import new_lock
from zmq.utils.monitor import parse_monitor_message

from graphdock_ray.keys import Keys
from graphdock_ray.peer import HELLO, has_come, join, received, send_small, set_up
from graphdock_ray.segments import machine
from graphdock_ray.way import Door

__all__ = ["Listener"]


class Listener:
    """An address of this process. Any thread may reply; all else is done by the transport's own.

    Args:
      answer: of the task. ``gone``: is told of sessions whose process is lost; it does not wait.

    Raises:
      UnavailableError: the address is taken, or is not of this machine.
    """

    def __init__(
        self,
        context: Any,
        address: str,
        answer: Callable[[str, Mapping[str, Any]], Any],
        gone: Callable[[str], Any],
        keys: Keys | None,
    ) -> None:
        self.answer, self._gone = answer, gone
        self.lock = new_lock()
        self.socket = context.socket(zmq.ROUTER)
        set_up(self.socket)
        if keys is not None:
            keys.listen(self.socket)
        self.monitor = self.socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        try:
            self.socket.bind(f"tcp://{address}")
        except zmq.ZMQError as error:
            self.close()
            hint = "is another server running there?" if error.errno == zmq.EADDRINUSE else None
            raise errors.UnavailableError(f"a server can't listen at {address}: {error}", hint=hint) from None
        bound = self.socket.getsockopt(zmq.LAST_ENDPOINT).rstrip(b"\0").decode()
        host, _, port = address.rpartition(":")
        self.address = f"{host}:{bound.rpartition(':')[2]}" if port == "0" else address
        self._sessions: dict[int, set[str]] = {}
        self._readers: dict[int, bytes] = {}
        self.near: set[bytes] = set()
        self.door = Door() if machine() else None

    def note(self, connection: int, method: str, arguments: Mapping[str, Any]) -> None:
        """Remember by which connection a session was opened."""
        if method == "open" and connection > 0:
            self._sessions.setdefault(connection, set()).add(str(arguments.get("session")))

    def receive(self) -> list[Any] | None:
        """The frames of a message that has come; None where there is none."""
        with self.lock:
            return received(self.socket)

    def reply(self, sender: bytes, head: bytes, frames: list[Any]) -> bool:
        """Answer a call, on any thread; whether something has come. A caller that is gone gets nothing."""
        one = join(head, frames)
        way = None if self.door is None else self.door.ways.get(sender)
        if one is not None and way is not None and way.send(one):
            return False
        with self.lock:
            if self.socket.closed:
                return False
            if one is None:
                self.socket.send_multipart([sender, head, *frames], copy=False)
            else:
                send_small(self.socket, sender, one)
            return has_come(self.socket)

    def greet(self, frame: Any, sender: bytes, frames: list[Any]) -> bool:
        """Answer the first message of a connection: whether its sender is of this machine is known from then on."""
        invited: list[bytes] = []
        if self.door is not None and [bytes(f) for f in frames] == [machine()]:
            connection = frame.get(zmq.SRCFD)
            self._readers[connection] = sender
            self.near.add(sender)
            invited = self.door.invite(sender, connection)
        return self.reply(sender, HELLO + bytes(8), [machine(), *invited])

    def look(self, lost: Callable[[bytes], None]) -> None:
        """Take note of connections that have ended: tell of their sessions, and of the lost reader."""
        while True:
            try:
                said = parse_monitor_message(self.monitor.recv_multipart(zmq.NOBLOCK))
            except zmq.Again:
                return
            reader = self._readers.pop(said["value"], None)
            if reader is not None:
                self.near.discard(reader)
                lost(reader)
            for session in self._sessions.pop(said["value"], ()):
                self._gone(session)

    def close(self) -> None:
        """Close the sockets."""
        with self.lock:
            self.socket.disable_monitor()
            self.monitor.close(0)
            self.socket.close(0)
