"""Patterns at work: what one finds in a plan is replaced, with its gradient where that is there too.

It happens before placement, so that what stands for a pattern is placed like any other node. A replacement all of whose kernels
refuse when they are prepared is not made again: the plan is begun anew without it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from graphdock.contracts import (
    Found,
    OpDef,
    PlanContext,
    PlanGraph,
    PlanNode,
    RegionNote,
    RegisteredPattern,
    Rewriter,
    Standing,
    Value,
    streams_of,
)
from graphdock.contracts.ir import make_node
from graphdock.errors import PluginError, did_you_mean

from graphdock_fusion.patterns.graphs import WIDTHS, PatternGraph, PatternGraphs
from graphdock_fusion.patterns.match import Index, Match, Matcher
from graphdock_fusion.patterns.positions import Positions

__all__ = ["patterns"]

_ARRIVING = "the gradient of value {}"


class _NotHere(Exception):
    """A pattern was found, and can't be used; the argument is the reason."""


class _Place:
    """One level of a plan while patterns are looked for in it.

    Attributes:
      positions: where values stand in an order of the level that all replacements go by.
      gone: nodes that something stands for already.
      sums: sum of the plan that has summands beyond the patterns' -> what it adds by now.
    """

    def __init__(self, index: Index, change: Rewriter, last: Sequence[str]) -> None:
        self.index = index
        self.change = change
        self.positions = Positions(change.graph, last)
        self.gone: set[PlanNode] = set()
        self.sums: dict[PlanNode, list[Value]] = {}

    def put_sums(self) -> None:
        """Let the sums add what stands for their summands."""
        for node, summands in self.sums.items():
            total = summands[0]
            if len(summands) > 1:
                counts = {a.count: len(summands) for a in node.opdef.inputs if a.count}
                made = make_node(
                    node.opdef,
                    node.name,
                    summands,
                    {**node.attrs, **counts},
                    [(node.outputs[0].dtype, node.outputs[0].shape)],
                    requested=node.requested,
                    site_of=node.site_of,
                    origins=node.origins,
                )
                self.change.insert(made, before=node)
                total = made.outputs[0]
            self.change.replace(node, [total])


def patterns(graph: PlanGraph, context: PlanContext, known: Sequence[RegisteredPattern]) -> None:
    """Replace what these patterns find, at every level: all of them late ones, or none."""
    _Search(context, known).run(graph)


class _Search:
    """One search for patterns in a plan."""

    def __init__(self, context: PlanContext, known: Sequence[RegisteredPattern]) -> None:
        self._context = context
        self._known = known
        self._late = any(asked.pattern.late for asked in known)
        self._graphs = PatternGraphs(context)
        self._refused: list[tuple[RegionNote, frozenset[PlanNode]]] = []

    def run(self, graph: PlanGraph) -> None:
        anchors = dict.fromkeys(r.pattern.anchor for r in self._known)
        for level in list(graph.all_graphs()):
            if anchors.keys().isdisjoint([n.op for n in level.nodes]):
                continue
            index = Index(level)
            place = _Place(index, Rewriter(level), list(anchors) if self._late else ())
            with place.change:
                for asked in self._known:
                    if any(o.drawn and o.drawn not in index.by_op for o in asked.pattern.inputs.values()):
                        continue
                    for anchor in index.by_op.get(asked.pattern.anchor, ()):
                        if anchor not in place.gone:
                            self._at(anchor, asked, place)
                place.put_sums()
            # where another pattern stands for all of it, nobody asks why this one does not
            self._context.notes.extend([note for note, nodes in self._refused if not nodes <= place.gone])
            self._refused.clear()

    def _at(self, anchor: PlanNode, asked: RegisteredPattern, place: _Place) -> None:
        """Replace what stands around an anchor, if it is what a pattern looks for."""
        dtype, device = anchor.outputs[0].dtype.name, self._context.device_type(anchor)
        if dtype not in asked.pattern.dtypes or device is None or device in asked.pattern.not_on:
            return
        dims = anchor.outputs[0].shape
        if dims is not None and asked.pattern.rank not in (None, len(dims)):
            return
        if unknown := [name for name in asked.pattern.attrs if name not in anchor.attrs]:
            hint = did_you_mean(unknown[0], anchor.attrs)
            raise _broken(asked, f"its anchor {anchor.op} has no attribute {unknown[0]!r}", hint)
        attrs = {name: anchor.attrs[name] for name in asked.pattern.attrs}
        sought = self._graphs.sought(asked, dtype, attrs)
        if isinstance(sought, str):
            raise _broken(asked, sought)
        first = _first(anchor, asked, sought, place)
        if first is None:
            return
        value = first.values[sought.values[0]]
        assert value.node is not None
        key = asked.full_name, value.node.name
        ops = tuple(n.op for n in first.found.values())
        try:
            if key in self._context.failed:
                raise _NotHere(self._context.failed[key])
            found = _found(asked, sought, first, Found(dtype, {}, {}, device, attrs))
            ones = False
            graph, match, slopes = self._with_slopes(asked, found, first, sought, place)
            reason = _read_within(graph, match, slopes, place.index)
            if reason and not asked.pattern.late:
                other = self._with_slopes(asked, found, first, sought, place, ones=True)
                ones = _read_within(*other, place.index) is None
                graph, match, slopes = other if ones else (graph, match, slopes)
            members = list(match.found.values())
            ops = tuple(n.op for n in members)
            if reason and not ones:
                raise _NotHere(reason)
            arrives = tuple(range(len(graph.values))) if ones else tuple(graph.arriving)
            standing = self._graphs.standing(asked, found, slopes, arrives, ones)
            if isinstance(standing, str):
                raise _broken(asked, standing)
            _check_same(asked, graph, standing, slopes)
            if len(graph.values) + len(slopes) > 1:
                _check_order(graph, match, standing, slopes, place)
            streams = {n: self._context.opdef(o.stream) for n, o in asked.pattern.inputs.items() if o.drawn}
            why = self._context.missing(standing.graph, device)
            if why:
                raise _NotHere(why)
        except _NotHere as reason:
            note = RegionNote(asked.full_name, device, ops, 0, str(reason), pattern=True)
            self._refused.append((note, frozenset(first.found.values())))
            return
        nodes = _put(place, graph, match, standing, slopes, value.node, streams)
        self._context.standing.update(dict.fromkeys(nodes, Standing(key)))
        place.gone.update([n for p, n in match.found.items() if p not in match.rest])
        names = ", ".join(n.op for n in nodes if n.verb != "constant") or "one of their inputs"
        what = f"{len(members)} nodes around {value.node.origin} became {names}"
        self._context.notes.append(RegionNote(asked.full_name, device, ops, len(members), what, pattern=True))

    def _with_slopes(
        self,
        asked: RegisteredPattern,
        found: Found,
        first: Match,
        sought: PatternGraph,
        place: _Place,
        ones: bool = False,
    ) -> tuple[PatternGraph, Match, tuple[str, ...]]:
        """The pattern with as many of its gradients as the plan has, and their names.

        ``ones``: 1 arrives at all values, as at a sum; passes have dropped the products by it.
        """
        best: tuple[PatternGraph, Match, int] | None = None
        count = len(sought.values)
        sizes = [0] if asked.pattern.late else [count] if ones else range(count, 0, -1)
        subsets = [s for size in sizes for s in itertools.combinations(range(count), size)]
        for arrives, wide in itertools.product(subsets, WIDTHS):
            graph = self._graphs.sought_at(asked, found, wide, arrives, ones)
            if isinstance(graph, str):
                raise _broken(asked, graph)
            matcher = Matcher(place.index, graph.graph, gone=place.gone, even=graph.arriving.values())
            goals = [(graph.inputs[n], first.values[v]) for n, v in sought.inputs.items() if n in graph.inputs]
            goals += [(v, first.values[s]) for v, s in zip(graph.values, sought.values, strict=True)]
            match = matcher.extend(Match(), goals, graph.values)
            if match is None:
                continue
            reached = 0
            for slope in graph.slopes.values():
                longer = matcher.extend(match, targets=[slope])
                if longer is not None and longer.values.keys() >= set(graph.arriving.values()):
                    match, reached = longer, reached + 1
            if best is None or reached > best[2]:
                best = graph, match, reached
            if reached == len(graph.slopes):
                break
        if best is None:
            raise _NotHere("with these shapes it is built in another way")
        graph, match, _ = best
        return graph, match, tuple(n for n, s in graph.slopes.items() if s in match.values)


def _put(
    place: _Place,
    graph: PatternGraph,
    match: Match,
    standing: PatternGraph,
    slopes: Sequence[str],
    at: PlanNode,
    streams: Mapping[str, OpDef],
) -> list[PlanNode]:
    """Put a copy of what stands for a match into the plan, where ``at`` is.

    ``streams``: input that is drawn -> the op of its stream.
    """
    became: dict[Value, Value] = {standing.inputs[name]: match.values[graph.inputs[name]] for name in standing.inputs}
    became |= {value: match.values[graph.arriving[i]] for i, value in standing.arriving.items()}
    origins = tuple(dict.fromkeys(o for n in (at, *match.found.values()) for o in n.origins))
    for value, number in match.even.items():
        number.name = number.outputs[0].name = f"{at.name}/{value.name}"
        place.change.insert(number, before=at)
    nodes: list[PlanNode] = []
    for name, opdef in streams.items():
        drawn = match.values[graph.inputs[name]].node
        assert drawn is not None
        words = standing.inputs[name]
        node = make_node(
            opdef,
            f"{at.name}/{drawn.name}/stream",
            [],
            {a.name: drawn.attrs.get(a.name, a.default) for a in opdef.attrs},
            [(words.dtype, words.shape)],
            requested=at.requested,
            site_of=drawn.site_of,
            origins=drawn.origins,
        )
        node.streams = streams_of(drawn)
        became[words] = node.outputs[0]
        nodes.append(place.change.insert(node, before=at))
    for part in standing.graph.nodes:
        node = make_node(
            part.opdef,
            f"{at.name}/{part.name}",
            [became[v] for v in part.inputs],
            part.attrs,
            [(v.dtype, v.shape) for v in part.outputs],
            requested=at.requested,
            site_of=at.site_of,
            bodies=part.bodies,
            origins=origins,
        )
        became.update(zip(part.outputs, node.outputs, strict=True))
        nodes.append(place.change.insert(node, before=at))
    summed = {match.found[p] for p in match.rest}
    ends: dict[PlanNode, list[Value | None]] = {
        n: [None] * len(n.outputs) for n in match.found.values() if n not in summed
    }
    for mine, theirs in zip(_leaving(graph, slopes), _leaving(standing, slopes), strict=True):
        old, new = match.values[mine], became[theirs]
        assert old.node is not None and mine.node is not None
        if old.node in summed:
            summands = place.sums.setdefault(old.node, list(old.node.inputs))
            for value in mine.node.inputs:
                summands.remove(match.values[value])
            summands.append(new)
        else:
            ends[old.node][old.index] = new
    for node, values in ends.items():
        place.change.replace(node, values)
    place.change.arrange(place.change.graph.nodes)
    return nodes


def _first(anchor: PlanNode, asked: RegisteredPattern, sought: PatternGraph, place: _Place) -> Match | None:
    """Where the pattern without its gradients stands around an anchor."""
    closed = [sought.inputs[n] for n, o in asked.pattern.inputs.items() if o.constant]
    matcher = Matcher(place.index, sought.graph, closed, place.gone)
    alike = [node for node in sought.graph.nodes if node.op == anchor.op]
    if not alike:
        ops = sorted({n.op for n in sought.graph.nodes if n.verb != "constant"})
        raise _broken(asked, f"its function has no {anchor.op}, the anchor, but {', '.join(ops) or 'no op'}")
    for node in alike:
        found = matcher.extend(Match(), [(node.outputs[0], anchor.outputs[0])], sought.values)
        if found is not None:
            return found
    return None


def _found(asked: RegisteredPattern, sought: PatternGraph, match: Match, anchor: Found) -> Found:
    """The place of a match around what is known of an anchor; _NotHere where the pattern does not take it."""
    if len({n.requested for n in match.found.values()}) > 1:
        raise _NotHere("its nodes ask for several devices")
    shapes, constants = {}, {}
    for name, operand in asked.pattern.inputs.items():
        value = match.values[sought.inputs[name]]
        if value.shape is None or None in value.shape:
            raise _NotHere(f"the shape of {name} is known only when it runs")
        shapes[name] = tuple([d for d in value.shape if d is not None])
        if operand.drawn and not _is_drawn(value, operand.drawn):
            raise _NotHere(f"{name} is not what {operand.drawn} draws")
        if operand.constant:
            assert value.node is not None
            constants[name] = value.node.attrs["value"]
    found = replace(anchor, shapes=shapes, constants=constants)
    reason = asked.pattern.check(found) if asked.pattern.check is not None else None
    if reason is not None:
        raise _NotHere(reason)
    return found


def _is_drawn(value: Value, op: str) -> bool:
    node = value.node
    return node is not None and node.op == op and node.guard is None and not node.control


def _read_within(graph: PatternGraph, match: Match, slopes: Sequence[str], index: Index) -> str | None:
    """What else reads what lies within a match, which would be computed twice then; None where nothing does."""
    inside = set(match.found.values())
    leaving = {match.values[v] for v in _leaving(graph, slopes)}
    for node in inside:
        for value in node.outputs:
            if value in leaving:
                continue
            other = next((n for n in index.readers.get(value, ()) if n not in inside), None)
            if other is not None:
                return f"{other.origin} reads {node.origin}, which lies within"
            if value in index.escaping or node in index.targets:
                return f"{node.origin}, which lies within, is fetched"
    return None


def _check_same(asked: RegisteredPattern, graph: PatternGraph, standing: PatternGraph, slopes: Sequence[str]) -> None:
    """PluginError where the two functions of a pattern make different things."""
    mine = _leaving(graph, slopes)
    if missing := [n for n in slopes if n not in standing.slopes]:
        raise _broken(asked, f"its replacement has no gradient by {', '.join(missing)}")
    theirs = _leaving(standing, slopes)
    if len(mine) != len(theirs):
        raise _broken(asked, f"its replacement makes {len(standing.values)} tensors for {len(graph.values)}")
    for m, t in zip(mine, theirs, strict=True):
        if m.dtype is not t.dtype or m.shape != t.shape:
            raise _broken(asked, f"its replacement makes {t!r} for {m!r}")


def _leaving(graph: PatternGraph, slopes: Sequence[str]) -> list[Value]:
    """What a graph gives to others: its values, and the gradients that are wanted of it."""
    return [*graph.values, *(graph.slopes[n] for n in slopes)]


def _check_order(
    graph: PatternGraph, match: Match, standing: PatternGraph, slopes: Sequence[str], place: _Place
) -> None:
    """_NotHere where a value would wait for an input that it did not need, and that may be computed from another value.

    One that stands before the value in an order of the plan is not: whatever is replaced, each node waits for some that stood
    before it.
    """
    mine, theirs = _sources(graph), _sources(standing)
    given = {**graph.inputs, **{_ARRIVING.format(i): value for i, value in graph.arriving.items()}}
    for m, t in zip(_leaving(graph, slopes), _leaving(standing, slopes), strict=True):
        at = place.positions.of(match.values[m])
        if more := [n for n in sorted(theirs[t] - mine[m]) if place.positions.of(match.values[given[n]]) >= at]:
            raise _NotHere(f"what stands for {m.name} would wait for {', '.join(more)}")


def _sources(graph: PatternGraph) -> dict[Value, frozenset[str]]:
    """Value of a graph -> the inputs that it is computed from."""
    found: dict[Value, frozenset[str]] = {value: frozenset([name]) for name, value in graph.inputs.items()}
    found |= {value: frozenset([_ARRIVING.format(i)]) for i, value in graph.arriving.items()}
    for node in graph.graph.nodes:
        needed = frozenset[str]().union(*(found[v] for v in node.inputs))
        found.update(dict.fromkeys(node.outputs, needed))
    return found


def _broken(asked: RegisteredPattern, what: str, hint: str | None = None) -> PluginError:
    return PluginError(
        f"the pattern {asked.full_name} (of {asked.package}) is wrong: {what}",
        hint=hint or "fusion = false under [session] does without it",
    )
