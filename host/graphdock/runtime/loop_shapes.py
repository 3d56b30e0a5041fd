"""Shapes of loop variables: what the feeds make known at the start may change with an iteration.

A nest of loops is translated in rounds. A round translates every body of the nest once, for the shapes that are assumed to
last; a dim that an iteration changed is unknown from then on, for the rest of the plan. Few rounds find all of them in practice;
the last one assumes only what the loops' shape invariants promise, which holds by construction. So the work is linear in the
nest, however deep.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graphdock.graph.operation import Operation
from graphdock.shape import Dims, common

__all__ = ["ROUNDS", "LoopShapes"]

#: Rounds that look for the shapes that last, before one that assumes the invariants.
ROUNDS = 4


class LoopShapes:
    """What one plan has found out about the shapes of its loop variables.

    Attributes:
      running: whether a nest is being translated: loops inside of it take part in its rounds.
    """

    def __init__(self) -> None:
        self.running = False
        self._changed = False
        self._last = False
        #: loop -> per variable, the dims that an iteration changed; None where it changed the rank
        self._open: dict[Operation, list[set[int] | None]] = {}

    def rounds(self) -> Iterator[int]:
        """Rounds over a nest, until one has changed nothing."""
        self.running = True
        for number in range(ROUNDS + 1):
            self._changed, self._last = False, number == ROUNDS
            yield number
            if not self._changed:
                break
        self.running = self._last = False

    def parameters(self, loop: Operation, start: Sequence[Dims], invariants: Sequence[Dims]) -> list[Dims]:
        """Shapes of a loop's variables in its bodies, given those that they start with."""
        if self._last:
            return [_promised(s, i) for s, i in zip(start, invariants, strict=True)]
        found = self._open.get(loop)
        if found is None:
            return list(start)
        return [_without(s, dims) for s, dims in zip(start, found, strict=True)]

    def note(self, loop: Operation, assumed: Sequence[Dims], after: Sequence[Dims]) -> None:
        """Take in the shapes that an iteration makes of those that it was given."""
        for i, (before, dims) in enumerate(zip(assumed, after, strict=True)):
            lasting = common(before, dims)
            if lasting == before:
                continue
            found = self._open.setdefault(loop, [set() for _ in assumed])
            self._changed = True
            opened = found[i]
            if lasting is None or before is None:
                found[i] = None
            elif opened is not None:
                opened.update(k for k, d in enumerate(lasting) if d is None)


def _promised(start: Dims, invariant: Dims) -> Dims:
    if start is None or invariant is None or len(start) != len(invariant):
        return invariant
    return tuple(s if i is not None else None for s, i in zip(start, invariant, strict=True))


def _without(start: Dims, dims: set[int] | None) -> Dims:
    if start is None or dims is None:
        return None
    return tuple(None if k in dims else d for k, d in enumerate(start))
