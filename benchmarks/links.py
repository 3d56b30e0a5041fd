"""Link: a way for TCP connections to an address, which can be cut, or be held so that nothing passes, from outside of both ends."""

from __future__ import annotations

import contextlib
import socket
import threading

__all__ = ["Link"]


class Link:
    """Passes on what comes to an address of its own. Any thread may cut or hold it.

    Args:
      address: ``localhost:port`` to which all connections go on.

    Attributes:
      address: at which it is reached itself.
    """

    def __init__(self, address: str) -> None:
        self._port = int(address.rpartition(":")[2])
        self._server = socket.create_server(("localhost", 0))
        self.address = f"localhost:{self._server.getsockname()[1]}"
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._passes = threading.Event()
        self._passes.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> int:
        """End all connections that go over it; how many there were. New ones pass."""
        with self._lock:
            ended, self._open = self._open, set()
        for one in ended:
            _end(one)
        return len(ended) // 2

    def hold(self) -> None:
        """Let nothing pass, and end nothing: as where the network is lost."""
        self._passes.clear()

    def release(self) -> None:
        """End what was held, and let new connections pass."""
        self.cut()
        self._passes.set()

    def close(self) -> None:
        """End it, with all connections."""
        _end(self._server)
        self.release()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return  # it is closed
            try:
                far = socket.create_connection(("localhost", self._port))
            except OSError:
                _end(near)
                continue
            for one in (near, far):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._open |= {near, far}
            for ends in ((near, far), (far, near)):
                threading.Thread(target=self._pass, args=ends, daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while came := source.recv(1 << 16):
                self._passes.wait()
                sink.sendall(came)
        with self._lock:
            self._open -= {source, sink}
        _end(source)
        _end(sink)


def _end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
