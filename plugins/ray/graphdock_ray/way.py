"""Ways: Unix sockets by which small messages go between the processes of one machine, from the thread that sends to the one that
waits. ZeroMQ's own threads stand between those of a connection, two at each end that have to be woken.

A way belongs to a connection of ZeroMQ's, by whose first messages its ends learn of it, and ends with it. Each message is a packet,
written whole or not at all: what finds no room goes by the connection. The sockets have no names in any folder.
"""

from __future__ import annotations

import os
import socket
import struct

from graphdock.locks import new_lock

__all__ = ["Door", "Way"]

_CREDENTIALS = struct.Struct("3i")


class Way:
    """One end of it. Any thread may send.

    Args:
      end: a socket that is connected.

    Attributes:
      sender, connection: identity and descriptor of the connection of ZeroMQ's that it belongs to, at its server; empty and 0 at
        its other end, and before its first message.
      closed: at this end.
    """

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._socket, self._lock = end, new_lock()
        self.fd = end.fileno()
        self.sender, self.connection, self.closed = b"", 0, False

    @classmethod
    def dialled(cls, name: bytes, token: bytes) -> Way | None:
        """The way to a door, at which the token is shown; None where it can't be reached: messages go by the connection."""
        end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        end.setblocking(False)
        try:
            end.connect(b"\0" + name)
            end.send(token)
        except OSError:
            end.close()
            return None
        return cls(end)

    def send(self, message: bytes) -> bool:
        """Return whether a message is sent. It is not where there is no room, or the other end is gone."""
        with self._lock:
            try:
                self._socket.send(message, socket.MSG_NOSIGNAL)
            except OSError:
                return False
            return True

    def receive(self, into: bytearray) -> int | None:
        """Length of the next message, which is written into a buffer; 0 at the end; None where nothing has come."""
        try:
            return self._socket.recv_into(into)
        except BlockingIOError:
            return None
        except OSError:
            return 0

    def close(self) -> None:
        """Close this end. The other one gets what was sent before."""
        with self._lock:
            self.closed = True
            self._socket.close()


class Door:
    """The beginning of the ways of one listener. Only processes of the same user that were told a token come in, each once.

    Attributes:
      ways: those that are open, by the identities of their connections.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setblocking(False)
        self._name = b"graphdock-" + os.urandom(16).hex().encode()
        self._socket.bind(b"\0" + self._name)
        self._socket.listen(128)
        self.fd = self._socket.fileno()
        self._tokens: dict[bytes, tuple[bytes, int]] = {}
        self.ways: dict[bytes, Way] = {}

    def invite(self, sender: bytes, connection: int) -> list[bytes]:
        """Frames that tell the sender of a connection how to come in."""
        self._uninvite(sender)
        token = os.urandom(32)
        self._tokens[token] = sender, connection
        return [self._name, token]

    def admit(self) -> Way | None:
        """The next one that has come, of the same user; None where there is none."""
        while True:
            try:
                end, _ = self._socket.accept()
            except OSError:
                return None
            said = end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            if _CREDENTIALS.unpack(said)[1] == os.getuid():
                return Way(end)
            end.close()

    def knows(self, way: Way, token: bytes) -> bool:
        """Return whether the first message of a way is a token, which then belongs to the token's connection."""
        found = self._tokens.pop(token, None)
        if found is None or found[0] in self.ways:
            return False
        way.sender, way.connection = found
        self.ways[way.sender] = way
        return True

    def lose(self, sender: bytes) -> Way | None:
        """The way of a connection that has ended, or None. It leads nowhere any more."""
        self._uninvite(sender)
        return self.ways.pop(sender, None)

    def forget(self, way: Way) -> None:
        """Take note that a way has ended; or that it began with no token."""
        if self.ways.get(way.sender) is way:
            del self.ways[way.sender]

    def _uninvite(self, sender: bytes) -> None:
        for token in [t for t, (who, _) in self._tokens.items() if who == sender]:
            del self._tokens[token]

    def close(self) -> list[Way]:
        """Let nobody in any more. The ways, which lead nowhere from now on."""
        self._socket.close()
        ways, self.ways = list(self.ways.values()), {}
        self._tokens.clear()
        return ways
