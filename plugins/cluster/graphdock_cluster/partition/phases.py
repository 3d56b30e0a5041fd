"""Phases: what a task may run before it waits for another, so that it runs as an ordinary step does, and what must come behind.

A part that receives holds no locks while it runs: its reads are copies, but where one kernel alone takes what is read. What needs
nothing that is received, such as the rows of a table that a worker asks for, is a phase of its own, which holds them. It ends
before the other begins. A variable that only the later phase looks at is read there: the whole of it would be handed over.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from graphdock.contracts.cluster import TaskName
from graphdock.contracts.effects import talks
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.planning.translate import is_shared_read

__all__ = ["early_operations"]


def early_operations(
    operations: Sequence[Operation],
    where: Mapping[Operation, TaskName],
    fed: Collection[Tensor],
    copied: Collection[Operation],
    sent: Collection[Operation],
    fetches: Sequence[Tensor],
) -> set[Operation]:
    """The operations of the first phases. None of a task where nothing is won: where nothing is received,
    or no resource is held before.

    Args:
      operations: in order. ``where``: their tasks. ``copied``: constants that each reader has.
      sent: whose results or ends other tasks wait for. ``fetches``: a variable among them is read at the end of the step.
    """
    split = _split(operations, where, fed, copied, ())
    kept = {t.op for t in fetches} | set(sent)
    kept.update([before for op in operations if op not in split.late for before in op._control])
    kept.update([t.op for op in operations if op not in split.late for t in op.inputs])
    looked_at = {t.op for op in split.late for t in op.inputs}
    moved = {
        op for op in operations if op.verb == "read" and op in looked_at and op not in split.late and op not in kept
    }
    if moved:
        split = _split(operations, where, fed, copied, moved)
    late, touched = split.late, split.touched
    roots = [op for op in split.early if op in sent or _effects(op)[1]]
    whole: set[TaskName] = set()
    for tensor in fetches:
        if tensor not in fed and is_shared_read(tensor):
            resource = _resource(tensor.op.inputs[0])
            if touched.get((where[tensor.op], resource)):
                whole.add(where[tensor.op])
    holding = {where[op] for op in roots if _effects(op)[1]}
    splits = ({where[op] for op in late} & holding) - whole
    found: set[Operation] = set()
    stack = [op for op in roots if where[op] in splits]
    while stack:
        op = stack.pop()
        if op not in found and op not in copied and op.verb != "handle":
            found.add(op)
            stack.extend([t.op for t in op.inputs if t not in fed])
            stack.extend(op._control)
    return found


@dataclass(slots=True)
class _Split:
    """Operations that wait for another task, those that do not, and whether something late writes a resource that it touches."""

    late: set[Operation] = field(default_factory=set)
    early: list[Operation] = field(default_factory=list)
    touched: dict[tuple[TaskName, object], bool] = field(default_factory=dict)


def _split(
    operations: Sequence[Operation],
    where: Mapping[Operation, TaskName],
    fed: Collection[Tensor],
    copied: Collection[Operation],
    moved: Collection[Operation],
) -> _Split:
    """Arguments are those of :func:`early_operations`; what is ``moved`` is late though it waits for nothing."""
    split = _Split()
    late, touched = split.late, split.touched
    talking: set[TaskName] = set()
    for op in operations:
        task = where[op]
        if op in copied or op.verb == "handle":
            continue
        resources, _, talk, waits = _effects(op)
        behind = op in moved or waits or any(t.dtype.kind == "V" for t in (*op.inputs, *op.outputs))
        behind = behind or any(_behind(t.op, task, where, late, copied) for t in op.inputs if t not in fed)
        behind = behind or any(_behind(b, task, where, late, copied) for b in op._control)
        behind = behind or (talk and task in talking)
        for resource, writes in resources.items():
            behind = behind or touched.get((task, resource), False) or (writes and (task, resource) in touched)
        if not behind:
            split.early.append(op)
            continue
        late.add(op)
        if talk:
            talking.add(task)
        for resource, writes in resources.items():
            touched[task, resource] = touched.get((task, resource), False) or writes
    return split


def _behind(
    before: Operation,
    task: TaskName,
    where: Mapping[Operation, TaskName],
    late: Collection[Operation],
    copied: Collection[Operation],
) -> bool:
    return before not in copied and (where[before] != task or before in late)


def _effects(op: Operation) -> tuple[dict[object, bool], bool, bool, bool]:
    """Resources that an operation reads or writes, whether it holds any, talks to the world, waits; its bodies included."""
    if not op.bodies and not op.op_def.accesses:
        return {}, False, talks(op.op_def), "waits" in op.op_def.effects
    resources: dict[object, bool] = {}
    talk, waits = False, False
    stack = [op]
    while stack:
        one = stack.pop()
        talk = talk or talks(one.op_def)
        waits = waits or "waits" in one.op_def.effects
        stack.extend([inner for body in one.bodies for inner in body.get_operations()])
    holds = False
    lengths = op._input_lengths or (1,) * len(op.op_def.inputs)
    accesses = [arg.access for arg, n in zip(op.op_def.inputs, lengths, strict=True) for _ in range(n)]
    for tensor, access in zip(op.inputs, accesses, strict=True):
        if tensor.dtype.kind == "R" and (op.bodies or access in ("reads", "writes")):
            resources[_resource(tensor)] = (
                bool(op.bodies) or access == "writes" or resources.get(_resource(tensor), False)
            )
            holds = True
    return resources, holds, talk, waits


def _resource(tensor: Tensor) -> object:
    """The identity of the resource behind a handle."""
    op = tensor.op
    while op.verb == "alias":
        op = op.inputs[0].op
    if op.verb != "handle":
        return tensor
    return op.op_def.resource, op.node_attrs.get("container", ""), op.node_attrs.get("shared_name", "") or op.name
