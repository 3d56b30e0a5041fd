"""Bindings of the bodies of a branch, loop or call to their node: the only place that knows the layout of its inputs and outputs.

The node's inputs from :func:`first_given` on are given to its bodies, in order. Those of a loop are

- loop variables (:func:`carried`), which change from one iteration to the next;
- histories (:func:`scanned`), of which its body, not its condition, is given one element per iteration, from the last to the first;
- captures, which no iteration changes.

The outputs of a loop are its loop variables' last values and then histories of what its body returns besides their next values.
Those of other nodes are what their bodies return.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphdock.contracts.opdef import OpDef

if TYPE_CHECKING:
    from graphdock.contracts.ir import PlanNode, Value

__all__ = ["captures", "carried", "elements", "first_given", "given", "returning", "scanned", "stacked"]


def first_given(opdef: OpDef) -> int:
    """Position of the first input that the bodies take; inputs before it (a predicate) stay outside."""
    takes = opdef.bodies[0].takes
    return next(i for i, arg in enumerate(opdef.inputs) if arg.name == takes)


def carried(opdef: OpDef, attrs: Mapping[str, Any]) -> int:
    """Number of loop variables; 0 but for a loop."""
    return len(attrs["output_shapes"]) if opdef.executes == "loop" else 0


def scanned(opdef: OpDef, attrs: Mapping[str, Any]) -> int:
    """Number of histories that a loop's body reads; 0 but for a loop."""
    count: int = attrs["scanned"] if opdef.executes == "loop" else 0
    return count


def returning(opdef: OpDef, bodies: Sequence[Any]) -> list[Any]:
    """The bodies whose outputs become the node's: both branches, a loop's body."""
    return [body for body, bound in zip(bodies, opdef.bodies, strict=True) if bound.gives]


def _scans(node: PlanNode, which: int) -> int:
    """Number of elements of histories that body number ``which`` takes."""
    return scanned(node.opdef, node.attrs) if node.opdef.bodies[which].gives else 0


def given(node: PlanNode, which: int) -> list[Value]:
    """The inputs for body number ``which``, in the order of its own inputs; for an element the history it is of."""
    inputs = node.inputs[first_given(node.opdef) :]
    skipped = scanned(node.opdef, node.attrs) - _scans(node, which)
    if not skipped:
        return inputs
    start = carried(node.opdef, node.attrs)
    return inputs[:start] + inputs[start + skipped :]


def captures(node: PlanNode) -> Iterator[tuple[int, Value, tuple[Value, ...]]]:
    """Each captured value: its position among the node's inputs, itself, and the input that it is in each body."""
    start = carried(node.opdef, node.attrs)
    first = first_given(node.opdef) + start + scanned(node.opdef, node.attrs)
    offsets = [(body.inputs, start + _scans(node, which)) for which, body in enumerate(node.bodies)]
    for i, outer in enumerate(node.inputs[first:]):
        yield first + i, outer, tuple([inputs[at + i] for inputs, at in offsets])


def elements(node: PlanNode) -> Iterator[tuple[Value, Value]]:
    """Each history that a loop reads, and its element in the loop's body; nothing but for a loop."""
    start, count = carried(node.opdef, node.attrs), scanned(node.opdef, node.attrs)
    if count:
        yield from zip(node.inputs[start : start + count], node.bodies[1].inputs[start : start + count], strict=True)


def stacked(node: PlanNode) -> Iterator[tuple[Value, Value]]:
    """Each history that a loop makes, and what its body returns for it; nothing but for a loop."""
    if node.verb == "loop":
        start = carried(node.opdef, node.attrs)
        yield from zip(node.outputs[start:], node.bodies[1].outputs[start:], strict=True)
