"""Streams of random numbers: which ones the kernel of a node draws from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphdock.contracts.ir import PlanNode

__all__ = ["StreamName", "streams_of"]


@dataclass(frozen=True, slots=True)
class StreamName:
    """Identity of a stream: all nodes that draw from it, in one step and iteration, draw the same numbers.

    Attributes:
      name: of the user's operation. A session keeps one key for it, and reserves one ordinal of it for each step.
      seed, seed2: as its attributes say; two zeros stand for no seed.
    """

    name: str
    seed: int = 0
    seed2: int = 0


def streams_of(node: PlanNode) -> tuple[StreamName, ...]:
    """The streams that a node's kernel is given, one argument each, behind its inputs.

    A node whose op has the effect ``random`` has a stream of its own, unless its ``streams`` say whose it draws from: those of the
    nodes that it stands for. Other nodes have none.
    """
    if "random" not in node.opdef.effects:
        return ()
    if node.streams is not None:
        return node.streams
    attrs = node.attrs
    return (StreamName(node.origin, int(attrs.get("seed", 0)), int(attrs.get("seed2", 0))),)
