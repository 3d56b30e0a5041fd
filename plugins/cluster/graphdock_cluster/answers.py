"""Calls of a task's methods for transports: on a thread that may wait, or on the one that messages come by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphdock.contracts import errors

from graphdock_cluster.started import RECEIVING
from graphdock_cluster.task import TaskServer

__all__ = ["METHODS", "answer", "receive"]

#: What a transport may call.
METHODS = (
    *("info", "open", "watch", "register", "explain", "run", "arrive", "unreached", "abort", "forget"),
    *("close_session", "reset"),
)


def answer(server: TaskServer, method: str, arguments: Mapping[str, Any]) -> Any:
    """Call a method of a task for a transport.

    Raises:
      UnimplementedError: there is no such method. Or what it raises, with the task's name noted.
    """
    if method not in METHODS:
        raise errors.UnimplementedError(f"a task answers no {method!r}", expected="one of " + ", ".join(METHODS))
    return getattr(server, method)(**arguments)


def receive(server: TaskServer, method: str, arguments: Mapping[str, Any]) -> Any:
    """Answer on the thread that a transport receives on: at once, or by a Future. See :func:`answer`."""
    RECEIVING.here = True
    try:
        if method == "run":
            return server.start(**arguments)
        if method in ("arrive", "unreached", "abort", "forget", "watch"):
            return answer(server, method, arguments)
        return server.threads.submit(answer, server, method, arguments)
    finally:
        RECEIVING.here = False
