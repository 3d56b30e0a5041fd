"""Failures of CUDA calls, put where a test wants them.

    faults = toolkit.driver.faults
    faults.reset()
    program()                                 # counts calls
    for number in range(1, faults.calls + 1):
        faults.reset()
        faults.at(number, 2)
        ...

A call fails with a status and has no effect, but for calls that give something back: they do it, and fail then. *Late*, work that
was taken fails when it runs: the context is lost with the status, which every later call reports.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import NamedTuple

__all__ = ["LATE", "Fault", "Faults"]

#: Calls whose work runs later.
LATE = frozenset({"copy", "copy_peer", "fill", "launch", "graph_launch", "gemm", "convolution"})


class Fault(NamedTuple):
    """One that happened: at which call, counted from 1, of which name, what it was about, and how it failed."""

    number: int
    call: str
    what: str
    status: int
    late: bool


class Faults:
    """Counts calls, and says which of them fail.

    Attributes:
      calls: since the last ``reset``.
      by_call: the same, per name of the call.
      happened: the faults since then.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget what was armed, and count from 1 again."""
        self.calls = 0
        self.by_call: Counter[str] = Counter()
        self.happened: list[Fault] = []
        self._armed: dict[tuple[str | None, int], tuple[int, bool]] = {}
        self._rate = 0.0
        self._statuses: tuple[int, ...] = ()
        self._late = 0.0
        self._random = random.Random(0)

    def at(self, number: int, status: int = 999, call: str | None = None, late: bool = False) -> None:
        """Let call ``number`` since the last reset fail; with a name, call ``number`` of that name.

        Late where it can be: a call without work of its own fails at once. Raises ValueError for a call that was made already.
        """
        made = self.calls if call is None else self.by_call[call]
        if number <= made:
            raise ValueError(f"call {number} was made already: reset() counts from 1 again")
        self._armed[call, number] = (status, late)

    def randomly(self, rate: float, seed: int, statuses: tuple[int, ...] = (1, 2), late: float = 0.0) -> None:
        """Let each call fail with probability ``rate``, of these ``late`` ones late, drawn from ``seed``, until the next reset."""
        self._rate, self._statuses, self._late, self._random = rate, statuses, late, random.Random(seed)

    def call(self, name: str, what: str) -> Fault | None:
        """A call is made. The fault that it meets, if any."""
        self.calls += 1
        self.by_call[name] += 1
        armed = self._armed.pop((None, self.calls), None) or self._armed.pop((name, self.by_call[name]), None)
        if armed is None and self._rate and self._random.random() < self._rate:
            armed = (self._random.choice(self._statuses), self._random.random() < self._late)
        if armed is None:
            return None
        status, late = armed
        fault = Fault(self.calls, name, what, status, late and name in LATE)
        self.happened.append(fault)
        return fault
