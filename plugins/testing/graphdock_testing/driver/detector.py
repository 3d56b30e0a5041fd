"""Detector: told what is queued, it finds accesses that nothing orders (:mod:`graphdock_testing.driver.races`)."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from graphdock.contracts import queue
from graphdock.locks import new_lock

from graphdock_testing.driver.clocks import HOST, Clock, Clocks
from graphdock_testing.driver.shadow import Cell, Shadow

__all__ = ["Access", "Detector", "Note", "Pending", "Race", "RaceError", "Range", "Report"]

#: Races that a report keeps; the others are counted.
_KEPT = 100
#: Files whose frames are not the site of an access.
_INSIDE = (
    os.path.dirname(__file__),
    os.path.join(os.path.dirname(os.path.dirname(__file__)), "queued.py"),
    queue.__file__,
    contextlib.__file__,
)


class Range(NamedTuple):
    """Bytes ``start`` to ``stop`` of a memory space."""

    space: str
    start: int
    stop: int

    def __str__(self) -> str:
        return f"bytes {self.start:#x} to {self.stop:#x} of {self.space}"


@dataclass(frozen=True, slots=True)
class Access:
    """One read or write.

    Attributes:
      what: a node, a kernel or a call.
      where: the queue's name, or ``the host``.
      site: file and line that queued it, a line of a step's generated source among them.
      agent, count: which access of which agent it is.
    """

    what: str
    where: str
    write: bool
    site: str
    agent: int
    count: int

    def __str__(self) -> str:
        return f"{self.what} ({self.site}) on {self.where} {'writes' if self.write else 'reads'}"


@dataclass(frozen=True, slots=True)
class Race:
    """Two accesses that nothing orders, in the order in which they were queued, and the bytes of the first conflict."""

    first: Access
    second: Access
    range: Range

    def __str__(self) -> str:
        return f"{self.second}, {self.first}, and nothing orders them: {self.range}"


class RaceError(AssertionError):
    """``check`` found races; ``races`` are they."""

    def __init__(self, races: Sequence[Race], more: int) -> None:
        lines = [str(race) for race in races] + ([f"and {more} more"] if more else [])
        super().__init__("\n  ".join([f"{len(races) + more} races:", *lines]))
        self.races = races


class Report:
    """What was found so far. Attributes: ``races``, one per pair of things; ``accesses``, how many were seen."""

    def __init__(self) -> None:
        self.races: list[Race] = []
        self.accesses = 0
        self._more = 0
        self._seen: set[tuple[Any, ...]] = set()

    def add(self, race: Race) -> None:
        """Keep a race, unless one between the same two is there."""
        a, b = race.first, race.second
        key = (a.what, a.where, a.write, b.what, b.where, b.write)
        if key in self._seen:
            return
        self._seen.add(key)
        if len(self.races) < _KEPT:
            self.races.append(race)
        else:
            self._more += 1

    def verify(self) -> None:
        """Raises RaceError when there are races."""
        if self.races:
            raise RaceError(self.races, self._more)

    def __str__(self) -> str:
        return "\n".join(map(str, self.races)) or "no races"


class Note(NamedTuple):
    """One thing that a captured segment does, for ``Detector.replay``: an access, or a record or wait of ``point``."""

    kind: Literal["access", "record", "wait"]
    queue: str
    what: str = ""
    reads: tuple[Range, ...] = ()
    writes: tuple[Range, ...] = ()
    point: Any = None


@dataclass(frozen=True, slots=True)
class Pending:
    """Work that was queued, whose accesses are known once it has run: where it stands in the order. See ``Detector.queued``."""

    agent: int
    clock: Clock
    where: str
    what: str
    site: str


class Detector:
    """Told what is queued, in the order of the calls; fills ``report``. Queues are known by name. Safe from any thread."""

    def __init__(self) -> None:
        self.report = Report()
        self._clocks = Clocks()
        self._memory: dict[str, Shadow[Access]] = {}
        self._lock = new_lock()

    def access(self, queue: str, what: str, reads: Iterable[Range] = (), writes: Iterable[Range] = ()) -> None:
        """Work was queued that reads and writes these bytes."""
        with self._lock:
            self._access(queue, queue, what, reads, writes)

    def queued(self, queue: str, what: str) -> Pending:
        """Work was queued that tells what it reads and writes by ``ran``. All accesses to those bytes have to be told so."""
        with self._lock:
            return self._pending(queue, queue, what)

    def ran(self, work: Pending, reads: Iterable[Range], writes: Iterable[Range]) -> None:
        """What was queued has read and written these bytes; told in an order in which the work may run."""
        with self._lock:
            self._note(work.agent, work.clock, work.where, work.what, reads, writes, work.site)

    def host(self, what: str, reads: Iterable[Range] = (), writes: Iterable[Range] = ()) -> None:
        """The host reads and writes these bytes now."""
        with self._lock:
            self._note(HOST, self._clocks.on_host(), "the host", what, reads, writes)

    def record(self, queue: str, point: object) -> None:
        """``point``, which can be weakly referenced, stands for all that the queue was given so far."""
        with self._lock:
            self._clocks.record(self._clocks.agent(queue), point)

    def wait(self, queue: str, point: object) -> None:
        """What the queue is given from now on waits for ``point``."""
        with self._lock:
            self._clocks.wait(self._clocks.agent(queue), point)

    def reached(self, point: object) -> None:
        """The host has learned that ``point`` is done."""
        with self._lock:
            self._clocks.reached(point)

    def fenced(self, queue: str) -> None:
        """The host has learned that all work of the queue is done."""
        with self._lock:
            self._clocks.fenced(self._clocks.agent(queue))

    def forget(self, ranges: Iterable[Range]) -> None:
        """These bytes are new memory: whoever had them before is done with them."""
        with self._lock:
            for found in ranges:
                self._memory.setdefault(found.space, Shadow()).clear(found.start, found.stop)

    def replay(self, queue: str, notes: Sequence[Note], pending: dict[int, Pending] | None = None) -> None:
        """A captured segment was queued. Branches on other queues begin and end within it, as agents of their own.

        ``pending``: gets what ``queued`` gives for each access, by the note's ``id``.
        """
        with self._lock:
            points: dict[int, _Point] = {}
            for note in notes:
                agent: Hashable = queue if note.queue == queue else (queue, note.queue)
                if note.kind == "access":
                    self._access(agent, note.queue, note.what, note.reads, note.writes)
                    if pending is not None:
                        pending[id(note)] = self._pending(agent, note.queue, note.what)
                elif note.kind == "record":
                    points[id(note.point)] = point = _Point()
                    self._clocks.record(self._clocks.agent(agent), point)
                else:
                    self._clocks.wait(self._clocks.agent(agent), points[id(note.point)])

    def _access(self, agent: Hashable, where: str, what: str, reads: Iterable[Range], writes: Iterable[Range]) -> None:
        number = self._clocks.agent(agent)
        self._note(number, self._clocks.queued(number), where, what, reads, writes)

    def _pending(self, agent: Hashable, where: str, what: str) -> Pending:
        number = self._clocks.agent(agent)
        return Pending(number, list(self._clocks.queued(number)), where, what, _site())

    def _note(
        self,
        agent: int,
        clock: Clock,
        where: str,
        what: str,
        reads: Iterable[Range],
        writes: Iterable[Range],
        site: str = "",
    ) -> None:
        self.report.accesses += 1
        count, site = clock[agent], site or _site()
        for ranges, writing in ((reads, False), (writes, True)):
            access = Access(what, where, writing, site, agent, count)
            for found in ranges:
                shadow = self._memory.setdefault(found.space, Shadow())
                against = self._conflicts(access, clock, found.space)
                if writing:
                    shadow.write(found.start, found.stop, access, against)
                else:
                    shadow.read(found.start, found.stop, agent, access, against)

    def _conflicts(self, access: Access, clock: Clock, space: str) -> Callable[[Cell[Access]], None]:
        """What to ask each piece of memory that ``access`` touches."""

        def unordered(earlier: Access) -> bool:
            known = clock[earlier.agent] if earlier.agent < len(clock) else 0
            return earlier.agent != access.agent and earlier.count > known

        def against(cell: Cell[Access]) -> None:
            earlier = [cell.write] if cell.write is not None else []
            if access.write:
                earlier += cell.reads.values()
            for other in earlier:
                if unordered(other):
                    self.report.add(Race(other, access, Range(space, cell.start, cell.stop)))

        return against


class _Point:
    """A record within one replay."""


def _site() -> str:
    """File and line of the nearest caller outside of the driver and the contract."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame = frame.f_back
    file = frame.f_code.co_filename
    return f"{file if file.startswith('<') else os.path.basename(file)}:{frame.f_lineno}"
