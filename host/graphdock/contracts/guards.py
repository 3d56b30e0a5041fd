"""Assumptions of a plan about shapes, and when they are checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Conditions", "DimRef", "Guard"]

#: A dim of a feed, as (feed, axis), or a number.
DimRef: TypeAlias = "tuple[int, int] | int"


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions on the feeds' shapes for a plan's shape rules to accept them.

    Attributes:
      equal: pairs of dims that are the same.
      one_or_equal: pairs of a dim that is 1 or the other one.
      at_least: pairs of a dim and its smallest size.
      proven: whether these suffice. If not, or where they do not hold, only translating the graph for those very shapes tells.
    """

    equal: tuple[tuple[DimRef, DimRef], ...] = ()
    one_or_equal: tuple[tuple[DimRef, DimRef], ...] = ()
    at_least: tuple[tuple[DimRef, int], ...] = ()
    proven: bool = True

    def hold(self, shapes: Sequence[Sequence[int]]) -> bool:
        """Whether they suffice and hold for the feeds' shapes."""

        def dim(ref: DimRef) -> int:
            return ref if isinstance(ref, int) else shapes[ref[0]][ref[1]]

        return (
            self.proven
            and all(dim(a) == dim(b) for a, b in self.equal)
            and all(dim(a) in (1, dim(b)) for a, b in self.one_or_equal)
            and all(dim(a) >= least for a, least in self.at_least)
        )


@dataclass(frozen=True, slots=True)
class Guard:
    """Assumption of a plan about the shapes of a node that only a step can tell; checked when the node runs.

    Attributes:
      shape_rule: the op's shape rule has to accept the actual shapes, before the node runs.
      asked: inputs whose elements the shape rule looks at.
      promised: outputs whose static shape inference does not prove (``set_shape``), to be compared with the actual one.
    """

    shape_rule: bool
    asked: tuple[int, ...] = ()
    promised: tuple[int, ...] = ()
