"""The pass that makes other ops of one with a constant: of a cube two products, which take a twelfth of the time.

An op says in its spec, by ``constants``, which ops compute the same of its other input. Ops that it makes several times are one.
"""

from __future__ import annotations

from graphdock.contracts.ir import PlanGraph, PlanNode, Value, make_node
from graphdock.contracts.passes import PassContext
from graphdock.contracts.rewriter import Rewriter

__all__ = ["powers"]

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
    """Whether an op is for the dtype of a node."""
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
