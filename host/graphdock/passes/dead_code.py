"""Dead-code elimination: outputs of branches and loops that nobody reads, such as those that only a gradient that is not fetched
would need; loop variables that only their own next values need; captures that no body reads; and whatever only those would need.

This is no optimisation but decides which updates run, and so it is done in every plan, whatever passes are on. One search back from
what is fetched goes through all levels at once; then each level is swept. Both are linear.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from graphdock.contracts.bodies import captures, carried, elements, first_given, scanned
from graphdock.contracts.ir import PlanGraph, PlanNode, Value
from graphdock.contracts.rewriter import Rewriter, keep_only

__all__ = ["eliminate_dead_code", "prune"]

_MAKER = operator.attrgetter("node")


def eliminate_dead_code(graph: PlanGraph) -> None:
    """Drop, at every level, what neither an output nor a target needs: nodes, and inputs and outputs of those with bodies."""
    if not graph.holders:
        prune(graph)
        return
    needed = _Needed(graph)
    needed.run()
    for level in graph.all_graphs():
        with Rewriter(level) as change:
            for node in level.nodes:
                if node not in needed.nodes:
                    change.erase(node)
                elif node.bodies:
                    _sweep(node, needed.values, change)


class _Needed:
    """The values and nodes, of all levels, that the outputs and targets of a graph need."""

    def __init__(self, graph: PlanGraph) -> None:
        self.graph = graph
        self.values: set[Value] = set()
        self.nodes: set[PlanNode] = set()
        self._stack: list[Value | PlanNode] = [*graph.outputs, *graph.targets]
        #: input of a body -> what is needed when it is: the values outside or at the end of an iteration that it stands for
        self._sources: dict[Value, tuple[Value, ...]] = {}
        self._scanning: list[PlanNode] = []

    def run(self) -> None:
        self._search()
        while self._scanning:  # a loop over histories must still know how often it runs
            node = self._scanning.pop()
            histories = list(elements(node))
            if not any(element in self.values for _, element in histories):
                known = [element for history, element in histories if history in self.values]
                self._stack.append((known or [histories[0][1]])[0])
                self._search()

    def _search(self) -> None:
        stack = self._stack
        while stack:
            item = stack.pop()
            if isinstance(item, PlanNode):
                if item not in self.nodes:
                    self.nodes.add(item)
                    self._node(item)
            elif item not in self.values:
                self.values.add(item)
                self._value(item)

    def _value(self, value: Value) -> None:
        node = value.node
        if node is None:
            self._stack.extend(self._sources.get(value, ()))
            return
        if node.verb == "loop":
            self._stack.append(node.bodies[1].outputs[value.index])
            if value.index < carried(node.opdef, node.attrs):
                self._stack.append(node.inputs[value.index])
        elif node.bodies:
            self._stack.extend([body.outputs[value.index] for body in node.bodies])
        self._stack.append(node)  # looked at next: what its bodies' inputs stand for must be known before they are met

    def _node(self, node: PlanNode) -> None:
        self._stack.extend(node.control)
        if not node.bodies:
            self._stack.extend(node.inputs)
            return
        self._stack.extend(node.inputs[: first_given(node.opdef)])
        for _, outer, inside in captures(node):
            self._sources.update(dict.fromkeys(inside, (outer,)))
        for body in node.bodies:
            self._stack.extend(body.targets)
        if node.verb == "loop":
            cond, body = node.bodies
            for i in range(carried(node.opdef, node.attrs)):
                self._sources[cond.inputs[i]] = self._sources[body.inputs[i]] = (node.outputs[i],)
            for history, element in elements(node):
                self._sources[element] = (history,)
            if scanned(node.opdef, node.attrs):
                self._scanning.append(node)
            self._stack.extend(cond.outputs)


def _sweep(node: PlanNode, needed: set[Value], change: Rewriter) -> None:
    """Leave out the inputs and outputs of a node with bodies that are not needed."""
    count = carried(node.opdef, node.attrs)
    variables = [i for i in range(count) if node.outputs[i] in needed]
    outputs = variables + [i for i in range(count, len(node.outputs)) if node.outputs[i] in needed]
    gone = {i for i in range(count) if node.outputs[i] not in needed}
    inside = {v for i in gone for v in (node.bodies[0].inputs[i], node.bodies[1].inputs[i])}
    for j, (_, element) in enumerate(elements(node)):
        if element not in needed:
            gone.add(count + j)
            inside.add(element)
    for position, _, inner in captures(node):
        if needed.isdisjoint(inner):
            gone.add(position)
            inside.update(inner)
    if not gone and len(outputs) == len(node.outputs):
        return
    for bound, body in zip(node.opdef.bodies, node.bodies, strict=True):
        with Rewriter(body) as level:
            level.takes([v for v in body.inputs if v not in inside])
            if bound.gives:
                level.returns([body.outputs[i] for i in outputs])
    inputs = [v for i, v in enumerate(node.inputs) if i not in gone]
    changed: dict[str, Any] = {
        "Tin": _dtypes(inputs[first_given(node.opdef) :]),
        "Tout": _dtypes([node.outputs[i] for i in outputs]),
    }
    if node.verb == "loop":
        read = range(count, count + scanned(node.opdef, node.attrs))
        changed["output_shapes"] = tuple([node.attrs["output_shapes"][i] for i in variables])
        changed["scanned"] = len([j for j in read if j not in gone])
    change.rebind(node, inputs=inputs, outputs=outputs, attrs={**node.attrs, **changed})


def _dtypes(values: Sequence[Value]) -> tuple[object, ...]:
    return tuple([v.dtype for v in values])


def prune(graph: PlanGraph) -> None:
    """Drop every node that neither an output nor a target needs."""
    needed: set[Any] = {*graph.targets, *map(_MAKER, graph.outputs)}
    for node in reversed(graph.nodes):  # whoever needs a node stands behind it
        if node in needed:
            needed.update(map(_MAKER, node.inputs))
            if node.control:
                needed.update(node.control)
    needed.discard(None)
    if len(needed) < len(graph.nodes):
        keep_only(graph, needed)
