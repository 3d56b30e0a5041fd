"""Checks that a step's results are finite (the setting ``check_numerics``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphdock.contracts.ir import PlanNode, Value
from graphdock.contracts.queue import QueuedDevice
from graphdock.contracts.runtime.resources import Resource, Variable
from graphdock.dtypes import DType

from graphdock_executor.lower.records import Slot
from graphdock_executor.lower.state import State, worker
from graphdock_executor.lower.variables import variable_slot
from graphdock_executor.step_program.names import Apply, Literal, helper
from graphdock_executor.step_program.statements import Block, Call

__all__ = ["check_buffer", "check_finite", "check_launch"]


def check_finite(
    state: State, value: Value, where: Slot, block: Block, node: PlanNode, label: str | None = None
) -> None:
    """Raise where a floating result holds NaN or infinity; of a device's memory the host takes a copy."""
    if not value.dtype.is_floating:
        return
    space, shown = state.given.placed.home[value], Literal(label or value.name)
    check_buffer(state, space, value.dtype, where, block, node, shown)


def check_buffer(
    state: State, space: str, dtype: DType, where: Slot, block: Block, node: PlanNode, shown: Literal
) -> None:
    """As :func:`check_finite`, for any buffer of a memory space."""
    at, device = where.at, worker(state, space, node, block)
    if device is not None:
        name, kind = state.names.new("object"), state.names.new("object")
        state.out.workers[name], state.out.objects[kind] = device, dtype
        at = Apply(helper("pull"), name, at, kind)
    hold = "the host looks at its result"
    looked = Call(helper("finite"), (at, shown), node=node, reads=where.roots, hold=hold)
    if isinstance(device, QueuedDevice):
        looked.device, looked.synchronizes = device, True
    block.add(looked)


def check_launch(state: State, node: PlanNode, made: Sequence[Slot], written: Iterable[Resource], block: Block) -> None:
    """As :func:`check_finite`, for all that a kernel makes and for the variables that it writes."""
    for value, where in zip(node.outputs, made, strict=True):
        if value in state.given.facts.last:  # a kernel need not write what nobody reads
            check_finite(state, value, where, block, node)
    for variable in dict.fromkeys(written):
        if isinstance(variable, Variable) and variable.dtype.is_floating:
            space, label = variable.device.memory_space, Literal(variable.name)
            check_buffer(state, space, variable.dtype, variable_slot(state, variable), block, node, label)
