"""A page of a plan: its graph by device and plugin, a timeline of predicted seconds, what is alive. It loads nothing.

What is drawn is embedded as JSON, ten thousand nodes as many rows of numbers; a canvas shows the boxes that are in sight.
"""

from __future__ import annotations

import html
import json
from importlib.resources import files
from math import prod
from typing import Any

from graphdock_profiler.explanation import behind

__all__ = ["plan_facts", "plan_page"]


def plan_page(explanation: Any) -> str:
    """Return a page of HTML about what ``session.explain(...)`` returned: graph, timeline, memory, a table to search.

    A node's colour is its device's, its plugin's or its seconds', its kernel is on its second line, a thick rim stands for several
    operations. Seconds are predicted from measured steps, or from the rates of the device; a node of unknown seconds takes none.
    ``#NAME`` behind the page's address chooses a node. Any thread may call it.
    """
    facts = json.dumps(plan_facts(explanation), separators=(",", ":")).replace("<", "\\u003c")
    text = files("graphdock_profiler").joinpath("plan_page.html").read_text("utf-8")
    return text.replace("@SUMMARY@", html.escape(explanation.summary())).replace("@FACTS@", facts)


def plan_facts(explanation: Any) -> dict[str, Any]:
    """Return what the page draws, as plain data.

    Returns:
      ``summary``, ``notes``, ``passes``. ``nodes``: a row per node that runs, bodies of branches and loops too: name, op, shapes,
      device, kernel, seconds (None where unknown), where they are from, how many operations it stands for, the level that it is in,
      the numbers of the rows that it reads or follows, the numbers of three of the ``texts`` (why this kernel, the user's line, the
      passes that changed it), flops and bytes, and the names of its operations if it is of several. ``own``: those of the plan's
      own level; ``begins``: when they begin, in seconds, if each device works in the plan's order. ``memory``: device -> bytes
      alive at each node of that level, of buffers whose shapes are known, as if none was written in place.
    """
    levels = list(explanation.plan.graph.all_graphs())
    nodes = [(at, n) for at, level in enumerate(levels) for n in level.nodes if not n.opdef.verb.silent]
    number = {node: i for i, (_, node) in enumerate(nodes)}
    rows: list[list[Any]] = []
    texts: dict[str, int] = {}  # those of many nodes are the same
    for (at, node), row in zip(nodes, explanation.rows, strict=True):
        reads = sorted({number[n] for n in behind(node) if n in number})
        facts = [row.node, row.op, row.shapes, row.device, row.kernel, row.seconds, row.known_from, len(node.origins)]
        said = [texts.setdefault(text, len(texts)) for text in (row.why, row.site or "", ", ".join(row.passes))]
        parts = list(node.origins) if len(node.origins) > 1 else []
        rows.append([*facts, levels[at].name, reads, *said, row.flops, row.bytes, parts])
    own = [i for i, (at, _) in enumerate(nodes) if at == 0]
    return {
        "summary": explanation.summary(),
        "notes": explanation.notes(),
        "passes": [[p.name, p.before, p.after, p.ms] for p in explanation.plan.reports],
        "nodes": rows,
        "texts": list(texts),
        "own": own,
        "begins": _begins(rows, own),
        "memory": _alive(explanation.plan.graph, number),
    }


def _begins(rows: list[list[Any]], own: list[int]) -> list[float]:
    free: dict[str, float] = {}
    ends: dict[int, float] = {}
    begins = []
    for i in own:
        device, seconds, reads = rows[i][3], rows[i][5], rows[i][9]
        start = max([free.get(device, 0.0), *(ends.get(r, 0.0) for r in reads)])
        free[device] = ends[i] = start + (seconds or 0.0)
        begins.append(start)
    return begins


def _alive(graph: Any, number: dict[Any, int]) -> dict[str, list[int]]:
    """Bytes alive while each node of the plan's own level runs, by device."""
    own = [n for n in graph.nodes if n in number]
    at = {node: i for i, node in enumerate(own)}
    root: dict[Any, Any] = {}
    spans: dict[Any, list[int]] = {}
    for node in graph.nodes:
        for value in node.inputs:
            source = root.get(value, value)
            if source in spans and node in at:
                spans[source][1] = at[node]
        view = node.inputs and (node.verb == "alias" or "view" in node.opdef.traits)
        for value in node.outputs:
            if view:
                root[value] = root.get(node.inputs[0], node.inputs[0])
            elif node in at and node.verb == "kernel" and value.shape is not None and None not in value.shape:
                spans[value] = [at[node], at[node]]
    for value in graph.outputs:
        if (source := root.get(value, value)) in spans:
            spans[source][1] = len(own) - 1
    steps: dict[str, list[int]] = {}
    for value, (first, last) in spans.items():
        device = value.node.device.short() if value.node.device is not None else "host"
        change = steps.get(device)
        if change is None:
            change = steps[device] = [0] * (len(own) + 1)
        nbytes = value.dtype.size * prod(value.shape)
        change[first] += nbytes
        change[last + 1] -= nbytes
    for change in steps.values():
        for i in range(1, len(change)):
            change[i] += change[i - 1]
    return {device: change[:-1] for device, change in sorted(steps.items())}
