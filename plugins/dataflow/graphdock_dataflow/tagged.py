"""Activations of a graph with dataflow's primitives: one for the graph, and for each iteration of a frame one.

The rules are TensorFlow's. What takes a dead tensor, or follows what did not run, does not run and is dead; a Merge is only where
all that can come to it is dead. In a frame's first iteration a Merge takes what Enters give, in each other one what NextIterations
of the last one did. A dead NextIteration begins nothing. An iteration is done when the last one is and nothing of it runs; a frame
is when all its iterations are and all its Enters have come. An Exit is dead when its frame is done and it never left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from graphdock.contracts import errors

from graphdock_dataflow.calls import Fire
from graphdock_dataflow.scheduler import Activation

if TYPE_CHECKING:
    from graphdock_dataflow.frames import Entry
    from graphdock_dataflow.instance import Runnable
    from graphdock_dataflow.scheduler import Run

__all__ = ["DEAD", "Execution", "Tagged", "unless_dead"]


class _Dead:
    def __repr__(self) -> str:
        return "DEAD"


#: In the slot of a tensor that is dead.
DEAD = _Dead()


class Tagged(Activation):
    """One iteration of a frame, or the graph itself.

    Attributes:
      facts: of its level. ``execution``: of the frame; None for the graph. ``number``: of the iteration.
      count: of rows that are ready, run or wait, and of frames in it that are not done.
      dead: rows that have got something dead. ``came``: Merge -> the number of the input that came first.
      gone: Merge -> how many of its inputs are dead. ``begun``: Merges that have.
      frames: executions of the frames in it, by their graphs.
    """

    __slots__ = ("begun", "came", "count", "dead", "execution", "facts", "frames", "gone", "number")

    def __init__(
        self,
        run: Run,
        level: Runnable,
        values: list[Any],
        iterations: tuple[int, ...],
        ended: Callable[[Activation], Any],
        execution: Execution | None = None,
        number: int = 0,
    ) -> None:
        super().__init__(run, level, values, iterations, ended)
        assert level.table.frame is not None
        self.facts = level.table.frame
        self.execution = execution
        self.number = number
        self.count = len(self.ready)
        self.dead: set[int] = set()
        self.came: dict[int, int] = {}
        self.gone: dict[int, int] = {}
        self.begun: set[int] = set()
        self.frames: dict[Any, Execution] = {}

    def resume(self, row: int) -> None:
        self.finish(row, dead=False)

    def finish(self, row: int, dead: bool) -> None:
        """A row has run, or is dead: so hear those that wait for it."""
        values = self.values
        for other, slot, which in self.facts.edges[row]:
            self.arrive(other, (values[slot] is DEAD) if slot > 0 else (dead and not slot), which)
        self.lessen()

    def arrive(self, row: int, dead: bool, which: int = -1) -> None:
        """Something that a row waits for is there, or is dead; of a Merge that ``which`` of its inputs."""
        join = self.facts.joins.get(row)
        if which < 0:
            self.pending[row] -= 1
            if dead and join is None:
                self.dead.add(row)
        elif dead:
            self.gone[row] = self.gone.get(row, 0) + 1
        else:
            self.came.setdefault(row, which)
        if self.pending[row]:
            return
        if join is not None:
            if row in self.begun:
                return
            if row not in self.came:
                if self.gone.get(row, 0) < join.earlier:
                    return
                self.dead.add(row)
            self.begun.add(row)
        self.count += 1
        if not self.ready:
            self.run.active.append(self)
        self.ready.append(row)

    def lessen(self) -> None:
        """One thing less runs in it."""
        self.count -= 1
        if not self.count and self.execution is not None:
            self.execution.settle()

    def enter(self, entry: Entry, level: Runnable, value: Any) -> None:
        """A value, or one that is dead, enters a frame, which begins with the first."""
        execution = self.frames.get(entry.graph)
        if execution is None:
            execution = self.frames[entry.graph] = Execution(self, level, entry)
        execution.enter(entry, value)

    def settle(self) -> None:
        """Nothing runs any more: what was fetched is there, or never will be."""
        if self.count:
            super().settle()
        values, table = self.values, self.level.table
        for value, slot in zip(table.graph.outputs, self.level.outputs, strict=True):
            if values[slot] is DEAD or (values[slot] is None and value.node is not None):
                node = value.node
                raise errors.InvalidArgumentError(
                    f"{value.name} was fetched and has no value: it is dead, for it stands in a branch that was not taken",
                    op=None if node is None else node.origin,
                    site=None if node is None else node.site,
                    hint="fetch what a Merge gives",
                )
        self.ended(self)


class Execution:
    """One execution of a frame.

    Attributes:
      ahead: iterations that have begun and are not done, by number. ``oldest``: the number of the first.
      constants: what each iteration gets, and where. ``entered``: how many Enters have come.
      left: rows of Exits that have left. ``parked``: what is for an iteration that waits until another one is done.
    """

    __slots__ = ("ahead", "constants", "entered", "graph", "left", "level", "oldest", "parent", "parked")

    def __init__(self, parent: Tagged, level: Runnable, entry: Entry) -> None:
        self.parent = parent
        self.level = level
        self.graph = entry.graph
        self.ahead: dict[int, Tagged] = {}
        self.oldest = 0
        self.constants: list[tuple[Entry, Any]] = []
        self.entered = 0
        self.left: set[int] = set()
        self.parked: list[tuple[list[tuple[int, int, int]], Any]] = []
        parent.count += 1
        self._begin(0)

    @property
    def _facts(self) -> Any:
        return self.level.table.frame

    def _begin(self, number: int) -> Tagged:
        parent = self.parent
        iterations = (*parent.iterations, number)
        made = Tagged(parent.run, self.level, self.level.values.copy(), iterations, parent.ended, self, number)
        self.ahead[number] = made
        for entry, value in self.constants:
            self._give(made, entry, value)
        return made

    def _give(self, iteration: Tagged, entry: Entry, value: Any) -> None:
        iteration.values[entry.slot] = value
        iteration.arrive(entry.row, value is DEAD)

    def enter(self, entry: Entry, value: Any) -> None:
        """A value is there for the first iteration, or for all."""
        self.entered += 1
        if entry.constant:
            self.constants.append((entry, value))
            for iteration in self.ahead.values():
                self._give(iteration, entry, value)
        else:
            self._give(self.ahead[0], entry, value)
        self.settle()

    def hand_on(self, iteration: Tagged, takers: list[tuple[int, int, int]], value: Any) -> None:
        """A value is there for Merges of the next iteration, which begins with the first."""
        number = iteration.number + 1
        if number not in self.ahead and len(self.ahead) >= self._facts.limit:
            self.parked.append((takers, value))
            return
        self._take(self.ahead.get(number) or self._begin(number), takers, value)

    def _take(self, iteration: Tagged, takers: list[tuple[int, int, int]], value: Any) -> None:
        for row, slot, which in takers:
            iteration.values[slot] = value
            iteration.arrive(row, dead=False, which=which)

    def leave(self, row: int, slot: int, value: Any) -> None:
        """A value leaves by an Exit."""
        if row in self.left:
            raise errors.InvalidArgumentError("leaves its frame in a second iteration")
        self.left.add(row)
        self.parent.values[slot] = value
        self.parent.arrive(row, dead=False)

    def settle(self) -> None:
        """Let go of iterations that are done; of the frame, when all are."""
        while self.ahead:
            first = self.ahead[self.oldest]
            if first.count or (not self.oldest and self.entered < self._facts.entered):
                return
            del self.ahead[self.oldest]
            first.values[0] = None  # it holds them
            self.oldest += 1
            if self.parked:
                iteration = self._begin(self.oldest + len(self.ahead))
                parked, self.parked = self.parked, []
                for takers, value in parked:
                    self._take(iteration, takers, value)
        parent = self.parent
        for row, slot in self._facts.exits.values():
            if row not in self.left:
                parent.values[slot] = DEAD
                parent.arrive(row, dead=True)
        del parent.frames[self.graph]
        parent.lessen()


def unless_dead(number: int, makes: tuple[int, ...], fire: Fire) -> Fire:
    """``fire`` of a node that is no primitive, which does not run where its row is dead; then those that wait are told."""

    def run(values: list[Any]) -> bool:
        activation: Tagged = values[0]
        dead = number in activation.dead
        if dead:
            for slot in makes:
                values[slot] = DEAD
        elif fire(values):
            return True
        activation.finish(number, dead)
        return True

    return run
