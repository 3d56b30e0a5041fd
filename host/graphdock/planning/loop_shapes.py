"""Shapes of loop variables: what the feeds make known at the start may change with an iteration.

A nest of loops is translated in rounds. A round translates every body of the nest once, for the shapes that are assumed to
last; a dim that an iteration changed is unknown from then on, for the rest of the plan. Few rounds find all of them in practice;
the last one assumes only what the loops' shape invariants promise, which holds by construction. So the work is linear in the
nest, however deep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from graphdock.graph.operation import Operation
from graphdock.shape import Dims, Symbol

__all__ = ["ROUNDS", "LoopShapes"]

#: Rounds that look for the shapes that last, before one that assumes the invariants.
ROUNDS = 4


class LoopShapes:
    """Findings of one plan about the shapes of its loop variables.

    Args:
      is_same: whether two dims, or two extents, are known to be the same.

    Attributes:
      running: whether a nest is being translated: loops inside of it take part in its rounds.
    """

    def __init__(self, is_same: Callable[[Any, Any], bool]) -> None:
        self.running = False
        self._is_same = is_same
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

    def parameters(self, loop: Operation, start: Sequence[Any], invariants: Sequence[Dims]) -> list[Any]:
        """Extents of a loop's variables in its bodies, given those that they start with."""
        if self._last:
            return [_promised(s, i) for s, i in zip(start, invariants, strict=True)]
        found = self._open.get(loop)
        if found is None:
            return list(start)
        return [_without(s, dims) for s, dims in zip(start, found, strict=True)]

    def note(self, loop: Operation, assumed: Sequence[Any], after: Sequence[Any]) -> None:
        """Take in the extents that an iteration makes of those that it was given."""
        changed: set[int] | None
        for i, (before, extent) in enumerate(zip(assumed, after, strict=True)):
            if not isinstance(before, tuple):
                changed = None if self._changes(before, extent) else set()
            elif isinstance(extent, tuple) and len(extent) == len(before):
                changed = {k for k, (a, b) in enumerate(zip(before, extent, strict=True)) if self._changes(a, b)}
            else:
                changed = None
            if changed == set():
                continue
            found = self._open.setdefault(loop, [set() for _ in assumed])
            opened = found[i]
            found[i] = None if opened is None or changed is None else opened | changed
            self._changed = True

    def _changes(self, before: Any, after: Any) -> bool:
        """Whether a dim that was assumed to last does not; one that only the step knows is not assumed to."""
        return not (isinstance(before, Symbol) and not before.fed) and not self._is_same(before, after)


def _promised(start: Any, invariant: Dims) -> Any:
    if invariant is None:
        return Symbol(False)
    known = start if isinstance(start, tuple) and len(start) == len(invariant) else invariant
    return tuple([Symbol(False) if i is None else s for s, i in zip(known, invariant, strict=True)])


def _without(start: Any, dims: set[int] | None) -> Any:
    if not isinstance(start, tuple) or dims is None:
        return Symbol(False) if dims is None else start
    return tuple([Symbol(False) if k in dims else d for k, d in enumerate(start)])
