"""Loops as programs: a loop whose condition and body are regions that a compiler takes is one node."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphdock.contracts import (
    LoopBuffer,
    LoopCopy,
    LoopProgram,
    LoopRows,
    LoopStep,
    PlanGraph,
    PlanNode,
    Region,
    Value,
)
from graphdock.contracts.bodies import carried, elements, given, scanned
from graphdock.dtypes import DType
from graphdock.shape import Dims, concrete

from graphdock_fusion.regions.copies import copies_of
from graphdock_fusion.regions.forms import form_of
from graphdock_fusion.regions.held import Held, held_by, held_within, joined_of, rows_of
from graphdock_fusion.regions.typed import NotInRegion, no_buffer

__all__ = ["lower_loop"]

#: Regions of a body, and why a node of it that is in none is in none.
Claimed = tuple[Sequence[Region], Callable[[PlanNode], str]]


def lower_loop(
    node: PlanNode,
    claim: Callable[[PlanGraph], Claimed],
    results: Sequence[Value],
    variables: Mapping[Value, tuple[DType, Dims]],
    histories: bool,
    parts: bool,
) -> tuple[LoopProgram, list[Value]]:
    """The program of a loop, and the values that it is given, in order.

    Args:
      claim: what a compiler takes of a level, in regions.
      results: the outputs of the loop that anybody reads.
      variables: handle anywhere in the plan -> dtype and dims of its variable, of those that may be read.
      histories: whether it may read and make histories. ``parts``: whether steps may be copies.

    Raises:
      NotInRegion: it has parts that are none; the message says which and why.
    """
    return _Loop(node, claim, variables, parts).program(results, histories)


class _Loop:
    """One loop.

    Attributes:
      buffers: in order. ``given``: value from outside -> its buffer. ``made``: those of loops within.
      histories: whether it may have some. ``outermost``: whether it is within no other.
      joined: tensor that is kept, of unknown rows -> the history whose elements they are, and the shape of a row.
    """

    def __init__(
        self,
        node: PlanNode,
        claim: Callable[[PlanGraph], Claimed],
        variables: Mapping[Value, tuple[DType, Dims]],
        parts: bool,
    ) -> None:
        self.node, self.claim, self.variables, self.parts = node, claim, variables, parts
        self.histories = False
        self.buffers: list[LoopBuffer] = []
        self.given: dict[Value, int] = {}
        self.made: set[int] = set()
        self.joined: dict[Value, tuple[Value, tuple[int, ...]]] = {}
        self.outermost = True
        self._constants: dict[Value, int] = {}

    def program(self, results: Sequence[Value], histories: bool) -> tuple[LoopProgram, list[Value]]:
        node = self.node
        condition, body = node.bodies
        count = carried(node.opdef, node.attrs)
        self.histories = histories
        if not histories and (scanned(node.opdef, node.attrs) or len(node.outputs) != count):
            raise NotInRegion("it has histories")
        for value in node.inputs[:count]:
            if value.dtype.kind == "V":
                raise NotInRegion(f"{value.name}, a list or a history, is a loop variable")
        if node.guard is not None:
            raise NotInRegion("it is checked")
        for target in (*condition.targets, *body.targets):
            raise NotInRegion(f"{target.origin} ({target.op}) in it is run for more than its result")
        outside = self._given()
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
        following = [self._number(v, known[1]) for v in body.outputs[:count]]
        left = [node.outputs.index(v) for v in results]
        kept = [self._kept(body.outputs[n], known[1]) for n in left if n >= count]
        limit = node.attrs["maximum_iterations"]
        condition_steps, body_steps = _needed(steps[0], [test]), _needed(steps[1], [*following, *(n for n, _ in kept)])
        scans = dict.fromkeys([outside[node.inputs.index(v)] for v, _ in elements(node)])
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
            tuple([n for n in left if n < count]),
            tuple(scans),
            tuple(kept),
        )
        return program, list(self.given)

    def _given(self) -> list[int]:
        """The buffers of what the loop is given, those of the elements for histories."""
        node, count = self.node, carried(self.node.opdef, self.node.attrs)
        first = count + scanned(node.opdef, node.attrs)
        inner = node.bodies[1].inputs
        read = set(node.inputs[count:first])
        for value in node.inputs[first:]:
            if value in read:
                raise NotInRegion(f"{value.name}, a history, is read as a whole within it, too")
        return [
            self._history(value, inner[i]) if count <= i < first else self._outside(value)
            for i, value in enumerate(node.inputs)
        ]

    def _history(self, history: Value, element: Value) -> int:
        """The buffer of the elements of a history that the loop reads."""
        if history not in self.given:
            held = held_by(history, element, self.node.bodies[1])
            self.given[history] = self._holding(element, replace(held, depth=held.depth - 1))
        return self.given[history]

    def _holding(self, history: Value, held: Held) -> int:
        """A buffer of a history, or of its elements."""
        return self._buffer(LoopBuffer(history.name, held.dtype, held.shape, depth=held.depth))

    def _kept(self, value: Value, known: dict[Value, int]) -> tuple[int, tuple[int | None, ...]]:
        """The buffer of what an iteration keeps, and the shape that it has there."""
        if value in self.joined:
            return self._end_to_end(value, known)
        number = self._number(value, known)
        if self.buffers[number].depth:
            if number not in self.made:
                raise NotInRegion(f"it keeps {value.name}, a history that no loop within it makes")
            return number, self.buffers[number].shape
        if value.dtype.kind == "V" and not (value.node is not None and value.node.verb == "none"):
            raise NotInRegion(f"it keeps {value.name}, which is a history")
        shape = concrete(value.shape)
        assert shape is not None
        return number, (0,) if value.dtype.kind == "V" else tuple(shape)

    def _end_to_end(self, value: Value, known: dict[Value, int]) -> tuple[int, tuple[int | None, ...]]:
        """The buffer of a history of which an iteration keeps all elements, end to end as one tensor."""
        history, rows = self.joined[value]
        number = known[history]
        buffer = self.buffers[number]
        if buffer.depth != 1 or number not in self.made or buffer.dtype is not value.dtype:
            raise NotInRegion(f"{value.name}, which it keeps, is made of {history.name}, which no loop within it makes")
        if math.prod(buffer.shape) % math.prod(rows) or not self.outermost:
            raise NotInRegion(f"it keeps {value.name}, of a number of rows that is not known")
        return number, (None, *rows)

    def _new(self, value: Value, array: Any = None) -> int:
        shape = concrete(value.shape) if array is None else array.shape
        if shape is None or value.dtype.name in ("string", "variant", "resource") or 0 in shape:
            raise NotInRegion(f"{value.name} {no_buffer(value.dtype, shape)}")
        return self._buffer(LoopBuffer(value.name, value.dtype, tuple(shape), array))

    def _nothing(self, value: Value) -> int:
        """A buffer without elements, for a history that counts iterations."""
        return self._buffer(LoopBuffer(value.name, value.dtype, (0,)))

    def _buffer(self, buffer: LoopBuffer) -> int:
        self.buffers.append(buffer)
        return len(self.buffers) - 1

    def _outside(self, value: Value) -> int:
        """The buffer of a value that stands around the loop."""
        if value.node is not None and value.node.verb == "constant" and value.node.attrs["value"].size == 1:
            return self._constant(value)
        if value not in self.given:
            known = self.variables.get(value)
            if value.dtype.kind == "V":
                self.given[value] = self._holding(value, held_within(value, self.node))
            elif known is None:
                self.given[value] = self._new(value)
            else:
                dtype, dims = known
                self.given[value] = self._new(Value(value.name, dtype, dims))
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

    def _number(self, value: Value, known: dict[Value, int]) -> int:
        node = value.node
        if node is not None and node.verb == "constant":
            return self._constant(value)
        if node is not None and node.verb == "none" and value not in known:
            known[value] = self._nothing(value)
        return known[value]

    def _steps(self, level: PlanGraph, known: dict[Value, int]) -> list[LoopStep]:
        """The steps of a level, in an order in which each stands behind what it reads; ``known`` gets all that they make."""
        regions, reason = self.claim(level)
        joining = self._joining(level)
        members = {node for r in regions for inner, node in r.source.items() if inner not in r.parts}
        units = [_Unit(r.entering, region=r) for r in regions]
        for node in level.nodes:
            if node.verb not in ("constant", "none") and node not in members and node not in joining:
                form = form_of(node.opdef)
                same = node.verb in ("alias", "read") or form is not None and form.reshapes
                if not same and self.parts and (copies := copies_of(node)):
                    units.append(_Unit([source for source, _, _ in copies], node=node, copies=copies))
                    continue
                if self.histories and not same and (rows := rows_of(node)):
                    units.append(_Unit(node.inputs[:1], node=node, rows=rows))
                    continue
                other = not same and node.verb != "loop"
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

    def _joining(self, level: PlanGraph) -> set[PlanNode]:
        """The nodes that only make tensors of histories that are kept, rows end to end."""
        found: set[PlanNode] = set()
        if not self.histories or level is not self.node.bodies[1]:
            return found
        for value in level.outputs[carried(self.node.opdef, self.node.attrs) :]:
            joined = joined_of(value)
            if joined is not None:
                self.joined[value] = joined[:2]
                found.update(joined[2])
        made = {v for n in found for v in n.outputs}
        for node in level.nodes:
            if node not in found and not made.isdisjoint(node.inputs):
                raise NotInRegion(
                    f"{node.origin} ({node.op}) in it reads a tensor of a number of rows that is not known"
                )
        return found

    def _is_there(self, value: Value, known: Mapping[Value, int]) -> bool:
        return value in known or value.node is not None and value.node.verb in ("constant", "none")

    def _emit(self, unit: _Unit, known: dict[Value, int], steps: list[LoopStep]) -> None:
        if unit.region is not None:
            region = unit.region
            assert region.program is not None
            if region.streams:
                raise NotInRegion("random numbers are drawn in it")
            left = [self._new(v) for v in region.leaving]
            reads = tuple([self._number(v, known) for v in region.entering])
            steps.append(LoopStep(region.program, reads, tuple(left)))
            known.update(zip(region.leaving, left, strict=True))
            return
        node = unit.node
        assert node is not None
        if unit.copies:
            made = {v: self._new(v) for v in node.outputs}
            for source, target, copy in unit.copies:
                steps.append(LoopStep(copy, (self._number(source, known),), (made[target],)))
            known.update(made)
            return
        if unit.rows is not None:
            known[node.outputs[0]] = self._rows(node, unit.rows, known, steps)
            return
        if node.verb == "loop":
            self._within(node, known, steps)
            return
        for value in node.outputs:  # the same elements under another name or shape; of a handle the variable's
            known[value] = self._number(node.inputs[0], known)

    def _rows(self, node: PlanNode, rows: LoopRows, known: dict[Value, int], steps: list[LoopStep]) -> int:
        """The rows of a tensor as a history, or a history as the rows of a tensor."""
        (out,), source = node.outputs, self._number(node.inputs[0], known)
        if out.dtype.kind == "V":
            tensor = node.inputs[0]
            made = self._holding(out, Held(tensor.dtype, tuple([d or 0 for d in tensor.shape or ()][1:]), 1))
        else:
            made = self._new(out)
            self._fits(node, self.buffers[source], Held(out.dtype, self.buffers[made].shape[1:], 1))
        steps.append(LoopStep(rows, (source,), (made,)))
        return made

    def _within(self, node: PlanNode, known: dict[Value, int], steps: list[LoopStep]) -> None:
        """A loop within the loop."""
        count = carried(node.opdef, node.attrs)
        try:
            inner = _Loop(node, self.claim, self.variables, self.parts)
            inner.outermost = False
            program, entering = inner.program(node.outputs, self.histories)
        except NotInRegion as refused:
            raise NotInRegion(f"{node.origin} within it: {refused}") from refused
        for value, number in zip(entering, program.given, strict=True):
            if value.dtype.kind == "V":
                element = program.buffers[number]
                depth = element.depth + (number in program.scans)
                self._fits(node, self.buffers[self._number(value, known)], Held(element.dtype, element.shape, depth))
        left = [self._new(v) for v in node.outputs[:count]]
        for value, (number, shape) in zip(node.outputs[count:], program.kept, strict=True):
            kept = program.buffers[number]
            left.append(self._holding(value, Held(kept.dtype, tuple([d or 0 for d in shape]), kept.depth + 1)))
        self.made.update(left)
        steps.append(LoopStep(program, tuple([self._number(v, known) for v in entering]), tuple(left)))
        known.update(zip(node.outputs, left, strict=True))

    def _fits(self, node: PlanNode, given: LoopBuffer, read: Held) -> None:
        """Raise NotInRegion unless a history is what its reader takes it for; one may read it to count alone."""
        counts = read.dtype.kind == "V" and read.depth == 1
        if (given.dtype, given.shape, given.depth) != (read.dtype, read.shape, read.depth) and not (
            counts and given.depth
        ):
            raise NotInRegion(f"{node.origin} in it reads {given.name}, a history, as one of others")


@dataclass(frozen=True, eq=False, slots=True)
class _Unit:
    """A region, or a node that is none, and what it reads; of one that cuts or joins the copies, of one that has rows those."""

    reads: Sequence[Value]
    region: Region | None = None
    node: PlanNode | None = None
    rows: LoopRows | None = None
    copies: Sequence[tuple[Value, Value, LoopCopy]] = ()


def _needed(steps: Sequence[LoopStep], wanted: Iterable[int]) -> tuple[LoopStep, ...]:
    """The steps that anything needs."""
    live, kept = set(wanted), list[LoopStep]()
    for step in reversed(steps):
        if not live.isdisjoint(step.outputs):
            kept.append(step)
            live.update(step.inputs)
    return tuple(reversed(kept))
