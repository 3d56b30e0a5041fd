"""The default session of a thread, as ``with session:`` sets it. Nothing below ``session`` knows what a session is."""

from __future__ import annotations

import threading
import weakref
from typing import Any, Generic, TypeVar

from graphdock.errors import FailedPreconditionError, InvalidArgumentError

__all__ = ["AsDefault", "forget", "get_default_session", "needed", "pop", "push"]


S = TypeVar("S")


class _Stack(threading.local):
    def __init__(self) -> None:
        self.sessions: list[Any] = []


_stack = _Stack()
_gone: weakref.WeakSet[Any] = weakref.WeakSet()


def push(session: Any) -> None:
    _stack.sessions.append(session)


def forget(session: Any) -> None:
    """The session is closed, and no thread's default any more, wherever it stands among others."""
    _gone.add(session)


def _drop_gone(but: Any = None) -> None:
    while _stack.sessions and _stack.sessions[-1] is not but and _stack.sessions[-1] in _gone:
        _stack.sessions.pop()


def pop(session: Any) -> None:
    _drop_gone(session)
    if not _stack.sessions or _stack.sessions[-1] is not session:
        raise FailedPreconditionError("sessions must be left in the reverse order of entering them")
    _stack.sessions.pop()


class AsDefault(Generic[S]):
    """A session as the default one of its thread, inside a ``with``."""

    def __init__(self, session: S) -> None:
        self._session = session

    def __enter__(self) -> S:
        push(self._session)
        return self._session

    def __exit__(self, *args: Any) -> None:
        pop(self._session)


def get_default_session() -> Any:
    """The innermost session entered with ``with`` on this thread, or None."""
    if _gone:
        _drop_gone()
    return _stack.sessions[-1] if _stack.sessions else None


def needed(session: Any) -> Any:
    """``session``, or the default one. Raises InvalidArgumentError when there is neither."""
    found = session if session is not None else get_default_session()
    if found is None:
        raise InvalidArgumentError(
            "no default session on this thread", hint="use `with tf.Session():` or pass session="
        )
    return found
