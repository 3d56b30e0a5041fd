"""Loops that are written out while the user's graph becomes a plan: what a pass of the phase ``translate`` returns, and is asked.

Translation infers shapes as it goes, so that what comes after a loop that is written out knows how many rows there are; a pass that
finds the loop in a plan comes too late for that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from graphdock.contracts.builder import Builder
from graphdock.contracts.ir import PlanNode, Value
from graphdock.contracts.opdef import OpDef

__all__ = ["KeepLoops", "LoopNote", "LoopWriter", "UserBody", "UserOp"]


class KeepLoops(Exception):
    """A loop that was written out has a reader that needs its history; the argument is the reason. The graph is translated again,
    with all loops as they are."""


@dataclass(frozen=True, slots=True)
class LoopNote:
    """What became of a loop that could be written out. ``count``: iterations that were; 0 where ``why`` says why none was."""

    origin: str
    count: int
    why: str = ""


class UserBody(Protocol):
    """A body of an operation, as far as a :class:`LoopWriter` reads it. ``outputs``: its tensors, each with its ``op``."""

    @property
    def outputs(self) -> Sequence[Any]: ...

    def running(self) -> Iterator[Any]:
        """The operations that run when it does."""


class UserOp(Protocol):
    """An operation of the user's graph, as far as a :class:`LoopWriter` reads it.

    ``outputs``: its tensors, each with ``dtype`` and ``shape``. ``device``: what its scopes ask for; empty for nothing.
    """

    @property
    def name(self) -> str: ...

    @property
    def verb(self) -> str: ...

    @property
    def op_def(self) -> OpDef: ...

    @property
    def node_attrs(self) -> Mapping[str, Any]: ...

    @property
    def outputs(self) -> Sequence[Any]: ...

    @property
    def bodies(self) -> Sequence[UserBody]: ...

    @property
    def device(self) -> str: ...


class LoopWriter(Protocol):
    """Says which loops of a plan are written out, and makes what stands for their histories. Used once, by one translation.

    Attributes:
      elements: history that is none -> its elements, in the order in which they were made.
      notes: what became of each loop.
    """

    elements: dict[Value, list[Value]]
    notes: list[LoopNote]

    def count(self, op: UserOp, inputs: Sequence[Value], ops: int) -> int:
        """How many iterations of a loop are written out, whose body has so many operations; 0 for none.

        Raises:
          KeepLoops: it is none of these, and reads what another one made.
        """

    def read(self, op: UserOp, history: Value, builder: Builder) -> list[Value]:
        """The elements of a history that a loop reads, in the order in which they were made."""

    def stack(self, op: UserOp, history: Value, builder: Builder) -> PlanNode:
        """The node that puts together what a loop kept, for an op that makes a tensor of a history.

        Raises:
          KeepLoops: it can't.
        """
