"""Order of work that is known to be done before other work: vector clocks over queues and the host.

The host is one agent: what one thread has fenced is done for every thread that queues work afterwards. An agent counts its own
accesses; a clock says how many of each agent's accesses are known to come before.
"""

from __future__ import annotations

from collections.abc import Hashable
from weakref import WeakKeyDictionary

__all__ = ["HOST", "Clock", "Clocks"]

#: The host's number among the agents.
HOST = 0
#: Agent's number -> accesses of it that come before. Agents beyond the end: none.
Clock = list[int]


def join(clock: Clock, other: Clock) -> None:
    """Let ``clock`` know all that ``other`` knows."""
    short = len(other) - len(clock)
    if short > 0:
        clock.extend([0] * short)
    for agent, count in enumerate(other):
        if count > clock[agent]:
            clock[agent] = count


class Clocks:
    """The clocks of every agent. Not locked; each call costs time in the number of agents."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._clocks: list[Clock] = [[0]]
        #: How often the host's clock has changed, and what of it each agent has seen.
        self._host_version = 1
        self._seen: list[int] = [0]
        self._points: WeakKeyDictionary[object, Clock] = WeakKeyDictionary()

    def agent(self, key: Hashable) -> int:
        """The number of a queue; a new one when it was never seen."""
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._clocks)
            self._clocks.append([0] * (number + 1))
            self._seen.append(0)
        return number

    def queued(self, agent: int) -> Clock:
        """One more access of a queue, queued now by the host; its clock, in which ``clock[agent]`` is the access's own count."""
        clock = self._clocks[agent]
        if self._seen[agent] != self._host_version:
            join(clock, self._clocks[HOST])
            self._seen[agent] = self._host_version
        clock[agent] += 1
        return clock

    def on_host(self) -> Clock:
        """One more access by the host, now; its clock."""
        clock = self._clocks[HOST]
        clock[HOST] += 1
        self._host_version += 1
        return clock

    def record(self, agent: int, point: object) -> None:
        """``point`` comes after all that the queue was given so far. What the host knows, whoever waits is told by the host."""
        self._points[point] = list(self._clocks[agent])

    def wait(self, agent: int, point: object) -> None:
        """What the queue is given later comes after ``point``. A point that was never seen recorded is older than all."""
        known = self._points.get(point)
        if known is not None:
            join(self._clocks[agent], known)

    def reached(self, point: object) -> None:
        """The host knows that ``point`` is done."""
        known = self._points.get(point)
        if known is not None:
            self._learn(known)

    def fenced(self, agent: int) -> None:
        """The host knows that all that the queue was given is done."""
        self._learn(self._clocks[agent])

    def _learn(self, known: Clock) -> None:
        join(self._clocks[HOST], known)
        self._host_version += 1
