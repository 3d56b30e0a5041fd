"""Which mode each output of a kernel is granted: a view, a dying input's buffer, a planned buffer, or a fresh one."""

from __future__ import annotations

from collections.abc import Sequence

from graphdock.contracts.ir import PlanNode, Value
from graphdock.contracts.kernel import FRESH, PLANNED, KernelDef, Mode, inplace, view
from graphdock.contracts.opdef import ArgDef
from graphdock.runtime.lower.records import Slot
from graphdock.runtime.lower.state import State
from graphdock.shape import concrete

__all__ = ["grant", "output_names"]


def output_names(node: PlanNode) -> list[str]:
    """The name of the argument behind each output."""
    args = node.opdef.outputs
    count = len(node.outputs)
    return [args[i].name if len(args) == count else args[0].name for i in range(count)]


def grant(
    state: State,
    node: PlanNode,
    kernel: KernelDef,
    slots: Sequence[Slot],
    args: Sequence[ArgDef],
    out_names: Sequence[str],
    at: int,
) -> list[Mode]:
    """A mode per output, of those that the kernel accepts."""
    names = [a.name for a in args]
    outputs = node.outputs
    if kernel.views and outputs and all(n in kernel.views for n in out_names):
        rules = [kernel.views[n] for n in out_names]
        indexes = [names.index(r.input) for r in rules]
        if all(not r.needs_contiguous or slots[i].contiguous for r, i in zip(rules, indexes, strict=True)):
            return [view(i) for i in indexes]
    if "planned" not in kernel.modes or any(concrete(v.shape) is None for v in outputs):
        return [FRESH] * len(outputs)
    result: list[Mode] = []
    taken: set[int] = set()
    for name, value in zip(out_names, outputs, strict=True):
        mode = PLANNED
        for source in kernel.inplace.get(name, ()):
            index = names.index(source)
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
    if value in state.kept:
        return False
    root = slot.roots[0]
    return (
        root.kind == "planned"
        and root.last <= at
        and slot.static
        and source.dtype is value.dtype
        and source.shape == value.shape
        and root.shape == value.shape
        and sum(s.roots == slot.roots for s in slots) == 1
    )
