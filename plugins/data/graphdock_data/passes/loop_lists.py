"""The pass that makes histories of the lists that a loop writes or reads at its counter: what an iteration writes it keeps, what it
reads is a row that it is given. Such loops are what ``scan`` and ``dynamic_rnn`` are, and no iteration touches a list.

Whatever would be an error of a list has to be ruled out before the loop runs, or is raised before or behind it: what was written
becomes a list again, in one piece, unless all that is read of that are the rows themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphdock.contracts import PlanContext, PlanGraph, PlanNode, Rewriter, Value
from graphdock.contracts.bodies import captures, carried
from graphdock.contracts.effects import lay_order

from graphdock_data.passes.affine import Facts, Scopes, length_of, root_of
from graphdock_data.passes.list_change import change_loop
from graphdock_data.passes.list_reads import read_rows
from graphdock_data.passes.list_uses import ListUses
from graphdock_data.passes.plan_nodes import NodeMaker
from graphdock_data.passes.rows_of_lists import WRITES, Listed
from graphdock_data.passes.trips import NotKnown

__all__ = ["loop_lists"]


def loop_lists(graph: PlanGraph, context: PlanContext) -> None:
    """Make histories of lists, in loops of every level, and say which stay lists, and why."""
    scopes, known, changed = Scopes(graph, Facts()), dict[Value, Listed](), False
    for level in list(graph.all_graphs()):
        for loop in [n for n in level.holders if n.verb == "loop"]:
            if any(n.op in ("TensorListGetItem", "TensorListSetItem") for n in loop.bodies[1].nodes):
                changed = _convert(level, loop, context, scopes, known) or changed
    if changed:
        _let_rest(graph, scopes)
        lay_order(graph)


def _convert(
    level: PlanGraph, loop: PlanNode, context: PlanContext, scopes: Scopes, known: dict[Value, Listed]
) -> bool:
    """Do without lists in a loop, as far as that can be; whether it was changed."""
    _read_sizes(level, loop, scopes)
    uses = ListUses(loop, level, scopes, {}, known)
    refused = uses.refused
    changed = False
    if uses.reads or uses.variables:
        try:
            change_loop(uses, NodeMaker(loop, level, context, scopes), known)
            changed = True
        except NotKnown as reason:
            refused = {**refused, "each list": str(reason)}
    context.notes.extend([f"loop {loop.origin}: {name} stays a list: {why}" for name, why in refused.items()])
    if changed:
        read_rows(level, context, scopes, known)
    return changed


def _read_sizes(level: PlanGraph, loop: PlanNode, scopes: Scopes) -> None:
    """Read the size that a list was made with in the place of its length, within a loop."""
    sizes: dict[Value, list[Value]] = {}  # what it is in each body
    changes = [Rewriter(body) for body in loop.bodies]
    for array, inside in _lists(loop):
        root = root_of(array, scopes)
        if root is None or root not in level.nodes or length_of(array, scopes) is None:
            continue
        size = root.inputs[1]
        for body, inner, change in zip(loop.bodies, inside, changes, strict=True):
            for node in body.nodes:
                if node.op == "TensorListLength" and node.inputs[0] is inner and not node.control:
                    if size not in sizes:
                        sizes[size] = [Value(f"{size.name}/size", size.dtype, ()) for _ in loop.bodies]
                    change.replace(node, [sizes[size][loop.bodies.index(body)]])
    if not sizes:
        return
    for which, change in enumerate(changes):
        change.takes([*loop.bodies[which].inputs, *(inner[which] for inner in sizes.values())])
        change.apply()
    with Rewriter(level) as outer:
        inputs = [*loop.inputs, *sizes]
        outer.rebind(loop, inputs=inputs, attrs={**loop.attrs, "Tin": tuple([v.dtype for v in inputs])})
    scopes.see(loop)


def _lists(loop: PlanNode) -> Iterator[tuple[Value, tuple[Value, ...]]]:
    """The lists that a loop is given and whose length stays, and what they are in each body."""
    body = loop.bodies[1]
    for i in range(carried(loop.opdef, loop.attrs)):
        value = body.outputs[i]
        while value.node is not None and value.node.op in WRITES:
            value = value.node.inputs[0]
        if loop.inputs[i].dtype.kind == "V" and value is body.inputs[i]:
            yield loop.inputs[i], tuple([b.inputs[i] for b in loop.bodies])
    for _, outer, inside in captures(loop):
        if outer.dtype.kind == "V":
            yield outer, inside


def _let_rest(graph: PlanGraph, scopes: Scopes) -> None:
    """Let bodies no longer run, for more than their results, what does nothing any more since no list is touched in it."""
    for level in reversed(list(graph.all_graphs())):
        if level is not graph:
            level.targets = [n for n in level.targets if _acts(n, scopes)]


def _acts(node: PlanNode, scopes: Scopes) -> bool:
    if node.bodies:
        return any(body.targets for body in node.bodies)
    if node.op == "TensorListReserve" and scopes.affine(node.inputs[1]).at_least_zero():
        return False
    return node.opdef.is_active
