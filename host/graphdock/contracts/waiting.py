"""Waits of a step in place, for executors that run one kernel after another, and Futures that the main thread may look at."""

from __future__ import annotations

import threading
import time
from concurrent.futures import CancelledError, Future
from typing import Any

from graphdock.contracts.step import CancellationToken
from graphdock.errors import AbortedError

__all__ = ["INTERRUPTS_SEEN", "Answer", "wait_for", "wait_until_done"]

#: Seconds after which a thread that waits looks for an interrupt. A signal that came while the main thread was about to sleep has
#: not woken it, nor does an exception that is set from outside wake another: CPython notes it, and a lock does not see that note.
INTERRUPTS_SEEN = 0.05


class _Lock(type(threading.RLock())):  # type: ignore[misc]
    """Condition of a Future, entered by one call of C: an interrupt within the Python of ``threading.Condition`` leaves
    its lock held, and the thread that brings the result waits for it without end."""

    _waiting: threading.Condition | None = None

    def wait(self, timeout: float | None = None) -> bool:
        if self._waiting is None:
            self._waiting = threading.Condition(self)
        return self._waiting.wait(timeout)

    def notify_all(self) -> None:
        if self._waiting is not None:
            self._waiting.notify_all()


class Answer(Future[Any]):
    """A Future that any thread may look at, the main one as well, whatever interrupts it."""

    def __init__(self) -> None:
        super().__init__()
        self._condition = _Lock()


def wait_for(future: Future[Any], token: CancellationToken) -> Any:
    """The result of a future, waited for on this thread.

    It is cancelled when the step is, or when the thread is interrupted: what it waited for stays where it was.

    Raises:
      The error of the step, of the future, or the interrupt. AbortedError: somebody else cancelled the future.
    """
    forget = token.watch(lambda error: future.cancel())
    try:
        wait_until_done(future)
        return future.result()
    except CancelledError:
        token.check()
        raise AbortedError("what the step waited for was cancelled") from None
    except BaseException:
        future.cancel()
        raise
    finally:
        forget()


def wait_until_done(future: Future[Any], seconds: float | None = None) -> None:
    """Return once a Future is done, well or not, or after so many seconds.

    It waits by a lock: an interrupt within ``Condition.wait``, which is Python, loses itself in its error.
    """
    gate = threading.Lock()
    gate.acquire()
    future.add_done_callback(lambda done: gate.release())
    if seconds is None:
        while not gate.acquire(timeout=INTERRUPTS_SEEN):
            pass
        return
    until = time.monotonic() + seconds
    while not gate.acquire(timeout=max(0.0, min(INTERRUPTS_SEEN, until - time.monotonic()))):
        if time.monotonic() >= until:
            return
