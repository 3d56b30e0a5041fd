"""How the bodies of a branch, loop or call are bound to their node: the only place that knows the layout of its inputs.

The node's inputs from :func:`first_given` on are given to every body, in order. Of a loop the first :func:`carried` of them are
loop variables, which change from one iteration to the next; all others are captures, which no iteration changes. The node's
outputs are what its last body returns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphdock.contracts.opdef import OpDef

if TYPE_CHECKING:
    from graphdock.contracts.ir import PlanNode, Value

__all__ = ["captures", "carried", "first_given", "given", "returning"]


def first_given(opdef: OpDef) -> int:
    """Position of the first input that the bodies take; inputs before it (a predicate) stay outside."""
    takes = opdef.bodies[0].takes
    return next(i for i, arg in enumerate(opdef.inputs) if arg.name == takes)


def carried(opdef: OpDef, attrs: Mapping[str, Any]) -> int:
    """Number of loop variables; 0 but for a loop."""
    return len(attrs["output_shapes"]) if opdef.executes == "loop" else 0


def returning(opdef: OpDef, bodies: Sequence[Any]) -> list[Any]:
    """The bodies whose outputs become the node's: both branches, a loop's body."""
    return [body for body, bound in zip(bodies, opdef.bodies, strict=True) if bound.gives]


def given(node: PlanNode) -> list[Value]:
    """The inputs that every body takes, in the order of the bodies' own inputs."""
    return node.inputs[first_given(node.opdef) :]


def captures(node: PlanNode) -> Iterator[tuple[Value, tuple[Value, ...]]]:
    """Each captured value with the input that it is in each body."""
    skip = carried(node.opdef, node.attrs)
    for i, outer in enumerate(given(node)):
        if i >= skip:
            yield outer, tuple([body.inputs[i] for body in node.bodies])
