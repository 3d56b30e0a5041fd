"""Tables of a graph with dataflow's primitives: one level per frame, in which each iteration of a loop is an activation.

An Enter is two rows: one in the level around the frame, which hands its value on, and one in the frame, at which it arrives; an
Exit likewise. What a row gives may be *dead*: then what reads it or follows it does not run, and is dead too. So each edge says
where the deadness of what it carries stands, and a node that runs nothing has a row of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from graphdock.contracts import HOST_MEMORY, PlacedGraph, PlanGraph, PlanNode, Value, errors

from graphdock_dataflow.level import EMPTY, READS, Level, Row

__all__ = ["ORDER", "Edge", "Entry", "Frame", "Join", "has_primitives", "levels_of_frames"]

#: In place of a slot: an edge that orders, and carries nothing that could be dead.
ORDER = -1
#: A row that waits for another one; the slot whose content says whether what it gets is dead, 0 where the other row does; and of a
#: Merge the number of the input, else -1.
Edge = tuple[int, int, int]


@dataclass(slots=True)
class Join:
    """A Merge.

    Attributes:
      slots: of its inputs, in order. ``earlier``: how many come in the first iteration, or in each where there are no others.
    """

    slots: list[int]
    earlier: int


@dataclass(frozen=True, slots=True)
class Entry:
    """An Enter, as the level around the frame sees it: the frame's graph, and the row and the slot in it at which a value arrives.

    Attributes:
      constant: each iteration gets it; else the first alone does.
    """

    graph: PlanGraph
    row: int
    slot: int
    constant: bool


@dataclass(slots=True)
class Frame:
    """Facts of one level of a graph with primitives.

    Attributes:
      name: of the frame; empty for the graph itself. ``limit``: of iterations that run at once.
      around: its frames, from the outermost to its own.
      edges: of each row, to those that wait for it. ``arrivals``: rows at which something arrives from another level.
      joins: Merges by row. ``entries``: of the rows of Enters into other frames. ``entered``: how many Enters there are into it.
      exits: row of an Exit out of it -> the row and the slot in the level around it.
      nexts: row of a NextIteration -> of each Merge that takes what it gives, the row, the slot and the number of the input.
    """

    name: str = ""
    limit: int = 1
    around: tuple[PlanNode, ...] = ()
    edges: list[list[Edge]] = field(default_factory=list)
    arrivals: set[int] = field(default_factory=set)
    joins: dict[int, Join] = field(default_factory=dict)
    entries: dict[int, Entry] = field(default_factory=dict)
    entered: int = 0
    exits: dict[int, tuple[int, int]] = field(default_factory=dict)
    nexts: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)


def has_primitives(graph: PlanGraph) -> bool:
    """Return whether a level has any of dataflow's primitives."""
    return any(node.opdef.verb.primitive for node in graph.nodes)


class _LevelOfFrame:
    """Level of a frame in the making: where its values and constants stand."""

    def __init__(self, graph: PlanGraph, frame: Frame, outer: _LevelOfFrame | None) -> None:
        self.level = Level(graph, frame.around, frame=frame)
        self.frame = frame
        self.outer = outer
        self.inner: dict[str, _LevelOfFrame] = {}
        self.slots: dict[Value, int] = {}
        self._constants: dict[tuple[PlanNode, str], int] = {}

    def new_slot(self) -> int:
        self.level.size += 1
        return self.level.size - 1

    def add(self, row: Row) -> int:
        self.level.rows.append(row)
        self.level.pending.append(0)
        self.frame.edges.append([])
        return len(self.level.rows) - 1

    def edge(self, source: int, target: int, slot: int = 0, which: int = -1) -> None:
        """Let a row wait for another one. What a Merge waits for in order to begin is what it follows; its inputs count apart."""
        if which < 0:
            if (target, slot, which) in self.frame.edges[source]:
                return
            self.level.pending[target] += 1
        self.frame.edges[source].append((target, slot, which))

    def slot(self, value: Value, space: str | None) -> int:
        """Slot in which a value is read; of a constant there is one per space."""
        node = value.node
        if node is None or node.verb != "constant":
            return self.slots[value]
        key = node, space or HOST_MEMORY
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = self.new_slot()
            self.level.constants[found] = key
        return found

    def made(self, node: PlanNode) -> tuple[int, ...]:
        """New slots for what a node gives."""
        for value in node.outputs:
            self.slots[value] = self.new_slot()
        return tuple([self.slots[v] for v in node.outputs])


class _Frames:
    """Makes the tables of a graph.

    Attributes:
      where: node -> the level in which its outputs stand; None of what has none: a constant, or a handle, that follows nothing.
      rows: node -> its row there.
      same: what names such a constant anew -> the constant.
    """

    def __init__(self, placed: PlacedGraph, without: frozenset[tuple[str, str]]) -> None:
        self.placed = placed
        self.without = without
        self.root = _LevelOfFrame(placed.graph, Frame(), None)
        self.levels = [self.root]
        self.where: dict[PlanNode, _LevelOfFrame | None] = {}
        self.rows: dict[PlanNode, int] = {}
        self.same: dict[Value, Value] = {}
        self.merges: dict[str, tuple[_LevelOfFrame, int]] = {}
        for value in placed.graph.inputs:
            self.root.slots[value] = self.root.new_slot()
        self.root.level.inputs = tuple([self.root.slots[v] for v in placed.graph.inputs])

    def run(self) -> dict[PlanGraph, Level]:
        graph = self.placed.graph
        for node in graph.nodes:
            self._add(node)
        root = self.root
        for value in graph.outputs:
            if value.node is not None and self.where[value.node] not in (root, None):
                raise _refused(value.node, "stands in a frame, and can't be fetched", "fetch what an Exit gives")
        root.level.outputs = tuple([root.slot(self._named(v), HOST_MEMORY) for v in graph.outputs])
        for each in self.levels:
            rows = range(len(each.level.rows))
            free = [r for r in rows if not each.level.pending[r] and r not in each.frame.joins]
            each.level.roots = tuple([r for r in reversed(free) if r not in each.frame.arrivals])
            for row in each.frame.arrivals:
                each.level.pending[row] += 1
        return {each.level.graph: each.level for each in self.levels}

    def _named(self, value: Value) -> Value:
        return self.same.get(value, value)

    def _level_of(self, node: PlanNode) -> _LevelOfFrame | None:
        """The level in which a node reads; None of one that reads and follows nothing of any."""
        found: dict[_LevelOfFrame, PlanNode | None] = {}
        if any(b is not None and b.verb == "next" for b in (*node.control, *(v.node for v in node.inputs))):
            raise _refused(node, "takes or follows what a NextIteration gives", "only a Merge does, made before it")
        for value in node.inputs:
            level = self.root if value.node is None else self.where[value.node]
            if level is not None:
                found.setdefault(level, value.node)
        for before in node.control:
            level = self.where[before]
            if level is not None:
                found.setdefault(level, before)
        if len(found) > 1:
            names = [f"{b.origin if b else 'a feed'} of {level.frame.name or 'no frame'}" for level, b in found.items()]
            raise _refused(
                node, f"takes {' and '.join(names)}", "an Enter brings a tensor into a frame, an Exit out of it"
            )
        return next(iter(found), None)

    def _add(self, node: PlanNode) -> None:
        level = self._level_of(node)
        if level is None and node.opdef.verb.silent:
            self.where[node] = None
            if node.verb == "alias":
                self.same[node.outputs[0]] = self._named(node.inputs[0])
            for value in node.outputs if node.verb != "constant" else ():
                for each in self.levels:
                    each.slots[value] = EMPTY
            return
        level = self.root if level is None else level
        _ADDS.get(node.verb, _Frames._plain)(self, node, level)

    def _row(self, node: PlanNode, level: _LevelOfFrame, makes: tuple[int, ...], merge: bool = False) -> int:
        """A row that reads and follows what the node does."""
        placed = self.placed
        if node.verb in READS:
            wanted = READS[node.verb](placed, node)
        else:
            wanted = [None if v.dtype.name == "resource" else (v, HOST_MEMORY) for v in node.inputs]
        if node.verb == "alias" and node.inputs[0].dtype.name != "resource":
            wanted = [(node.inputs[0], placed.home.get(node.inputs[0]))]
        reads = tuple([None if r is None else level.slot(self._named(r[0]), r[1]) for r in wanted])
        number = level.add(Row(node, reads, makes))
        for i, value in enumerate(node.inputs):
            self._carry(value, level, number, i if merge else -1)
        for before in node.control:
            if self.where[before] is not None:
                level.edge(self.rows[before], number)
        for before in node.order:
            both = level is self.root and self.where[before] is self.root and before in self.rows
            if both and (before.name, node.name) not in self.without:
                level.edge(self.rows[before], number, ORDER)
        return number

    def _carry(self, value: Value, level: _LevelOfFrame, number: int, which: int) -> None:
        """The edge along which a value comes to a row. One that is always there comes to a Merge at once."""
        maker = value.node
        if maker is not None and self.where[maker] is not None:
            slot = level.slots[value] if maker.verb == "switch" else 0
            level.edge(self.rows[maker], number, slot, which)
        elif which >= 0:
            row = level.add(Row())
            level.edge(row, number, 0, which)

    def _plain(self, node: PlanNode, level: _LevelOfFrame) -> None:
        self.where[node] = level
        constant = node.verb == "constant"
        if node.verb == "alias":
            source = self._named(node.inputs[0])
            constant = source.node is not None and source.node.verb == "constant"
            if constant:  # its readers have it, each in its own space
                self.same[node.outputs[0]] = source
        self.rows[node] = self._row(node, level, () if constant else level.made(node))

    def _merge(self, node: PlanNode, level: _LevelOfFrame) -> None:
        self.where[node] = level
        makes = level.made(node)
        number = self.rows[node] = self._row(node, level, makes, merge=True)
        slots = [EMPTY if s is None else s for s in level.level.rows[number].reads]
        level.frame.joins[number] = Join(slots, len(slots))
        self.merges[node.name] = level, number

    def _enter(self, node: PlanNode, level: _LevelOfFrame) -> None:
        name = node.attrs["frame_name"]
        inner = level.inner.get(name)
        if inner is None:
            frame = Frame(name, node.attrs["parallel_iterations"], (*level.frame.around, node))
            inner = level.inner[name] = _LevelOfFrame(PlanGraph(name), frame, level)
            inner.slots.update({v: EMPTY for v, slot in self.root.slots.items() if slot == EMPTY})
            self.levels.append(inner)
        number = self._row(node, level, ())
        (slot,) = inner.made(node)
        arrival = inner.add(Row(node, (), (slot,)))
        inner.frame.arrivals.add(arrival)
        inner.frame.entered += 1
        level.frame.entries[number] = Entry(inner.level.graph, arrival, slot, node.attrs["is_constant"])
        self.where[node], self.rows[node] = inner, arrival

    def _exit(self, node: PlanNode, level: _LevelOfFrame) -> None:
        outer = level.outer
        if outer is None:
            raise _refused(node, "stands in no frame", "an Enter begins one")
        number = self._row(node, level, ())
        (slot,) = outer.made(node)
        arrival = outer.add(Row(node, (), (slot,)))
        outer.frame.arrivals.add(arrival)
        level.frame.exits[number] = arrival, slot
        self.where[node], self.rows[node] = outer, arrival

    def _next(self, node: PlanNode, level: _LevelOfFrame) -> None:
        if level.outer is None:
            raise _refused(node, "stands in no frame", "an Enter begins one")
        number = self._row(node, level, ())
        takers = level.frame.nexts[number] = []
        for name, which in node.attrs["merges"]:
            other, row = self.merges[name]
            if other is not level:
                raise _refused(node, f"stands in the frame {level.frame.name}, and {name} in another one")
            join = level.frame.joins[row]
            join.slots += [level.new_slot() for _ in range(which + 1 - len(join.slots))]
            takers.append((row, join.slots[which], which))
        self.where[node] = None


_ADDS = {"merge": _Frames._merge, "enter": _Frames._enter, "exit": _Frames._exit, "next": _Frames._next}


def levels_of_frames(placed: PlacedGraph, without: frozenset[tuple[str, str]] = frozenset()) -> dict[PlanGraph, Level]:
    """The tables of a plan's graph with primitives, without those of bodies: its own, and of a graph that stands for each frame.

    Order edges hold between nodes outside of all frames; in frames nodes run as data and control edges let them, as in TensorFlow.

    Args:
      without: order edges that are left out, by the nodes' names.

    Raises:
      InvalidArgumentError: a node takes what stands in another frame, or leaves one that it does not stand in.
    """
    return _Frames(placed, without).run()


def _refused(node: PlanNode, what: str, hint: str | None = None) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(f"{node.origin} ({node.op}) {what}", op=node.origin, site=node.site, hint=hint)
