"""Guards: checks of a node's actual shapes, where the plan could only assume that they fit, and the calls of them in a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from graphdock.contracts.device import HOST_MEMORY
from graphdock.contracts.executor import SCALAR
from graphdock.contracts.guards import Guard
from graphdock.contracts.ir import PlanNode, arg_of
from graphdock.errors import ShapeError
from graphdock.shape import Dims, compatible, concrete, merge, show

from graphdock_executor.lower.records import Slot
from graphdock_executor.lower.state import State, resolve, slot
from graphdock_executor.step_program.names import Operand
from graphdock_executor.step_program.statements import Block, Call
from graphdock_executor.storage import Root

__all__ = [
    "Infer",
    "OutputCheck",
    "RuleCheck",
    "ShapeOf",
    "check_predicate",
    "check_promises",
    "check_rule",
    "host_shape",
    "note_shapes",
    "predicate_check",
]


#: Shape of a buffer, from the buffer.
ShapeOf = Callable[[Any], tuple[int, ...]]
#: Shapes of a node's outputs, from those of its inputs and the elements of some of them (input -> host array), by its shape rule.
Infer = Callable[[PlanNode, Sequence[Dims], Mapping[int, Any]], Sequence[Dims]]


class RuleCheck:
    """Runs a node's shape rule over the actual shapes, as planning for those shapes would have. One per instance.

    Shapes that were accepted in the last step are accepted at once.

    Args:
      reads: per argument of a call, the input that it is, how to get its shape, and whether its elements count.
      infer: runs the rule; a placed graph's.
    """

    def __init__(self, node: PlanNode, reads: Sequence[tuple[int, ShapeOf, bool]], infer: Infer) -> None:
        self._node = node
        self._infer = infer
        self._reads = tuple(reads)
        self._last: Any = None

    def __call__(self, *buffers: Any) -> None:
        """Raise ShapeError unless the rule accepts the shapes and infers what the plan says of the outputs."""
        key = tuple(
            [
                (shape_of(b), b.tobytes()) if elements else shape_of(b)
                for (_, shape_of, elements), b in zip(self._reads, buffers, strict=True)
            ]
        )
        if key != self._last:
            self._check(buffers)
            self._last = key

    def refusal(self, buffers: Sequence[Any]) -> ShapeError | None:
        """The error that a call with these buffers raises; None for none."""
        try:
            self(*buffers)
        except ShapeError as error:
            return error.with_traceback(None)
        return None

    def _check(self, buffers: Sequence[Any]) -> None:
        node = self._node
        shapes: list[Any] = [v.shape for v in node.inputs]
        elements: dict[int, Any] = {}
        for (index, shape_of, counts), buffer in zip(self._reads, buffers, strict=True):
            shapes[index] = tuple(shape_of(buffer))
            if counts:
                elements[index] = buffer
        inferred = self._infer(node, shapes, elements)
        for value, dims in zip(node.outputs, inferred, strict=True):
            merge(value.shape, dims)


class OutputCheck:
    """Compares the actual shape of one output with what was promised for it."""

    def __init__(self, node: PlanNode, output: int, shape_of: ShapeOf) -> None:
        self._promised = node.outputs[output].shape
        self._shape_of = shape_of

    def __call__(self, buffer: Any) -> None:
        """Raise ShapeError unless they are compatible."""
        got = tuple(self._shape_of(buffer))
        if not compatible(self._promised, got):
            raise ShapeError(
                "the result has another shape than was promised by set_shape",
                expected=show(self._promised),
                got=show(got),
            )


def predicate_check(array: Any) -> None:
    """Raise ShapeError unless what steers a branch or a loop is a scalar."""
    if np.shape(array) != ():
        raise ShapeError(
            "what steers a cond or a while_loop must be a scalar", expected="[]", got=show(np.shape(array))
        )


def host_shape(array: Any) -> tuple[int, ...]:
    """Shape of a host array."""
    return np.shape(array)


#: Kinds of slots whose buffers have a shape of their own; a planned one has the plan's.
_SHAPED = frozenset({"fresh", "view", "loop", "own", "element", "cond", "feed", "variable"})


def check_rule(state: State, node: PlanNode, guard: Guard, block: Block) -> None:
    """Right before a node, run its shape rule over what the plan does not know of its inputs."""
    check, found, read = _rule_check(state, node, guard.asked)
    _call(state, check, found, node, block, read)


def note_shapes(state: State, node: PlanNode, steered: bool) -> None:
    """Remember how to check the actual shapes of a kernel's inputs, and the elements that steer it, should it fail.

    Args:
      steered: elements of an input steer it, if they are not constant.
    """
    steering: list[int] = []
    if steered:
        steering = [i for i, arg in enumerate(arg_of(node)) if arg.memory == "host" and node.constant(i) is None]
    if steering or any([v.shape is None or None in v.shape for v in node.inputs]):
        check, found, _ = _rule_check(state, node, steering)
        state.out.shapes[node] = check, tuple([s.at for s in found])


def _rule_check(state: State, node: PlanNode, asked: Sequence[int]) -> tuple[RuleCheck, list[Slot], tuple[Root, ...]]:
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
