"""Waits of a step in place: for executors that run one kernel after another."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError, Future
from typing import Any

from graphdock.contracts.step import CancellationToken
from graphdock.errors import AbortedError

__all__ = ["INTERRUPTS_SEEN", "wait_for"]

#: Seconds after which a thread that waits looks for an interrupt. A signal that came while the main thread was about to sleep has
#: not woken it, nor does an exception that is set from outside wake another: CPython notes it, and a lock does not see that note.
INTERRUPTS_SEEN = 0.05


def wait_for(future: Future[Any], token: CancellationToken) -> Any:
    """The result of a future, waited for on this thread.

    It is cancelled when the step is, or when the thread is interrupted: what it waited for stays where it was.

    Raises:
      The error of the step, of the future, or the interrupt. AbortedError: somebody else cancelled the future.
    """
    forget = token.watch(lambda error: future.cancel())
    try:
        return _result(future)
    except CancelledError:
        token.check()
        raise AbortedError("what the step waited for was cancelled") from None
    except BaseException:
        future.cancel()
        raise
    finally:
        forget()


def _result(future: Future[Any]) -> Any:
    """The result, waited for by a lock: an interrupt within ``Condition.wait``, which is Python, loses itself in its error."""
    gate = threading.Lock()
    gate.acquire()
    future.add_done_callback(lambda done: gate.release())
    while not gate.acquire(timeout=INTERRUPTS_SEEN):
        pass
    return future.result()
