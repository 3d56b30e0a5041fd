"""Threads that stop together: the first that fails, or has no more to do, stops all."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from graphdock.errors import ArgumentTypeError, FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from graphdock.locks import new_lock

_log = logging.getLogger("graphdock")

#: Seconds after which who waits for threads looks again whether they are to stop.
_LOOK = 0.05


class Coordinator:
    """Tells threads when to stop, waits for them, and raises the first error that one of them reported.

    All methods may be called from any thread.

    Args:
      clean_stop_exception_types: errors that mean that all is done; they stop the threads and are not raised. Default:
        OutOfRangeError.

    Attributes:
      is_followed: the threads stop because a session failed, and another one follows, with threads of its own.
    """

    def __init__(self, clean_stop_exception_types: Sequence[type[BaseException]] | None = None) -> None:
        kinds = (OutOfRangeError,) if clean_stop_exception_types is None else clean_stop_exception_types
        self._clean = tuple(kinds)
        self._lock = new_lock()
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._joined = False
        self.is_followed = False
        self._threads: set[threading.Thread] = set()

    def request_stop(self, ex: Any = None) -> None:
        """Ask the threads to stop.

        Args:
          ex: why, if it is an error: the exception, or what ``sys.exc_info()`` gave. Of several, :meth:`join` raises the first. One
            that is reported after ``join`` is raised here.

        Raises:
          ArgumentTypeError: ``ex`` is no exception.
        """
        error = ex[1] if isinstance(ex, tuple) and len(ex) == 3 else ex
        if error is not None and not isinstance(error, BaseException):
            raise ArgumentTypeError("Coordinator.request_stop takes an exception or sys.exc_info()", got=repr(ex))
        if isinstance(error, self._clean):
            error = None
        with self._lock:
            if self._joined:
                if error is not None:
                    raise error
                return
            if self._stop.is_set():
                return
            if error is not None:
                _log.info("Error reported to Coordinator: %s, %s", type(error), error)
                self._error = error
            self._stop.set()

    def clear_stop(self) -> None:
        """Forget that threads were to stop, and why: they may be started again."""
        with self._lock:
            self._joined = False
            self._error = None
            self._stop.clear()

    def should_stop(self) -> bool:
        """Return whether threads are to stop."""
        return self._stop.is_set()

    @contextlib.contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """A block whose exceptions are reported, and go no further."""
        try:
            yield
        except BaseException as error:  # noqa: BLE001 - join() raises it
            self.request_stop(error)

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Wait until threads are to stop, at most so many seconds; returns whether they are."""
        return self._stop.wait(timeout)

    def register_thread(self, thread: threading.Thread) -> None:
        """Count a thread as one of those that :meth:`join` waits for."""
        with self._lock:
            self._threads.add(thread)

    def join(
        self,
        threads: Iterable[threading.Thread] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Wait until all threads have ended: as long as it takes while none is to stop, and then for a while.

        Args:
          threads: those that were not registered. stop_grace_period_secs: seconds that threads may take once they are to stop.
          ignore_live_threads: only log which threads have not ended then.

        Raises:
          FailedPreconditionError: threads have not ended in time. And whatever a thread reported first.
        """
        with self._lock:
            waited = list(self._threads.union(threads or ()))
        while not self._stop.is_set() and (alive := [t for t in waited if t.is_alive()]):
            alive[0].join(_LOOK)
        end = time.monotonic() + stop_grace_period_secs
        for thread in waited:
            thread.join(max(0.0, end - time.monotonic()))
        left = " ".join(t.name for t in waited if t.is_alive())
        with self._lock:
            self._joined = True
            self._threads = set()
            if self._error is not None:
                raise self._error
        if left and not ignore_live_threads:
            raise FailedPreconditionError(f"Coordinator stopped with threads still running: {left}")
        if left:
            _log.info("Coordinator stopped with threads still running: %s", left)

    @property
    def joined(self) -> bool:
        """Return whether :meth:`join` has ended."""
        return self._joined

    def raise_requested_exception(self) -> None:
        """Raise what was reported, if anything was."""
        with self._lock:
            if self._error is not None:
                raise self._error


class LooperThread(threading.Thread):
    """A thread that does something again and again until its Coordinator stops it; what that raises stops all.

    Args:
      coord: the Coordinator. timer_interval_secs: seconds from one begin to the next; None for no wait.
      target, args, kwargs: what is called; a subclass may override :meth:`run_loop` in its place.

    Raises:
      ArgumentTypeError: ``coord`` is no Coordinator. InvalidArgumentError: arguments without a target.
    """

    def __init__(
        self,
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any] | None = None,
        args: Iterable[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(coord, Coordinator):
            raise ArgumentTypeError("'coord' argument must be a Coordinator", got=repr(coord))
        if target is None and (args or kwargs):
            raise InvalidArgumentError("'args' and 'kwargs' argument require that you also pass 'target'")
        super().__init__(daemon=True)
        self._coord = coord
        self._interval = timer_interval_secs
        self._called = target
        self._arguments = tuple(args or ()), dict(kwargs or {})
        coord.register_thread(self)

    @staticmethod
    def loop(
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: Iterable[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> LooperThread:
        """Start a thread that calls a function; returns it."""
        looper = LooperThread(coord, timer_interval_secs, target, args, kwargs)
        looper.start()
        return looper

    def run(self) -> None:
        with self._coord.stop_on_exception():
            self.start_loop()
            due = time.monotonic()
            while not self._coord.wait_for_stop(max(0.0, due - time.monotonic())):
                due += self._interval or 0.0
                self.run_loop()
            self.stop_loop()

    def start_loop(self) -> None:
        """Called once, before the first time."""

    def stop_loop(self) -> None:
        """Called once, after the last time; not after an error."""

    def run_loop(self) -> None:
        """Called each time."""
        if self._called is not None:
            self._called(*self._arguments[0], **self._arguments[1])
