"""The host's passes: captures, identities, known integers, common subexpressions, folding, neutral elements, powers.

Each takes a plan graph (one level; the pipeline visits the bodies) and changes it in place; each is idempotent.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphdock.contracts.bodies import captures as captured
from graphdock.contracts.effects import only_reads
from graphdock.contracts.ir import PlanGraph, PlanNode, Value, arg_of, attr_key, make_node
from graphdock.contracts.passes import PassContext
from graphdock.contracts.rewriter import Rewriter
from graphdock.opdef.shape_values import Known, KnownIntegers, is_known, plan_integers
from graphdock.shape import Dims, Symbol, size

__all__ = ["FOLD_LIMIT", "algebra", "captures", "cse", "fold", "identities", "known_integers", "powers"]

_MAKER = operator.attrgetter("node")
#: Largest folded result in bytes.
FOLD_LIMIT = 64 * 1024


def identities(graph: PlanGraph, context: PassContext) -> None:
    """Forward what changes neither shape nor dtype nor elements. One with control inputs stays: it waits for them.

    Unknown dims are the same where they are one symbol, in the outermost graph; a plan that was assumed some of its feeds' dims
    to be one for that is for such feeds alone.
    """
    unread: list[Value] = []
    integers = plan_integers(symbols=True)
    conditions, relied = graph.conditions, False
    with Rewriter(graph) as change:
        for node in graph.nodes:
            if node.opdef.identity is None or node.control or node.requested is not None or node.guard is not None:
                continue
            source, known = _same_as(node, node.opdef.identity, None if conditions is None else integers)
            if source is None:
                continue
            change.replace(node, [source])
            unread += [v for v in node.inputs if v is not source]
            relied |= not known
        change.keep(_effects(unread))
    if relied and conditions is not None and conditions.equal:
        graph.conditions = replace(conditions, relied=True)


def _same_as(node: PlanNode, identity: str, integers: KnownIntegers | None) -> tuple[Value | None, bool]:
    """The input that the node's output equals, if it does; of those that are called ``identity``. And whether its shape is known.

    Args:
      integers: what is known of integers with symbols; None where symbols do not count.
    """
    opdef = node.opdef
    found = node.inputs
    if len(opdef.inputs) > 1:
        found = [v for v, arg in zip(node.inputs, arg_of(node), strict=True) if arg.name == identity]
    if len(found) != 1 or found[0].dtype is not node.outputs[0].dtype:
        return None, True
    if node.verb == "alias" or _same_known_shape(found[0].shape, node.outputs[0].shape):
        return found[0], True
    given = opdef.input(identity)
    always = given is not None and given.shape is not None and given.shape == opdef.outputs[0].shape
    if always or integers is None or not isinstance(found[0].extent, tuple):
        return found[0] if always else None, True
    # elements that only the step knows are the kernel's to check, as where a slice begins
    others = [v for v in node.inputs if v is not found[0]]
    same = found[0].extent == node.outputs[0].extent and all(_is_fed(integers.value(v)) for v in others)
    return found[0] if same else None, False


def _is_fed(value: Known) -> bool:
    """Return whether the feeds' shapes decide all elements of a small integer tensor."""
    if isinstance(value, tuple):
        return all(map(_is_fed, value))
    return isinstance(value, int) or isinstance(value, Symbol) and value.fed


def _same_known_shape(a: Dims, b: Dims) -> bool:
    return a is not None and None not in a and a == b


def known_integers(graph: PlanGraph, context: PassContext) -> None:
    """Make constants of small integer tensors whose every element is known from shapes."""
    integers = plan_integers()
    known: list[PlanNode] = []
    with Rewriter(graph) as change:
        for node in graph.nodes:
            outputs = node.outputs
            if (
                len(outputs) != 1
                or outputs[0].dtype.kind != "i"
                or node.verb == "constant"
                or node.control
                or node.bodies
            ):
                continue
            value = outputs[0]
            if value.dtype.name not in ("int32", "int64") or value.shape is None or len(value.shape) > 1:
                continue
            found = integers.value(value)
            if is_known(found):
                array = np.array(found, value.dtype.np)
                if array.shape == value.shape or None in value.shape:
                    made = change.insert(context.constant(node, value, array), before=node)
                    change.replace(node, made.outputs)
                    known.append(node)
        # what the integers were computed from need not run any more, but for what it changes
        change.keep(_effects([v for n in known for v in n.inputs]))


def _effects(unread: Sequence[Value]) -> list[PlanNode]:
    """The nearest nodes that ``unread`` were computed from and that do more than compute.

    These are updates, draws, nodes whose shapes are checked when they run, and bodies that hold such.
    """
    found: list[PlanNode] = []
    seen: set[PlanNode | None] = {None}
    stack = [v.node for v in unread]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        inside = [n for body in node.bodies for level in body.all_graphs() for n in level.nodes] if node.bodies else ()
        if _acts(node) or any(map(_acts, inside)):
            found.append(node)
        else:
            stack += [*map(_MAKER, node.inputs), *node.control]
    return found


def _acts(node: PlanNode) -> bool:
    """Return whether the node itself does more than compute."""
    return node.guard is not None or node.opdef.is_active or "random" in node.opdef.effects


def algebra(graph: PlanGraph, context: PassContext) -> None:
    """Drop multiplications and divisions by one, where that changes neither shape nor dtype."""
    with Rewriter(graph) as change:
        for node in graph.nodes:
            if not node.opdef.neutral or node.control:
                continue
            for index, arg in enumerate(node.opdef.inputs):
                neutral = node.opdef.neutral.get(arg.name)
                if neutral is None:
                    continue
                array = node.constant(index)
                other, result = node.inputs[1 - index], node.outputs[0]
                if array is None or other.dtype is not result.dtype or not _same_known_shape(other.shape, result.shape):
                    continue
                if array.size <= 1 << 14 and bool((array == neutral).all()):
                    change.replace(node, [other])
                    break


def cse(graph: PlanGraph, context: PassContext) -> None:
    """Merge pure nodes of the same op, attributes and inputs; and such reads of a resource, if no write stands between them."""
    seen: dict[Any, PlanNode | None] = {}  # None where several nodes differ in nothing but attributes, perhaps
    by_attrs: dict[Any, PlanNode] = {}
    with Rewriter(graph) as change:
        for node in graph.nodes:
            traits = node.opdef.traits
            if node.bodies or node.control or not ("pure" in traits or _reads(node)):
                continue
            order = frozenset(map(id, node.order)) if node.order else None
            key = node.op, order, node.requested, *map(id, change.inputs(node))
            other = seen.setdefault(key, node)
            if other is node:
                continue  # few come so far that their attributes matter
            if other is not None:
                seen[key] = None
                _first(by_attrs, key, other)
            first = _first(by_attrs, key, node)
            if first is not node:
                change.replace(node, first.outputs)


def _first(table: dict[Any, PlanNode], key: Any, node: PlanNode) -> PlanNode:
    """The first node with this key and the node's attributes; itself where these cannot be compared."""
    try:
        return table.setdefault((key, tuple([(k, attr_key(v)) for k, v in node.attrs.items()])), node)
    except TypeError:
        return node


def _reads(node: PlanNode) -> bool:
    """Return whether a node reads resources and does nothing else."""
    return "stateful" not in node.opdef.traits and only_reads(node.opdef)


def fold(graph: PlanGraph, context: PassContext) -> None:
    """Replace pure nodes over constants by their results."""
    constants: set[Value] = set()
    with Rewriter(graph) as change:
        for node in graph.nodes:
            if node.verb == "constant":
                constants.update(node.outputs)
            if (
                "pure" not in node.opdef.traits
                or node.verb != "kernel"
                or node.control
                or node.bodies
                or not node.inputs
                or not constants.issuperset(node.inputs)
            ):
                continue
            results = context.evaluate(change.seen(node)) if all(_small(v) for v in node.outputs) else None
            if results is not None:
                made = [
                    change.insert(context.constant(node, value, array), before=node).outputs[0]
                    for value, array in zip(node.outputs, results, strict=True)
                ]
                change.replace(node, made)
                constants.update(node.outputs)


def _small(value: Value) -> bool:
    count = size(value.shape)
    return count is not None and value.dtype.size > 0 and count * value.dtype.size <= FOLD_LIMIT


def captures(graph: PlanGraph, context: PassContext) -> None:
    """Give every body of this level's nodes its own copy of a captured constant, then drop captures nobody reads."""
    for node in graph.holders:
        _sink(node)
    with Rewriter(graph) as change:
        for node in graph.holders:
            _drop(node, change)


def _sink(node: PlanNode) -> None:
    constants = [
        (v.node, v.shape, inside) for _, v, inside in captured(node) if v.node is not None and v.node.verb == "constant"
    ]
    if not constants:
        return
    for which, body in enumerate(node.bodies):
        with Rewriter(body) as change:
            for source, shape, inside in constants:
                parameter = inside[which]
                copy = make_node(
                    source.opdef,
                    f"{parameter.name}/const",
                    [],
                    source.attrs,
                    [(parameter.dtype, shape)],
                    site_of=source.site_of,
                    origins=source.origins,
                )
                change.insert(copy, before=body.nodes[0] if body.nodes else None)
                change.redirect(parameter, copy.outputs[0])


def _drop(node: PlanNode, change: Rewriter) -> None:
    read = {v for body in node.bodies for v in _read(body)}
    unread = [(p, inside) for p, _, inside in captured(node) if read.isdisjoint(inside)]
    if not unread:
        return
    for which, body in enumerate(node.bodies):
        gone = {inside[which] for _, inside in unread}
        with Rewriter(body) as inner:
            inner.takes([v for v in body.inputs if v not in gone])
    positions = {p for p, _ in unread}
    change.rebind(node, inputs=[v for p, v in enumerate(node.inputs) if p not in positions])


def _read(body: PlanGraph) -> set[Value]:
    """The values that the body's nodes and outputs read."""
    found = set(body.outputs)
    for node in body.nodes:
        found.update(node.inputs)
    return found


#: Elements that are looked at in a constant.
_MOST = 1 << 14


def powers(graph: PlanGraph, context: PassContext) -> None:
    """Replace what one input that is the same number everywhere makes simpler."""
    made: dict[tuple[str, str, tuple[Value, ...]], Value] = {}
    with Rewriter(graph) as change:
        for node in graph.nodes:
            if not node.opdef.constants or node.control or node.guard is not None:
                continue
            for index, arg in enumerate(node.opdef.inputs):
                chain = _chain(node, index, arg.name)
                if chain and all(_takes(context, op, node) for op in chain):
                    change.replace(node, [_made(node, chain, change.inputs(node)[1 - index], change, context, made)])
                    break


def _chain(node: PlanNode, index: int, name: str) -> tuple[str, ...]:
    """The ops that stand for a node; none where an input is no such constant, or stretches the other one."""
    array, other, result = node.constant(index), node.inputs[1 - index], node.outputs[0]
    if array is None or not 0 < array.size <= _MOST or other.shape is None:
        return ()
    if array.ndim and (other.shape != result.shape or None in other.shape):
        return ()
    first = array.flat[0]
    return node.opdef.constants.get(name, {}).get(first.item(), ()) if bool((array == first).all()) else ()


def _takes(context: PassContext, op: str, node: PlanNode) -> bool:
    """Return whether an op is for the dtype of a node."""
    opdef, dtype = context.opdef(op), node.outputs[0].dtype.name
    return all(not t.allow or dtype in t.allow for t in opdef.types)


def _made(
    node: PlanNode,
    chain: tuple[str, ...],
    x: Value,
    change: Rewriter,
    context: PassContext,
    made: dict[tuple[str, str, tuple[Value, ...]], Value],
) -> Value:
    value, result = x, node.outputs[0]
    for number, op in enumerate(chain):
        opdef = context.opdef(op)
        inputs = (value, x)[: len(opdef.inputs)]
        key = op, str(node.requested), inputs
        if key not in made:
            part = make_node(
                opdef,
                node.name if number == len(chain) - 1 else f"{node.name}/{op}_{number}",
                inputs,
                {t.name: result.dtype for t in opdef.types},
                [(result.dtype, x.shape)],
                requested=node.requested,
                site_of=node.site_of,
                origins=node.origins,
            )
            made[key] = change.insert(part, before=node).outputs[0]
        value = made[key]
    return value
