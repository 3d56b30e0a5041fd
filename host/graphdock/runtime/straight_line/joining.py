"""Kernels that are called one behind the other within a recording, made one: updates of many variables, of those that say how."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any

from graphdock.contracts.kernel import Prepared
from graphdock.runtime.program.names import Operand
from graphdock.runtime.program.statements import Launch, Segment, Statement

__all__ = ["join_kernels"]


def join_kernels(
    namespace: MutableMapping[str, Any], segments: Iterable[Segment], prepared: Mapping[Operand, Prepared]
) -> None:
    """Let the last call of each run of alike kernels do the work of all of them, and the other calls nothing.

    Args:
      namespace: of an instance, with its kernels. ``prepared``: what those stated that may be joined, by their names.
    """
    for segment in segments if prepared else ():
        for run in _runs(segment.body.statements, prepared):
            names = [launch.kernel.text for launch in run]
            joins = prepared[run[0].kernel].joins
            joined = joins([namespace[name] for name in names]) if joins is not None else None
            if joined is not None:
                namespace.update(dict.fromkeys(names, _nothing))
                namespace[names[-1]] = joined


def _nothing(*_: Any) -> None:
    """What is called in place of a kernel whose work the last one of its run does."""


def _runs(statements: Sequence[Statement], prepared: Mapping[Operand, Prepared]) -> Iterator[list[Launch]]:
    run: list[Launch] = []
    for statement in statements:
        fits = isinstance(statement, Launch) and _fits(run, statement, prepared)
        if not fits and len(run) > 1:
            yield run
        if not fits:
            run = []
        if isinstance(statement, Launch) and (fits or _fits(run, statement, prepared)):
            run.append(statement)
    if len(run) > 1:
        yield run


def _fits(run: Sequence[Launch], launch: Launch, prepared: Mapping[Operand, Prepared]) -> bool:
    """Whether a launch may be one with those of a run: it is like them, and nobody touches what another one writes."""
    if launch.kernel not in prepared or launch.returns or any(root.kind != "variable" for root in launch.writes):
        return False
    if run and prepared[launch.kernel].like != prepared[run[0].kernel].like:
        return False
    mine = {*launch.reads, *launch.writes}
    return all(mine.isdisjoint(o.writes) and {*o.reads, *o.writes}.isdisjoint(launch.writes) for o in run)
