"""The pass that computes before a loop what every iteration would compute alike.

A loop may have no iteration. So nothing leaves it that can fail, draws, or touches a resource: elementwise ops and products of
floating numbers do, and views of what they read.
"""

from __future__ import annotations

from graphdock.contracts import PlanContext, PlanGraph, PlanNode, Rewriter, Value
from graphdock.contracts.bodies import captures, first_given
from graphdock.contracts.ir import copy_node

__all__ = ["loop_invariants"]


def loop_invariants(graph: PlanGraph, context: PlanContext) -> None:
    """Move what loops compute of their captures and of constants before them, out of inner loops first."""
    for level in reversed(list(graph.all_graphs())):
        loops = [node for node in level.holders if node.verb == "loop"]
        if loops:
            with Rewriter(level) as change:
                for loop in loops:
                    _hoist(loop, change)


def _hoist(loop: PlanNode, change: Rewriter) -> None:
    condition, body = loop.bodies
    outside: dict[Value, Value] = {inside[1]: outer for _, outer, inside in captures(loop)}
    alike = _invariant(body, set(outside))
    computed = {node for node in alike if "view" not in node.opdef.traits and node.verb == "kernel"}
    if not computed:
        return
    wanted: set[Value] = set()  # by what goes
    for node in reversed(alike):
        if node in computed or not wanted.isdisjoint(node.outputs):
            wanted.update(node.inputs)
    for node in alike:
        if node in computed or not wanted.isdisjoint(node.outputs):
            copy = change.insert(change.number(copy_node(node, [outside[v] for v in node.inputs])), before=loop)
            outside.update(zip(node.outputs, copy.outputs, strict=True))
    made = [v for node in alike if node in computed for v in node.outputs]
    read = {v for node in body.nodes if node not in computed for v in node.inputs} | set(body.outputs)
    entering = [v for v in made if v in read]
    for graph in (condition, body):
        given = [Value(f"{v.name}/invariant", v.dtype, v.shape) for v in entering]
        with Rewriter(graph) as inner:
            inner.takes([*graph.inputs, *given])
            if graph is body:
                for value, parameter in zip(entering, given, strict=True):
                    parameter.extent = value.extent
                    inner.redirect(value, parameter)
                for node in computed:
                    inner.erase(node)
    inputs = [*loop.inputs, *(outside[v] for v in entering)]
    types = tuple([v.dtype for v in inputs[first_given(loop.opdef) :]])
    change.rebind(loop, inputs=inputs, attrs={**loop.attrs, "Tin": types})


def _invariant(body: PlanGraph, known: set[Value]) -> list[PlanNode]:
    """The nodes of a body, in order, that compute the same in every iteration and may as well run where there is none."""
    found = []
    for node in body.nodes:
        if node.verb == "constant" or (_is_total(node) and known.issuperset(node.inputs)):
            found.append(node)
            known.update(node.outputs)
    return found


def _is_total(node: PlanNode) -> bool:
    """Return whether a node only computes, and can't fail."""
    opdef = node.opdef
    if (
        "pure" not in opdef.traits
        or node.control
        or node.order
        or node.guard is not None
        or node.bodies
        or not node.inputs
    ):
        return False
    if "view" in opdef.traits:
        return True
    known = opdef.scalar is not None or opdef.joint
    return bool(known) and all(v.dtype.is_floating or v.dtype.is_complex for v in (*node.inputs, *node.outputs))
