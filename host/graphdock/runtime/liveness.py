"""Positions of nodes in the flattened plan, and until when each value is read.

Bodies are flattened where they stand. What a loop captures stays live until the loop ends; so does anything an alias of it may
be read for. A captured parameter is the captured value itself. A history is read where the loop that scans it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from graphdock.contracts.bodies import captures
from graphdock.contracts.ir import PlanGraph, PlanNode, Value
from graphdock.contracts.kernel import KernelDef

__all__ = ["Liveness", "analyse"]


@dataclass
class Liveness:
    """Facts of one plan graph.

    Attributes:
      position: node -> its position; a Cond or While has the position before its bodies'.
      end: Cond or While node -> the position after its bodies.
      same: captured parameter -> the value outside that it is (followed to the outermost).
      last: value -> last position at which it is read; absent when never.
      reach: value -> last position at which it or anything that may alias it is read.
      writes: handle -> positions at which the variable is written.
      depth: node -> number of loops around it. ``nesting``: number of bodies of any kind.
    """

    position: dict[PlanNode, int] = field(default_factory=dict)
    end: dict[PlanNode, int] = field(default_factory=dict)
    same: dict[Value, Value] = field(default_factory=dict)
    last: dict[Value, int] = field(default_factory=dict)
    reach: dict[Value, int] = field(default_factory=dict)
    writes: dict[Value, list[int]] = field(default_factory=dict)
    depth: dict[PlanNode, int] = field(default_factory=dict)
    nesting: dict[PlanNode, int] = field(default_factory=dict)
    final: int = 0

    def depth_of(self, value: Value) -> int:
        """Number of bodies around the node that makes a value; 0 at the top."""
        return self.nesting.get(value.node, 0) if value.node is not None else 0

    def of(self, value: Value) -> Value:
        return self.same.get(value, value)


_Event = tuple[str, PlanGraph, PlanNode | None, tuple[PlanNode, ...]]


def _walk(graph: PlanGraph) -> Iterator[_Event]:
    """(event, level, node, loops around) in order; events: node, open (before bodies), close (after), outputs."""
    stack: list[Iterator[_Event | tuple[PlanGraph, tuple[PlanNode, ...]]]] = [_level(graph, ())]
    while stack:
        item = next(stack[-1], None)
        if item is None:
            stack.pop()
        elif len(item) == 2:
            stack.append(_level(*item))
        else:
            yield item


def _level(graph: PlanGraph, loops: tuple[PlanNode, ...]) -> Iterator[_Event | tuple[PlanGraph, tuple[PlanNode, ...]]]:
    """The events of one level, and in place of each body the body, with the loops around it."""
    for node in graph.nodes:
        yield "node", graph, node, loops
        if node.bodies:
            yield "open", graph, node, loops
            inner = (*loops, node) if node.verb == "loop" else loops
            for body in node.bodies:
                yield body, inner
            yield "close", graph, node, loops
    yield "outputs", graph, None, loops


def analyse(graph: PlanGraph, kernels: Mapping[PlanNode, KernelDef], handles: Mapping[Value, Value]) -> Liveness:
    """Number the nodes and find the last uses."""
    facts = Liveness()
    loops_at: dict[Value, tuple[PlanNode, ...]] = {v: () for v in graph.inputs}
    uses: list[tuple[Value, int, tuple[PlanNode, ...]]] = []
    order: list[PlanNode] = []
    at = 0
    nesting = 0
    for event, level, node, loops in _walk(graph):
        at += 1
        nesting += (event == "open") - (event == "close")
        if event == "node":
            assert node is not None
            facts.position[node] = at
            facts.depth[node] = len(loops)
            facts.nesting[node] = nesting
            if not node.bodies:
                order.append(node)
            for value in node.inputs:
                uses.append((facts.of(value), at, loops))
            if not node.bodies:
                for i, value in enumerate(node.inputs):
                    if value.dtype.name == "resource" and _mutates(node, i):
                        facts.writes.setdefault(handles[value], []).append(at)
            for value in node.outputs:
                loops_at[value] = loops
            if node.bodies:
                inner = (*loops, node) if node.verb == "loop" else loops
                for body in node.bodies:
                    loops_at.update(dict.fromkeys(body.inputs, inner))
                for _, outer, inside in captures(node):
                    facts.same.update(dict.fromkeys(inside, facts.of(outer)))
        elif event == "close":
            assert node is not None
            facts.end[node] = at
            order.append(node)
        elif event == "outputs":
            for value in level.outputs:
                uses.append((facts.of(value), at, loops))
    facts.final = at
    for value, position, loops in uses:
        made = loops_at.get(value, ())
        for i, loop in enumerate(loops):
            if i >= len(made) or made[i] is not loop:
                position = facts.end[loop]
                break
        if facts.last.get(value, -1) < position:
            facts.last[value] = position
    facts.reach = dict(facts.last)
    for node in reversed(order):
        if node.verb == "branch":
            _reach_into(node, facts)
            continue
        kernel = kernels.get(node)
        if node.verb != "alias" and (kernel is None or not kernel.views):
            continue
        until = max((facts.reach.get(v, 0) for v in node.outputs), default=0)
        for value in node.inputs:
            source = facts.of(value)
            if facts.reach.get(source, 0) < until:
                facts.reach[source] = until
    return facts


def _reach_into(node: PlanNode, facts: Liveness) -> None:
    """What a branch leaves as a variant is no copy: the storage behind it is read for as long as the variant is."""
    for i, result in enumerate(node.outputs):
        if result.dtype.kind == "V":
            until = facts.reach.get(result, 0)
            for body in node.bodies:
                source = facts.of(body.outputs[i])
                facts.reach[source] = max(facts.reach.get(source, 0), until)


def _mutates(node: PlanNode, index: int) -> bool:
    args = node.opdef.inputs
    if len(args) == len(node.inputs):
        return args[index].mutates
    return any(a.mutates for a in args)
