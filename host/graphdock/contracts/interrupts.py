"""Interrupts: Ctrl-C comes while the main thread sleeps, not between a message and what becomes of it."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what signal wraps in enums, which take most of its time
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self, TypeVar

__all__ = ["Interrupts"]

_T = TypeVar("_T")


class Interrupts:
    """Used with ``with``, on any thread. On the main one a SIGINT is acted on :meth:`during` a call that waits, else at the end."""

    def __init__(self) -> None:
        self._waits = False
        self._came: tuple[int, FrameType | None] | None = None
        self._before: Any = None

    def __enter__(self) -> Self:
        if threading.get_ident() == threading.main_thread().ident:
            before = _signal.getsignal(_signal.SIGINT)
            if callable(before):
                self._before = before
                _signal.signal(_signal.SIGINT, self._take)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            _signal.signal(_signal.SIGINT, self._before)
        self._act()

    def during(self, wait: Callable[..., _T], *args: Any) -> _T:
        """Call a function of C, which leaves nothing half done where it is interrupted; what it returned may be lost."""
        self._waits = True
        try:
            self._act()
            return wait(*args)
        finally:
            self._waits = False

    def _act(self) -> None:
        came, self._came = self._came, None
        if came is not None:
            self._before(*came)

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self._waits:
            self._before(number, frame)
        else:
            self._came = number, frame
