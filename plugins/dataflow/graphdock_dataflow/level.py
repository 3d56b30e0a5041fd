"""Tables of a plan, one per level: what each node waits for, whom it lets go on, where its values stand.

They are made once per plan and never changed. A level is the plan's graph, or a body of one of its nodes. Each of its nodes that
does something is a *row*; so is the release of a value that several rows read, the handing on of a loop variable, and the end of
the level. Its values stand in a list of *slots*, of which number 0 is the activation's own and number 1 is always None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graphdock.contracts import HOST_MEMORY, SCALAR, PlacedGraph, PlanGraph, PlanNode, Value
from graphdock.contracts.bodies import carried, given

if TYPE_CHECKING:
    from graphdock_dataflow.frames import Frame

__all__ = ["EMPTY", "READS", "Level", "Pieces", "Row", "levels_of"]

#: Slot that always holds None.
EMPTY = 1
#: Reads of a node: each value, and the memory space that it is read in; None for a handle, which is no value.
Reads = Sequence["tuple[Value, str | None] | None"]


@dataclass(slots=True)
class Row:
    """One thing to do.

    Attributes:
      node: whose it is; None for a release, for what is handed on, and for the end.
      reads: slots that it reads: of a node's inputs (None for a handle); of one with bodies, of a predicate and then of what each
        of them is given. ``makes``: slot of each output.
      drops: slots that are empty once it has begun: it alone reads them, or nobody reads what it makes.
      solo: rows that wait for it alone. ``joint``: rows that wait for others too.
      gives: position of the loop variable that it hands on to the next iteration.
    """

    node: PlanNode | None = None
    reads: tuple[int | None, ...] = ()
    makes: tuple[int, ...] = ()
    drops: tuple[int, ...] = ()
    solo: tuple[int, ...] = ()
    joint: tuple[int, ...] = ()
    gives: int | None = None


@dataclass(slots=True)
class Pieces:
    """What the outermost level of a plan that is run piece by piece consists of.

    Attributes:
      needs: of each row the rows that it needs, by data or by control; an input ``i`` is ``~i``.
      order: of each row those that it comes after where both run in one piece.
      outputs: of each output the row, or the input, that makes it; None of a constant.
      origins: name of an operation -> the rows that it runs.
    """

    needs: list[set[int]] = field(default_factory=list)
    order: list[set[int]] = field(default_factory=list)
    outputs: tuple[int | None, ...] = ()
    origins: dict[str, set[int]] = field(default_factory=dict)


@dataclass(slots=True)
class Level:
    """Tables of one level.

    Attributes:
      size: number of slots. ``constants``: slot -> the node, and the space in which it is read.
      inputs, outputs: slots of what the graph takes and returns.
      pending: of each row the number of rows, and of inputs that come late, that it waits for. ``roots``: those that wait for none.
      arrivals: of each input that comes late, the rows that wait for it.
      inside: the loops around it, the innermost last.
      pieces: of a plan whose steps run piece by piece, what a piece has to know; None elsewhere.
      frame: of a graph with dataflow's primitives, and of each of its frames, what stands besides; None elsewhere.
    """

    graph: PlanGraph
    inside: tuple[PlanNode, ...] = ()
    size: int = 2
    rows: list[Row] = field(default_factory=list)
    constants: dict[int, tuple[PlanNode, str]] = field(default_factory=dict)
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    pending: list[int] = field(default_factory=list)
    roots: tuple[int, ...] = ()
    pieces: Pieces | None = None
    frame: Frame | None = None
    arrivals: tuple[tuple[int, ...], ...] = ()


def _operands(placed: PlacedGraph, node: PlanNode) -> Reads:
    needs = placed.needs(node)
    return [None if v.dtype.name == "resource" else (v, s) for v, s in zip(node.inputs, needs, strict=True)]


def _of_host(placed: PlacedGraph, node: PlanNode) -> Reads:
    return [None if v.dtype.name == "resource" else (v, HOST_MEMORY) for v in node.inputs]


def _moved(placed: PlacedGraph, node: PlanNode) -> Reads:
    return [(node.inputs[0], node.attrs["source"])]


def _assigned(placed: PlacedGraph, node: PlanNode) -> Reads:
    variable = placed.resource(placed.handles[node.inputs[0]])
    return [None, (node.inputs[1], variable.device.memory_space)]


def _of_bodies(placed: PlacedGraph, node: PlanNode) -> Reads:
    reads: list[tuple[Value, str | None] | None] = []
    if node.verb == "branch":
        reads.append((node.inputs[0], SCALAR))
    for which, body in enumerate(node.bodies):
        for outer, inner in zip(given(node, which), body.inputs, strict=True):
            reads.append(None if outer.dtype.name == "resource" else (outer, placed.home.get(inner)))
    return reads


def _nothing(placed: PlacedGraph, node: PlanNode) -> Reads:
    return ()


#: Verb -> what a node of it reads.
READS: Mapping[str, Callable[[PlacedGraph, PlanNode], Reads]] = {
    "kernel": _operands,
    "host": _of_host,
    "move": _moved,
    "read": _nothing,
    "assign": _assigned,
    "branch": _of_bodies,
    "loop": _of_bodies,
    "call": _of_bodies,
    "alias": _nothing,
    "none": _nothing,
    "constant": _nothing,
    "feed": _nothing,
    "handle": _nothing,
}


class _LevelMaker:
    """Makes the tables of one level.

    Attributes:
      before: of each row the rows that it waits for; an input ``i`` that comes late is ``~i``.
      after: value -> the row that makes it, or that names it anew once others are done.
      same: value -> the one that it is another name of.
    """

    def __init__(self, placed: PlacedGraph, level: Level, without: frozenset[tuple[str, str]], late: int) -> None:
        self.placed = placed
        self.level = level
        self.without = without
        self.late = late
        self.before: list[set[int]] = []
        self.after: dict[Value, int] = {}
        self.same: dict[Value, Value] = {}
        self._readers: dict[int, dict[int, None]] = {}
        self._slots: dict[Value, int] = {}
        self._constants: dict[tuple[PlanNode, str], int] = {}
        self._row_of: dict[PlanNode, int | None] = {}
        for i, value in enumerate(level.graph.inputs):
            self._slots[value] = self._new_slot()
            if i < late:
                self.after[value] = ~i
        level.inputs = tuple([self._slots[v] for v in level.graph.inputs])

    def _new_slot(self) -> int:
        self.level.size += 1
        return self.level.size - 1

    def _add(self, row: Row, before: Iterable[int]) -> int:
        number = len(self.level.rows)
        self.level.rows.append(row)
        self.before.append(set(before))
        for slot in row.reads:
            if slot is not None:
                self._readers.setdefault(slot, {})[number] = None
        return number

    def _slot(self, value: Value, space: str | None) -> int:
        """Slot in which a value is read; of a constant there is one per space."""
        while value in self.same:
            value = self.same[value]
        node = value.node
        if node is None or node.verb != "constant":
            return self._slots[value]
        key = node, space or HOST_MEMORY
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = self._new_slot()
            self.level.constants[found] = key
        return found

    def add(self, node: PlanNode) -> None:
        """A row for a node; none for one that does nothing but wait for what its inputs wait for."""
        before = {r for b in node.control if (r := self._row_of[b]) is not None}
        order: set[int] = set()
        for b in node.order:
            row = self._row_of[b]
            if row is not None and (b.name, node.name) not in self.without:
                order.add(row)
        pieces = self.level.pieces
        if pieces is None:
            before |= order
        silent = node.opdef.verb.silent
        if node.verb == "alias" and node.inputs[0].dtype.name != "resource":
            self.same[node.outputs[0]] = node.inputs[0]
        for value in node.outputs:
            if value not in self.same and node.verb != "constant":
                self._slots[value] = EMPTY if silent else self._new_slot()
        before.update([r for v in node.inputs if (r := self.after.get(v)) is not None])
        if silent and len(before) <= 1:
            for only in before:
                self.after.update(dict.fromkeys(node.outputs, only))
            self._row_of[node] = next(iter(before), None)
            if pieces is not None:
                self._note(node, before)
            return
        reads = [None if r is None else self._slot(*r) for r in READS[node.verb](self.placed, node)]
        makes = () if silent else tuple([self._slots[v] for v in node.outputs])
        number = self._row_of[node] = self._add(Row(node, tuple(reads), makes), before)
        self.after.update(dict.fromkeys(node.outputs, number))
        if pieces is not None:
            pieces.order += [set() for _ in range(number + 1 - len(pieces.order))]
            pieces.order[number] = order
            self._note(node, {number})

    def _note(self, node: PlanNode, rows: set[int]) -> None:
        """These rows are what a node's operations run."""
        assert self.level.pieces is not None
        for origin in node.origins:
            self.level.pieces.origins.setdefault(origin, set()).update(rows)

    def end(self, spaces: Sequence[str | None], gives: int) -> None:
        """What is handed on, the releases, the end, and the edges the other way round.

        Args:
          spaces: in which the outputs are read. ``gives``: so many of them are handed on one by one.
        """
        level, graph = self.level, self.level.graph
        level.outputs = tuple([self._slot(v, s) for v, s in zip(graph.outputs, spaces, strict=True)])
        pieces = level.pieces
        if pieces is not None:
            pieces.needs = [set(b) for b in self.before]
            pieces.order += [set() for _ in range(len(self.before) - len(pieces.order))]
            pieces.outputs = tuple([self.after.get(v) for v in graph.outputs])
        for position in range(gives):
            row = self.after.get(graph.outputs[position])
            self._add(Row(gives=position), () if row is None else (row,))
        kept = {EMPTY, *level.constants, *level.outputs}
        if graph is self.placed.graph:
            kept.update(level.inputs)  # they are the caller's
        releases = self._drop(kept)
        sinks = set(range(len(level.rows))).difference(*self.before)
        for slot, readers in releases:
            self._add(Row(drops=(slot,)), readers)
        self._add(Row(), sinks)
        self._turn_edges()

    def _drop(self, kept: set[int]) -> list[tuple[int, list[int]]]:
        """Say which row leaves which slots empty; the slots that several rows read, and these."""
        releases = []
        drops: dict[int, list[int]] = {}
        for number, row in enumerate(self.level.rows):
            for slot in row.makes:
                if slot not in kept and slot not in self._readers:
                    drops.setdefault(number, []).append(slot)
        for slot, readers in self._readers.items():
            if slot in kept:
                continue
            if len(readers) == 1:
                drops.setdefault(next(iter(readers)), []).append(slot)
            else:
                releases.append((slot, list(readers)))
        for number, slots in drops.items():
            self.level.rows[number].drops = tuple(slots)
        return releases

    def _turn_edges(self) -> None:
        level = self.level
        after: list[list[int]] = [[] for _ in level.rows]
        arrivals: list[list[int]] = [[] for _ in range(self.late)]
        for number in reversed(range(len(self.before))):  # what is taken last is what was made first
            for other in self.before[number]:
                (after[other] if other >= 0 else arrivals[~other]).append(number)
        level.pending = [len(b) for b in self.before]
        for number, order in () if level.pieces is None else enumerate(level.pieces.order):
            for other in order - self.before[number]:
                after[other].append(number)
        for row, followers in zip(level.rows, after, strict=True):
            if level.pieces is not None:  # who waits for whom is known in each piece
                row.joint = tuple(followers)
                continue
            row.solo = tuple([f for f in followers if level.pending[f] == 1])
            row.joint = tuple([f for f in followers if level.pending[f] > 1])
        level.roots = tuple([i for i in reversed(range(len(self.before))) if not level.pending[i]])
        level.arrivals = tuple([tuple(rows) for rows in arrivals])


def levels_of(
    placed: PlacedGraph, late: Mapping[PlanNode, bool], without: frozenset[tuple[str, str]] = frozenset()
) -> dict[PlanGraph, Level]:
    """The tables of a plan, without recursion.

    Args:
      late: loop -> whether its loop variables come one by one.
      without: order edges that are left out, by the nodes' names.
    """
    from graphdock_dataflow.frames import has_primitives, levels_of_frames

    made: dict[PlanGraph, Level] = {}
    root = placed.graph
    todo: list[tuple[PlanGraph, tuple[PlanNode, ...], Sequence[str | None], int, int]] = []
    if has_primitives(root):
        made.update(levels_of_frames(placed, without))
        for level in made.values():
            for row in level.rows:
                if row.node is not None:
                    todo += _bodies(placed, row.node, level.inside, late)
    else:
        taken = len(root.inputs) if placed.pieces else 0
        todo.append((root, (), [HOST_MEMORY] * len(root.outputs), taken, 0))
    while todo:
        graph, inside, spaces, takes, gives = todo.pop()
        level = made[graph] = Level(graph, inside)
        if graph is root and placed.pieces:
            level.pieces = Pieces()
        maker = _LevelMaker(placed, level, without, takes)
        for node in graph.nodes:
            maker.add(node)
        maker.end(spaces, gives)
        for node in graph.holders:
            todo += _bodies(placed, node, inside, late)
    return made


def _bodies(
    placed: PlacedGraph, node: PlanNode, inside: tuple[PlanNode, ...], late: Mapping[PlanNode, bool]
) -> list[tuple[PlanGraph, tuple[PlanNode, ...], Sequence[str | None], int, int]]:
    """The bodies of a node: each with the loops around it, the spaces of its outputs, and how many inputs and outputs are late."""
    home = placed.home
    if node.verb != "loop":
        return [(b, inside, [home.get(v) for v in node.outputs], 0, 0) for b in node.bodies]
    cond, body = node.bodies
    count = carried(node.opdef, node.attrs)
    homes = [home.get(v) for v in (*body.inputs[:count], *node.outputs[count:])]
    count = count if late[node] else 0
    return [(cond, (*inside, node), [SCALAR], count, 0), (body, (*inside, node), homes, count, count)]
