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
    Replacement,
    Rewriter,
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
        self._late = any(registered.pattern.late for registered in known)
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
                for registered in self._known:
                    if any(o.drawn and o.drawn not in index.by_op for o in registered.pattern.inputs.values()):
                        continue
                    for anchor in index.by_op.get(registered.pattern.anchor, ()):
                        if anchor not in place.gone:
                            self._at(anchor, registered, place)
                place.put_sums()
            # where another pattern stands for all of it, nobody asks why this one does not; what several say is said once
            told: dict[tuple[str, frozenset[PlanNode]], RegionNote] = {}
            for note, nodes in self._refused:
                if not nodes <= place.gone:
                    told.setdefault((note.what, nodes), note)
            self._context.notes.extend(told.values())
            self._refused.clear()

    def _at(self, anchor: PlanNode, registered: RegisteredPattern, place: _Place) -> None:
        """Replace what stands around an anchor, if it is what a pattern looks for."""
        dtype, device = anchor.outputs[0].dtype.name, self._context.device_type(anchor)
        if dtype not in registered.pattern.dtypes or device is None or device in registered.pattern.not_on:
            return
        dims = anchor.outputs[0].shape
        if dims is not None and registered.pattern.rank not in (None, len(dims)):
            return
        if unknown := [name for name in registered.pattern.attrs if name not in anchor.attrs]:
            hint = did_you_mean(unknown[0], anchor.attrs)
            raise _broken(registered, f"its anchor {anchor.op} has no attribute {unknown[0]!r}", hint)
        attrs = {name: anchor.attrs[name] for name in registered.pattern.attrs}
        pattern_graph = self._graphs.pattern_graph(registered, dtype, attrs)
        if isinstance(pattern_graph, str):
            raise _broken(registered, pattern_graph)
        first = _first(anchor, registered, pattern_graph, place)
        if first is None:
            return
        value = first.values[pattern_graph.values[0]]
        assert value.node is not None
        key = registered.full_name, value.node.name
        ops = tuple(n.op for n in first.found.values())
        try:
            if key in self._context.failed:
                raise _NotHere(self._context.failed[key])
            found = _found(registered, pattern_graph, first, Found(dtype, {}, {}, device, attrs))
            unit_cotangent = False
            graph, match, gradients = self._with_gradients(registered, found, first, pattern_graph, place)
            reason = _read_within(graph, match, gradients, place.index)
            if reason and not registered.pattern.late:
                other = self._with_gradients(registered, found, first, pattern_graph, place, unit_cotangent=True)
                unit_cotangent = _read_within(*other, place.index) is None
                graph, match, gradients = other if unit_cotangent else (graph, match, gradients)
            members = list(match.found.values())
            ops = tuple(n.op for n in members)
            if reason and not unit_cotangent:
                raise _NotHere(reason)
            cotangents = tuple(range(len(graph.values))) if unit_cotangent else tuple(graph.cotangents)
            replacement = self._graphs.replacement_graph(registered, found, gradients, cotangents, unit_cotangent)
            if isinstance(replacement, str):
                raise _broken(registered, replacement)
            _check_same(registered, graph, replacement, gradients)
            if len(graph.values) + len(gradients) > 1:
                _check_order(graph, match, replacement, gradients, place)
            streams = {n: self._context.opdef(o.stream) for n, o in registered.pattern.inputs.items() if o.drawn}
            why = self._context.missing(replacement.graph, device)
            if why:
                raise _NotHere(why)
        except _NotHere as reason:
            note = RegionNote(registered.full_name, device, ops, 0, str(reason), pattern=True)
            self._refused.append((note, frozenset(first.found.values())))
            return
        nodes = _put(place, graph, match, replacement, gradients, value.node, streams)
        self._context.replacements.update(dict.fromkeys(nodes, Replacement(key)))
        place.gone.update([n for p, n in match.found.items() if p not in match.rest])
        names = ", ".join(n.op for n in nodes if n.verb != "constant") or "one of their inputs"
        what = f"{len(members)} nodes around {value.node.origin} became {names}"
        self._context.notes.append(RegionNote(registered.full_name, device, ops, len(members), what, pattern=True))

    def _with_gradients(
        self,
        registered: RegisteredPattern,
        found: Found,
        first: Match,
        pattern_graph: PatternGraph,
        place: _Place,
        unit_cotangent: bool = False,
    ) -> tuple[PatternGraph, Match, tuple[str, ...]]:
        """The pattern with as many of its gradients as the plan has, and their names.

        ``ones``: 1 arrives at all values, as at a sum; passes have dropped the products by it.
        """
        best: tuple[PatternGraph, Match, int] | None = None
        count = len(pattern_graph.values)
        sizes = [0] if registered.pattern.late else [count] if unit_cotangent else range(count, 0, -1)
        subsets = [s for size in sizes for s in itertools.combinations(range(count), size)]
        for cotangents, wide in itertools.product(subsets, WIDTHS):
            graph = self._graphs.specialized_pattern(registered, found, wide, cotangents, unit_cotangent)
            if isinstance(graph, str):
                raise _broken(registered, graph)
            matcher = Matcher(place.index, graph.graph, gone=place.gone, even=graph.cotangents.values())
            goals = [(graph.inputs[n], first.values[v]) for n, v in pattern_graph.inputs.items() if n in graph.inputs]
            goals += [(v, first.values[s]) for v, s in zip(graph.values, pattern_graph.values, strict=True)]
            match = matcher.extend(Match(), goals, graph.values)
            if match is None:
                continue
            reached = 0
            for gradient in graph.gradients.values():
                longer = matcher.extend(match, targets=[gradient])
                if longer is not None and longer.values.keys() >= set(graph.cotangents.values()):
                    match, reached = longer, reached + 1
            if best is None or reached > best[2]:
                best = graph, match, reached
            if reached == len(graph.gradients):
                break
        if best is None:
            raise _NotHere("with these shapes it is built in another way")
        graph, match, _ = best
        return graph, match, tuple(n for n, s in graph.gradients.items() if s in match.values)


def _put(
    place: _Place,
    graph: PatternGraph,
    match: Match,
    replacement: PatternGraph,
    gradients: Sequence[str],
    at: PlanNode,
    streams: Mapping[str, OpDef],
) -> list[PlanNode]:
    """Put a copy of what stands for a match into the plan, where ``at`` is.

    ``streams``: input that is drawn -> the op of its stream.
    """
    became: dict[Value, Value] = {
        replacement.inputs[name]: match.values[graph.inputs[name]] for name in replacement.inputs
    }
    became |= {value: match.values[graph.cotangents[i]] for i, value in replacement.cotangents.items()}
    origins = tuple(dict.fromkeys(o for n in (at, *match.found.values()) for o in n.origins))
    for value, number in match.even.items():
        number.name = number.outputs[0].name = f"{at.name}/{value.name}"
        place.change.insert(number, before=at)
    nodes: list[PlanNode] = []
    for name, opdef in streams.items():
        drawn = match.values[graph.inputs[name]].node
        assert drawn is not None
        words = replacement.inputs[name]
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
    for part in replacement.graph.nodes:
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
    for mine, theirs in zip(_leaving(graph, gradients), _leaving(replacement, gradients), strict=True):
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


def _first(anchor: PlanNode, registered: RegisteredPattern, pattern_graph: PatternGraph, place: _Place) -> Match | None:
    """Return where the pattern without its gradients stands around an anchor."""
    closed = [pattern_graph.inputs[n] for n, o in registered.pattern.inputs.items() if o.constant]
    matcher = Matcher(place.index, pattern_graph.graph, closed, place.gone)
    alike = [node for node in pattern_graph.graph.nodes if node.op == anchor.op]
    if not alike:
        ops = sorted({n.op for n in pattern_graph.graph.nodes if n.verb != "constant"})
        raise _broken(registered, f"its function has no {anchor.op}, the anchor, but {', '.join(ops) or 'no op'}")
    for node in alike:
        found = matcher.extend(Match(), [(node.outputs[0], anchor.outputs[0])], pattern_graph.values)
        if found is not None:
            return found
    return None


def _found(registered: RegisteredPattern, pattern_graph: PatternGraph, match: Match, anchor: Found) -> Found:
    """The place of a match around what is known of an anchor; _NotHere where the pattern does not take it."""
    if len({n.requested for n in match.found.values()}) > 1:
        raise _NotHere("its nodes ask for several devices")
    shapes, constants = {}, {}
    for name, operand in registered.pattern.inputs.items():
        value = match.values[pattern_graph.inputs[name]]
        if value.shape is None or None in value.shape:
            raise _NotHere(f"the shape of {name} is known only when it runs")
        shapes[name] = tuple([d for d in value.shape if d is not None])
        if operand.drawn and not _is_drawn(value, operand.drawn):
            raise _NotHere(f"{name} is not what {operand.drawn} draws")
        if operand.constant:
            assert value.node is not None
            constants[name] = value.node.attrs["value"]
    found = replace(anchor, shapes=shapes, constants=constants)
    for which in ("check", "worth"):
        reason = _asked(registered, which, found)
        if reason is not None:
            raise _NotHere(reason)
    return found


def _asked(registered: RegisteredPattern, which: str, found: Found) -> str | None:
    """Return why a place is not for a pattern, by its ``check`` or its ``worth``. Raises PluginError where that raises."""
    ask = getattr(registered.pattern, which)
    try:
        return None if ask is None else ask(found)
    except Exception as error:
        raise _broken(registered, f"its {which} raises {type(error).__name__}: {error}") from error


def _is_drawn(value: Value, op: str) -> bool:
    node = value.node
    return node is not None and node.op == op and node.guard is None and not node.control


def _read_within(graph: PatternGraph, match: Match, gradients: Sequence[str], index: Index) -> str | None:
    """Return what else reads what lies within a match, which would be computed twice then; None where nothing does."""
    inside = set(match.found.values())
    leaving = {match.values[v] for v in _leaving(graph, gradients)}
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


def _check_same(
    registered: RegisteredPattern, graph: PatternGraph, replacement: PatternGraph, gradients: Sequence[str]
) -> None:
    """PluginError where the two functions of a pattern make different things."""
    mine = _leaving(graph, gradients)
    if missing := [n for n in gradients if n not in replacement.gradients]:
        raise _broken(registered, f"its replacement has no gradient by {', '.join(missing)}")
    theirs = _leaving(replacement, gradients)
    if len(mine) != len(theirs):
        raise _broken(registered, f"its replacement makes {len(replacement.values)} tensors for {len(graph.values)}")
    for m, t in zip(mine, theirs, strict=True):
        if m.dtype is not t.dtype or m.shape != t.shape:
            raise _broken(registered, f"its replacement makes {t!r} for {m!r}")


def _leaving(graph: PatternGraph, gradients: Sequence[str]) -> list[Value]:
    """Return what a graph gives to others: its values, and the gradients that are wanted of it."""
    return [*graph.values, *(graph.gradients[n] for n in gradients)]


def _check_order(
    graph: PatternGraph, match: Match, replacement: PatternGraph, gradients: Sequence[str], place: _Place
) -> None:
    """_NotHere where a value would wait for an input that it did not need, and that may be computed from another value.

    One that stands before the value in an order of the plan is not: whatever is replaced, each node waits for some that stood
    before it.
    """
    mine, theirs = _sources(graph), _sources(replacement)
    given = {**graph.inputs, **{_ARRIVING.format(i): value for i, value in graph.cotangents.items()}}
    for m, t in zip(_leaving(graph, gradients), _leaving(replacement, gradients), strict=True):
        at = place.positions.of(match.values[m])
        if more := [n for n in sorted(theirs[t] - mine[m]) if place.positions.of(match.values[given[n]]) >= at]:
            raise _NotHere(f"what stands for {m.name} would wait for {', '.join(more)}")


def _sources(graph: PatternGraph) -> dict[Value, frozenset[str]]:
    """Value of a graph -> the inputs that it is computed from."""
    found: dict[Value, frozenset[str]] = {value: frozenset([name]) for name, value in graph.inputs.items()}
    found |= {value: frozenset([_ARRIVING.format(i)]) for i, value in graph.cotangents.items()}
    for node in graph.graph.nodes:
        needed = frozenset[str]().union(*(found[v] for v in node.inputs))
        found.update(dict.fromkeys(node.outputs, needed))
    return found


def _broken(registered: RegisteredPattern, what: str, hint: str | None = None) -> PluginError:
    return PluginError(
        f"the pattern {registered.full_name} (of {registered.package}) is wrong: {what}",
        hint=hint or "fusion = false under [session] does without it",
    )
