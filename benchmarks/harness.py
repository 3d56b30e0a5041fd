"""Run one program in several frameworks, turn by turn, and compare.

The parent starts one worker per subject, has every worker compute the same thing, compares the values, and only then
times them: bursts in rounds, A B C C A B B A C ..., so that whatever else the machine does falls on all alike. Each round
has an order of its own, so that nobody always follows the same other one, and before each burst there is a pause, in which
the threads of the last one come to rest. Ratios are made within a round, between bursts that lie near each other, and their
median is reported.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import sleep

from benchmarks.process import WorkerFailure, WorkerProcess, Workers
from benchmarks.program import Bar, Program

__all__ = ["PAUSE_SECONDS", "Outcome", "Timing", "Verdict", "disagreement", "judge", "orders", "run_program"]

#: Between two bursts. Threads of OpenMP and of OpenBLAS spin up to 0.2 s after their last work, on the next one's cores.
PAUSE_SECONDS = 0.25

_PREPARE_SECONDS = 600.0  # imports and compilation
_BURST_SECONDS = 300.0
_STEADY = 3.0


@dataclass(frozen=True)
class Timing:
    """One subject's bursts: seconds per unit, the median and the minimum of each."""

    medians: tuple[float, ...]
    minima: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median of the bursts' medians."""
        return statistics.median(self.medians)

    @property
    def minimum(self) -> float:
        """The fastest sample of all bursts."""
        return min(self.minima)

    @property
    def steady(self) -> bool:
        """Return whether the median is near the minimum. It is far where threads of one call waited for a busy CPU."""
        return self.median <= _STEADY * self.minimum

    def ratio_to(self, other: Timing, allowance: float = 0.0) -> float:
        """Median over the rounds of this subject's burst, less an allowance, by the other's burst of the same round."""
        return statistics.median(
            (mine - allowance) / theirs for mine, theirs in zip(self.medians, other.medians, strict=True)
        )


@dataclass(frozen=True)
class Verdict:
    """A bar, the best of its peers, and the ratio found (None where one of the two is missing).

    noisy: a timing was not steady, so the ratio says nothing.
    """

    bar: Bar
    peer: str | None
    ratio: float | None
    noisy: bool = False

    @property
    def word(self) -> str:
        """pass, MISS, noisy or not judged."""
        if self.ratio is None:
            return "not judged"
        if self.noisy:
            return "noisy"
        return "pass" if self.ratio <= self.bar.at_most else "MISS"


@dataclass
class Outcome:
    """Outcome of one program. `absent` says why a subject has no timing; `wrong` and `failed` are faults.

    first_seconds: import, construction, compilation and the first call, where they have not happened in this worker.
    parts: of subjects that know them, what parts of their quickest call took, in seconds per unit.
    """

    program: Program
    timings: dict[str, Timing] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)
    failed: dict[str, WorkerFailure] = field(default_factory=dict)
    first_seconds: dict[str, float] = field(default_factory=dict)
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    parts: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Every bar of the program, judged."""
        return tuple(judge(bar, self.timings) for bar in self.program.bars)


def judge(bar: Bar, timings: Mapping[str, Timing]) -> Verdict:
    """Hold a bar's subject to the fastest of the bar's peers that were timed."""
    mine = timings.get(bar.subject)
    there = [peer for peer in bar.peers if peer in timings]
    if mine is None or not there:
        return Verdict(bar, None, None)
    best = min(there, key=lambda peer: timings[peer].median)
    return Verdict(bar, best, mine.ratio_to(timings[best], bar.allowance), not (mine.steady and timings[best].steady))


def disagreement(values: Sequence[float], reference: Sequence[float], rtol: float, atol: float) -> str | None:
    """Return where `values` differ from `reference`, in words; None where they agree."""
    if len(values) != len(reference):
        return f"{len(values)} check values, expected {len(reference)}"
    for index, (got, expected) in enumerate(zip(values, reference, strict=True)):
        if not (math.isfinite(got) and abs(got - expected) <= atol + rtol * abs(expected)):
            return f"check value {index} is {got:.8g}, expected {expected:.8g} (rtol {rtol:g}, atol {atol:g})"
    return None


def orders(subjects: Sequence[str], rounds: int) -> Iterator[list[str]]:
    """The order of `subjects` in each round: permutations from a fixed seed, the same in every run."""
    draw = random.Random(0)
    for _ in range(rounds):
        yield draw.sample(subjects, len(subjects))


def run_program(
    program: Program,
    module: str,
    workers: Workers,
    rounds: int,
    seconds: float,
    sittings: int = 1,
    pause: float = PAUSE_SECONDS,
) -> Outcome:
    """Prepare, check, and time `program` in every worker that takes part.

    A subject whose worker fails, or whose values differ from the reference's, gets no timing.

    sittings: how often this is done from the start, with fresh processes; the bursts of all count alike. Where a process
        puts its arrays can cost a kernel twofold, and stays so for the life of the process.
    pause: seconds of rest before each burst.
    """
    outcome = Outcome(program)
    bursts: dict[str, list[tuple[float, float]]] = {}
    for sitting in range(sittings):
        if sitting:
            workers.restart()
        ready = _prepare(outcome, module, workers)
        for subject, taken in _time(outcome, ready, rounds, seconds, pause).items():
            bursts.setdefault(subject, []).extend(taken)
    for subject, pairs in bursts.items():
        if subject not in outcome.failed and subject not in outcome.wrong:
            outcome.timings[subject] = Timing(tuple(m for m, _ in pairs), tuple(m for _, m in pairs))
    return outcome


def _prepare(outcome: Outcome, module: str, workers: Workers) -> dict[str, WorkerProcess]:
    program = outcome.program
    values: dict[str, list[float]] = {}
    ready: dict[str, WorkerProcess] = {}
    for subject in program.builders:
        if subject in outcome.failed or subject in outcome.wrong:
            continue  # in an earlier sitting
        worker = workers.get(subject)
        if worker is None:
            outcome.absent[subject] = workers.absent[subject]
            continue
        try:
            prepared = worker.ask("prepare", _PREPARE_SECONDS, module=module, program=program.name)
            if "unavailable" in prepared:
                outcome.absent[subject] = f"missing: {prepared['unavailable']}"
                continue
            checked = worker.ask("check", _PREPARE_SECONDS)
        except WorkerFailure as failure:
            outcome.failed[subject] = failure
        else:
            ready[subject] = worker
            values[subject] = checked["values"]
            outcome.first_seconds[subject] = prepared["seconds"] + checked["seconds"]
            outcome.versions[subject] = prepared["versions"]
    reference = program.reference if program.reference in ready else next(iter(ready), None)
    for subject in list(ready):
        fault = disagreement(values[subject], values[str(reference)], program.rtol, program.atol)
        if fault is not None:
            outcome.wrong[subject] = f"wrong result: {fault}, {reference} is the reference"
            del ready[subject]
    return ready


def _time(
    outcome: Outcome, workers: Mapping[str, WorkerProcess], rounds: int, seconds: float, pause: float
) -> dict[str, list[tuple[float, float]]]:
    bursts: dict[str, list[tuple[float, float]]] = {subject: [] for subject in workers}
    for order in orders(list(workers), rounds):
        for subject in order:
            if subject in outcome.failed:
                continue
            sleep(pause)
            try:
                answer = workers[subject].ask("burst", _BURST_SECONDS, seconds=seconds)
            except WorkerFailure as failure:
                outcome.failed[subject] = failure
            else:
                bursts[subject].append((answer["median"], answer["minimum"]))
                if answer["parts"]:
                    outcome.parts[subject] = answer["parts"]
    return bursts
