"""Keys: encryption and authentication (CURVE), by a secret that all processes of a cluster share, or by keys that Ray hands out.

``GRAPHDOCK_CLUSTER_KEY`` holds the secret. A task's pair of keys is derived from it, so that only who knows it can call a task, or
be taken for one. Without it connections are open to whoever reaches the address, as those of TensorFlow's servers are. A task on
Ray draws a pair of its own, whose public half only those learn who may ask Ray for it.
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
    """The keys of a task. Raises ConfigError: this build of ZeroMQ has no CURVE.

    Attributes:
      public: what those who call the task must know, and nobody else.
    """

    def __init__(self, public: bytes, private: bytes = b"") -> None:
        if not zmq.has("curve"):
            raise errors.ConfigError("connections are to be encrypted, and this build of ZeroMQ can't")
        self.public, self._private = public, private

    @classmethod
    def of_secret(cls, secret: str) -> Keys:
        """The keys of a secret."""
        raw = hashlib.scrypt(secret.encode(), salt=b"graphdock cluster server", n=2**14, r=8, p=1, dklen=32)
        private = z85.encode(raw)
        return cls(zmq.curve_public(private), private)

    @classmethod
    def drawn(cls) -> Keys:
        """A new pair."""
        return cls(*zmq.curve_keypair())

    @classmethod
    def of_environment(cls) -> Keys | None:
        """The keys of the environment's secret; None where there is none."""
        secret = os.environ.get(VARIABLE, "")
        return cls.of_secret(secret) if secret else None

    def listen(self, socket: Any) -> None:
        """Let a socket that binds take only who knows the public key."""
        socket.curve_publickey, socket.curve_secretkey = self.public, self._private
        socket.curve_server = True

    def dial(self, socket: Any) -> None:
        """Let a socket that connects reach only servers that know the private key."""
        socket.curve_publickey, socket.curve_secretkey = zmq.curve_keypair()
        socket.curve_serverkey = self.public
