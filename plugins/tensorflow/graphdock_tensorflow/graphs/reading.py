"""A GraphDef of TensorFlow as graphdock's plain data, as far as graphdock has its ops, with a report of what it lacks.

    bare nodes -> names, attributes -> sums -> arrays -> references -> functions -> loops -> branches -> what hangs on a missing op
    is left out

Each stage works on the nodes of one graph or body; none knows a session or makes an operation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from graphdock.contracts import GraphRead, ImportReport, Missing
from graphdock.errors import InvalidArgumentError, NotFoundError, did_you_mean

from graphdock_tensorflow.graphs.arrays import make_arrays
from graphdock_tensorflow.graphs.branches import make_branches
from graphdock_tensorflow.graphs.convert import PRIMITIVES, convert, node_of
from graphdock_tensorflow.graphs.functions import Library
from graphdock_tensorflow.graphs.loops import make_loops
from graphdock_tensorflow.graphs.nodes import Level, Room, op_of, port
from graphdock_tensorflow.graphs.primitives import is_other, keep_primitives, restore, snapshot, values_alone
from graphdock_tensorflow.graphs.references import without_references
from graphdock_tensorflow.graphs.sums import make_sums
from graphdock_tensorflow.graphs.table import LACKING
from graphdock_tensorflow.plain_data.writing import FORMAT

__all__ = ["read_graph"]


def read_graph(message: Any, ops: Any, mapped: Collection[str] = (), outputs: Sequence[str] = ()) -> GraphRead:
    """The plain data of a GraphDef.

    Args:
      message: the GraphDef; it is not changed. ``ops``: the ops that graphdock has.
      mapped: names of tensors (``"x:0"``) that others will stand for, so that nothing behind them is needed.
      outputs: names of tensors or nodes: only what they need is read. Default: everything.

    Raises:
      InvalidArgumentError, DataLossError: it is no graph, with the node's name. NotFoundError: an output is not there.
    """
    level = Level(ops, Room(message.ByteSize()))
    for item in message.node:
        if item.name in level:
            raise InvalidArgumentError(f"GraphDef: two nodes are named {item.name!r}")
        level.put(node_of(item))
    replaced = {":".join(map(str, port(m))) for m in mapped}
    _check_inputs(level, replaced)
    wanted = _wanted(level, outputs)
    if wanted is not None:
        for name in [n for n in level if n not in wanted]:
            del level[name]
    total = len(level)
    producer = message.versions.producer
    for name in list(level):
        convert(level, name, producer)
    make_sums(level)
    make_arrays(level)
    keep = frozenset(replaced)
    library = Library(message.library, producer, _finish)
    without_references(level, keep)
    library.expand(level)
    finish(level)
    report = _leave_out(level, replaced, total)
    data = {"graphdock_graph": FORMAT, "nodes": [n.data() for n in level.values()]}
    return GraphRead(data, report)


def finish(level: Level) -> None:
    """Make loops and branches of a graph's primitives. Where some are neither, the graph keeps all of its primitives."""
    values_alone(level)
    if not any(n.op in PRIMITIVES and n.raw is not None for n in level.values()):
        _finish(level)
        return
    before = snapshot(level)
    _finish(level)
    if is_other(level):
        restore(level, before)
        keep_primitives(level)


def _finish(level: Level) -> None:
    for node in level.values():
        if node.op == "ControlTrigger":  # nothing that it follows is dead where branches and loops are ops
            node.op, node.attrs, node.raw = "NoOp", {}, None
    make_loops(level)
    make_branches(level)
    for node in level.values():
        if node.raw is not None and not node.why:
            node.why = "op"


def _check_inputs(level: Level, replaced: set[str]) -> None:
    for node in level.values():
        for tensor in node.inputs:
            if op_of(tensor) not in level and tensor not in replaced:
                raise NotFoundError(
                    f"GraphDef: input {tensor!r} of node {node.name!r} does not exist",
                    hint=did_you_mean(op_of(tensor), level),
                )
        for name in node.controls:
            if name not in level:
                raise NotFoundError(
                    f"GraphDef: input {'^' + name!r} of node {node.name!r} does not exist",
                    hint=did_you_mean(name, level),
                )


def _wanted(level: Level, outputs: Sequence[str]) -> set[str] | None:
    """The nodes that the outputs need; None for all."""
    if not outputs:
        return None
    roots = [port(o)[0] for o in outputs]
    for text, name in zip(outputs, roots, strict=True):
        if name not in level:
            raise NotFoundError(f"the graph has no node {text!r}", hint=did_you_mean(name, level))
    found = level.behind(roots)
    loops = {n.name for n in level.values() if n.op == "NextIteration"}
    grown = True
    while grown:  # a loop's Merge has a NextIteration behind it, and a frame all its Enters
        more = level.behind([*found, *(loops & found)])
        grown, found = len(more) > len(found), more
    return found


def _leave_out(level: Level, replaced: set[str], total: int) -> ImportReport:
    """Take out the nodes that can't be imported and those that need them; and say which."""
    gone = [n.name for n in level.values() if any(op_of(t) not in level and t not in replaced for t in n.inputs)]
    gone += [n.name for n in level.values() if any(c in level.dropped for c in n.controls)]
    bad = [n.name for n in level.values() if n.why]
    cut = {n.name: [t for t in n.inputs if t not in replaced] for n in level.values()} if replaced else None
    left = _needing(level, bad + gone, cut)
    groups: dict[tuple[str, str], list[str]] = {}
    for op, why, name in level.lost:
        groups.setdefault((op, why), []).append(name)
    for name in bad:
        node = level[name]
        groups.setdefault((node.wrote, _lacking(node.wrote) if node.why == "op" else node.why), []).append(name)
    missing = [Missing(op, why, tuple(names)) for (op, why), names in sorted(groups.items())]
    for name in left:
        del level[name]
    left |= level.dropped
    for node in level.values():
        node.controls = [c for c in node.controls if c in level]
    counts = Counter(n.wrote for n in level.values())
    return ImportReport(total, dict(sorted(counts.items())), missing, frozenset(left))


def _lacking(op: str) -> str:
    """Return why there is no such op; empty where there is nothing to say."""
    return next((why for prefix, why in LACKING.items() if op.startswith(prefix)), "")


def _needing(level: Level, bad: list[str], cut: dict[str, list[str]] | None) -> set[str]:
    if cut is not None:
        readers: dict[str, list[str]] = {}
        for node in level.values():
            for name in (*map(op_of, cut[node.name]), *node.controls):
                readers.setdefault(name, []).append(node.name)
        found: set[str] = set()
        stack = list(bad)
        while stack:
            name = stack.pop()
            if name not in found:
                found.add(name)
                stack.extend(readers.get(name, ()))
        return found
    return level.ahead(bad)
