"""Modes granted to the outputs of a kernel: a view, a dying input's buffer, a planned buffer, or a fresh one."""

from __future__ import annotations

from collections.abc import Sequence

from graphdock.contracts.ir import PlanNode, Value
from graphdock.contracts.kernel import FRESH, PLANNED, Mode, inplace, view
from graphdock.shape import concrete

from graphdock_executor.lower.form import Form
from graphdock_executor.lower.records import Slot
from graphdock_executor.lower.state import State

__all__ = ["grant"]


def grant(state: State, node: PlanNode, form: Form, slots: Sequence[Slot], at: int) -> list[Mode]:
    """A mode per output, of those that the kernel accepts."""
    outputs = node.outputs
    if form.views and all(not rule.needs_contiguous or slots[i].contiguous for i, rule in form.views):
        return [view(i) for i, _ in form.views]
    if form.all_or_nothing:
        return [PLANNED if v in state.direct_stores else FRESH for v in outputs]
    if not form.plans or any([concrete(v.shape) is None for v in outputs]):
        return [FRESH] * len(outputs)
    result: list[Mode] = []
    taken: set[int] = set()
    for sources, value in zip(form.inplace, outputs, strict=True):
        mode = PLANNED
        for index in sources:
            if index not in taken and _can_take_over(state, node.inputs[index], value, slots, index, at):
                mode = inplace(index)
                taken.add(index)
                break
        result.append(mode)
    return result


def _can_take_over(state: State, source: Value, value: Value, slots: Sequence[Slot], index: int, at: int) -> bool:
    """Whether an output may be written over that input: nobody reads it afterwards, and it fits."""
    slot = slots[index]
    if slot.kind != "planned" or len(slot.roots) != 1 or value in state.escapes or value in state.direct:
        return False
    if value in state.retained:
        return False
    root = slot.roots[0]
    return (
        root.kind == "planned"
        and root.last <= at
        and slot.static
        and source.dtype is value.dtype
        and source.shape == value.shape
        and root.shape == value.shape
        and [s.roots for s in slots].count(slot.roots) == 1
    )
