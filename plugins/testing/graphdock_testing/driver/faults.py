"""Faults that a driver meets, put where a test wants them.

    faults = device.faults
    faults.reset()
    session.run(...)                          # counts what the driver was asked
    for number in range(1, faults.calls + 1):
        faults.reset()
        faults.at(number, "fail")
        ...

Three things go wrong (see ``contracts/queue.py``, Errors): the driver *refuses* a call; work that it took *fails* when it runs;
the device is *lost* when the work runs. A call that queues no work of its own (allocate, record, wait, staging, capture) can't
fail late: there ``fail`` refuses it, and ``lose`` loses the device at once.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Literal, NamedTuple, get_args

from graphdock.errors import InvalidArgumentError, ResourceExhaustedError

__all__ = ["DriverError", "Fault", "Faults", "How", "Kind"]

#: What a driver is asked. ``copy`` is one in either direction too; ``arguments`` is ``set_arguments``.
Kind = Literal["allocate", "staging", "copy", "arguments", "launch", "replay", "capture", "record", "wait"]
#: What goes wrong.
How = Literal["refuse", "fail", "lose"]

#: Kinds whose work runs later.
_LATE = frozenset({"copy", "arguments", "launch", "replay"})
_MEMORY = frozenset({"allocate", "staging"})


class DriverError(RuntimeError):
    """What a driver raises: no error of graphdock's, and it knows no node."""


class Fault(NamedTuple):
    """One that happened: at which call, counted from 1, of which kind, and what the call was about."""

    number: int
    kind: str
    how: How
    what: str


class Faults:
    """Counts calls, and says which of them go wrong.

    Attributes:
      calls: since the last ``reset``.
      by_kind: the same, per kind.
      happened: the faults since then.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget what was armed, and count from 1 again."""
        self.calls = 0
        self.by_kind: Counter[str] = Counter()
        self.happened: list[Fault] = []
        self._armed: dict[tuple[str | None, int], How] = {}
        self._rate = 0.0
        self._hows: tuple[How, ...] = ()
        self._random = random.Random(0)

    def at(self, number: int, how: How = "refuse", kind: Kind | None = None) -> None:
        """Let call ``number`` since the last reset go wrong; with a kind, call ``number`` of that kind.

        Raises InvalidArgumentError for a call that was made already, and for unknown words.
        """
        if how not in get_args(How) or kind not in (None, *get_args(Kind)):
            raise InvalidArgumentError("no such fault", expected=f"one of {get_args(How)} at {get_args(Kind)}")
        made = self.calls if kind is None else self.by_kind[kind]
        if number <= made:
            raise InvalidArgumentError(f"call {number} was made already", hint="reset() counts from 1 again")
        self._armed[kind, number] = how

    def randomly(self, rate: float, seed: int, hows: tuple[How, ...] = ("refuse", "fail")) -> None:
        """Let each call go wrong with probability ``rate``, drawn from ``seed``, until the next reset."""
        self._rate, self._hows, self._random = rate, hows, random.Random(seed)

    def call(self, kind: Kind, what: str) -> How | None:
        """The driver is asked for ``what``. None: it works; ``fail`` or ``lose``: it will when it runs, or at once, see the module.

        Raises:
          DriverError: the call is refused; ResourceExhaustedError in place of it where memory was asked for.
        """
        self.calls += 1
        self.by_kind[kind] += 1
        how = self._armed.pop((None, self.calls), None) or self._armed.pop((kind, self.by_kind[kind]), None)
        if how is None and self._rate and self._random.random() < self._rate:
            how = self._random.choice(self._hows)
        if how is None:
            return None
        if how == "fail" and kind not in _LATE:
            how = "refuse"
        self.happened.append(Fault(self.calls, kind, how, what))
        if how != "refuse":
            return how
        if kind in _MEMORY:
            raise ResourceExhaustedError(f"there is no memory for {what}", hint=f"call {self.calls} was told to fail")
        raise DriverError(f"the driver refused {what} (call {self.calls}, {kind})")
