"""The pass that makes one operation of a sum of many: the gradient by a weight that a network uses in every step.

An op says in its spec, by ``sum``, which op computes the sum of many of it. Of matrix products that is one product of the factors
side by side along the dim that is summed over: the same terms, in another order of summation. What makes a single number of a
tensor, as half the sum of its squares does, is joined whatever the shapes are: the norm of all gradients is one operation.

In a plan for any shape dims are alike that are one symbol. What is summed over then is the batch: sums of few elements are as many
tensors of the weight's size as there are addends, and each costs more than its product of a small batch.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from typing import Any

from graphdock.contracts import PassContext, PlanGraph, PlanNode, Rewriter, Value
from graphdock.contracts.ir import attr_key, make_node
from graphdock.shape import size

__all__ = ["flatten_sums"]

#: Rows of a small batch. Of a larger one what is laid side by side is little beside what is multiplied.
_FEW = 16


def flatten_sums(graph: PlanGraph, context: PassContext) -> None:
    """Join the addends of an AddN that are alike but for their inputs, where that moves no more elements than adding them up."""
    reads = Counter(itertools.chain(graph.outputs, *[n.inputs for n in graph.nodes]))
    kept = set(graph.targets).union(*[n.control for n in graph.nodes if n.control])
    relied = False
    with Rewriter(graph) as change:
        for node in graph.nodes:
            if "aggregate" in node.opdef.traits and not node.control and node.guard is None:
                relied |= _join(node, reads, kept, change, context, graph.conditions is not None)
    if relied and graph.conditions is not None and graph.conditions.equal:
        graph.conditions = replace(graph.conditions, relied=True)


def _join(
    node: PlanNode, reads: Counter[Value], kept: set[PlanNode], change: Rewriter, context: PassContext, outermost: bool
) -> bool:
    """Join what can be joined of the addends of one node; whether they are alike because of symbols."""
    groups: dict[Any, list[PlanNode]] = {}
    for value in node.inputs:
        maker = value.node
        if maker is not None and reads[value] == 1 and maker not in kept and _is_free(maker):
            groups.setdefault(_key(maker, outermost), []).append(maker)
    joined: dict[Value, Value | None] = {}  # the first of those joined -> their sum; the others -> None
    relied = False
    for alike in groups.values():
        if len(alike) > 1 and _pays(alike):
            count = sum(total is not None for total in joined.values())
            name = f"{node.name}/{alike[0].op}" + (f"_{count}" if count else "")
            joined.update(dict.fromkeys([n.outputs[0] for n in alike]))
            joined[alike[0].outputs[0]] = _sum(node, name, alike, change, context)
            relied |= not _is_number(alike[0]) and any(_is_open(v) for v in alike[0].inputs)
    if not joined:
        return False
    # what is not joined stays as often as it is added
    rest = [total for total in [joined.get(v, v) for v in node.inputs] if total is not None]
    if len(rest) == 1:
        change.replace(node, rest)
    else:
        change.rebind(node, inputs=rest, attrs={**node.attrs, node.opdef.inputs[0].count or "N": len(rest)})
    return relied


def _is_free(node: PlanNode) -> bool:
    """Return whether the node may be computed with others, by an op that says how."""
    return (
        node.opdef.sum is not None and node.opdef.plain and not node.control and node.guard is None and not node.order
    )


def _is_open(value: Value) -> bool:
    return value.shape is not None and None in value.shape


def _key(node: PlanNode, outermost: bool) -> Any:
    """Return what nodes have in common that are joined; those that make a number may have any shapes. Dims of bodies are known
    to be the same where they are numbers.
    """
    attrs = tuple([(k, attr_key(v)) for k, v in sorted(node.attrs.items())])
    shapes: Any = () if _is_number(node) else tuple([v.extent if _is_open(v) else v.shape for v in node.inputs])
    if shapes and not outermost and any(map(_is_open, node.inputs)):
        shapes = node
    return node.op, attrs, node.requested, tuple([v.dtype.name for v in node.inputs]), shapes


def _is_number(node: PlanNode) -> bool:
    return node.outputs[0].shape == ()


def _pays(alike: list[PlanNode]) -> bool:
    """Return whether laying the inputs side by side moves fewer elements than adding up the outputs, where a dim that is one
    symbol is as small as :data:`_FEW`; nothing is laid for a number.
    """
    first = alike[0]
    if _is_number(first):
        return True
    given, made = [_elements(v) for v in first.inputs], size(first.outputs[0].shape)
    return made is not None and None not in given and sum(n for n in given if n is not None) <= made


def _elements(value: Value) -> int | None:
    """Return how many elements a tensor has; None where more of its dims are unknown than one that is a symbol."""
    if not _is_open(value) or value.shape is None:
        return size(value.shape)
    known = [d for d in value.shape if d is not None]
    return math.prod(known) * _FEW if value.extent is not None and len(known) == len(value.shape) - 1 else None


def _sum(node: PlanNode, name: str, alike: list[PlanNode], change: Rewriter, context: PassContext) -> Value:
    """The one node that computes the sum of several."""
    first = alike[0]
    opdef = context.opdef(first.opdef.sum or "")
    inputs = [n.inputs[i] for i in range(len(first.inputs)) for n in alike]
    attrs = {**first.attrs, opdef.inputs[0].count or "N": len(alike)}
    result = first.outputs[0]
    made = make_node(
        opdef,
        name,
        inputs,
        attrs,
        [(result.dtype, result.shape)],
        requested=first.requested,
        site_of=node.site_of or first.site_of,
        origins=tuple(dict.fromkeys([o for n in alike for o in n.origins])),
    )
    change.insert(made, before=node)
    return made.outputs[0]
