"""Cuts a step into parts: a graph per task, with one send and one receive per tensor and receiving task.

A part keeps the order of the whole. A send stands directly behind what it sends, a receive directly before its first reader; both
talk to the world, so that order edges keep them as they stand. All parts that run so are one order of the whole, and never wait for
each other in a circle.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from graphdock.contracts.cluster import TaskName
from graphdock.graph.graph import Graph
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.locks import collector_paused
from graphdock.planning.translate import needed_operations

from graphdock_cluster.partition.assign import Assignment
from graphdock_cluster.partition.part_graph import PartGraph
from graphdock_cluster.partition.phases import early_operations

__all__ = ["SMALL", "Part", "Partition", "partition"]

#: Bytes up to which a constant is copied to each task that reads it.
SMALL = 1024


@dataclass(frozen=True, slots=True)
class Part:
    """The share of one task in a step. All tensors and operations are of the part's graph.

    Attributes:
      step: is fed the step's number; None where nothing is sent or received.
      feeds: number of a feed of the whole, and the tensor that is fed it. ``fetches``: number of a fetch, and its tensor.
      targets: what must run: what the step asks for, and the sends.
      sends: how many. ``receives``: edges.
    """

    task: TaskName
    graph: Graph
    step: Tensor | None
    feeds: Sequence[tuple[int, Tensor]]
    fetches: Sequence[tuple[int, Tensor]]
    targets: Sequence[Operation]
    sends: int
    receives: Sequence[str]


@dataclass(frozen=True, slots=True)
class Partition:
    """A step, cut.

    Attributes:
      parts: one per task that runs something, or two, of which the first ends before the second begins; the first ones first.
      fed: number of a fetch -> number of the feed that it is.
      tasks: operation of the whole -> its task.
    """

    parts: Sequence[Part]
    fed: dict[int, int]
    tasks: dict[Operation, TaskName]


@collector_paused()
def partition(
    graph: Graph,
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    feeds: Sequence[Tensor],
    assignment: Assignment,
    exchange: Callable[[TaskName], str] = str,
    compress: bool = False,
) -> Partition:
    """Cut what the fetches and targets need, given the feeds. Linear in the operations and edges.

    Args:
      assignment: the tasks of the graph's operations.
      exchange: name of a task's exchange, for its sends and receives.
      compress: float32 travels as its upper 16 bits.

    Raises:
      InvalidArgumentError: what the assignment raises; a cycle.
    """
    fed = {tensor: number for number, tensor in enumerate(feeds)}
    targets = _asked(targets)
    roots = [t.op for t in fetches if t not in fed] + targets
    operations = needed_operations(roots, fed)
    where = {op: assignment[op] for op in operations}
    copied = {op for op in operations if _small_constant(op)}
    sent = {t.op for op in operations for t in op.inputs if t not in fed and where[t.op] != where[op]}
    sent |= {before for op in operations for before in op._control if where[before] != where[op]}
    early = early_operations(operations, where, fed, copied, sent, fetches)
    cutter = _Cutter(graph, where, fed, copied, early, exchange, compress)
    cutter.run(operations)
    passed = {number: fed[tensor] for number, tensor in enumerate(fetches) if tensor in fed}
    for number, tensor in enumerate(fetches):
        if tensor not in fed:
            cutter.fetch(number, tensor)
    for op in targets:
        cutter.target(op)
    return Partition(cutter.parts(), passed, where)


def _asked(targets: Sequence[Operation]) -> list[Operation]:
    """Targets, and in the place of one that only waits what it waits for: a step ends once all has run, no task need be told."""
    found: dict[Operation, None] = {}
    todo, seen = list(targets)[::-1], set[Operation]()
    while todo:
        op = todo.pop()
        if op.verb == "none" and op._control and not op.outputs and op not in seen:
            todo += list(op._control)[::-1]
        elif op not in seen:
            found[op] = None
        seen.add(op)
    return list(found)


class _Cutter:
    """One cut while it is made; arguments are those of :func:`partition`. A task has a maker for each of its phases."""

    def __init__(
        self,
        graph: Graph,
        where: Mapping[Operation, TaskName],
        fed: Mapping[Tensor, int],
        copied: Collection[Operation],
        early: Collection[Operation],
        exchange: Callable[[TaskName], str],
        compress: bool,
    ) -> None:
        self._graph, self._where, self._fed, self._copied, self._early = graph, where, fed, copied, early
        self._exchange, self._compress = exchange, compress
        self._makers: dict[tuple[TaskName, bool], PartGraph] = {}
        self._maker_of: dict[Operation, PartGraph] = {}
        self._results: dict[PartGraph, list[tuple[int, Tensor]]] = {}
        self._asked: dict[PartGraph, list[Operation]] = {}

    def _maker(self, op: Operation) -> PartGraph:
        made = self._maker_of.get(op)
        if made is None:
            task = self._where[op]
            home = task, op not in self._early
            made = self._makers.get(home)
            if made is None:
                made = self._makers[home] = PartGraph(self._graph, task, self._exchange(task), self._compress)
            self._maker_of[op] = made
        return made

    def run(self, operations: Sequence[Operation]) -> None:
        """Make the parts, but for what is fetched and asked for."""
        wanted: dict[Operation, dict[tuple[Tensor | None, TaskName], None]] = {}
        for op in operations:
            if op not in self._copied and (op.verb != "handle" or not self._early):
                self._maker(op)  # parts stand in the order of their first operations
        for op in operations:
            for tensor in op.inputs:
                if tensor not in self._fed and self._crosses(tensor.op, op):
                    wanted.setdefault(tensor.op, {})[tensor, self._where[op]] = None
            for before in op._control:
                if self._crosses(before, op):
                    wanted.setdefault(before, {})[None, self._where[op]] = None
        for op in operations:
            if op in self._copied or (op.verb == "handle" and self._early):
                continue
            made = self._maker(op)
            self._add(op, made)
            for crossing, to in wanted.get(op, ()):
                if crossing is None:
                    made.send_receipt(op, to)
                else:
                    made.send(crossing, to)

    def _crosses(self, source: Operation, op: Operation) -> bool:
        """Return whether a reader is of another part than what it reads. Handles are in each part of their task."""
        if source in self._copied or (source.verb == "handle" and self._early):
            return False
        return self._maker(source) is not self._maker(op)

    def _add(self, op: Operation, made: PartGraph) -> None:
        """Add an operation to its part, behind what it needs of the others."""
        for tensor in op.inputs:
            if tensor in made.became:
                continue
            if tensor in self._fed:
                made.feed(tensor)
            elif self._crosses(tensor.op, op):
                made.receive(tensor, self._where[tensor.op])
            else:
                self._add(tensor.op, made)
        control: list[Operation] = []
        for before in op._control:
            if self._crosses(before, op):
                control.append(made.receipt(before, self._where[before]))
            elif before in made.copies:
                control.append(made.copies[before])
        made.add(op, control)

    def fetch(self, number: int, tensor: Tensor) -> None:
        """Have a tensor fetched where it is made."""
        made = self._maker(tensor.op)
        if tensor not in made.became:
            self._add(tensor.op, made)
        self._results.setdefault(made, []).append((number, made.became[tensor]))

    def target(self, op: Operation) -> None:
        """Have an operation run where it is."""
        made = self._maker(op)
        if op not in made.copies:
            self._add(op, made)
        self._asked.setdefault(made, []).append(made.copies[op])

    def parts(self) -> list[Part]:
        """The parts; of a task's two the early one first."""
        return [
            Part(
                made.task,
                made.graph,
                made.step,
                [(self._fed[t], made.became[t]) for t in made.fed],
                self._results.get(made, ()),
                [*self._asked.get(made, ()), *made.sends],
                len(made.sends),
                made.received,
            )
            for (_, _), made in sorted(self._makers.items(), key=lambda item: item[0][1])
        ]


def _small_constant(op: Operation) -> bool:
    """Return whether an operation is a constant that each of its readers may have a copy of."""
    if op.verb != "constant" or op._control or not op.outputs:
        return False
    size: int = op.node_attrs["value"].nbytes
    return size <= SMALL and op.outputs[0].dtype.kind != "S"
