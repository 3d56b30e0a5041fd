"""Instance: what one context keeps of a program, so that a step finds its rows, kernels and constants ready."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from graphdock.contracts import HOST_MEMORY, SCALAR, PlanGraph, PlanNode, QueuedDevice, StepContext, Value
from graphdock.contracts.step import in_callers_context

from graphdock_dataflow.calls import Fire
from graphdock_dataflow.level import Level, Row
from graphdock_dataflow.pieces import StepInPieces
from graphdock_dataflow.printed import Piece
from graphdock_dataflow.scheduler import Activation, Run
from graphdock_dataflow.tagged import Tagged, unless_dead
from graphdock_dataflow.transfers import from_host

if TYPE_CHECKING:
    from graphdock_dataflow.program import DataflowProgram

__all__ = ["Instance", "Made", "Runnable"]

#: A row that runs: what it does, and its ``drops``, ``solo`` and ``joint``.
Made = tuple[Fire, tuple[int, ...], tuple[int, ...], tuple[int, ...]]


class Runnable:
    """A level in one context.

    Attributes:
      rows: of the table, with functions. ``values``: slots as an activation begins with them.
      pending, roots: of the table.
      plain: number of rows that may run one after another, as they stand, without an activation; 0 where one may wait, has bodies,
        or asks in which iteration it stands.
      calls: of a row that calls a function and no more: what it does, the function, and the slots of arguments and results.
      pieces: the text of a plain level; None until it has run some times (``runs``).
    """

    __slots__ = ("calls", "inputs", "outputs", "pending", "pieces", "plain", "roots", "rows", "runs", "table", "values")

    def __init__(self, table: Level) -> None:
        self.table = table
        self.rows: list[Made] = []
        self.values: list[Any] = [None] * table.size
        self.pending = table.pending
        self.roots = list(table.roots)
        self.inputs = table.inputs
        self.outputs = table.outputs
        self.plain = 0
        self.calls: dict[int, tuple[Fire, Callable[..., Any], Sequence[int], Sequence[int]]] = {}
        self.pieces: list[Piece] | None = None
        self.runs = 0

    def begin(self, run: Run, values: list[Any], ended: Callable[[Activation], Any]) -> Activation:
        """An activation of the plan's graph."""
        return Activation(run, self, values, (), ended)

    def around(self, number: int, fire: Fire) -> Fire:
        """Action of a row, given that of its node."""
        return fire

    def keep(self, item: Any) -> int:
        """A slot in which something stands at every begin."""
        self.values.append(item)
        return len(self.values) - 1

    def replace(self, number: int, fire: Fire) -> None:
        """Have a row do something else from now on."""
        self.rows[number] = (self.around(number, fire), *self.rows[number][1:])
        self.pieces, self.runs = None, 0


class Framed(Runnable):
    """A level of a graph with dataflow's primitives: each row hands on itself what it did."""

    __slots__ = ()

    def begin(self, run: Run, values: list[Any], ended: Callable[[Activation], Any]) -> Activation:
        return Tagged(run, self, values, (), ended)

    def around(self, number: int, fire: Fire) -> Fire:
        row = self.table.rows[number]
        if row.node is not None and row.node.opdef.verb.primitive:
            return fire
        return unless_dead(number, row.makes, fire)


class Instance:
    """One runnable copy of a program. One step at a time, on any thread; it survives the error of a step.

    Args:
      step: the context. ``make``: makes the function of a row.
      constants: what all instances share: of each constant, the buffer in a device's memory.
      traced: it reports what it does.

    Attributes:
      dear: nodes that may be handed to ``workers``; None where there are none.
      written: handles of resources that a node of the plan may write.
      streams: name of a random op -> the streams of its nodes. ``within``: contexts that every step runs in.
      returned: values that the caller gets. ``blocks``: memory of large results that is used again.
    """

    def __init__(
        self,
        program: DataflowProgram,
        step: StepContext,
        make: Callable[[Instance, Runnable, Row, int], Fire],
        constants: dict[tuple[PlanNode, str], Any],
        traced: bool,
    ) -> None:
        placed = self.placed = program.placed
        self.step = step
        self.token = step.token
        self.dear = program.dear
        self.written = program.written
        self.returned = frozenset(placed.graph.outputs)
        self.blocks = program.blocks
        self.order = program.order
        self.traced = traced
        self.workers: Any = None
        self.streams: dict[str, list[Any]] = {}
        self.within: dict[contextlib.AbstractContextManager[Any], None] = {}
        self._constants = constants
        self._fresh = _fresh_outputs(placed.graph)
        tables = program.tables
        with contextlib.ExitStack() as stack:
            for space in sorted(placed.spaces):
                device = placed.spaces[space]
                if isinstance(device, QueuedDevice):  # what is made here is made on it
                    stack.enter_context(device.at_once())
            self._make(make, tables)
        self._root = self.levels[placed.graph]
        self._context: contextvars.Context | None = None
        if placed.holds:
            # a prepared context costs 12 ns where np.errstate costs 1 us
            self._context = contextvars.copy_context()
            self._context.run(np.seterr, all="ignore")

    def _make(self, make: Callable[[Instance, Runnable, Row, int], Fire], tables: Mapping[PlanGraph, Level]) -> None:
        """The rows of all levels."""
        self.levels = {g: Runnable(table) if table.frame is None else Framed(table) for g, table in tables.items()}
        for level in self.levels.values():
            for slot, (node, space) in level.table.constants.items():
                level.values[slot] = self._constant(node, space)
            for number, row in enumerate(level.table.rows):
                fire = _row_without_node(level, row) if row.node is None else make(self, level, row, number)
                level.rows.append((level.around(number, fire), row.drops, row.solo, row.joint))
            if (
                self.order is None
                and level.table.frame is None
                and all(_is_plain(row.node, self.dear) for row in level.table.rows)
            ):
                level.plain = len(level.rows) - 1

    def resource(self, handle: Value) -> Any:
        """The resource behind a handle, made if this is its first use."""
        resource = self.placed.resource(self.placed.handles[handle])
        resource.open()
        return resource

    def _constant(self, node: PlanNode, space: str) -> Any:
        """The array of a constant where its readers are; all instances share it."""
        array = node.attrs["value"]
        if space == SCALAR:
            return array.item()
        if space == HOST_MEMORY:
            return array
        made = self._constants.get((node, space))
        if made is None:
            made = from_host(self.placed.spaces[space], array, node.outputs[0].dtype)
            self._constants[node, space] = made
        return made

    def __call__(self, step: StepContext, feeds: Sequence[Any]) -> list[Any]:
        """Run a step. Returns arrays of the caller's own, NumPy scalars at rank 0."""
        results = self.within_context(self._begun(step), self._root, feeds)
        return [
            result if not isinstance(result, np.ndarray) else result[()] if fresh else np.array(result)[()]
            for result, fresh in zip(results, self._fresh, strict=True)
        ]

    def begin(self, step: StepContext) -> StepInPieces:
        """Begin a step that is run piece by piece."""
        return StepInPieces(self, self._begun(step), self._root)

    def _begun(self, step: StepContext) -> Run:
        if self.dear:
            self.workers = step.services.workers()  # at each step: a forked child has others
        for name, streams in self.streams.items():
            ordinal = step.services.ordinal(name)
            for stream in streams:
                stream.begin(ordinal)
        return Run(step, self.order)

    def within_context(self, function: Callable[..., Any], *args: Any) -> Any:
        """``function(*args)`` in all contexts that a step runs in."""
        if not self.within:
            return self._in_context(function, *args)
        with contextlib.ExitStack() as stack:
            for wanted in reversed(self.within):
                stack.enter_context(wanted)
            return self._in_context(function, *args)

    def _in_context(self, function: Callable[..., Any], *args: Any) -> Any:
        if self._context is not None:
            return self._context.run(function, *args)
        return in_callers_context(function, *args)


def _fresh_outputs(graph: PlanGraph) -> list[bool]:
    """Of each output, whether a kernel made it for the step, and nobody else holds it: the caller may have it as it is."""
    seen: dict[Value, int] = {}
    for value in graph.outputs:
        seen[value] = seen.get(value, 0) + 1
    return [v.node is not None and v.node.verb == "kernel" and seen[v] == 1 for v in graph.outputs]


def _is_plain(node: PlanNode | None, dear: frozenset[PlanNode]) -> bool:
    return node is None or not (
        node.bodies or node in dear or "waits" in node.opdef.effects or "random" in node.opdef.effects
    )


def _nothing(values: list[Any]) -> None:
    """A row that only waits, or only drops."""


def _ended(values: list[Any]) -> bool:
    activation: Activation = values[0]
    values[0] = None  # it holds them
    activation.ended(activation)
    return True


def _row_without_node(level: Runnable, row: Row) -> Fire:
    if row.gives is not None:
        position, slot = row.gives, level.outputs[row.gives]

        def give(values: list[Any]) -> None:
            activation: Activation = values[0]
            activation.loop.give(activation, position, values[slot])

        return give
    return _nothing if row.drops or level.table.frame is not None else _ended
