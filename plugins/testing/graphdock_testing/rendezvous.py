"""A rendezvous inside one process: executors on several threads exchange the tensors of one step.

Nothing here waits. A receive leaves a continuation; it runs on the thread that sends, aborts or lets deadlines pass. Deadlines
are looked at when :meth:`LocalRendezvous.expire` is called, which :class:`Deadlines` does on one thread for any number of steps.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from graphdock.contracts.rendezvous import Rendezvous, RendezvousKey
from graphdock.errors import AlreadyExistsError, DeadlineExceededError
from graphdock.locks import new_lock

__all__ = ["Deadlines", "LocalRendezvous"]

Done = Callable[[Any, BaseException | None], None]


class LocalRendezvous(Rendezvous):
    """One step's exchange. All methods may be called from any thread; continuations run without its lock.

    Args:
      clock: seconds, as ``time.monotonic``; deadlines are in its time.
      watch: called after a receive with a deadline was left waiting, with this rendezvous.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, watch: Callable[[LocalRendezvous], None] | None = None
    ) -> None:
        self._clock = clock
        self._watch = watch
        self._lock = new_lock()
        self._values: dict[RendezvousKey, Any] = {}
        self._sent: set[RendezvousKey] = set()
        self._waiting: dict[RendezvousKey, list[tuple[Done, float | None]]] = {}
        self._error: BaseException | None = None

    def send(self, key: RendezvousKey, value: Any) -> None:
        with self._lock:
            if self._error is not None:
                raise self._error
            if key in self._sent:
                raise AlreadyExistsError(
                    f"the rendezvous was sent {key.edge!r} (frame {key.frame!r}) twice in one step"
                )
            self._sent.add(key)
            waiting = self._waiting.pop(key, [])
            if not waiting:
                self._values[key] = value
        for done, _ in waiting:
            done(value, None)

    def receive(self, key: RendezvousKey, done: Done, deadline: float | None = None) -> None:
        value: Any = None
        error: BaseException | None = None
        with self._lock:
            if self._error is not None:
                error = self._error
            elif key in self._sent:
                # a value that nobody waited for is handed over once, so that its memory is free again
                if key in self._values:
                    value = self._values.pop(key)
                else:
                    error = AlreadyExistsError(f"{key.edge!r} was received already in this step")
            elif deadline is not None and self._clock() >= deadline:
                error = _late(key)
            else:
                self._waiting.setdefault(key, []).append((done, deadline))
                done = _nothing
        done(value, error)
        if done is _nothing and deadline is not None and self._watch is not None:
            self._watch(self)

    def abort(self, error: BaseException) -> None:
        with self._lock:
            if self._error is None:
                self._error = error
            error = self._error
            waiting = [done for group in self._waiting.values() for done, _ in group]
            self._waiting.clear()
            self._values.clear()
        for done in waiting:
            done(None, error)

    def expire(self) -> float | None:
        """End every receive whose deadline has passed; returns the next deadline, or None when there is none."""
        late: list[tuple[RendezvousKey, Done]] = []
        following: float | None = None
        with self._lock:
            now = self._clock()
            for key in list(self._waiting):
                kept: list[tuple[Done, float | None]] = []
                for done, deadline in self._waiting[key]:
                    if deadline is not None and now >= deadline:
                        late.append((key, done))
                        continue
                    kept.append((done, deadline))
                    if deadline is not None and (following is None or deadline < following):
                        following = deadline
                if kept:
                    self._waiting[key] = kept
                else:
                    del self._waiting[key]
        for key, done in late:
            done(None, _late(key))
        return following

    @property
    def waiting(self) -> int:
        """Number of continuations that have not run."""
        with self._lock:
            return sum(len(group) for group in self._waiting.values())


def _late(key: RendezvousKey) -> DeadlineExceededError:
    return DeadlineExceededError(
        f"{key.edge!r} from {key.source} did not arrive at {key.destination} in time",
        hint="the sender failed or hangs; raise operation_timeout if it is only slow",
    )


def _nothing(value: Any, error: BaseException | None) -> None:
    return None


class Deadlines:
    """Watches the deadlines of many rendezvous on one daemon thread, started with the first of them.

    Pass :meth:`watch` as a LocalRendezvous's ``watch``. Usable from any thread.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition(new_lock())
        self._watched: set[LocalRendezvous] = set()
        self._news = 0
        self._thread: threading.Thread | None = None

    def watch(self, rendezvous: LocalRendezvous) -> None:
        with self._changed:
            self._watched.add(rendezvous)
            self._news += 1
            if self._thread is None or not self._thread.is_alive():  # a forked child has none of its parent's threads
                self._thread = threading.Thread(target=self._run, name="graphdock-deadlines", daemon=True)
                self._thread.start()
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                watched, news = list(self._watched), self._news
            following = {r: r.expire() for r in watched}
            with self._changed:
                if self._news != news:
                    continue
                self._watched = {r for r, deadline in following.items() if deadline is not None}
                times = [t for t in following.values() if t is not None]
                if not times:
                    self._thread = None
                    return
                self._changed.wait(max(min(times) - self._clock(), 0.0))
