"""Loops as programs: a loop whose condition and body are regions that a compiler takes is one node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphdock.contracts import LoopBuffer, LoopProgram, LoopStep, PlanGraph, PlanNode, Region, Value
from graphdock.contracts.bodies import carried, given, scanned
from graphdock.shape import concrete

from graphdock_fusion.regions.forms import form_of
from graphdock_fusion.regions.typed import NotInRegion

__all__ = ["lower_loop"]

#: Regions of a body, and why a node of it that is in none is in none.
Claimed = tuple[Sequence[Region], Callable[[PlanNode], str]]


def lower_loop(
    node: PlanNode, claim: Callable[[PlanGraph], Claimed], results: Sequence[Value]
) -> tuple[LoopProgram, list[Value]]:
    """The program of a loop, and the values that it is given, in order.

    Args:
      claim: what a compiler takes of a level, in regions.
      results: the outputs of the loop that anybody reads.

    Raises:
      NotInRegion: it has parts that are none; the message says which and why.
    """
    return _Loop(node, claim).program(results)


class _Loop:
    """One loop.

    Attributes:
      buffers: in order. ``given``: value from outside -> its buffer.
    """

    def __init__(self, node: PlanNode, claim: Callable[[PlanGraph], Claimed]) -> None:
        self.node, self.claim = node, claim
        self.buffers: list[LoopBuffer] = []
        self.given: dict[Value, int] = {}
        self._constants: dict[Value, int] = {}

    def program(self, results: Sequence[Value]) -> tuple[LoopProgram, list[Value]]:
        node = self.node
        condition, body = node.bodies
        count = carried(node.opdef, node.attrs)
        if scanned(node.opdef, node.attrs) or len(node.outputs) != count:
            raise NotInRegion("it has histories")
        if node.guard is not None or condition.targets or body.targets:
            raise NotInRegion("more is done in it, or checked, than computing")
        outside = [self._outside(value) for value in node.inputs]
        variables = [self._variable(i) for i in range(count)]
        known: list[dict[Value, int]] = []
        steps: list[list[LoopStep]] = []
        for which, level in enumerate((condition, body)):
            numbers = dict(zip(node.inputs, outside, strict=True))
            inner = [*variables, *(numbers[v] for v in given(node, which)[count:])]
            level_known = dict(zip(level.inputs, inner, strict=True))
            steps.append(self._steps(level, level_known))
            known.append(level_known)
        test = self._number(condition.outputs[0], known[0])
        following = [self._number(v, known[1]) for v in body.outputs]
        limit = node.attrs["maximum_iterations"]
        left = tuple([node.outputs.index(v) for v in results])
        condition_steps, body_steps = _needed(steps[0], [test]), _needed(steps[1], following)
        program = LoopProgram(
            node.name,
            tuple(self.buffers),
            tuple(self.given.values()),
            tuple(variables),
            tuple(outside[:count]),
            condition_steps,
            test,
            body_steps,
            tuple(following),
            None if limit < 0 else limit,
            left,
        )
        return program, list(self.given)

    def _new(self, value: Value, array: Any = None) -> int:
        shape = concrete(value.shape) if array is None else array.shape
        if shape is None or value.dtype.name in ("string", "variant", "resource") or 0 in shape:
            raise NotInRegion(f"{value.name} is of {value.dtype}, or of no elements, or of a shape that is not known")
        self.buffers.append(LoopBuffer(value.name, value.dtype, tuple(shape), array))
        return len(self.buffers) - 1

    def _outside(self, value: Value) -> int:
        """The buffer of a value that stands around the loop."""
        if value.node is not None and value.node.verb == "constant" and value.node.attrs["value"].size == 1:
            return self._constant(value)
        if value not in self.given:
            self.given[value] = self._new(value)
        return self.given[value]

    def _constant(self, value: Value) -> int:
        if value not in self._constants:
            assert value.node is not None
            self._constants[value] = self._new(value, value.node.attrs["value"])
        return self._constants[value]

    def _variable(self, index: int) -> int:
        """The buffer of a loop variable, whose shape must stay."""
        node = self.node
        values = [node.inputs[index], node.outputs[index], *(b.inputs[index] for b in node.bodies)]
        values.append(node.bodies[1].outputs[index])
        if len({v.shape for v in values}) > 1:
            raise NotInRegion(f"the shape of {values[0].name} changes, or is not known")
        return self._new(node.bodies[1].inputs[index])

    def _number(self, value: Value, known: Mapping[Value, int]) -> int:
        if value.node is not None and value.node.verb == "constant":
            return self._constant(value)
        return known[value]

    def _steps(self, level: PlanGraph, known: dict[Value, int]) -> list[LoopStep]:
        """The steps of a level, in an order in which each stands behind what it reads; ``known`` gets all that they make."""
        regions, reason = self.claim(level)
        members = {n for r in regions for n in r.source.values()}
        units = [_Unit(r.entering, region=r) for r in regions]
        for node in level.nodes:
            if node.verb != "constant" and node not in members:
                form = form_of(node.opdef)
                other = node.verb != "alias" and node.verb != "loop" and not (form is not None and form.reshapes)
                if other or node.guard is not None:
                    raise NotInRegion(f"{node.origin} ({node.op}) in it is in no region: {reason(node)}")
                units.append(_Unit(node.inputs[:1] if node.verb != "loop" else node.inputs, node=node))
        steps: list[LoopStep] = []
        while units:
            ready = [u for u in units if all(self._is_there(v, known) for v in u.reads)]
            assert ready, "regions of one level wait for each other"
            for unit in ready:
                self._emit(unit, known, steps)
            units = [u for u in units if u not in ready]
        return steps

    def _is_there(self, value: Value, known: Mapping[Value, int]) -> bool:
        return value in known or value.node is not None and value.node.verb == "constant"

    def _emit(self, unit: _Unit, known: dict[Value, int], steps: list[LoopStep]) -> None:
        if unit.region is not None:
            region = unit.region
            assert region.program is not None
            if region.streams:
                raise NotInRegion("random numbers are drawn in it")
            made = [self._new(v) for v in region.leaving]
            reads = tuple([self._number(v, known) for v in region.entering])
            steps.append(LoopStep(region.program, reads, tuple(made)))
            known.update(zip(region.leaving, made, strict=True))
            return
        node = unit.node
        assert node is not None
        if node.verb == "loop":
            program, entering = lower_loop(node, self.claim, node.outputs)
            made = [self._new(v) for v in node.outputs]
            steps.append(LoopStep(program, tuple([self._number(v, known) for v in entering]), tuple(made)))
            known.update(zip(node.outputs, made, strict=True))
            return
        for value in node.outputs:  # the same elements under another name or shape
            known[value] = self._number(node.inputs[0], known)


@dataclass(frozen=True, eq=False, slots=True)
class _Unit:
    """A region, or a node that is none, and what it reads."""

    reads: Sequence[Value]
    region: Region | None = None
    node: PlanNode | None = None


def _needed(steps: Sequence[LoopStep], wanted: Iterable[int]) -> tuple[LoopStep, ...]:
    """The steps that anything needs."""
    live, kept = set(wanted), list[LoopStep]()
    for step in reversed(steps):
        if not live.isdisjoint(step.outputs):
            kept.append(step)
            live.update(step.inputs)
    return tuple(reversed(kept))
