"""Recording of work: what a driver refuses meanwhile, and what is replayed afterwards."""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphdock.errors import FailedPreconditionError

from graphdock_testing.driver.detector import Note
from graphdock_testing.driver.memory import Block

__all__ = ["Mark", "Recording", "Segment", "Step"]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was recorded.

    Attributes:
      note: what it is, for the race checker; its queue, by name.
      run: what it does; None for a record or a wait.
      begin: done when a replay is queued, before anything of it runs.
      blocks: the memory it points at, and its life when it was recorded.
    """

    note: Note
    run: Callable[[], None] | None = None
    begin: Callable[[], None] | None = None
    blocks: tuple[tuple[Block, int], ...] = ()


class Mark:
    """An event's point within a recording. Means nothing outside of it."""

    __slots__ = ("__weakref__", "known", "recording")

    def __init__(self, recording: Recording, known: dict[str, int]) -> None:
        self.recording = recording
        self.known = known


@dataclass(eq=False)
class Recording:
    """What one call of ``capture`` records.

    Attributes:
      origin: name of the queue that records.
      members: names of the queues whose work is recorded: the origin, and those that waited for an event recorded within.
      broken: the first call that was refused; ``capture`` raises it.
    """

    origin: str
    thread: int = field(default_factory=threading.get_ident)
    members: set[str] = field(default_factory=set)
    broken: Exception | None = None
    steps: list[Step] = field(default_factory=list)
    open: bool = True
    #: Queue -> queue -> steps of the latter that come before whatever the former records next.
    _known: dict[str, dict[str, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.members.add(self.origin)
        self._known[self.origin] = {self.origin: 0}

    def refuse(self, what: str, why: str = "") -> FailedPreconditionError:
        """The error for a call that can't be recorded; the recording is broken by it."""
        error = FailedPreconditionError(
            f"{what} is refused while {self.origin} records" + (f": {why}" if why else ""),
            hint="do it before or after the captured segment",
        )
        self.broken = self.broken or error
        return error

    def add(self, queue: str, step: Step) -> None:
        """Work of a member."""
        self.steps.append(step)
        self._known[queue][queue] += 1

    def record(self, queue: str) -> Mark:
        """The point after what the member recorded so far."""
        mark = Mark(self, dict(self._known[queue]))
        self.steps.append(Step(Note("record", queue, point=mark)))
        return mark

    def wait(self, queue: str, mark: Mark) -> None:
        """Let a queue wait for a point of this recording; one that is no member becomes one."""
        self.members.add(queue)
        known = self._known.setdefault(queue, {queue: 0})
        for other, count in mark.known.items():
            known[other] = max(known.get(other, 0), count)
        self.steps.append(Step(Note("wait", queue, point=mark)))

    def finish(self) -> Segment:
        """What was recorded. Raises FailedPreconditionError for what was refused, and for a branch that was not joined."""
        self.open = False
        if self.broken is not None:
            raise self.broken
        joined = self._known[self.origin]
        for queue in sorted(self.members - {self.origin}):
            if self._known[queue][queue] > joined.get(queue, 0):
                raise FailedPreconditionError(
                    f"{self.origin} ended its recording before {queue} was joined",
                    hint=f"record an event on {queue} after its last work, and let {self.origin} wait for it",
                )
        return Segment(self.origin, tuple(self.steps))


class Segment:
    """Recorded work that can be queued any number of times. ``notes`` is what the race checker is told at each."""

    def __init__(self, origin: str, steps: Sequence[Step]) -> None:
        self.origin = origin
        self.steps = tuple(steps)
        self.notes = tuple(step.note for step in steps)
        self._branches: dict[str, list[Step]] = {}
        for step in steps:
            self._branches.setdefault(step.note.queue, []).append(step)

    def begin(self) -> None:
        """A replay is queued. Raises FailedPreconditionError when memory that was recorded has been given back since."""
        for step in self.steps:
            for block, life in step.blocks:
                if block.life != life:
                    raise FailedPreconditionError(
                        f"{step.note.what}, recorded by {self.origin}, points at memory that was given back: "
                        f"block {block.number} of {block.space}"
                    )
        for step in self.steps:
            if step.begin is not None:
                step.begin()

    def run(self, chance: random.Random) -> None:
        """Do it all, branches interleaved by ``chance``; raises the first error after the rest has run."""
        first: Exception | None = None
        branches = [deque(steps) for steps in self._branches.values()]
        done: set[Any] = set()
        while branches:
            ready = [b for b in branches if b[0].note.kind != "wait" or b[0].note.point in done]
            branch = ready[0] if len(ready) == 1 else chance.choice(ready)
            step = branch.popleft()
            if step.note.kind == "record":
                done.add(step.note.point)
            if step.run is not None:
                try:
                    step.run()
                except Exception as error:  # noqa: BLE001 - raised below, when all has run
                    first = first or error
            if not branch:
                branches.remove(branch)
        try:
            if first is not None:
                raise first
        finally:
            del first  # its traceback holds this frame
