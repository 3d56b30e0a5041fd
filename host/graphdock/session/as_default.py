"""A session as the default one of its thread, inside a ``with``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphdock.graph import default_session

if TYPE_CHECKING:
    from graphdock.session.session import Session

__all__ = ["AsDefault"]


class AsDefault:
    def __init__(self, session: Session) -> None:
        self._session = session

    def __enter__(self) -> Session:
        default_session.push(self._session)
        return self._session

    def __exit__(self, *args: Any) -> None:
        default_session.pop(self._session)
