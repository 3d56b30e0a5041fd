"""Kernels that are called one behind the other within a recording, made one, of those that say how: updates of many variables, or
products of many gradients by one number.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, MutableMapping, Sequence, Set
from typing import Any

from graphdock.contracts.kernel import Prepared

from graphdock_executor.step_program.names import Operand
from graphdock_executor.step_program.statements import Launch, Segment, Statement
from graphdock_executor.storage import Root

__all__ = ["join_kernels"]

#: Kinds of storage that lie at one address in every step of an instance.
_LASTING = frozenset({"variable", "planned"})


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
    """Stand in for a kernel whose work the last one of its run does."""


class _Run:
    """Launches of one ``like``, one behind the other, of which none touches what another one writes."""

    def __init__(self, first: Launch) -> None:
        self.launches = [first]
        self._read, self._written = set(first.reads), set(first.writes)

    def takes(self, launch: Launch) -> bool:
        """Return whether it touches nothing that these write, and writes nothing that these touch; then it is one of them."""
        if _meet((*launch.reads, *launch.writes), self._written) or _meet(launch.writes, self._read):
            return False
        self.launches.append(launch)
        self._read.update(launch.reads)
        self._written.update(launch.writes)
        return True


def _runs(statements: Sequence[Statement], prepared: Mapping[Operand, Prepared]) -> Iterator[list[Launch]]:
    run: _Run | None = None
    for statement in statements:
        launch = statement if isinstance(statement, Launch) and _joinable(statement, prepared) else None
        if run is not None:
            if launch is not None and _like(run.launches[0], prepared) == _like(launch, prepared) and run.takes(launch):
                continue
            if len(run.launches) > 1:
                yield run.launches
        run = None if launch is None else _Run(launch)
    if run is not None and len(run.launches) > 1:
        yield run.launches


def _like(launch: Launch, prepared: Mapping[Operand, Prepared]) -> Hashable:
    return prepared[launch.kernel].like


def _joinable(launch: Launch, prepared: Mapping[Operand, Prepared]) -> bool:
    return launch.kernel in prepared and not launch.returns and all(root.kind in _LASTING for root in launch.writes)


def _meet(roots: Iterable[Root], others: Set[Root]) -> bool:
    """Return whether any two are one storage, or lie over one another in an arena, where what is dead is used again."""
    if not others.isdisjoint(roots):
        return True
    lying = [root for root in roots if root.offset >= 0]
    return bool(lying) and any(_overlap(a, b) for b in others if b.offset >= 0 for a in lying)


def _overlap(a: Root, b: Root) -> bool:
    return a.device == b.device and a.offset < b.offset + b.nbytes and b.offset < a.offset + a.nbytes
