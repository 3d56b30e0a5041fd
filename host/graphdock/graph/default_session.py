"""The default session of a thread, as ``with session:`` sets it. Nothing below ``session`` knows what a session is."""

from __future__ import annotations

import threading
from typing import Any

from graphdock.errors import FailedPreconditionError

__all__ = ["get_default_session", "needed", "pop", "push"]


class _Stack(threading.local):
    def __init__(self) -> None:
        self.sessions: list[Any] = []


_stack = _Stack()


def push(session: Any) -> None:
    _stack.sessions.append(session)


def pop(session: Any) -> None:
    if not _stack.sessions or _stack.sessions[-1] is not session:
        raise FailedPreconditionError("sessions must be left in the reverse order of entering them")
    _stack.sessions.pop()


def get_default_session() -> Any:
    """The innermost session entered with ``with`` on this thread, or None."""
    return _stack.sessions[-1] if _stack.sessions else None


def needed(session: Any) -> Any:
    """``session``, or the default one. Raises FailedPreconditionError when there is neither."""
    found = session if session is not None else get_default_session()
    if found is None:
        raise FailedPreconditionError(
            "no default session on this thread", hint="use `with tf.Session():` or pass session="
        )
    return found
