"""Matching: where the nodes of a small graph stand in a plan, whatever names they have there.

A match is found by trying: what a node reads is known once the node is, and who reads a value is one of few. Operands of
commutative ops stand in any order; a sum at the rim may have more summands in the plan than it has here.

The gradient that reaches a mean is one number everywhere, and a plan holds it as a constant, of the shape in which it is read.
Where the small graph has views of an input there, the input is that number everywhere, whichever of its elements they have.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from graphdock.contracts.ir import PlanGraph, PlanNode, Value, arg_of, attr_key, make_node

__all__ = ["Index", "Match", "Matcher"]

#: How many nodes are tried before a place is given up.
_TRIES = 4000
#: Two floating constants are the same up to so many units in the last place.
_ULPS = 4


class Index:
    """Index of who reads what in one level of a plan, and of where ops stand.

    Attributes:
      readers: value -> the nodes that read it; twice where a node reads it twice. ``by_op``: op type -> nodes.
      escaping, targets: the values that leave the level, and the nodes that run for their effect.
    """

    def __init__(self, level: PlanGraph) -> None:
        self.readers: dict[Value, list[PlanNode]] = {}
        self.by_op: dict[str, list[PlanNode]] = {}
        self._attrs: dict[PlanNode, dict[str, Any]] = {}
        self.escaping, self.targets = set(level.outputs), set(level.targets)
        for node in level.nodes:
            self.by_op.setdefault(node.op, []).append(node)
            for value in node.inputs:
                self.readers.setdefault(value, []).append(node)

    def attrs(self, node: PlanNode) -> dict[str, Any]:
        """Return what two nodes of one op, in the plan or in a pattern, have to have in common, as values that can be compared."""
        found = self._attrs.get(node)
        if found is None:
            counts = {a.count for a in node.opdef.inputs}
            found = {k: attr_key(v) for k, v in node.attrs.items() if not k.startswith("_") and k not in counts}
            self._attrs[node] = found
        return found


@dataclass(slots=True)
class Match:
    """Facts known of where a graph stands.

    Attributes:
      values: value of the small graph -> of the plan. ``found``: node of it -> of the plan; constants are not among them.
      rest: sum at the rim -> the summands that the plan's has beyond it.
      even: input that is one number everywhere -> a constant of its shape, which the plan has not. ``viewed``: its views.
    """

    values: dict[Value, Value] = field(default_factory=dict)
    found: dict[PlanNode, PlanNode] = field(default_factory=dict)
    rest: dict[PlanNode, tuple[Value, ...]] = field(default_factory=dict)
    taken: set[PlanNode] = field(default_factory=set)
    even: dict[Value, PlanNode] = field(default_factory=dict)
    viewed: set[PlanNode] = field(default_factory=set)

    def copy(self) -> Match:
        known = dict(self.values), dict(self.found), dict(self.rest), set(self.taken)
        return Match(*known, dict(self.even), set(self.viewed))


class Matcher:
    """Looks for one small graph in one level.

    Args:
      closed: inputs of the graph that only a constant of the plan can be.
      gone: nodes of the level that are spoken for.
      even: inputs of the graph that may be one number everywhere.
    """

    def __init__(
        self,
        index: Index,
        graph: PlanGraph,
        closed: Iterable[Value] = (),
        gone: Iterable[PlanNode] = (),
        even: Iterable[Value] = (),
    ) -> None:
        self._index = index
        self._graph = graph
        self._inputs = set(graph.inputs)
        self._closed = set(closed)
        self._even = frozenset(even)
        self._gone = gone if isinstance(gone, (set, frozenset)) else set(gone)
        self._tries = 0

    def extend(
        self, match: Match, goals: Sequence[tuple[Value, Value]] = (), targets: Sequence[Value] = ()
    ) -> Match | None:
        """A match that holds ``match``, each goal (value of the graph, value of the plan), and all that ``targets`` need.

        Returns:
          None where there is none, or it was not found in time; ``match`` is as it was.
        """
        self._tries = 0
        wanted = _needed(targets)
        rims: set[PlanNode | None] = {v.node for v in targets if v.node is not None and _sums(v.node)}
        return next(self._solve(match.copy(), list(goals), wanted, rims), None)

    def _solve(
        self, match: Match, goals: list[tuple[Value, Value]], wanted: Sequence[PlanNode], rims: set[PlanNode | None]
    ) -> Iterator[Match]:
        while goals:
            mine, theirs = goals.pop()
            known = match.values.get(mine)
            if known is not None:
                if known is not theirs:
                    return
                continue
            if mine in self._inputs:
                if not self._enters(mine, theirs):
                    return
                match.values[mine] = theirs
                continue
            node, other = mine.node, theirs.node
            assert node is not None
            if other is None or mine.index != theirs.index:
                return
            if node.verb == "constant":
                if other.verb != "constant" or not _same_constant(node, other):
                    return
                match.values[mine] = theirs
                continue
            if other.verb == "constant":
                if not _is_even(mine, other, match, self._even):
                    return
                match.values[mine] = theirs
                continue
            if not self._alike(node, other, match, node in rims):
                return
            self._tries += 1
            match.found[node] = other
            match.taken.add(other)
            match.values.update(zip(node.outputs, other.outputs, strict=True))
            ways = list(_operands(node, other, node in rims, match, self._even))
            if len(ways) == 1:
                pairs, rest = ways[0]
                goals.extend(pairs)
                if rest:
                    match.rest[node] = rest
                continue
            for pairs, rest in ways:
                if self._tries > _TRIES:
                    return
                branch = match.copy()
                if rest:
                    branch.rest[node] = rest
                yield from self._solve(branch, [*goals, *pairs], wanted, rims)
            return
        led = self._led_to(wanted, match)
        if led is None:
            if all(n in match.found or n in match.viewed for n in wanted):
                yield match
            return
        following, position = led
        for candidate in dict.fromkeys(self._index.readers.get(match.values[following.inputs[position]], ())):
            if self._tries > _TRIES:
                return
            if self._alike(following, candidate, match, following in rims):
                yield from self._solve(match.copy(), [(following.outputs[0], candidate.outputs[0])], wanted, rims)

    def _led_to(self, wanted: Sequence[PlanNode], match: Match) -> tuple[PlanNode, int] | None:
        """A node that is still to be found, and a position where it reads what is known: what the fewest read, as each is tried."""
        for tells in (_tells, _tabulates):
            found = [
                (node, position)
                for node in wanted
                if node not in match.found and node not in match.viewed
                for position, value in enumerate(node.inputs)
                if value in match.values and tells(value)
            ]
            if found:
                return min(found, key=lambda f: len(self._index.readers.get(match.values[f[0].inputs[f[1]]], ())))
        return None

    def _enters(self, mine: Value, theirs: Value) -> bool:
        if mine.dtype is not theirs.dtype or theirs.shape is None or mine.shape is None:
            return False
        if mine in self._closed and (theirs.node is None or theirs.node.verb != "constant"):
            return False
        return len(mine.shape) == len(theirs.shape) and all(
            m is None or m == t for m, t in zip(mine.shape, theirs.shape, strict=True)
        )

    def _alike(self, node: PlanNode, other: PlanNode, match: Match, rim: bool) -> bool:
        if (
            node.op != other.op
            or other in match.taken
            or other in self._gone
            or other.bodies
            or other.verb != node.verb
        ):
            return False
        if len(node.inputs) != len(other.inputs) and not (rim and len(node.inputs) < len(other.inputs)):
            return False
        if (
            other.guard is not None
            or other.control
            or [v.dtype for v in node.outputs] != [v.dtype for v in other.outputs]
        ):
            return False
        return self._index.attrs(node) == self._index.attrs(other)


def _needed(targets: Sequence[Value]) -> list[PlanNode]:
    """The nodes, other than constants, that values are computed from."""
    found: dict[PlanNode, None] = {}
    waiting = [v.node for v in targets]
    while waiting:
        node = waiting.pop()
        if node is None or node.verb == "constant" or node in found:
            continue
        found[node] = None
        waiting.extend(v.node for v in node.inputs)
    return list(found)


def _tells(value: Value) -> bool:
    """Return whether it says something who reads a value: constants are read by many."""
    return value.node is None or value.node.verb != "constant"


def _tabulates(value: Value) -> bool:
    """Return whether it is a table of constants, which few read; the gradient of a linear function reads nothing else that
    is known.
    """
    return value.node is not None and value.node.verb == "constant" and bool(value.node.attrs["value"].size > 1)


def _sums(node: PlanNode) -> bool:
    return "aggregate" in node.opdef.traits


def _operands(
    node: PlanNode, other: PlanNode, rim: bool, match: Match, even: frozenset[Value]
) -> Iterator[tuple[list[tuple[Value, Value]], tuple[Value, ...]]]:
    """The ways to pair what two nodes read, and what is left of the other's."""
    mine, theirs = node.inputs, other.inputs
    commutative = "commutative" in node.opdef.traits
    if not commutative:
        pairs, args = [], arg_of(node)
        first = next((i for i, arg in enumerate(args) if arg.name != "axis"), 0)
        for arg, m, t in zip(args, mine, theirs, strict=True):
            if arg.name == "axis" and _constant(m) and _constant(t):
                if _axes(m, mine[first]) != _axes(t, theirs[first]):
                    return
            else:
                pairs.append((m, t))
        yield pairs, ()
        return
    options = [[i for i, t in enumerate(theirs) if _may_be(m, t, match, even)] for m in mine]
    for chosen in itertools.islice(_injections(options), _TRIES):
        rest = tuple([t for i, t in enumerate(theirs) if i not in chosen])
        if rest and not rim:
            continue
        yield [(m, theirs[i]) for m, i in zip(mine, chosen, strict=True)], rest


def _constant(value: Value) -> bool:
    return value.node is not None and value.node.verb == "constant"


def _axes(axes: Value, of: Value) -> tuple[int, ...]:
    """Return what a constant says of the dims of ``of``, however it is written: in order, and counted from the first."""
    assert axes.node is not None
    rank = len(of.shape or ())
    return tuple(sorted([int(a) % max(rank, 1) for a in np.ravel(axes.node.attrs["value"])]))


def _injections(options: Sequence[Sequence[int]], chosen: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    if len(chosen) == len(options):
        yield chosen
        return
    for i in options[len(chosen)]:
        if i not in chosen:
            yield from _injections(options, (*chosen, i))


def _may_be(mine: Value, theirs: Value, match: Match, even: frozenset[Value]) -> bool:
    known = match.values.get(mine)
    if known is not None:
        return known is theirs
    if mine.node is None:
        return True
    if theirs.node is None:
        return False
    return theirs.node.op == mine.node.op or (theirs.node.verb == "constant" and bool(_views(mine, even)))


def _views(value: Value, inputs: frozenset[Value]) -> list[PlanNode]:
    """The views of one of some inputs that a value is: the last first. Empty where it is none."""
    found: list[PlanNode] = []
    while value not in inputs:
        node = value.node
        if node is None or "view" not in node.opdef.traits:
            return []
        found.append(node)
        of = node.opdef.aliases[node.opdef.outputs[0].name]
        value = next(v for arg, v in zip(arg_of(node), node.inputs, strict=True) if arg.name == of)
    return found


def _is_even(mine: Value, constant: PlanNode, match: Match, inputs: frozenset[Value]) -> bool:
    """Return whether a value is a view of an input that is one number everywhere; ``match`` knows it then."""
    views, array = _views(mine, inputs), constant.attrs["value"]
    if not views or not array.size or (array != array.flat[0]).any():
        return False
    origin = next(v for v in views[-1].inputs if v in inputs)
    made = match.even.get(origin)
    if made is None:
        if origin in match.values or origin.dtype is not constant.outputs[0].dtype:
            return False
        made = match.even[origin] = _everywhere(constant, origin)
        match.values[origin] = made.outputs[0]
    match.viewed.update(views)
    return bool((made.attrs["value"] == array.flat[0]).all())


def _everywhere(constant: PlanNode, like: Value) -> PlanNode:
    """The one number of a constant in another shape, in no graph yet."""
    assert like.shape is not None
    dims = [d for d in like.shape if d is not None]
    assert len(dims) == len(like.shape)  # of inputs whose shapes were found
    array = np.full(dims, constant.attrs["value"].flat[0])
    array.flags.writeable = False
    attrs, made = {**constant.attrs, "value": array}, [(like.dtype, like.shape)]
    place = {"requested": constant.requested, "site_of": constant.site_of, "origins": constant.origins}
    return make_node(constant.opdef, f"{constant.name}/everywhere", [], attrs, made, **place)


def _same_constant(node: PlanNode, other: PlanNode) -> bool:
    mine, theirs = node.attrs["value"], other.attrs["value"]
    if mine.dtype != theirs.dtype or mine.shape != theirs.shape:
        return False
    if mine.dtype.kind in "fV" and node.outputs[0].dtype.is_floating:
        wide, other_wide = mine.astype(np.float64), theirs.astype(np.float64)
        spacing = float(np.finfo("float64" if node.outputs[0].dtype.name == "float64" else "float32").eps)
        with np.errstate(invalid="ignore"):  # of two infinities
            near = np.isfinite(wide) & (np.abs(wide - other_wide) <= _ULPS * spacing * np.abs(wide))
        return bool(np.all((wide == other_wide) | near))
    return bool(np.array_equal(mine, theirs))
