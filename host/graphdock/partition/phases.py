"""Phases: what a task may run before it waits for another, so that it runs as an ordinary step does, and what must come behind.

A part that receives holds no locks while it runs: each of its reads is a copy. What needs nothing that is received, such as the
rows of a table that a worker asks for, is a phase of its own, which holds them. It ends before the other begins.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

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
    late: set[Operation] = set()
    touched: dict[tuple[TaskName, object], bool] = {}  # resource that something late touches -> whether it is written
    talking: set[TaskName] = set()
    roots: list[Operation] = []
    whole: set[TaskName] = set()
    for op in operations:
        task = where[op]
        if op in copied or op.verb == "handle":
            continue
        resources, holds, talk, waits = _effects(op)
        behind = waits or any(t.dtype.kind == "V" for t in (*op.inputs, *op.outputs))
        behind = behind or any(_behind(t.op, task, where, late, copied) for t in op.inputs if t not in fed)
        behind = behind or any(_behind(b, task, where, late, copied) for b in op._control)
        behind = behind or (talk and task in talking)
        for resource, writes in resources.items():
            behind = behind or touched.get((task, resource), False) or (writes and (task, resource) in touched)
        if not behind:
            if holds or op in sent:
                roots.append(op)
            continue
        late.add(op)
        if talk:
            talking.add(task)
        for resource, writes in resources.items():
            touched[task, resource] = touched.get((task, resource), False) or writes
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
