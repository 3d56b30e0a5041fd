"""Rows of loops. One after another, where an iteration must see what the last one did or nothing in it waits; else several at once.

Loop variables are handed on one by one, so that an iteration begins while others wait; no more than ``parallel_iterations`` of them
run at once. Histories are lists, to which each iteration appends and from whose end the loop that reads them takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from graphdock.contracts import PlanNode, errors
from graphdock.contracts.bodies import carried, elements

from graphdock_dataflow.calls import Fire
from graphdock_dataflow.level import Row
from graphdock_dataflow.scheduler import Activation

if TYPE_CHECKING:
    from graphdock_dataflow.instance import Instance, Runnable

__all__ = ["loop"]


def loop(instance: Instance, level: Runnable, row: Row, number: int) -> Fire:
    """Runs the body while the condition holds."""
    assert row.node is not None
    made = _Loop(instance, row, row.node, number)
    kind = _Overlapping if made.overlaps else _InTurn

    def enter(values: list[Any]) -> bool:
        kind(made, values)
        return True

    return enter


class _Loop:
    """What all executions of one loop have in common.

    Attributes:
      count: of loop variables. ``limit``: of iterations; negative for none.
      variables, captures, lists: pairs of a slot of the body, and of the level around, that it is set from.
      tested, test_captures: slots of the condition for the loop variables; pairs for its captures.
      first_slots: of the loop variables, in the condition and in the body: inputs are the first of all slots, in order.
      makes: slots of the level around. ``nexts``, ``made``: what the body returns for the loop variables, and slots of the rest.
    """

    def __init__(self, instance: Instance, row: Row, node: PlanNode, number: int) -> None:
        self.cond, self.body = (instance.levels[b] for b in node.bodies)
        self.number = number
        self.makes = row.makes
        self.debug = instance.placed.debug
        self.count = count = carried(node.opdef, node.attrs)
        self.limit: int = node.attrs["maximum_iterations"]
        self.parallel: int = node.attrs["parallel_iterations"]
        self.overlaps = bool(self.body.table.arrivals)
        scans = len(list(elements(node)))
        test_reads, reads = row.reads[: len(self.cond.inputs)], row.reads[len(self.cond.inputs) :]
        self.first = [read for read in reads[:count] if read is not None]
        self.variables = self.body.inputs[:count]
        self.tested = self.cond.inputs[:count]
        self.lists = _pairs(self.body.inputs[count : count + scans], reads[count : count + scans])
        self.captures = _pairs(self.body.inputs[count + scans :], reads[count + scans :])
        self.test_captures = _pairs(self.cond.inputs[count:], test_reads[count:])
        self.test = self.cond.outputs[0]
        self.first_slots = slice(self.variables[0], self.variables[-1] + 1) if count else slice(0, 0)
        self.nexts = _picker(self.body.outputs[:count])
        self.made = self.body.outputs[count:]


def _picker(slots: tuple[int, ...]) -> Callable[[list[Any]], Sequence[Any]]:
    """Function of an activation's slots: what stands in some of them."""
    if len(slots) > 1:
        return itemgetter(*slots)
    return lambda values: [values[slot] for slot in slots]


def _pairs(slots: tuple[int, ...], reads: Sequence[int | None]) -> list[tuple[int, int]]:
    return [(slot, read) for slot, read in zip(slots, reads, strict=True) if read is not None]


class _Execution:
    """One execution of a loop: what its iterations begin with, and what they leave.

    Attributes:
      cond, body: slots of the condition and of the body with all that no iteration changes.
      lists: histories that are read, each its own copy, from whose end elements are taken.
      kept: histories that are made.
    """

    __slots__ = ("body", "cond", "iterations", "kept", "lists", "loop", "outer", "run")

    def __init__(self, loop: _Loop, values: list[Any]) -> None:
        outer: Activation = values[0]
        self.loop = loop
        self.outer = outer
        self.run = outer.run
        self.iterations = outer.iterations
        self.cond = loop.cond.values.copy()
        self.body = loop.body.values.copy()
        for slot, read in loop.test_captures:
            self.cond[slot] = values[read]
        for slot, read in loop.captures:
            self.body[slot] = values[read]
        self.lists: list[tuple[int, list[Any]]] = [(slot, list(values[read])) for slot, read in loop.lists]
        if loop.debug and len({len(history) for _, history in self.lists}) > 1:
            raise errors.InvalidArgumentError("a loop reads histories of different lengths")
        self.kept: list[list[Any]] = [[] for _ in loop.made]

    def leave(self, variables: Sequence[Any]) -> None:
        """The loop is done."""
        values, makes = self.outer.values, self.loop.makes
        for slot, value in zip(makes, [*variables, *self.kept], strict=True):
            values[slot] = value
        self.outer.resume(self.loop.number)


class _InTurn(_Execution):
    """An execution whose iterations run one after another."""

    __slots__ = ("number", "variables")

    def __init__(self, loop: _Loop, values: list[Any]) -> None:
        super().__init__(loop, values)
        self.number = 0
        self.variables: Sequence[Any] = [values[read] for read in loop.first]
        self._go_on()

    def _go_on(self) -> None:
        """Run iterations until one has to be an activation, or none is left."""
        loop, run, token = self.loop, self.run, self.run.token
        cond, body, lists, limit = loop.cond, loop.body, self.lists, loop.limit
        while True:
            values = self.cond.copy()
            values[loop.first_slots] = self.variables
            if not cond.plain:
                self._activate(cond, values, self._tested)
                return
            run.straight(cond, values)
            if not values[loop.test] or 0 <= limit <= self.number or (lists and not lists[0][1]):
                self.leave(self.variables)
                return
            values = self._begin()
            if not body.plain:
                self._activate(body, values, self._ended)
                return
            run.straight(body, values)
            self._end(values)
            if token.error is not None:
                raise token.error

    def _activate(self, level: Runnable, values: list[Any], ended: Callable[[Activation], None]) -> None:
        loop = self.loop
        Activation(self.run, level, values, (*self.iterations, self.number), ended, self.outer, loop.number)

    def _tested(self, activation: Activation) -> None:
        loop = self.loop
        go_on = activation.values[loop.test] and not 0 <= loop.limit <= self.number
        if not go_on or (self.lists and not self.lists[0][1]):
            self.leave(self.variables)
            return
        self._activate(loop.body, self._begin(), self._ended)

    def _begin(self) -> list[Any]:
        """Slots of the body for an iteration, which alone holds its loop variables from now on."""
        values = self.body.copy()
        values[self.loop.first_slots] = self.variables
        self.variables = ()
        for slot, history in self.lists:
            values[slot] = history.pop()
        return values

    def _ended(self, activation: Activation) -> None:
        self._end(activation.values)
        self._go_on()

    def _end(self, values: list[Any]) -> None:
        loop, run = self.loop, self.run
        self.variables = loop.nexts(values)
        if self.kept:
            for history, slot in zip(self.kept, loop.made, strict=True):
                history.append(values[slot])
        self.number += 1
        if run.waiting and not run.mailbox.empty():
            run.look()


class _Iteration:
    """What is there of one iteration: its loop variables by position, and its activations once they have begun."""

    __slots__ = ("body", "cond", "variables")

    def __init__(self) -> None:
        self.variables: dict[int, Any] = {}
        self.cond: Activation | None = None
        self.body: Activation | None = None


class _Overlapping(_Execution):
    """An execution of which several iterations run at once.

    Attributes:
      ahead: the iterations that have begun and not ended, and the next one. ``ended``: how many have.
      parked: number of the iteration that waits for an earlier one to end. ``last``: of the one that does not run any more.
    """

    __slots__ = ("ahead", "ended", "last", "parked")

    def __init__(self, loop: _Loop, values: list[Any]) -> None:
        super().__init__(loop, values)
        self.ahead: dict[int, _Iteration] = {}
        self.ended = 0
        self.parked: int | None = None
        self.last: int | None = None
        first = self.ahead[0] = _Iteration()
        first.variables = {i: values[read] for i, read in enumerate(loop.first)}
        self._test(0)

    def _test(self, number: int) -> None:
        """Begin the condition of an iteration, with what is there of its loop variables."""
        loop, iteration = self.loop, self.ahead[number]
        values = self.cond.copy()
        iteration.cond = Activation(
            self.run, loop.cond, values, (*self.iterations, number), self._tested, self.outer, loop.number
        )
        for position in iteration.variables:
            self._arrive(iteration.cond, loop.tested, position, iteration.variables[position])

    def _arrive(self, activation: Activation, slots: tuple[int, ...], position: int, value: Any) -> None:
        activation.values[slots[position]] = value
        activation.let_go((), activation.level.table.arrivals[position])

    def _tested(self, activation: Activation) -> None:
        loop, number = self.loop, activation.iterations[-1]
        self.ahead[number].cond = None
        go_on = activation.values[loop.test] and not 0 <= loop.limit <= number
        if not go_on or self.lists and number == len(self.lists[0][1]):
            self.last = number
            self._maybe_leave()
        elif number - self.ended < loop.parallel:
            self._begin(number)
        else:
            self.parked = number

    def _begin(self, number: int) -> None:
        """Begin the body of an iteration, and the condition of the next."""
        loop, iteration = self.loop, self.ahead[number]
        values = self.body.copy()
        for slot, history in self.lists:
            values[slot], history[-1 - number] = history[-1 - number], None
        for history in self.kept:
            history.append(None)
        self.ahead[number + 1] = _Iteration()
        iteration.body = Activation(
            self.run, loop.body, values, (*self.iterations, number), self._body_ended, self.outer, loop.number, self
        )
        variables, iteration.variables = iteration.variables, {}
        for position, value in variables.items():
            self._arrive(iteration.body, loop.variables, position, value)
        self._test(number + 1)

    def give(self, activation: Activation, position: int, value: Any) -> None:
        """A loop variable of the iteration after that of ``activation`` is there."""
        loop, iteration = self.loop, self.ahead.get(activation.iterations[-1] + 1)
        if iteration is None:  # it has ended without it
            return
        if iteration.body is None:
            iteration.variables[position] = value
        else:
            self._arrive(iteration.body, loop.variables, position, value)
        if iteration.cond is not None:
            self._arrive(iteration.cond, loop.tested, position, value)

    def _body_ended(self, activation: Activation) -> None:
        loop, number, values = self.loop, activation.iterations[-1], activation.values
        for history, slot in zip(self.kept, loop.made, strict=True):
            history[number] = values[slot]
        del self.ahead[number]
        while self.ended not in self.ahead:
            self.ended += 1
        if self.parked is not None and self.parked - self.ended < loop.parallel:
            parked, self.parked = self.parked, None
            self._begin(parked)
        run = self.run
        if run.waiting and not run.mailbox.empty():
            run.look()
        self._maybe_leave()

    def _maybe_leave(self) -> None:
        last = self.last
        if last is not None and self.ended == last:
            variables = self.ahead.pop(last).variables
            self.leave([variables[i] for i in range(self.loop.count)])
