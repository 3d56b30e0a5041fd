"""Work that runs late: one line per queue, and a scheduler that interleaves them by a seed.

Nothing runs until somebody waits, queries or steps. Then, until what is waited for is done, the scheduler runs the head of
some line: either of one that is needed, or of any whose head waits for nothing. How often it prefers the former is drawn from the
seed too, so that with some seeds other queues run far ahead and with some they do not run at all.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from graphdock.errors import DeviceLostError, InternalError

__all__ = ["Health", "Line", "Scheduler", "QueuePoint", "Work"]


class Health:
    """Of one device: ``reason`` is None until the device is lost, for good."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.reason: str | None = None

    def lose(self, reason: str) -> None:
        """The device stops working; a second reason changes nothing."""
        if self.reason is None:
            self.reason = reason

    def check(self) -> None:
        """Raises DeviceLostError when the device is lost."""
        if self.reason is not None:
            raise DeviceLostError(self.device, self.reason)


@dataclass(frozen=True, slots=True)
class Work:
    """One thing in a line.

    Attributes:
      what: for messages.
      run: what it does; None for nothing.
      after: it runs once this point is reached.
      loses: when it runs, the device is lost, for this reason.
    """

    what: str
    run: Callable[[], None] | None = None
    after: QueuePoint | None = None
    loses: str | None = None


class Line:
    """The work of one queue, in order. ``queued`` and ``done`` count; ``error`` is the first that work raised."""

    def __init__(self, name: str, health: Health) -> None:
        self.name = name
        self.health = health
        self.work: deque[Work] = deque()
        self.queued = 0
        self.done = 0
        self.error: Exception | None = None

    @property
    def pending(self) -> int:
        """How much work will run; none on a lost device."""
        return len(self.work) if self.health.reason is None else 0

    def point(self) -> QueuePoint:
        """The point after all that is queued so far."""
        return QueuePoint(self, self.queued)


class QueuePoint:
    """A point of a line."""

    __slots__ = ("__weakref__", "line", "position")

    def __init__(self, line: Line, position: int) -> None:
        self.line = line
        self.position = position

    @property
    def reached(self) -> bool:
        return self.line.done >= self.position


class Scheduler:
    """Runs the work of all lines of a driver. Not locked: its driver is.

    Args:
      seed: of every choice.
      laziness: how often (0 to 1) it runs only what is needed; None draws it from the seed.
    """

    def __init__(self, seed: int = 0, laziness: float | None = None) -> None:
        self.random = random.Random(seed)
        self.laziness = self.random.choice((0.0, 0.5, 1.0)) if laziness is None else laziness
        #: Lines that have work, and some that have not any more, in the order in which they got it.
        self._active: dict[Line, None] = {}

    @property
    def pending(self) -> int:
        """How much work will run."""
        return sum(line.pending for line in self._active)

    def pending_of(self, health: Health) -> int:
        """How much work of one device will run."""
        return sum(line.pending for line in self._active if line.health is health)

    def add(self, line: Line, work: Work) -> None:
        """Queue work."""
        self._active[line] = None
        line.work.append(work)
        line.queued += 1

    def step(self) -> bool:
        """Run one piece of work, of any line; False when there is none that can run."""
        self._active = {line: None for line in self._active if line.work}
        ready = [line for line in self._active if _ready(line)]
        if ready:
            self._run(self.random.choice(ready))
        return bool(ready)

    def drain(self, line: Line) -> None:
        """Run until the line is empty, or its device is lost."""
        while line.work:
            self._towards(line)

    def reach(self, point: QueuePoint) -> None:
        """Run until the point is reached, or its device is lost."""
        while not point.reached and point.line.work:
            self._towards(point.line)

    def _towards(self, line: Line) -> None:
        """Run one piece of work, so that the line comes nearer to its end."""
        needed = _blocker(line)
        if self.random.random() < self.laziness or not self.step():
            self._run(needed)

    def _run(self, line: Line) -> None:
        work = line.work[0]
        if line.health.reason is not None:
            line.work.clear()
        else:
            line.work.popleft()
            self._perform(line, work)

    def _perform(self, line: Line, work: Work) -> None:
        if work.loses is not None:
            line.health.lose(work.loses)
            line.work.clear()
            return
        if work.after is not None and not work.after.reached:
            other = work.after.line.health
            assert other.reason is not None
            line.error = line.error or DeviceLostError(other.device, other.reason)
        try:
            if work.run is not None:
                work.run()
        except Exception as error:  # noqa: BLE001 - it is raised at the line's next fence
            line.error = line.error or error
        finally:
            line.done += 1


def _ready(line: Line) -> bool:
    """Return whether the head of the line can run: it waits for nothing that may still come."""
    after = line.work[0].after
    return after is None or after.reached or after.line.health.reason is not None or line.health.reason is not None


def _blocker(line: Line) -> Line:
    """The line that must run first so that this one can."""
    for _ in range(10_000):
        if _ready(line):
            return line
        after = line.work[0].after
        assert after is not None
        if not after.line.work:
            raise InternalError(f"{line.name} waits for a point of {after.line.name} that never comes")
        line = after.line
    raise InternalError(f"queues wait for one another in a circle: {line.name} is one of them")
