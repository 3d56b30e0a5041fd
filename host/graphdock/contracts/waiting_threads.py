"""Threads that wait: one per call that is at work, kept for the next call, and no hindrance to the end of the process."""

from __future__ import annotations

import functools
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

from graphdock.contracts.waiting import Answer

__all__ = ["WaitingThreads", "keep_a_call"]

_Task = tuple["Future[Any]", Callable[..., Any], tuple[Any, ...]]


class _Keeping(threading.local):
    kept: list[_Task] | None = None


_keeping = _Keeping()


def keep_a_call(function: Callable[..., Any], *args: Any) -> Callable[[], None] | None:
    """``function(*args)``, which raises nothing; the first call that it submits to threads, for this one to run: no other is woken.
    None where it submits none.
    """
    before, _keeping.kept = _keeping.kept, []
    try:
        function(*args)
    finally:
        kept, _keeping.kept = _keeping.kept, before
    return functools.partial(_run, *kept[0]) if kept else None


class WaitingThreads:
    """Runs each call at once, however many there are: a call may wait for others.

    A pool of a fixed size would let calls that wait keep out those that they wait for. Threads are daemons. Any thread may submit.

    Args:
      name: of the threads.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._idle: deque[SimpleQueue[_Task | None]] = deque()

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Run ``function(*args)`` on a thread; the Future of its result."""
        future = Answer()
        if _keeping.kept is not None and not _keeping.kept:
            _keeping.kept.append((future, function, args))
            return future
        try:
            inbox = self._idle.pop()
        except IndexError:
            inbox = SimpleQueue()
            threading.Thread(target=self._work, args=(inbox,), name=self._name, daemon=True).start()
        inbox.put((future, function, args))
        return future

    def _work(self, inbox: SimpleQueue[_Task | None]) -> None:
        while True:
            task = inbox.get()
            if task is None:
                return
            _run(*task)
            del task
            self._idle.append(inbox)

    def close(self) -> None:
        """End the threads that are idle; the others end the process's life as daemons."""
        while self._idle:
            self._idle.pop().put(None)


def _run(future: Future[Any], function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    if future.set_running_or_notify_cancel():
        try:
            result = function(*args)
        except BaseException as error:  # noqa: BLE001 - it is the caller's, who waits for the Future
            future.set_exception(error)
        else:
            future.set_result(result)
