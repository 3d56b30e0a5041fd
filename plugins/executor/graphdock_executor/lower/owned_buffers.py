"""Values that the iterations of a loop keep in histories: they lie in buffers of their own, made anew in every iteration.

A kernel that computes such a value writes it into a new buffer at once. Loop variables that are kept, or whose next values are,
own no pair of buffers: each iteration hands on the buffer that its kernel made.
"""

from __future__ import annotations

from dataclasses import dataclass

from graphdock.contracts.bodies import carried, stacked
from graphdock.contracts.ir import PlanNode, Value
from graphdock.shape import size

from graphdock_executor.lower.records import Slot
from graphdock_executor.lower.state import LoweringInput, State, copied, resolve, worker
from graphdock_executor.step_program.names import Operand
from graphdock_executor.step_program.statements import Block, Call
from graphdock_executor.storage import Root

__all__ = ["OwnedBuffer", "is_retained", "retained_values", "owned"]

#: Kinds of slots whose buffer nothing writes again as long as anybody holds it.
_OWNED = frozenset({"constant", "element", "empty", "escape", "fresh", "history", "own", "scalar"})
_MADE = frozenset({"escape", "fresh"})


def retained_values(given: LoweringInput) -> set[Value]:
    """Every value that a history may hold, or that hands its buffer on to one that a history holds."""
    facts = given.facts
    variables: dict[Value, tuple[PlanNode, int]] = {}
    stack: list[Value] = []
    for level in given.placed.graph.all_graphs():
        for node in level.nodes:
            if node.verb == "loop":
                stack.extend([kept for _, kept in stacked(node)])
                for i in range(carried(node.opdef, node.attrs)):
                    variables.update((body.inputs[i], (node, i)) for body in node.bodies)
    found: set[Value] = set()
    while stack:
        value = facts.of(stack.pop())
        if value in found:
            continue
        found.add(value)
        maker = value.node
        if maker is None:
            if value in variables:
                loop, i = variables[value]
                stack += [loop.bodies[0].inputs[i], loop.bodies[1].inputs[i], loop.bodies[1].outputs[i]]
        elif maker.verb == "loop":
            if value.index < carried(maker.opdef, maker.attrs):
                stack.append(maker.bodies[1].inputs[value.index])
        elif maker.bodies:
            stack.extend([body.outputs[value.index] for body in maker.bodies])
        else:
            source = _same_elements(given, maker, value)
            if source is not None:
                stack.append(source)
    return found


def _same_elements(given: LoweringInput, node: PlanNode, value: Value) -> Value | None:
    """The input whose buffer holds the elements of an output, and no others; None where there is none."""
    if node.verb == "alias":
        return node.inputs[0]
    kernel = given.placed.kernels.get(node)
    if kernel is None or not kernel.views:
        return None
    count = size(value.shape)
    alike = [v for v in node.inputs if v.dtype is value.dtype and size(v.shape) == count]
    return alike[0] if count is not None and alike else None


def is_retained(state: State, value: Value) -> bool:
    """Return whether the value, or what it is another name of, is kept."""
    return resolve(state, value) in state.retained


def _may_be_held(state: State, value: Value, where: Slot) -> bool:
    """Return whether nothing writes again the buffer that the value lies in, row by row, so that a history may hold it."""
    if where.kind != "view":
        return where.kind in _OWNED and where.contiguous
    maker = resolve(state, value).node
    if maker is None or not where.contiguous or not where.roots or any(r.kind not in _MADE for r in where.roots):
        return False
    return _same_elements(state.given, maker, resolve(state, value)) is not None


@dataclass(frozen=True, slots=True)
class OwnedBuffer:
    """A buffer of a value that nothing writes again.

    Attributes:
      at: what a statement names it by.
      roots: the storage that it is. ``reads``: storage that the host reads where it is named, because it is copied there.
    """

    at: Operand
    roots: tuple[Root, ...] = ()
    reads: tuple[Root, ...] = ()

    def known_as(self, root: Root) -> tuple[tuple[Root, Root], ...]:
        """Pairs for a statement that gives it another name."""
        return tuple([(mine, root) for mine in self.roots])


def owned(state: State, value: Value, where: Slot, space: str, block: Block, node: PlanNode) -> OwnedBuffer:
    """The value's own buffer where that is owned, else a copy."""
    if value.dtype.kind == "V" and where.contiguous or _may_be_held(state, value, where):
        return OwnedBuffer(where.at, where.roots)
    source = resolve(state, value)
    made = copied(state, space, source, where.at, node)
    device = worker(state, space, node, block)
    if device is None:
        return OwnedBuffer(made, (), where.roots)
    name = state.names.new("copy")
    root = Root("fresh", space, source.dtype, (), name=name.text)
    block.add(Call(made.function, made.args, (name,), node=node, device=device, reads=where.roots, writes=(root,)))
    return OwnedBuffer(name, (root,))
