"""Guards: checks of a node's actual shapes, where the plan could only assume that they fit, and the calls of them in a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphdock.contracts.device import HOST_MEMORY
from graphdock.contracts.executor import SCALAR
from graphdock.contracts.ir import Guard, PlanNode
from graphdock.contracts.runtime.shape_checks import OutputCheck, RuleCheck, ShapeOf, host_shape, predicate_check
from graphdock.shape import concrete

from graphdock_executor.lower.records import Slot
from graphdock_executor.lower.state import State, resolve, slot
from graphdock_executor.step_program.names import Operand
from graphdock_executor.step_program.statements import Block, Call
from graphdock_executor.storage import Root

__all__ = ["check_predicate", "check_promises", "check_rule", "rule_check"]


#: Kinds of slots whose buffers have a shape of their own; a planned one has the plan's.
_SHAPED = frozenset({"fresh", "view", "loop", "own", "element", "cond", "feed", "variable"})


def check_rule(state: State, node: PlanNode, guard: Guard, block: Block) -> None:
    """Right before a node, run its shape rule over what the plan does not know of its inputs."""
    check, found, read = rule_check(state, node, guard.asked)
    _call(state, check, found, node, block, read)


def rule_check(state: State, node: PlanNode, asked: Sequence[int]) -> tuple[RuleCheck, list[Slot], tuple[Root, ...]]:
    """The check, where what it reads is, and the storage whose elements it reads.

    Args:
      asked: inputs whose elements count.
    """
    chosen = frozenset(asked)
    reads: list[tuple[int, ShapeOf, bool]] = []
    found: list[Slot] = []
    roots: list[Root] = []
    for i, (value, wanted) in enumerate(zip(node.inputs, state.given.placed.needs(node), strict=True)):
        space = wanted or state.given.placed.home.get(resolve(state, value))
        elements = i in chosen and node.constant(i) is None and space in (None, HOST_MEMORY)
        if value.dtype.name != "resource" and (elements or concrete(value.shape) is None):
            reads.append((i, _shape_of(state, space), elements))
            found.append(slot(state, value, space))
            roots += found[-1].roots if elements else ()
    return RuleCheck(node, reads, state.given.placed.infer), found, tuple(roots)


def check_promises(state: State, node: PlanNode, guard: Guard, block: Block) -> None:
    """Right after a node, compare what it made with what was promised for it."""
    for i in guard.promised:
        value = node.outputs[i]
        space = state.given.placed.home.get(value)
        where = slot(state, value, space)
        if where.kind in _SHAPED:
            _call(state, OutputCheck(node, i, _shape_of(state, space)), [where], node, block)


def check_predicate(state: State, node: PlanNode, where: Slot, block: Block) -> None:
    """Right before a tensor of unknown shape becomes the number that steers a branch or a loop."""
    _call(state, predicate_check, [where], node, block)


def _call(
    state: State,
    check: Callable[..., None],
    found: Sequence[Slot],
    node: PlanNode,
    block: Block,
    read: tuple[Root, ...] = (),
) -> None:
    """A call of a check. ``read``: storage whose elements it reads; a buffer's shape is known as soon as there is a buffer."""
    name = state.names.new("object")
    state.out.objects[name] = check
    args: list[Operand] = [s.at for s in found]
    block.add(Call(name, tuple(args), node=node, reads=read, hold="the host checks shapes"))


def _shape_of(state: State, space: str | None) -> ShapeOf:
    return host_shape if space in (None, HOST_MEMORY, SCALAR) else state.given.placed.spaces[space].shape_of
