"""Tasks of operations: where each is asked to run, what must run with it, and where what is left free runs.

Operations that share a resource, hand one another what is no array, or are colocated make a group, which lies on one task. What a
group's scopes ask for decides; a body asks for the node that runs it. What asks for nothing runs on the session's own task. As in
TensorFlow an operation on a resource runs where the resource lies, whatever the scopes around the operation ask for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graphdock.contracts.cluster import TaskName
from graphdock.device_name import DeviceSpec
from graphdock.errors import InvalidArgumentError
from graphdock.graph.operation import Operation
from graphdock.locks import collector_paused

__all__ = ["Assignment"]

#: Kinds of dtypes whose values can't leave their task: handles, and lists of a loop or a branch.
_BOUND = "RV"


class Assignment:
    """The tasks of a graph's operations, as the graph stands now. Immutable.

    All operations count, not only those that one step needs: so a variable lies on the same task in every step.

    Args:
      operations: all of a graph.
      tasks: of the cluster. ``own``: where what asks for nothing runs.
    """

    @collector_paused()
    def __init__(self, operations: Sequence[Operation], tasks: Sequence[TaskName], own: TaskName) -> None:
        self._own = own
        self._groups = groups = _Groups(operations)
        by_name = {op.name: op for op in operations}
        for op in operations:
            for tensor in op.inputs:
                if tensor.dtype.kind in _BOUND:
                    groups.join(op, tensor.op)
            for name in op.colocation:
                if name in by_name:
                    groups.join(op, by_name[name])
        self._asked: dict[Operation, tuple[TaskName, Operation]] = {}
        self._faults: dict[Operation, InvalidArgumentError] = {}
        known: dict[tuple[str | None, int | None], TaskName | None] = {(t.job, t.index): t for t in tasks}
        for op in operations:
            if _is_on_a_placed_resource(op):
                continue
            for asking in _with_bodies(op):
                device = asking._device
                if device is None or (device.job is None and device.task is None):
                    continue
                request = device.job, device.task
                if request not in known:
                    known[request] = _task_of(device, tasks, own)
                self._ask(op, asking, known[request], tasks)

    def _ask(self, op: Operation, asking: Operation, task: TaskName | None, tasks: Sequence[TaskName]) -> None:
        root = self._groups.root(op)
        if task is None:
            self._faults.setdefault(root, _no_task(asking, tasks))
            return
        before = self._asked.setdefault(root, (task, asking))
        if before[0] != task:
            self._faults.setdefault(root, _conflict(op, asking, task, before))

    def __getitem__(self, op: Operation) -> TaskName:
        """The task of an operation.

        Raises:
          InvalidArgumentError: a scope asks for a task that the cluster lacks; two of one group ask for different ones; a body asks
            for another task than the node that runs it. Names the operations and their lines.
        """
        root = self._groups.root(op)
        if root in self._faults:
            raise self._faults[root]
        asked = self._asked.get(root)
        return self._own if asked is None else asked[0]


class _Groups:
    """Operations that share a task, by union and find."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self._parent = {op: op for op in operations}

    def root(self, op: Operation) -> Operation:
        parent = self._parent
        while parent[op] is not op:
            parent[op] = op = parent[parent[op]]
        return op

    def join(self, a: Operation, b: Operation) -> None:
        self._parent[self.root(a)] = self.root(b)


def _is_on_a_placed_resource(op: Operation) -> bool:
    """Return whether it takes a resource that a scope has put somewhere. Nodes with bodies don't count: they are more than that."""
    if op.bodies:
        return False
    devices = (t.op._device for t in op.inputs if t.dtype.kind == "R")
    return any(d is not None and (d.job is not None or d.task is not None) for d in devices)


def _with_bodies(op: Operation) -> Iterator[Operation]:
    yield op
    stack = list(op.bodies)
    while stack:
        for inner in stack.pop().get_operations():
            yield inner
            stack.extend(inner.bodies)


def _task_of(device: DeviceSpec, tasks: Sequence[TaskName], own: TaskName) -> TaskName | None:
    """The first task that fits what is asked for, the session's own before others; None where none does."""
    fitting = [t for t in tasks if device.job in (None, t.job) and device.task in (None, t.index)]
    if own in fitting:
        return own
    return min(fitting, key=lambda t: (t.job != own.job, t), default=None)


def _no_task(op: Operation, tasks: Sequence[TaskName]) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{op.name} asks for the device {op.device}, whose task the session does not have",
        op=op.name,
        site=op.site,
        expected="a task of " + ", ".join(map(str, tasks)),
        hint="the cluster has no other, or device_filters of the session's configuration leave it out",
    )


def _conflict(
    op: Operation, asking: Operation, task: TaskName, before: tuple[TaskName, Operation]
) -> InvalidArgumentError:
    other = before[1]
    if asking is not op or other.graph is not op.graph:
        inner, runs = (asking, op) if asking is not op else (other, op)
        return InvalidArgumentError(
            f"{inner.name} in a body of {runs.name} asks for {inner.device}, and a body lies on one task",
            op=runs.name,
            site=inner.site,
            expected=str(before[0]) if inner is asking else str(task),
            hint="make one loop per task, each over what the one before gives; or read before the loop what lies elsewhere",
        )
    return InvalidArgumentError(
        f"{op.name} asks for {task}, and {other.name}, which it must share a task with, for {before[0]}",
        op=op.name,
        site=op.site,
        hint="operations on one resource, and colocated ones, lie on one task",
    )
