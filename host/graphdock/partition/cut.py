"""Cuts a step into parts: a graph per task, with one send and one receive per tensor and receiving task.

A part keeps the order of the whole. A send stands directly behind what it sends, a receive directly before its first reader; both
talk to the world, so that order edges keep them as they stand. All parts that run so are one order of the whole, and never wait for
each other in a circle.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from graphdock.contracts.cluster import TaskName
from graphdock.graph.graph import Graph
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.partition.assign import Assignment
from graphdock.partition.part_graph import PartGraph
from graphdock.planning.translate import needed_operations

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
      parts: one per task that runs something, in the order of first use.
      fed: number of a fetch -> number of the feed that it is.
      tasks: operation of the whole -> its task.
    """

    parts: Sequence[Part]
    fed: dict[int, int]
    tasks: dict[Operation, TaskName]


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
    roots = [t.op for t in fetches if t not in fed] + list(targets)
    operations = needed_operations(roots, fed)
    where = {op: assignment[op] for op in operations}
    copied = {op for op in operations if _small_constant(op)}
    wanted: dict[Operation, list[tuple[Tensor | None, TaskName]]] = {}
    for op in operations:
        for tensor in op.inputs:
            if tensor not in fed and where[tensor.op] != where[op] and tensor.op not in copied:
                wanted.setdefault(tensor.op, []).append((tensor, where[op]))
        for before in op._control:
            if where[before] != where[op] and before not in copied:
                wanted.setdefault(before, []).append((None, where[op]))
    makers: dict[TaskName, PartGraph] = {}

    def maker(task: TaskName) -> PartGraph:
        if task not in makers:
            makers[task] = PartGraph(graph, task, exchange(task), compress)
        return makers[task]

    for op in operations:
        if op not in copied:
            _add(op, maker(where[op]), where, fed, copied)
            for crossing, to in dict.fromkeys(wanted.get(op, ())):
                if crossing is None:
                    makers[where[op]].send_receipt(op, to)
                else:
                    makers[where[op]].send(crossing, to)
    results: dict[TaskName, list[tuple[int, Tensor]]] = {}
    passed: dict[int, int] = {}
    for number, tensor in enumerate(fetches):
        if tensor in fed:
            passed[number] = fed[tensor]
            continue
        made = maker(where[tensor.op])
        if tensor.op in copied and tensor not in made.became:
            made.add(tensor.op, ())
        results.setdefault(made.task, []).append((number, made.became[tensor]))
    asked: dict[TaskName, list[Operation]] = {}
    for op in dict.fromkeys(targets):
        made = maker(where[op])
        if op in copied and op not in made.copies:
            made.add(op, ())
        asked.setdefault(made.task, []).append(made.copies[op])
    parts = [
        Part(
            task,
            made.graph,
            made.step,
            [(fed[t], made.became[t]) for t in made.fed],
            results.get(task, ()),
            [*asked.get(task, ()), *made.sends],
            len(made.sends),
            made.received,
        )
        for task, made in makers.items()
    ]
    return Partition(parts, passed, where)


def _small_constant(op: Operation) -> bool:
    """Return whether an operation is a constant that each of its readers may have a copy of."""
    if op.verb != "constant" or op._control or not op.outputs:
        return False
    size: int = op.node_attrs["value"].nbytes
    return size <= SMALL and op.outputs[0].dtype.kind != "S"


def _add(
    op: Operation,
    made: PartGraph,
    where: dict[Operation, TaskName],
    fed: Collection[Tensor],
    copied: Collection[Operation],
) -> None:
    """Add an operation to its part, behind what it needs of the others."""
    for tensor in op.inputs:
        if tensor in made.became:
            continue
        if tensor in fed:
            made.feed(tensor)
        elif tensor.op in copied:
            made.add(tensor.op, ())
        else:
            made.receive(tensor, where[tensor.op])
    control: list[Operation] = []
    for before in op._control:
        if before in copied:
            continue
        here = where[before] == made.task
        control.append(made.copies[before] if here else made.receipt(before, where[before]))
    made.add(op, control)
