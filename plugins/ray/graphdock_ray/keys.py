"""Keys: encryption and authentication by one secret that all processes of a cluster share (CURVE).

``GRAPHDOCK_CLUSTER_KEY`` holds the secret. Both pairs of keys are derived from it, so that only who knows it can call a task, or be
taken for one. Without it connections are open to whoever reaches the address, as those of TensorFlow's servers are.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any

import zmq
from graphdock.contracts import errors
from zmq.utils import z85

__all__ = ["VARIABLE", "Keys"]

VARIABLE = "GRAPHDOCK_CLUSTER_KEY"


class Keys:
    """The keys of a secret. Raises ConfigError: this build of ZeroMQ has no CURVE."""

    def __init__(self, secret: str) -> None:
        if not zmq.has("curve"):
            raise errors.ConfigError(f"{VARIABLE} is set, and this build of ZeroMQ can't encrypt")
        self._server = self._pair(secret, b"server")

    @classmethod
    def of_environment(cls) -> Keys | None:
        """The keys of the environment's secret; None where there is none."""
        secret = os.environ.get(VARIABLE, "")
        return cls(secret) if secret else None

    @staticmethod
    def _pair(secret: str, part: bytes) -> tuple[bytes, bytes]:
        raw = hashlib.scrypt(secret.encode(), salt=b"graphdock cluster " + part, n=2**14, r=8, p=1, dklen=32)
        private = z85.encode(raw)
        return zmq.curve_public(private), private

    def listen(self, socket: Any) -> None:
        """Let a socket that binds take only who knows the secret: the server's public key is part of it."""
        socket.curve_publickey, socket.curve_secretkey = self._server
        socket.curve_server = True

    def dial(self, socket: Any) -> None:
        """Let a socket that connects reach only servers that know the secret."""
        socket.curve_publickey, socket.curve_secretkey = zmq.curve_keypair()
        socket.curve_serverkey = self._server[0]
