"""Choice of one of several configurations of a kernel, and what is kept of the choice.

A kernel states its configurations, the best guess first. Where a GPU may be measured (``options={"triton": {"tune": "measure"}}``)
the quickest is found while a plan is made, never in a step, and kept on disk; every later plan, of any process, takes it. Without a
GPU ``tune="estimate"`` lets registers, spills and shared memory of the compiled kernels decide. Choices lie in ``triton`` of the
cache folder, by content of the kernel, class of its shapes, Triton's version and architecture.

A session that is ``deterministic`` takes the guess: another choice sums in another order.
"""

from __future__ import annotations

import concurrent.futures
import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphdock.contracts import cache_dir, read_cache, write_cache

from graphdock_triton.compiling import Job, cubin_of, version
from graphdock_triton.occupancy import cost, limits_of

__all__ = ["Candidate", "Subject", "choose"]

#: Most candidates that are measured: those that the estimate finds best, and the guess.
_MEASURED = 6


@dataclass(frozen=True, slots=True)
class Subject:
    """Subject of a choice.

    Attributes:
      name: for people. ``content``: what the kernel computes, sizes apart. ``sizes``: the class of its shapes.
    """

    name: str
    content: str
    sizes: tuple[int, ...]

    def path(self, architecture: str) -> Path:
        facts = repr((version(), architecture, self.content, self.sizes))
        key = hashlib.sha256(facts.encode()).hexdigest()[:32]
        return cache_dir() / "triton" / architecture / f"{self.name[:60]}-{key}.choice"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to launch.

    Attributes:
      config: whole numbers that name it. ``jobs``: what is compiled for it.
      blocks, work: of the first of them: programs of its launch, and bytes that each moves.
      run: ``run(queue, *inputs, *outputs)`` launches it, to be measured. ``warps``: that hide what they wait for.
    """

    config: tuple[int, ...]
    jobs: Sequence[Job]
    blocks: int
    work: int
    run: Callable[..., Any]
    warps: int = 16


def choose(
    subject: Subject,
    candidates: Callable[[], Sequence[Candidate]],
    architecture: str,
    multiprocessors: int,
    how: str,
    measure: Callable[[Sequence[Callable[..., Any]]], int],
    seconds: float = 20.0,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[int, ...] | None:
    """The configuration to take; None: nothing is known, so that the guess stands.

    Args:
      candidates: made only where something is to be found out.
      how: ``kept``: only what is known already counts; ``estimate`` or ``measure``: else it is found out.
      measure: of a PrepareContext; it may decline, and then nothing is kept. ``seconds``: when waiting for the compilers ends:
        candidates that are not compiled by then are out.
    """
    path = subject.path(architecture)
    known = _read(path)
    if known is not None and (how != "measure" or known[1] == "measured"):
        return known[0]
    if how == "kept":
        return None
    ready = _compiled(candidates(), architecture, clock() + seconds, clock)
    limits = limits_of(architecture)
    order = sorted(range(len(ready)), key=lambda i: _cost(ready[i], limits, architecture, multiprocessors))
    if not order:
        return None
    if how == "estimate":
        chosen = ready[order[0]].config
        _write(path, chosen, "estimated")
        return chosen
    shown = [ready[i] for i in dict.fromkeys([0, *order[: _MEASURED - 1]])]
    asked: list[int] = []

    def noted(run: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            asked.append(1)
            return run(*args)

        return call

    number = measure([noted(c.run) for c in shown])
    if not asked:
        return None if known is None else known[0]
    _write(path, shown[number].config, "measured")
    return shown[number].config


def _compiled(
    candidates: Sequence[Candidate], architecture: str, until: float, clock: Callable[[], float]
) -> list[Candidate]:
    """The candidates whose kernels compile in time, in order."""
    futures = [[cubin_of(job, architecture) for job in c.jobs] for c in candidates]
    for future in (f for group in futures for f in group):
        concurrent.futures.wait([future], timeout=max(until - clock(), 0))
    return [
        c
        for c, group in zip(candidates, futures, strict=True)
        if all(f.done() and f.exception() is None for f in group)
    ]


def _cost(candidate: Candidate, limits: Any, architecture: str, multiprocessors: int) -> float:
    first = cubin_of(candidate.jobs[0], architecture).result()
    return cost(first, limits, candidate.blocks, candidate.work, multiprocessors, candidate.warps)


def _read(path: Path) -> tuple[tuple[int, ...], str] | None:
    """Return what was chosen, and how; None where nothing whole is kept."""
    data = read_cache(path)
    if data is None:
        return None
    try:
        found = json.loads(data)
        return tuple([int(n) for n in found["config"]]), str(found["by"])
    except (ValueError, KeyError, TypeError):  # of another release of this package
        return None


def _write(path: Path, config: tuple[int, ...], by: str) -> None:
    write_cache(path, json.dumps({"config": config, "by": by}).encode())
