"""Interrupts: Ctrl-C comes when the main thread can take it, not between a message and what becomes of it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

__all__ = ["Interrupts"]


class Interrupts:
    """Used with ``with``, on any thread. On the main one a SIGINT that comes while it is :meth:`held` is acted on after that."""

    def __init__(self) -> None:
        self._is_held = False
        self._came: tuple[int, FrameType | None] | None = None
        self._before: Any = None

    def __enter__(self) -> Self:
        if threading.get_ident() == threading.main_thread().ident:
            before = signal.getsignal(signal.SIGINT)
            if callable(before):
                self._before = before
                signal.signal(signal.SIGINT, self._take)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self._is_held:
            self._came = number, frame
        else:
            self._before(number, frame)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Act on no interrupt within ``with``."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            came, self._came = self._came, None
            if came is not None:
                self._before(*came)
