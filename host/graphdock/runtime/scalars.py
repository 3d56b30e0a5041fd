"""Which small integers and booleans live as Python scalars in the generated source.

A loop counter kept as a 0-d array costs three times a Python int. Predicates always are scalars; a loop variable is one when its
body computes it by kernels that have a ``scalar`` expression; and so is whatever those are computed from.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphdock.contracts.ir import PlanGraph, PlanNode, Value
from graphdock.plugin.registry import RegisteredKernel

__all__ = ["scalar_values"]

_KINDS = frozenset({"bool", "int32", "int64"})


def _small(value: Value) -> bool:
    return value.shape == () and value.dtype.name in _KINDS


def scalar_values(graph: PlanGraph, kernels: Mapping[PlanNode, RegisteredKernel]) -> set[Value]:
    """The values, of all levels, that are Python scalars."""
    loops: list[PlanNode] = []
    conds: list[PlanNode] = []
    candidates: set[Value] = set()
    captured: dict[Value, Value] = {}
    for level in graph.all_graphs():
        for node in level.nodes:
            if node.op == "While":
                loops.append(node)
                count = len(node.outputs)
                for i in range(count):
                    if all(_small(v) for v in (node.outputs[i], node.bodies[1].inputs[i], node.bodies[1].outputs[i])):
                        candidates.update((node.outputs[i], node.bodies[0].inputs[i], node.bodies[1].inputs[i]))
                for body in node.bodies:
                    captured.update(zip(body.inputs[count:], node.inputs[count:], strict=True))
            elif node.op == "Cond":
                conds.append(node)
                candidates.update(v for v in node.outputs if _small(v))
                for body in node.bodies:
                    captured.update(zip(body.inputs, node.inputs[1:], strict=True))
            elif node.op == "VarIsInitializedOp":
                candidates.add(node.outputs[0])
            elif node in kernels and kernels[node].kernel.scalar is not None and len(node.outputs) == 1:
                candidates.update(v for v in node.outputs if all(_small(x) for x in (v, *node.inputs)))

    def is_candidate(value: Value) -> bool:
        while value in captured:
            value = captured[value]
        return value in candidates or (value.node is not None and value.node.op == "Const" and _small(value))

    changed = True
    while changed:
        changed = False
        for node in loops:
            for i, out in enumerate(node.outputs):
                if out in candidates and not is_candidate(node.bodies[1].outputs[i]):
                    candidates -= {out, node.bodies[0].inputs[i], node.bodies[1].inputs[i]}
                    changed = True
        for node in conds:
            for i, out in enumerate(node.outputs):
                if out in candidates and not all(is_candidate(b.outputs[i]) for b in node.bodies):
                    candidates.discard(out)
                    changed = True

    wanted: set[Value] = set()
    stack: list[Value] = []
    for node in loops:
        stack.append(node.bodies[0].outputs[0])
        stack.extend(v for v in node.outputs if v in candidates)
    stack.extend(node.inputs[0] for node in conds)
    while stack:
        value = stack.pop()
        while value in captured:
            value = captured[value]
        if value in wanted or value not in candidates:
            continue
        wanted.add(value)
        node_ = value.node
        if node_ is None:
            continue
        if node_.op == "While":
            i = value.index
            for v in (node_.bodies[0].inputs[i], node_.bodies[1].inputs[i]):
                wanted.add(v)
            stack.append(node_.bodies[1].outputs[i])
        elif node_.op == "Cond":
            stack.extend(b.outputs[value.index] for b in node_.bodies)
        else:
            stack.extend(node_.inputs)
    for inner in captured:
        outer = inner
        while outer in captured:
            outer = captured[outer]
        if outer in wanted:
            wanted.add(inner)
    return wanted
