"""Waits that are late: a line in the log for what has been waited for ten seconds, which mostly is a mistake."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Protocol

from graphdock.locks import new_lock

__all__ = ["LATE_WAITS", "LateWaits"]

_log = logging.getLogger("graphdock")
#: Seconds after which a wait is told.
_LATE = 10.0


class Waited(Protocol):
    """What is waited for."""

    def oldest_wait(self) -> tuple[float, str] | None: ...


class LateWaits:
    """Looks at what is waited for, on a thread that lives while anything is, and logs each that is late once.

    Args:
      now: seconds that never run backwards. runs: whether there is a thread; without it, for tests, :meth:`look` must be called.

    Any thread may call any method.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic, runs: bool = True) -> None:
        self._now, self._runs = now, runs
        self._lock = new_lock()
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget the thread, which a forked child does not have."""
        self._waited: dict[Waited, bool] = {}
        self._thread: threading.Thread | None = None

    def add(self, waited: Waited) -> None:
        """Look at this one until nobody waits in it."""
        with self._lock:
            self._waited.setdefault(waited, False)
            if self._thread is None and self._runs:
                self._thread = threading.Thread(target=self._run, name="graphdock late waits", daemon=True)
                self._thread.start()

    def look(self) -> bool:
        """Log what is late, and forget what nobody waits in; whether anything is left."""
        with self._lock:
            seen = list(self._waited.items())
        for waited, told in seen:
            with self._lock:
                found = waited.oldest_wait()
                if found is None:
                    del self._waited[waited]
                    continue
                late = self._now() - found[0]
                self._waited[waited] = told or late >= _LATE
            if late >= _LATE and not told:
                _log.warning("%s for %.0f seconds", found[1], late)
        with self._lock:
            if not self._waited:
                self._thread = None
            return bool(self._waited)

    def _run(self) -> None:
        while True:
            time.sleep(_LATE)
            if not self.look():
                return


#: Those of this process.
LATE_WAITS = LateWaits()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=LATE_WAITS.begin_anew)
