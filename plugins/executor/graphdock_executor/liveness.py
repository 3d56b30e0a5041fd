"""Positions of nodes in the flattened plan, and until when each value is read.

Bodies are flattened where they stand. What a loop captures stays live until the loop ends; so does anything an alias of it may
be read for. A captured parameter is the captured value itself. A history is read where the loop that scans it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from graphdock.contracts.bodies import captures
from graphdock.contracts.ir import PlanGraph, PlanNode, Value
from graphdock.contracts.kernel import KernelDef
from graphdock.contracts.lazy_dataclass import lazy_dataclass

__all__ = ["Liveness", "analyse"]


@lazy_dataclass
class Liveness:
    """Facts of one plan graph.

    Attributes:
      position: node -> its position; a Cond or While has the position before its bodies'.
      end: Cond or While node -> the position after its bodies.
      same: captured parameter -> the value outside that it is (followed to the outermost).
      last: value -> last position at which it is read; absent when never.
      reach: value -> last position at which it or anything that may alias it is read.
      writes: handle -> positions at which the variable is written.
      nesting: node of a body -> number of bodies around it.
    """

    position: dict[PlanNode, int] = field(default_factory=dict)
    end: dict[PlanNode, int] = field(default_factory=dict)
    same: dict[Value, Value] = field(default_factory=dict)
    last: dict[Value, int] = field(default_factory=dict)
    reach: dict[Value, int] = field(default_factory=dict)
    writes: dict[Value, list[int]] = field(default_factory=dict)
    nesting: dict[PlanNode, int] = field(default_factory=dict)
    final: int = 0

    def depth_of(self, value: Value) -> int:
        """Number of bodies around the node that makes a value; 0 at the top."""
        return self.nesting.get(value.node, 0) if value.node is not None else 0

    def of(self, value: Value) -> Value:
        return self.same.get(value, value)


_Loops = tuple[PlanNode, ...]


class _Walk:
    """One way over the plan, in order; fills in all but ``reach``."""

    def __init__(self, graph: PlanGraph, handles: Mapping[Value, Value]) -> None:
        self.facts = Liveness()
        #: nodes in order, those with bodies behind what is in them
        self.order: list[PlanNode] = []
        self._handles = handles
        self._at = 0
        self._nesting = 0
        #: value made inside of loops -> those loops
        self._loops: dict[Value, _Loops] = {}
        #: reads inside of loops: how long they count is known where the loops end
        self._inside: list[tuple[Value, int, _Loops]] = []
        stack = [self._level(graph, ())]
        while stack:
            body = next(stack[-1], None)
            if body is None:
                stack.pop()
            else:
                stack.append(self._level(*body))
        self.facts.final = self._at
        self._close()

    def _level(self, graph: PlanGraph, loops: _Loops) -> Iterator[tuple[PlanGraph, _Loops]]:
        """Go over one level; yields each body, with the loops around it, where it stands."""
        facts, order = self.facts, self.order
        same, last, position = facts.same, facts.last, facts.position
        for node in graph.nodes:
            self._at = at = self._at + 1
            position[node] = at
            if self._nesting:
                facts.nesting[node] = self._nesting
            if not (loops or same):
                for value in node.inputs:
                    last[value] = at
            elif not loops:
                for value in node.inputs:
                    last[same.get(value, value)] = at
            else:
                self._read(node.inputs, loops)
                self._loops.update(dict.fromkeys(node.outputs, loops))
            if node.bodies:
                yield from self._bodies(node, (*loops, node) if node.verb == "loop" else loops)
            elif "writes" in node.opdef.accesses:
                self._write(node)
            order.append(node)
        self._at += 1
        self._read(graph.outputs, loops)

    def _bodies(self, node: PlanNode, loops: _Loops) -> Iterator[tuple[PlanGraph, _Loops]]:
        facts = self.facts
        for body in node.bodies:
            self._loops.update(dict.fromkeys(body.inputs, loops))
        for _, outer, inside in captures(node):
            facts.same.update(dict.fromkeys(inside, facts.of(outer)))
        self._at += 1
        self._nesting += 1
        for body in node.bodies:
            yield body, loops
        self._at += 1
        self._nesting -= 1
        facts.end[node] = self._at

    def _read(self, values: Sequence[Value], loops: _Loops) -> None:
        same, last, at = self.facts.same, self.facts.last, self._at
        for value in values:
            if loops:
                self._inside.append((same.get(value, value), at, loops))
            else:
                last[same.get(value, value)] = at

    def _write(self, node: PlanNode) -> None:
        for i, value in enumerate(node.inputs):
            if value.dtype.name == "resource" and _mutates(node, i):
                self.facts.writes.setdefault(self._handles[value], []).append(self._at)

    def _close(self) -> None:
        """Let what a loop reads of values made outside of it live until it ends."""
        facts = self.facts
        for value, position, loops in self._inside:
            made = self._loops.get(value, ())
            for i, loop in enumerate(loops):
                if i >= len(made) or made[i] is not loop:
                    position = facts.end[loop]
                    break
            if facts.last.get(value, -1) < position:
                facts.last[value] = position


def analyse(graph: PlanGraph, kernels: Mapping[PlanNode, KernelDef], handles: Mapping[Value, Value]) -> Liveness:
    """Number the nodes and find the last uses."""
    walk = _Walk(graph, handles)
    facts = walk.facts
    facts.reach = dict(facts.last)
    for node in reversed(walk.order):
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
    """Note that what a branch leaves as a variant is no copy: the storage behind it is read for as long as the variant is."""
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
