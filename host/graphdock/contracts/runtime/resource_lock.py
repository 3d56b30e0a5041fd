"""The lock of a container: one lock set per step, of all the resources that it reads and writes, served in order of arrival.

A step requests it by one dict assignment, which is its place in the queue, and waits only where an earlier request conflicts with
its own. It releases it by one dict pop. The way, which :mod:`graphdock.planning.plan` writes out::

    requests = lock.requests
    try:
        try:
            requests[holder] = get_ident()
            if len(requests) > 1:
                lock.wait(holder, limit)
            ...  # the step
        finally:
            requests.pop(holder, None)
            if lock.waiting:
                lock.wake(holder)
    finally:
        if holder in requests:
            lock.release(holder)

Interrupts: CPython raises them only after a call, at a jump back or where a function begins, so the inner ``finally`` pops the
request whatever happens; the outer one holds even against an exception raised at any single bytecode. An interrupt between the pop
and the wake costs those who wait 50 ms, because they look again by themselves.

Cost of an uncontended request (CPython 3.11, ns; a lock per variable is what this replaced)::

    variables              1       5      40
    lock set              140     140     140
    locks, written       195     700    5350
    locks, read          525    2150   16750

Threads: every method may be called from any thread. It rests on dict assignment, pop and ``list(dict)`` being atomic, which holds
under the GIL and in free-threaded builds.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from queue import Empty, SimpleQueue
from threading import get_ident
from typing import Any, Protocol, TypeVar

from graphdock.errors import AbortedError, DeadlineExceededError, FailedPreconditionError

__all__ = ["PATIENCE", "LockSet", "ResourceLock", "LockHolder", "Limit", "Until", "LockRequest", "with_locks"]

#: Seconds after which one who waits looks again without being woken.
PATIENCE = 0.05
#: Resources that a message names.
SHOWN = 5
#: Verdicts that a lock set remembers before it forgets them all.
VERDICTS = 4096

_lock_sets = itertools.count(1)
_locks = itertools.count(1)
_every_lock: weakref.WeakSet[ResourceLock] = weakref.WeakSet()
#: Thread -> where it waits. A new tuple per wait: the same tuple twice means that the thread has waited all the time between.
_waits: dict[int, tuple[ResourceLock, LockHolder]] = {}

R = TypeVar("R")


class LockSet:
    """Resources that a step needs, for its whole length. Immutable; one per plan, so that verdicts about pairs are kept.

    Args:
      label: names the step in messages, or a function that does.
      reads, writes: resources: anything that is compared by identity and named by ``str``. Two lock sets conflict where one writes
        what the other reads or writes.
      everything: conflicts with every other lock set (a container that is reset).
    """

    __slots__ = ("__weakref__", "_label", "_verdicts", "everything", "number", "reads", "writes")

    def __init__(
        self,
        label: str | Callable[[], str],
        reads: Iterable[object] = (),
        writes: Iterable[object] = (),
        everything: bool = False,
    ) -> None:
        self._label = label
        self.number = next(_lock_sets)
        self.writes = frozenset(writes)
        self.reads = frozenset(reads) - self.writes
        self.everything = everything
        self._verdicts: dict[int, bool] = {}

    def conflicts(self, other: LockSet) -> bool:
        """Return whether two steps with these lock sets must not run at once. The first answer about a pair is kept."""
        verdict = self._verdicts.get(other.number)
        if verdict is None:
            verdict = self.everything or other.everything or bool(self.contested(other))
            if len(self._verdicts) >= VERDICTS:
                self._verdicts.clear()
            self._verdicts[other.number] = verdict
        return verdict

    def contested(self, other: LockSet) -> frozenset[object]:
        """The resources that one of the two writes and the other touches."""
        if self.everything:
            return other.reads | other.writes
        if other.everything:
            return self.reads | self.writes
        return (self.writes & (other.writes | other.reads)) | (self.reads & other.writes)

    def __str__(self) -> str:
        return self._label if isinstance(self._label, str) else self._label()


class LockHolder(Protocol):
    """Holder of the locks of a lock set: an instance of a plan while it runs a step. Hashed and compared by identity."""

    @property
    def lock_set(self) -> LockSet: ...


class Limit(Protocol):
    """Limit of a wait: the token of a step, or :class:`Until`.

    Attributes:
      deadline: reading of ``clock`` at which to give up; None for none. ``error``: set by another thread to end the wait.
    """

    deadline: float | None
    error: BaseException | None

    @property
    def clock(self) -> Callable[[], float]: ...

    def watch(self, callback: Callable[[BaseException], Any]) -> Callable[[], None]:
        """As :meth:`graphdock.contracts.CancellationToken.watch`."""


class Until:
    """A limit that is a point in time: ``seconds`` from now."""

    clock = staticmethod(time.monotonic)

    def __init__(self, seconds: float) -> None:
        self.deadline: float | None = time.monotonic() + seconds
        self.error: BaseException | None = None

    def watch(self, callback: Callable[[BaseException], Any]) -> Callable[[], None]:
        """Nobody cancels it: the callback is never called."""
        return lambda: None


class LockRequest:
    """A holder for one request, for whoever has no instance of its own."""

    __slots__ = ("lock_set",)

    def __init__(self, lock_set: LockSet) -> None:
        self.lock_set = lock_set


class ResourceLock:
    """The lock on the resources of one container: the requests of those that hold some of them, or wait.

    Attributes:
      requests: holder -> ident of its thread, in order of arrival; those that run and those that wait.
      waiting: holder that waits -> (holder it waits for, where it is woken).
      number: canonical order: who needs several locks takes them by ascending number.
    """

    __slots__ = ("__weakref__", "number", "requests", "waiting")

    def __init__(self) -> None:
        self.requests: dict[LockHolder, int] = {}
        self.waiting: dict[LockHolder, tuple[LockHolder, SimpleQueue[None]]] = {}
        self.number = next(_locks)
        _every_lock.add(self)

    def acquire(self, holder: LockHolder, limit: Limit | None = None) -> None:
        """Request the locks and wait for them; raises what :meth:`wait` does. The caller releases in a ``finally`` around this."""
        self.requests[holder] = get_ident()
        if len(self.requests) > 1:
            self.wait(holder, limit)

    def release(self, holder: LockHolder) -> None:
        """Give the locks up and wake who waited for them. Releasing twice, or without having acquired, does nothing."""
        self.requests.pop(holder, None)
        if self.waiting:
            self.wake(holder)

    def wake(self, holder: LockHolder) -> None:
        """Wake those who wait for ``holder``."""
        for watched, mailbox in list(self.waiting.values()):
            if watched is holder:
                mailbox.put(None)

    def wait(self, holder: LockHolder, limit: Limit | None = None) -> None:
        """Return once no earlier request conflicts with that of ``holder``, which stands in ``requests``.

        Args:
          limit: when to give up; None waits for good.

        Raises:
          DeadlineExceededError: names the resources and who holds them. Or the limit's error.
          FailedPreconditionError: a step of this very thread holds them, so that they would never become free.
          AbortedError: steps of several threads wait for each other in a cycle, and this one was chosen to fail.
        """
        me, clock = get_ident(), time.monotonic if limit is None else limit.clock
        started = clock()
        outer = _waits.get(me)
        mailbox: SimpleQueue[None] = SimpleQueue()
        forget: Callable[[], None] | None = None
        try:
            try:
                # not before the try: an interrupt at a loop's jump back counts for the instruction in front of the loop
                watched: LockHolder | None = None
                while True:
                    ahead = self._ahead(holder, me)
                    if not ahead:
                        return
                    if ahead[-1] is not watched:
                        # say whom to be woken by, then look again: it may have left before it could know
                        watched = ahead[-1]
                        self.waiting[holder] = (watched, mailbox)
                        _waits[me] = (self, holder)
                        continue
                    patience = PATIENCE
                    if limit is not None:
                        if limit.deadline is not None:
                            now = clock()
                            if now >= limit.deadline:
                                raise self._late(holder, ahead, now - started)
                            patience = min(PATIENCE, limit.deadline - now)
                        if limit.error is not None:
                            raise limit.error
                        if forget is None:
                            forget = limit.watch(lambda error: mailbox.put(None))
                    if not _woken(mailbox, patience):
                        _check_cycle(me)
            finally:
                self._stop_waiting(holder, me, outer)
        finally:
            self._stop_waiting(holder, me, outer)
            if forget is not None:
                forget()

    def _stop_waiting(self, holder: LockHolder, me: int, outer: tuple[ResourceLock, LockHolder] | None) -> None:
        self.waiting.pop(holder, None)
        if outer is None:
            _waits.pop(me, None)
        else:  # a signal handler ran a step while this thread waited for its turn with another
            _waits[me] = outer

    def _ahead(self, holder: LockHolder, thread: int) -> list[LockHolder]:
        """The earlier requests for which ``holder`` must wait, in order.

        A step inside a step of the same thread does not wait for a request that waits for the outer one: neither would ever end.
        """
        lock_set = holder.lock_set
        ahead: list[LockHolder] = []
        outer: list[LockSet] = []
        for other in list(self.requests):
            if other is holder:
                break
            owner = self.requests.get(other)
            if owner is None:
                continue  # it has just left
            if owner == thread:
                if other.lock_set.conflicts(lock_set):
                    raise _within_itself(lock_set, other.lock_set)
                outer.append(other.lock_set)
            elif outer and any(other.lock_set.conflicts(c) for c in outer):
                outer.append(other.lock_set)
            elif other.lock_set.conflicts(lock_set):
                ahead.append(other)
        return ahead

    def _late(self, holder: LockHolder, ahead: Sequence[LockHolder], waited: float) -> DeadlineExceededError:
        contested: set[object] = set()
        lines = []
        for other in ahead:
            contested |= holder.lock_set.contested(other.lock_set)
            doing = "waits for its turn" if other in self.waiting else "runs"
            lines.append(f"{other.lock_set}, which {doing} on {_thread(self.requests.get(other))}")
        return DeadlineExceededError(
            f"{holder.lock_set} waited {waited:.3g} s for {_names(contested)}",
            got="before it: " + "; ".join(lines),
            hint="raise the timeout, or see what keeps that step",
        )


def with_locks(
    locks: Sequence[ResourceLock], holder: LockHolder, limit: Limit | None, function: Callable[..., R], *args: Any
) -> R:
    """``function(*args)`` while ``holder`` holds its lock set of each of the locks, which stand in canonical order.

    Raises:
      what :meth:`ResourceLock.wait` and the function raise.
    """
    try:
        try:
            for lock in locks:
                lock.acquire(holder, limit)
            return function(*args)
        finally:
            for lock in locks:
                lock.release(holder)
    finally:
        for lock in locks:  # once more, for an interrupt in the loop above
            lock.release(holder)


def _woken(mailbox: SimpleQueue[None], seconds: float) -> bool:
    try:
        mailbox.get(timeout=seconds)
    except Empty:
        return False
    return True


def _names(resources: Iterable[object]) -> str:
    names = sorted(map(str, resources))
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more if names else "the whole container"


def _thread(ident: int | None) -> str:
    name = next((t.name for t in threading.enumerate() if t.ident == ident), None)
    return f"thread {name!r}" if name is not None else f"thread {ident}"


def _within_itself(inner: LockSet, outer: LockSet) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"{inner} would wait for {outer}, inside which it runs and which holds {_names(inner.contested(outer))}",
        hint="a kernel may not run a step on what its own step holds; tf.py_func may: such a step holds nothing while it calls",
    )


def _check_cycle(me: int) -> None:
    """Raise AbortedError when this thread, and others, wait for each other for good.

    The threads of a cycle all find it; the one with the highest ident fails. Requests of threads that have waited all the time
    between two looks at ``_waits`` can't have changed, so what was found between them is no accident of timing.
    """
    before = _waits.copy()
    came_from: dict[int, tuple[int, LockHolder]] = {}
    stack, closed = [me], None
    while stack and closed is None:
        thread = stack.pop()
        lock, holder = before[thread]
        for other in lock._ahead(holder, thread):
            owner = lock.requests.get(other)
            if owner == me:
                closed = thread
                break
            if owner is not None and owner in before and owner not in came_from:
                came_from[owner] = (thread, other)
                stack.append(owner)
    if closed is None:
        return
    cycle = [closed]
    while cycle[-1] != me:
        cycle.append(came_from[cycle[-1]][0])
    if me < max(cycle) or any(_waits.get(t) is not before[t] for t in cycle):
        return
    steps = "; ".join(f"{before[t][1].lock_set} on {_thread(t)}" for t in reversed(cycle))
    raise AbortedError(
        f"steps of {len(cycle)} threads wait for each other: {steps}",
        hint="a step that runs inside another one may only touch what no other thread holds while it waits",
    )


def _forget_other_threads() -> None:
    """In a forked child: the threads that held or awaited locks are not there."""
    me = get_ident()
    for lock in list(_every_lock):
        for holder, owner in list(lock.requests.items()):
            if owner != me:
                lock.requests.pop(holder, None)
        lock.waiting.clear()
    _waits.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_other_threads)
