"""Initial values that read other variables: such a read goes through the other's initialized value."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from graphdock.graph.body import copy_operation
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor

if TYPE_CHECKING:
    from graphdock.variables.variable import Variable

__all__ = ["guarded"]


def guarded(value: Tensor, variable: Variable, variable_of: Callable[[Any], Variable | None]) -> Tensor:
    """``value``, or a copy of it whose plain reads of other variables are those variables' initialized values.

    So ``v2 = tf.Variable(v1 * 2.0)`` can be initialized in the same step as ``v1``, in any order. A read that was put
    under
    control dependencies is left alone: its maker has ordered it. TensorFlow 1 does the same with its reference
    variables.
    """
    ops = _ancestors(value)
    replaced = _Became()
    for op in ops:
        if op.verb == "read" and not op._control:
            other = variable_of(op.inputs[0])
            if other is not None and other is not variable:
                replaced[op.outputs[0]] = other.initialized_value()
    if not replaced:
        return value
    graph = value.graph
    copies: dict[Operation, Operation] = {}
    for op in ops:
        if op.outputs and op.outputs[0] in replaced:
            continue
        if any(t in replaced for t in op.inputs):
            copy = copy_operation(op, graph, replaced, op.name.rpartition("/")[2])
            replaced.update(zip(op.outputs, copy.outputs, strict=True))
            copies[op] = copy
    for op, copy in copies.items():
        copy._control = tuple(dict.fromkeys([*copy._control, *(copies.get(before, before) for before in op._control)]))
    return replaced.get(value, value)


class _Became(dict[Tensor, Tensor]):
    """Successor of each tensor: itself, unless it was replaced."""

    def __missing__(self, tensor: Tensor) -> Tensor:
        return tensor


def _ancestors(value: Tensor) -> list[Operation]:
    """The operations that ``value`` needs through its inputs, in creation order, which is a topological order."""
    seen: set[Operation] = set()
    stack = [value.op]
    while stack:
        op = stack.pop()
        if op not in seen:
            seen.add(op)
            stack.extend(t.op for t in op.inputs)
    return sorted(seen, key=lambda op: op._id)
