"""The dataflow executor: for steps whose nodes wait for one another's, for other steps, or for threads."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import ClassVar

from graphdock.contracts import Executor, PlacedGraph

from graphdock_dataflow.cost import HAND_OFF
from graphdock_dataflow.nodes import VERBS
from graphdock_dataflow.program import DataflowProgram

__all__ = ["Dataflow"]


class Dataflow(Executor):
    """Runs each node when what it needs is there.

    Args:
      seed: of a random order, another one in every step, among those that the edges of a plan allow; None for the one that is
        quickest. For tests, as the others are.
      without: order edges that it does not know of, by the names of the earlier and the later node.
      hand_off: seconds that a kernel takes at least which is handed to another thread; 0 for every kernel.
      name: under which a session finds it.
    """

    name: ClassVar[str] = "dataflow"
    concurrent: ClassVar[bool] = True

    def __init__(
        self, seed: int | None = None, without: Iterable[tuple[str, str]] = (), hand_off: float = HAND_OFF
    ) -> None:
        self._order = None if seed is None else random.Random(seed)
        self._without = frozenset(without)
        self._hand_off = hand_off

    def refuses(self, placed: PlacedGraph) -> str | None:
        """It has nothing that sends or receives, and no primitives in bodies or pieces."""
        for level in placed.graph.all_graphs():
            for node in level.nodes:
                if node.verb not in VERBS:
                    return f"{node.name} ({node.op}): it has no {node.verb}"
                if node.opdef.verb.primitive and (placed.pieces or level is not placed.graph):
                    where = "a step in pieces" if placed.pieces else f"the body {level.name}"
                    return f"{node.name} ({node.op}) stands in {where}, and not in a graph that runs by itself"
        return None

    def compile(self, placed: PlacedGraph) -> DataflowProgram:
        return DataflowProgram(placed, self._hand_off, self._order, self._without)
