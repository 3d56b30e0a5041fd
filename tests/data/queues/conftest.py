"""Steps on threads of their own."""

from __future__ import annotations

import threading

import pytest


class Step:
    """A function on a thread of its own, and what it returned or raised."""

    def __init__(self, run):
        self.result, self.error = None, None
        self._thread = threading.Thread(target=self._work, args=(run,), daemon=True)
        self._thread.start()

    def _work(self, run):
        try:
            self.result = run()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.error = error

    def join(self):
        self._thread.join(60)
        assert not self._thread.is_alive(), "the step still waits"
        return self


@pytest.fixture
def start():
    """``start(function)`` -> a Step, which is known to wait when a queue says so."""
    return Step
