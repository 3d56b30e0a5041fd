"""Checks a plan graph: against the grammar, by :meth:`Builder.finish`; in debug mode after every pass, for lost order too."""

from __future__ import annotations

from collections.abc import Iterator

from graphdock.contracts.bodies import captures, carried, contents_of, elements, given, scanned, stacked
from graphdock.contracts.effects import conflicts, effects_of
from graphdock.contracts.ir import PlanGraph, PlanNode, Value, arg_of
from graphdock.contracts.ir_print import print_node
from graphdock.contracts.opdef import REQUIRED
from graphdock.dtypes import as_dtype
from graphdock.errors import PlanError
from graphdock.shape import compatible, show

__all__ = ["check", "check_order", "check_signatures"]


def check(graph: PlanGraph) -> None:
    """Raise PlanError, showing the nodes around the fault, unless the graph and all its bodies keep the grammar."""
    _check_nesting(graph)
    for g in graph.all_graphs():
        _check_one(g)
    contents_of(graph)


def _check_nesting(graph: PlanGraph) -> None:
    """Raise PlanError where a body holds itself: no walk through the bodies would end."""
    around: dict[PlanGraph, None] = {}
    stack: list[tuple[PlanGraph, PlanNode | None, bool]] = [(graph, None, False)]
    while stack:
        level, holder, left = stack.pop()
        if left:
            del around[level]
            continue
        if level in around:
            name = "" if holder is None else f", node {holder.name} ({holder.op})"
            raise PlanError(f"graph {level.name}{name}: the body holds itself")
        around[level] = None
        stack.append((level, holder, True))
        stack.extend([(body, node, False) for node in level.holders for body in node.bodies])


def _check_one(graph: PlanGraph) -> None:
    defined: set[Value] = set(graph.inputs)
    seen: set[PlanNode] = set()
    names: set[str] = {v.name for v in graph.inputs}
    if len(names) != len(graph.inputs):
        raise PlanError(f"graph {graph.name}: two inputs have one name")
    for position, node in enumerate(graph.nodes):

        def fail(what: str, position: int = position, node: PlanNode = node) -> PlanError:
            window = graph.nodes[max(0, position - 5) : position + 6]
            text = "\n".join(("  > " if n is node else "    ") + print_node(n) for n in window)
            return PlanError(f"graph {graph.name}, node {node.name} ({node.op}): {what}\n{text}")

        if node in seen:
            raise fail("stands in the graph twice")
        for value in node.inputs:
            if value not in defined:
                raise fail(f"reads {value!r} before it is defined, or from another graph")
        for before in node.control:
            if before not in seen:
                raise fail(f"must run after {before.name}, which does not stand before it")
        for before in node.order:
            if before not in seen:
                raise fail(f"is ordered after {before.name}, which does not stand before it")
        for index, value in enumerate(node.outputs):
            if value.node is not node or value.index != index:
                raise fail(f"output {value!r} belongs to another node")
            if value.name in names:
                raise fail(f"defines %{value.name}, which is defined already")
            names.add(value.name)
            defined.add(value)
        if node.opdef.verb.bodies:
            _BODIES[node.verb](node, fail)
        seen.add(node)
    if set(graph.holders) != {n for n in graph.nodes if n.bodies}:
        raise PlanError(
            f"graph {graph.name}: its list of nodes was changed in place", hint="add a node by PlanGraph.add"
        )
    for value in graph.outputs:
        if value not in defined:
            raise PlanError(f"graph {graph.name} returns {value!r}, which it does not define")
    for node in graph.targets:
        if node not in seen:
            raise PlanError(f"graph {graph.name} must run {node.name}, which it does not hold")


def check_order(graph: PlanGraph, after: str) -> None:
    """Raise PlanError unless edges order every two conflicting accesses as they stand, at every level.

    Args:
      after: what changed the graph last, for the message.
    """
    for level, found in effects_of(graph):
        place: dict[PlanNode, int] = {}
        for node, pairs in conflicts(found):
            edges = {*node.order, *node.control, *(v.node for v in node.inputs)}
            lost = [(before, resource) for before, resource in pairs if before not in edges]
            if lost and not place:
                place = {n: i for i, n in enumerate(level.nodes)}
            for before, resource in lost:
                if not _leads(before, node, place):
                    raise _unordered(level, before, node, resource, after)


def check_signatures(graph: PlanGraph) -> None:
    """Raise PlanError unless every node of every level has the attributes that its OpDef requires, and inputs of their dtypes."""
    for level in graph.all_graphs():
        for node in level.nodes:
            wrong = next(_misfits(node), None)
            if wrong is not None:
                raise PlanError(
                    f"graph {level.name}, node {node.name} ({node.op}): {wrong}\n    {print_node(node)}",
                    op=node.origin,
                    site=node.site,
                )


def _misfits(node: PlanNode) -> Iterator[str]:
    opdef, attrs = node.opdef, node.attrs
    needed = [
        *(t.name for t in opdef.types),
        *(a.name for a in opdef.attrs if a.default is REQUIRED and not a.inferred),
    ]
    missing = [name for name in needed if name not in attrs]
    if missing:
        yield f"has no attribute {', '.join(missing)}, which {opdef.name} requires"
        return
    lists = {t.name for t in opdef.types if t.is_list}
    if not opdef.inputs:  # such as the planner's own moves, which take anything
        return
    args = arg_of(node)
    if len(args) != len(node.inputs):
        yield f"reads {len(node.inputs)} values, and {opdef.name} takes {len(args)}"
        return
    for arg, value in zip(args, node.inputs, strict=True):
        dtype = attrs.get(arg.dtype) or as_dtype(arg.dtype) if arg.dtype not in lists else None
        if dtype is not None and dtype is not value.dtype and value.dtype.kind != "V":
            yield f"reads {value!r} as {arg.name!r}, which is {dtype.name} by its attributes"


def _leads(first: PlanNode, last: PlanNode, place: dict[PlanNode, int]) -> bool:
    """Return whether a path of edges leads from one node to a later one of its level; looks at what stands between them only."""
    seen: set[PlanNode] = set()
    stack = [last]
    start = place[first]
    while stack:
        node = stack.pop()
        for before in (*(v.node for v in node.inputs), *node.control, *node.order):
            if before is first:
                return True
            if before is not None and before not in seen and place[before] > start:
                seen.add(before)
                stack.append(before)
    return False


def _unordered(level: PlanGraph, first: PlanNode, second: PlanNode, resource: Value | None, after: str) -> PlanError:
    if resource is None:
        what = "both talk to the world"
    else:
        maker = resource.node
        name = resource.name if maker is None else maker.attrs.get("shared_name") or maker.origin
        what = f"both touch {name}, and one writes it"
    return PlanError(
        f"graph {level.name}: nothing orders {first.name} ({first.op}) and {second.name} ({second.op}): {what}; "
        f"the graph was changed last by {after}\n    {print_node(first)}\n    {print_node(second)}",
        op=second.origin,
        site=second.site,
        hint="a pass must keep order edges: Rewriter does, whatever it erases or replaces",
    )


def _check_branch(node: PlanNode, fail) -> None:  # type: ignore[no-untyped-def]
    if len(node.bodies) != 2:
        raise fail(f"{node.op} needs two bodies")
    for which, body in enumerate(node.bodies):
        _match(fail, f"inputs of body {body.name}", given(node, which), body.inputs)
        _match(fail, f"outputs of body {body.name}", node.outputs, body.outputs)


def _check_loop(node: PlanNode, fail) -> None:  # type: ignore[no-untyped-def]
    if len(node.bodies) != 2:
        raise fail(f"{node.op} needs two bodies")
    cond, body = node.bodies
    count, read = carried(node.opdef, node.attrs), scanned(node.opdef, node.attrs)
    if len(node.inputs) < count + read or len(node.outputs) < count:
        raise fail(f"{node.op} has fewer inputs or outputs than loop variables and histories")
    for which, graph in enumerate(node.bodies):
        if len(graph.inputs) != len(given(node, which)):
            raise fail(f"body {graph.name} takes {len(graph.inputs)} inputs, and is given {len(given(node, which))}")
        _match(fail, f"loop variables of body {graph.name}", node.inputs[:count], graph.inputs[:count])
    for _, outer, inside in captures(node):
        _match(fail, "captures", [outer] * 2, list(inside))
    if len(cond.outputs) != 1 or cond.outputs[0].dtype.name != "bool":
        raise fail(f"the condition of {node.op} must return one bool")
    if len(body.outputs) != len(node.outputs):
        raise fail(f"body {body.name} returns {len(body.outputs)} values for {len(node.outputs)} outputs")
    _match(fail, f"loop variables returned by body {body.name}", node.outputs[:count], body.outputs[:count])
    for history in [*(h for h, _ in elements(node)), *(h for h, _ in stacked(node))]:
        if history.dtype.kind != "V":
            raise fail(f"{history!r} stands where a history must")


def _check_call(node: PlanNode, fail) -> None:  # type: ignore[no-untyped-def]
    if len(node.bodies) != 1:
        raise fail(f"{node.op} needs one body")
    _match(fail, f"inputs of body {node.bodies[0].name}", given(node, 0), node.bodies[0].inputs)
    _match(fail, f"outputs of body {node.bodies[0].name}", node.outputs, node.bodies[0].outputs)


_BODIES = {"branch": _check_branch, "loop": _check_loop, "call": _check_call}


def _match(fail, what: str, outer: list[Value], inner: list[Value]) -> None:  # type: ignore[no-untyped-def]
    if len(outer) != len(inner):
        raise fail(f"{what}: {len(outer)} outside, {len(inner)} inside")
    for a, b in zip(outer, inner, strict=True):
        if a.dtype is not b.dtype:
            raise fail(f"{what}: {a!r} outside is {b!r} inside")
        if not compatible(a.shape, b.shape):
            raise fail(f"{what}: shape {show(a.shape)} outside, {show(b.shape)} inside")
