"""A thread of a test, whose failure is the test's."""

from __future__ import annotations

import threading
import unittest
from collections.abc import Callable, Mapping, Sequence
from typing import Any


class CheckedThread:
    """A thread whose errors fail the test that joins it. A test that leaves one running fails.

    Args:
      testcase: the test. target: what the thread calls, with ``args`` and ``kwargs``.
    """

    def __init__(
        self,
        testcase: unittest.TestCase,
        target: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        self._testcase = testcase
        self._call = lambda: target(*(args or ()), **(kwargs or {}))
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._joined = False

    def _run(self) -> None:
        try:
            self._call()
        except BaseException as error:  # noqa: BLE001 - kept for join, which fails the test with it
            self._error = error

    def start(self) -> None:
        """Begin; once."""
        self._thread.start()

    def join(self) -> None:
        """Wait for the end. Fails the test where the thread raised an error, and is its cause."""
        self._joined = True
        self._thread.join()
        if self._error is not None:
            raise self._testcase.failureException(f"Error in checkedThread: {self._error}") from self._error

    def is_alive(self) -> bool:
        """Return whether it runs."""
        return self._thread.is_alive()

    def check_termination(self) -> None:
        """Fail the test where the thread still runs, or has raised an error that nobody joined it for."""
        if self._joined:
            return
        if self.is_alive():
            self._testcase.fail("A checked thread was not terminated (neither joined nor ended)")
        if self._thread.ident is not None:
            self.join()
