"""Waits of a step in place: for executors that run one kernel after another."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future
from typing import Any

from graphdock.contracts.step import CancellationToken
from graphdock.errors import AbortedError

__all__ = ["wait_for"]


def wait_for(future: Future[Any], token: CancellationToken) -> Any:
    """The result of a future, waited for on this thread.

    It is cancelled when the step is, or when the thread is interrupted: what it waited for stays where it was.

    Raises:
      The error of the step, of the future, or the interrupt. AbortedError: somebody else cancelled the future.
    """
    forget = token.watch(lambda error: future.cancel())
    try:
        return future.result()
    except CancelledError:
        token.check()
        raise AbortedError("what the step waited for was cancelled") from None
    except BaseException:
        future.cancel()
        raise
    finally:
        forget()
