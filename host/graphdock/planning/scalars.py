"""Small integers and booleans that live as Python scalars in the generated source.

A loop counter kept as a 0-d array costs three times a Python int. Predicates always are scalars; a loop variable is one when its
body computes it by ops that have a formula for scalars; and so is whatever those are computed from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphdock.contracts.bodies import captures, carried
from graphdock.contracts.ir import PlanGraph, PlanNode, Value
from graphdock.contracts.kernel import Decision
from graphdock.contracts.scalar_formula import host_scalar, wrap

__all__ = ["KEPT", "scalar_function", "scalar_values"]

#: Why a node whose result is a host scalar has no kernel.
KEPT = Decision("host", "scalar", "a small number that steers the step; the host computes it itself")

_KINDS = frozenset({"bool", "int32", "int64"})


def _small(value: Value) -> bool:
    return value.shape == () and value.dtype.name in _KINDS


def _has_host_formula(node: PlanNode) -> bool:
    if node.opdef.scalar is None or not _small(node.outputs[0]) or not all(_small(v) for v in node.inputs):
        return False
    return host_scalar(node.opdef, node.outputs[0].dtype) is not None


def scalar_function(node: PlanNode) -> Callable[..., Any]:
    """Function that computes a node's host scalar from those it reads, with the dtype's wrap-around."""
    dtype = node.outputs[0].dtype
    template = host_scalar(node.opdef, dtype)
    assert template is not None
    names = [f"x{i}" for i in range(len(node.inputs))]
    text = f"lambda {', '.join(names)}: {template.format(*names)}"
    # not the text itself: an interrupt within would be the program's exit code, whoever caught it
    formula: Callable[..., Any] = eval(compile(text, "<formula>", "eval"))  # noqa: S307 - a spec's formula, parsed
    if dtype.name == "bool":
        return formula
    return lambda *values: wrap(formula(*values), dtype.size * 8)


def scalar_values(graph: PlanGraph) -> set[Value]:
    """The values, of all levels, that are Python scalars."""
    loops: list[PlanNode] = []
    conds: list[PlanNode] = []
    candidates: set[Value] = set()
    captured: dict[Value, Value] = {}
    for level in graph.all_graphs():
        for node in level.nodes:
            if node.verb == "loop":
                loops.append(node)
                count = carried(node.opdef, node.attrs)
                for i in range(count):
                    if all(_small(v) for v in (node.outputs[i], node.bodies[1].inputs[i], node.bodies[1].outputs[i])):
                        candidates.update((node.outputs[i], node.bodies[0].inputs[i], node.bodies[1].inputs[i]))
            elif node.verb == "branch":
                conds.append(node)
                candidates.update(v for v in node.outputs if _small(v))
            elif _has_host_formula(node):
                candidates.add(node.outputs[0])
            if node.bodies:
                for _, outer, inside in captures(node):
                    captured.update(dict.fromkeys(inside, outer))

    def is_candidate(value: Value) -> bool:
        while value in captured:
            value = captured[value]
        return value in candidates or (value.node is not None and value.node.verb == "constant" and _small(value))

    changed = True
    while changed:
        changed = False
        for node in loops:
            for i, out in enumerate(node.outputs[: carried(node.opdef, node.attrs)]):
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
        if node_.verb == "loop":
            i = value.index
            for v in (node_.bodies[0].inputs[i], node_.bodies[1].inputs[i]):
                wanted.add(v)
            stack.append(node_.bodies[1].outputs[i])
        elif node_.verb == "branch":
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
