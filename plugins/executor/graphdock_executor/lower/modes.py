"""Modes granted to the outputs of a kernel: a view, a dying input's buffer, a planned buffer, or a fresh one.

A :class:`Form` is what all nodes of one op with one kernel have in common, so that lowering asks for it once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graphdock.contracts.ir import PlanNode, Value, arg_of
from graphdock.contracts.kernel import FRESH, PLANNED, KernelDef, Mode, ViewRule, inplace, view
from graphdock.contracts.opdef import ArgDef
from graphdock.shape import concrete

from graphdock_executor.lower.records import Slot
from graphdock_executor.lower.state import State

__all__ = ["Form", "form_of", "grant"]


@dataclass(frozen=True, slots=True)
class Form:
    """A node's arguments, flattened, and what its kernel says of them.

    Attributes:
      args: of each input. ``outputs``: the name of the argument behind each output.
      steered: elements of an input in host memory steer the kernel.
      random: it draws.
      plans: the kernel writes into given memory. ``all_or_nothing``: it does so once nothing can be refused any more.
      views: of each output, the input that it may be a view of, and when; empty where one of them may not.
      inplace: of each output, the inputs whose buffer it may take over.
    """

    args: Sequence[ArgDef]
    outputs: tuple[str, ...]
    steered: bool
    random: bool
    plans: bool
    all_or_nothing: bool
    views: tuple[tuple[int, ViewRule], ...]
    inplace: tuple[tuple[int, ...], ...]


def form_of(node: PlanNode, kernel: KernelDef, known: dict[tuple[int, ...], Form]) -> Form:
    """The form of a node.

    Args:
      known: forms by the identity of OpDef and kernel, which the plan keeps alive, and by the number of outputs.
    """
    if not node.opdef.plain:  # attributes say which inputs are whose
        return _made(node, kernel)
    key = id(node.opdef), id(kernel), len(node.inputs), len(node.outputs)
    form = known.get(key)
    if form is None:
        form = known[key] = _made(node, kernel)
    return form


def _made(node: PlanNode, kernel: KernelDef) -> Form:
    opdef, args = node.opdef, arg_of(node)
    names = [a.name for a in args]
    given = opdef.outputs if len(opdef.outputs) == len(node.outputs) else opdef.outputs[:1] * len(node.outputs)
    outputs = tuple([a.name for a in given])
    views = [kernel.views.get(name) for name in outputs]
    return Form(
        args,
        outputs,
        any(a.memory == "host" for a in opdef.inputs),
        "random" in opdef.effects,
        "planned" in kernel.modes,
        "all_or_nothing" in kernel.modes,
        () if None in views else tuple([(names.index(rule.input), rule) for rule in views if rule is not None]),
        tuple([tuple(map(names.index, kernel.inplace.get(name, ()))) for name in outputs]),
    )


def grant(state: State, node: PlanNode, form: Form, slots: Sequence[Slot], at: int) -> list[Mode]:
    """A mode per output, of those that the kernel accepts."""
    outputs = node.outputs
    if form.views and all(not rule.needs_contiguous or slots[i].contiguous for i, rule in form.views):
        return [view(i) for i, _ in form.views]
    if form.all_or_nothing:
        return [PLANNED if v in state.direct_stores else FRESH for v in outputs]
    if not form.plans or "waits" in node.opdef.effects or any([concrete(v.shape) is None for v in outputs]):
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
