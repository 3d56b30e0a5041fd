"""Ctrl-C while the driver works: it comes when the call returns, as with a real driver, whose calls are not Python."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["HeldBack"]

#: The block that holds interrupts back now. Only the main thread, which gets them, reads and writes it.
_outermost: HeldBack | None = None


class HeldBack:
    """Within the block an interrupt of the main thread is noted.

    At the end of the outermost block the handler that was there is called.
    """

    __slots__ = ("_before", "_noted")

    def __init__(self) -> None:
        self._before: Any = None
        self._noted: int | None = None

    def _note(self, number: int, frame: Any) -> None:
        self._noted = number  # without the frame, which would keep what it holds

    def lifted(self, body: Callable[[], None]) -> None:
        """Call ``body``, which may be interrupted; for the outermost block."""
        global _outermost
        if self._before is None:
            body()
            return
        try:
            _outermost = None
            signal.signal(signal.SIGINT, self._before)
            body()
        finally:
            signal.signal(signal.SIGINT, self._note)
            _outermost = self

    def __enter__(self) -> HeldBack:
        global _outermost
        if _outermost is None and threading.current_thread() is threading.main_thread():
            before = signal.signal(signal.SIGINT, self._note)
            if callable(before):
                self._before, _outermost = before, self
            else:
                signal.signal(signal.SIGINT, before)
        return self

    def __exit__(self, *raised: object) -> None:
        global _outermost
        if self._before is not None:
            _outermost = None
            signal.signal(signal.SIGINT, self._before)
            if self._noted is not None:
                self._before(self._noted, None)
