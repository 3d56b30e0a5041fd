"""The gate of a container: one claim per step on all the resources that it reads and writes, served in order of arrival.

A step enters by one dict assignment, which is its place in the queue, and waits only where an earlier claim conflicts with its
own. It leaves by one dict pop. The way through, which :mod:`graphdock.planning.plan` writes out::

    claims = gate.claims
    try:
        try:
            claims[holder] = get_ident()
            if len(claims) > 1:
                gate.wait(holder, limit)
            ...  # the step
        finally:
            claims.pop(holder, None)
            if gate.waiting:
                gate.wake(holder)
    finally:
        if holder in claims:
            gate.leave(holder)

Interrupts: CPython raises them only after a call, at a jump back or where a function begins, so the inner ``finally`` pops the
claim whatever happens; the outer one holds even against an exception raised at any single bytecode. An interrupt between the pop
and the wake costs those who wait 50 ms, because they look again by themselves.

Cost of an uncontended claim (CPython 3.11, ns; a lock per variable is what this replaced)::

    variables              1       5      40
    claim                140     140     140
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

__all__ = ["PATIENCE", "Claim", "Gate", "Holder", "Limit", "Until", "Visit", "through"]

#: Seconds after which one who waits looks again without being woken.
PATIENCE = 0.05
#: Resources that a message names.
SHOWN = 5
#: Verdicts that a claim remembers before it forgets them all.
VERDICTS = 4096

_claims = itertools.count(1)
_gates = itertools.count(1)
_every_gate: weakref.WeakSet[Gate] = weakref.WeakSet()
#: Thread -> where it waits. A new tuple per wait: the same tuple twice means that the thread has waited all the time between.
_waits: dict[int, tuple[Gate, Holder]] = {}

R = TypeVar("R")


class Claim:
    """What a step needs, for its whole length. Immutable; one per plan, so that verdicts about pairs are kept.

    Args:
      label: names the step in messages, or a function that does.
      reads, writes: resources: anything that is compared by identity and named by ``str``. Two claims conflict where one writes
        what the other reads or writes.
      everything: conflicts with every other claim (a container that is reset).
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
        self.number = next(_claims)
        self.writes = frozenset(writes)
        self.reads = frozenset(reads) - self.writes
        self.everything = everything
        self._verdicts: dict[int, bool] = {}

    def conflicts(self, other: Claim) -> bool:
        """Whether two steps with these claims must not run at once. The first answer about a pair is kept."""
        verdict = self._verdicts.get(other.number)
        if verdict is None:
            verdict = self.everything or other.everything or bool(self.contested(other))
            if len(self._verdicts) >= VERDICTS:
                self._verdicts.clear()
            self._verdicts[other.number] = verdict
        return verdict

    def contested(self, other: Claim) -> frozenset[object]:
        """The resources that one of the two writes and the other touches."""
        if self.everything:
            return other.reads | other.writes
        if other.everything:
            return self.reads | self.writes
        return (self.writes & (other.writes | other.reads)) | (self.reads & other.writes)

    def __str__(self) -> str:
        return self._label if isinstance(self._label, str) else self._label()


class Holder(Protocol):
    """Who holds a claim: an instance of a plan while it runs a step. Hashed and compared by identity."""

    @property
    def claim(self) -> Claim: ...


class Limit(Protocol):
    """How long somebody waits: the token of a step, or :class:`Until`.

    Attributes:
      deadline: reading of ``clock`` at which to give up; None for none. ``error``: set by another thread to end the wait.
    """

    deadline: float | None
    error: BaseException | None

    @property
    def clock(self) -> Callable[[], float]: ...


class Until:
    """A limit that is a point in time: ``seconds`` from now."""

    clock = staticmethod(time.monotonic)

    def __init__(self, seconds: float) -> None:
        self.deadline: float | None = time.monotonic() + seconds
        self.error: BaseException | None = None


class Visit:
    """A holder for one visit, for whoever has no instance of its own."""

    __slots__ = ("claim",)

    def __init__(self, claim: Claim) -> None:
        self.claim = claim


class Gate:
    """The claims on the resources of one container.

    Attributes:
      claims: holder -> ident of its thread, in order of arrival; those that run and those that wait.
      waiting: holder that waits -> (holder it waits for, where it is woken).
      number: canonical order: who needs several gates enters them by ascending number.
    """

    __slots__ = ("__weakref__", "claims", "number", "waiting")

    def __init__(self) -> None:
        self.claims: dict[Holder, int] = {}
        self.waiting: dict[Holder, tuple[Holder, SimpleQueue[None]]] = {}
        self.number = next(_gates)
        _every_gate.add(self)

    def enter(self, holder: Holder, limit: Limit | None = None) -> None:
        """Claim and wait for one's turn; see :meth:`wait` for what it raises. The caller leaves in a ``finally`` around this."""
        self.claims[holder] = get_ident()
        if len(self.claims) > 1:
            self.wait(holder, limit)

    def leave(self, holder: Holder) -> None:
        """Give the claim up and wake who waited for it. Leaving twice, or without having entered, does nothing."""
        self.claims.pop(holder, None)
        if self.waiting:
            self.wake(holder)

    def wake(self, holder: Holder) -> None:
        """Wake those who wait for ``holder``."""
        for watched, mailbox in list(self.waiting.values()):
            if watched is holder:
                mailbox.put(None)

    def wait(self, holder: Holder, limit: Limit | None = None) -> None:
        """Return once no earlier claim conflicts with that of ``holder``, which stands in ``claims``.

        Args:
          limit: when to give up; None waits for good.

        Raises:
          DeadlineExceededError: names the resources and who holds them. Or the limit's error.
          FailedPreconditionError: a step of this very thread holds them, so that they would never become free.
          AbortedError: steps of several threads wait for each other in a circle, and this one was chosen to fail.
        """
        me, clock = get_ident(), time.monotonic if limit is None else limit.clock
        started = clock()
        outer = _waits.get(me)
        mailbox: SimpleQueue[None] = SimpleQueue()
        try:
            try:
                # not before the try: an interrupt at a loop's jump back counts for the instruction in front of the loop
                watched: Holder | None = None
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
                        if limit.error is not None:
                            raise limit.error
                        if limit.deadline is not None:
                            now = clock()
                            if now >= limit.deadline:
                                raise self._late(holder, ahead, now - started)
                            patience = min(PATIENCE, limit.deadline - now)
                    if not _told(mailbox, patience):
                        _check_circle(me)
            finally:
                self._stop_waiting(holder, me, outer)
        finally:
            self._stop_waiting(holder, me, outer)

    def _stop_waiting(self, holder: Holder, me: int, outer: tuple[Gate, Holder] | None) -> None:
        self.waiting.pop(holder, None)
        if outer is None:
            _waits.pop(me, None)
        else:  # a signal handler ran a step while this thread waited for its turn with another
            _waits[me] = outer

    def _ahead(self, holder: Holder, thread: int) -> list[Holder]:
        """The earlier claims for which ``holder`` must wait, in order.

        A step inside a step of the same thread does not wait for a claim that waits for the outer one: neither would ever end.
        """
        claim = holder.claim
        ahead: list[Holder] = []
        outer: list[Claim] = []
        for other in list(self.claims):
            if other is holder:
                break
            owner = self.claims.get(other)
            if owner is None:
                continue  # it has just left
            if owner == thread:
                if other.claim.conflicts(claim):
                    raise _within_itself(claim, other.claim)
                outer.append(other.claim)
            elif outer and any(other.claim.conflicts(c) for c in outer):
                outer.append(other.claim)
            elif other.claim.conflicts(claim):
                ahead.append(other)
        return ahead

    def _late(self, holder: Holder, ahead: Sequence[Holder], waited: float) -> DeadlineExceededError:
        contested: set[object] = set()
        lines = []
        for other in ahead:
            contested |= holder.claim.contested(other.claim)
            doing = "waits for its turn" if other in self.waiting else "runs"
            lines.append(f"{other.claim}, which {doing} on {_thread(self.claims.get(other))}")
        return DeadlineExceededError(
            f"{holder.claim} waited {waited:.3g} s for {_names(contested)}",
            got="before it: " + "; ".join(lines),
            hint="raise the timeout, or see what keeps that step",
        )


def through(gates: Sequence[Gate], holder: Holder, limit: Limit | None, function: Callable[..., R], *args: Any) -> R:
    """``function(*args)`` while ``holder`` has its claim at each of the gates, which stand in canonical order.

    Raises:
      what :meth:`Gate.wait` and the function raise.
    """
    try:
        try:
            for gate in gates:
                gate.enter(holder, limit)
            return function(*args)
        finally:
            for gate in gates:
                gate.leave(holder)
    finally:
        for gate in gates:  # once more, for an interrupt in the loop above
            gate.leave(holder)


def _told(mailbox: SimpleQueue[None], seconds: float) -> bool:
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


def _within_itself(inner: Claim, outer: Claim) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"{inner} would wait for {outer}, inside which it runs and which holds {_names(inner.contested(outer))}",
        hint="a kernel may not run a step on what its own step holds; tf.py_func may: such a step holds nothing while it calls",
    )


def _check_circle(me: int) -> None:
    """Raise AbortedError when this thread, and others, wait for each other for good.

    The threads of a circle all find it; the one with the highest ident fails. Claims of threads that have waited all the time
    between two looks at ``_waits`` can't have changed, so what was found between them is no accident of timing.
    """
    before = _waits.copy()
    came_from: dict[int, tuple[int, Holder]] = {}
    stack, closed = [me], None
    while stack and closed is None:
        thread = stack.pop()
        gate, holder = before[thread]
        for other in gate._ahead(holder, thread):
            owner = gate.claims.get(other)
            if owner == me:
                closed = thread
                break
            if owner is not None and owner in before and owner not in came_from:
                came_from[owner] = (thread, other)
                stack.append(owner)
    if closed is None:
        return
    circle = [closed]
    while circle[-1] != me:
        circle.append(came_from[circle[-1]][0])
    if me < max(circle) or any(_waits.get(t) is not before[t] for t in circle):
        return
    steps = "; ".join(f"{before[t][1].claim} on {_thread(t)}" for t in reversed(circle))
    raise AbortedError(
        f"steps of {len(circle)} threads wait for each other: {steps}",
        hint="a step that runs inside another one may only touch what no other thread holds while it waits",
    )


def _forget_other_threads() -> None:
    """In a forked child: the threads that held or awaited claims are not there."""
    me = get_ident()
    for gate in list(_every_gate):
        for holder, owner in list(gate.claims.items()):
            if owner != me:
                gate.claims.pop(holder, None)
        gate.waiting.clear()
    _waits.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_other_threads)
