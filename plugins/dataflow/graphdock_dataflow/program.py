"""The dataflow program: the tables of a plan, run by any number of contexts at once."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from graphdock.contracts import PlacedGraph, PlanGraph, PlanNode, Program, StageReport, StepContext, TraceLevel, Value
from graphdock.contracts.bodies import carried
from graphdock.contracts.effects import effects_of
from graphdock.contracts.executor import run_stages
from graphdock.contracts.ir import arg_of
from graphdock.contracts.runtime.resources import Variable

from graphdock_dataflow.blocks import Blocks
from graphdock_dataflow.cost import dear_nodes
from graphdock_dataflow.frames import has_primitives
from graphdock_dataflow.instance import Instance
from graphdock_dataflow.level import Level, levels_of
from graphdock_dataflow.nodes import fire_of

__all__ = ["DataflowProgram"]


class DataflowProgram(Program):
    """See :class:`graphdock.contracts.Program`.

    Args:
      hand_off: seconds that a kernel takes at least which is handed to another thread.
      order: draws the next of the rows that are ready; None for the order that is quickest.
      without: order edges that are left out, by the nodes' names.

    Attributes:
      dear: nodes that may be handed over. ``tables``: of each level. ``written``: handles of resources that a node may write.
      overlapping: loops of which several iterations may run at once. ``blocks``: memory that steps use again.
    """

    def __init__(
        self,
        placed: PlacedGraph,
        hand_off: float,
        order: random.Random | None = None,
        without: frozenset[tuple[str, str]] = frozenset(),
    ) -> None:
        self.placed = placed
        self.holds = placed.holds
        self.order = order
        self.written: frozenset[Value] = frozenset()
        self.dear: frozenset[PlanNode] = frozenset()
        self.overlapping: frozenset[PlanNode] = frozenset()
        self.tables: dict[PlanGraph, Level] = {}
        self.blocks = Blocks()
        self._hand_off = hand_off
        self._without = without
        self._constants: dict[tuple[PlanNode, str], Any] = {}
        self.stages: Sequence[StageReport] = run_stages(
            {"analyse": DataflowProgram._analyse, "tables": DataflowProgram._tables}, self, placed.debug
        )
        self.checked = () if placed.pieces or has_primitives(placed.graph) else tuple(_checked(placed).items())
        self.notes = self._notes()

    def _analyse(self) -> None:
        """What is written, which kernels are dear, which loops overlap."""
        placed = self.placed
        levels = list(placed.graph.all_graphs())
        effects = dict(effects_of(placed.graph, placed.handles))
        root = effects[placed.graph]
        self.written = frozenset(h for t in root.values() for h, writes in t.resources.items() if writes)
        emptied = (placed.handles[v] for g in levels for n in g.nodes if n.verb == "host" for v in _emptied(n))
        self.written |= set(emptied)
        free = [
            (node, node.bodies)
            for level in levels
            for node in level.holders
            if node.verb == "loop" and _may_overlap(node, effects[level].get(node))
        ]
        inside = {node: [n for body in bodies for g in body.all_graphs() for n in g.nodes] for node, bodies in free}
        again = {n for nodes in inside.values() for n in nodes}
        if has_primitives(placed.graph):
            again.update(n for level in levels for n in level.nodes)
        self.dear = dear_nodes(placed, self._hand_off, frozenset(again))
        self.overlapping = frozenset(
            node
            for node, nodes in inside.items()
            if self.order is not None or any(n in self.dear or "waits" in n.opdef.effects for n in nodes)
        )

    def _tables(self) -> None:
        """The tables of all levels."""
        placed = self.placed
        late = {
            node: node in self.overlapping
            for level in placed.graph.all_graphs()
            for node in level.holders
            if node.verb == "loop"
        }
        self.tables = levels_of(placed, late, self._without)

    def _notes(self) -> list[str]:
        nodes = [n for level in self.placed.graph.all_graphs() for n in level.nodes]
        waits = sum("waits" in n.opdef.effects for n in nodes)
        facts = [f"{waits} nodes may wait", f"{len(self.dear)} kernels may be handed to other threads"]
        if self.overlapping:
            facts.append(f"iterations of {len(self.overlapping)} loops overlap")
        return [f"dataflow: {', '.join(facts)}"]

    def _instance(self, step: StepContext, traced: bool = False) -> Instance:
        return Instance(self, step, fire_of, self._constants, traced)

    def run(self, step: StepContext, feeds: Sequence[Any]) -> list[Any]:
        instance: Instance | None = step.state
        if instance is None:
            instance = step.state = self._instance(step)
        return instance(step, feeds)

    def begin(self, step: StepContext) -> Callable[[Mapping[int, Any], Sequence[int], Collection[str]], list[Any]]:
        return self._instance(step).begin(step)

    @contextmanager
    def trace(self, step: StepContext, level: TraceLevel) -> Iterator[None]:
        """A block in which each row reports to ``step.events``: in another instance, so that other steps pay nothing."""
        plain = step.state
        step.state = self._instance(step, traced=True)
        try:
            yield
        finally:
            step.state = plain


def _may_overlap(node: PlanNode, touched: Any) -> bool:
    """Return whether an iteration of a loop may begin before the last one has ended."""
    if touched is not None and (touched.world or any(touched.resources.values())):
        return False
    return node.attrs["parallel_iterations"] > 1 and carried(node.opdef, node.attrs) > 0


def _emptied(node: PlanNode) -> list[Value]:
    """Handles of what a node of the host leaves without a value."""
    return [v for v, arg in zip(node.inputs, arg_of(node), strict=True) if arg.mutates]


def _checked(placed: PlacedGraph) -> dict[Variable, PlanNode]:
    """Variables that are read whatever happens before they are assigned, with the first node that does."""
    found: dict[Variable, PlanNode] = {}
    assigned: set[Value] = set()
    for node in placed.graph.nodes:
        handles = [v for v in node.inputs if v.dtype.name == "resource"]
        if node.verb == "host" or node.bodies or node.verb == "assign":
            assigned.update([placed.handles[v] for v in handles])  # what it does with them only the step knows
            continue
        for value in handles if node.opdef.accesses else ():
            handle = placed.handles[value]
            variable = placed.resource(handle)
            if isinstance(variable, Variable) and handle not in assigned:
                found.setdefault(variable, node)
    return found
