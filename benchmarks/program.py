"""Declarations of a benchmark module: programs, how each framework runs them, and the bars they are held to."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

__all__ = ["AGAINST", "Bar", "Case", "Program", "Unavailable", "framework_of", "side_by_side"]

#: The subject that runs graphdock's builder in another checkout of this repository (``--against``).
AGAINST = "against"


def _nothing() -> None:
    return None


def _no_parts() -> Mapping[str, float]:
    return {}


class Unavailable(Exception):
    """Raised by a builder: this subject cannot run here, and why. It is listed as missing, not as a fault."""


@dataclass(frozen=True)
class Case:
    """One program, ready to run in one framework.

    call: one timed call; what it computes is complete when it returns.
    values: the arrays on which every framework must agree after the check calls. Called once, before any timing.
    per_call: units of work (iterations, nodes) in one call; times are reported per unit.
    clock: what calls are timed by; `time.process_time` for work of one thread that nothing waits for.
    before: called before each burst, untimed.
    parts: seconds per unit that parts of the quickest call so far took.
    """

    call: Callable[[], object]
    values: Callable[[], Sequence[object]]
    per_call: int = 1
    clock: Callable[[], float] = time.perf_counter
    before: Callable[[], object] = _nothing
    parts: Callable[[], Mapping[str, float]] = _no_parts


@dataclass(frozen=True)
class Bar:
    """`subject` may take at most `at_most` times what the best of `peers` takes, and `allowance` seconds a unit on top of that."""

    row: str
    peers: tuple[str, ...]
    at_most: float
    subject: str = "graphdock"
    note: str = ""
    allowance: float = 0.0


@dataclass(frozen=True)
class Program:
    """One thing to compute, and who computes it.

    builders: subject -> function that makes its Case. A subject is a framework, or `framework/variant`; each subject
        is a process of its own in its framework's environment, and only that process calls the builder.
    check_calls: calls made before the subjects' values are compared with `reference`'s to rtol and atol.
    once: a call that is timed singly, without warm-up (building a graph and running it for the first time).
    """

    name: str
    summary: str
    builders: Mapping[str, Callable[[], Case]]
    bars: tuple[Bar, ...] = ()
    unit: str = "call"
    reference: str = "numpy"
    check_calls: int = 1
    rtol: float = 1e-4
    atol: float = 1e-6
    once: bool = False


def framework_of(subject: str) -> str:
    """The framework whose environment runs `subject`: "tensorflow/flow_v2" -> "tensorflow"."""
    return subject.partition("/")[0]


def side_by_side(program: Program) -> Program:
    """The same program, run by another checkout too; a bar says that this one is no slower, within what noise does."""
    row = program.bars[0].row if program.bars else "-"
    bar = Bar(row, (AGAINST,), 1.05, note="the other checkout")
    builders = dict(program.builders)
    if "graphdock" in builders:  # a program that starts processes of its own has none
        builders[AGAINST] = builders["graphdock"]
    return replace(program, builders=builders, bars=(*program.bars, bar))
