"""Explaining a plan: per node its device, kernel and why, the losers with their reasons, its cost; transfers, memory, passes."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from graphdock.contracts.costs import CostModel
from graphdock.contracts.ir import PlanNode
from graphdock.contracts.placed import place_of, running
from graphdock.opdef.cost import cost_of
from graphdock.planning.plan import Plan
from graphdock.shape import show
from graphdock.units import in_seconds

from graphdock_profiler import simulation

__all__ = ["Explanation", "Row", "behind"]


@dataclass(frozen=True)
class Row:
    """One node of a plan.

    Attributes:
      node: the user's operation. ``op``: its type. ``shapes``: of its inputs.
      device: ``cpu:0``. ``kernel``: ``cpu.mat_mul``, ``host`` for what the host runs itself, ``transfer``.
      why: one line. ``lost``: (kernel, reason) of each candidate that lost.
      site: the user's own line.
      flops, bytes: estimates for one run, as :class:`graphdock.opdef.cost.Cost` has them; None where unknown.
      seconds: of one run, as far as anybody knows; ``known_from``: ``measured`` by traced steps, ``rates`` of the device, or
        ``unknown``. ``predicted``: what follows of the rates alone, whatever was measured.
      passes: those that changed nodes of the operation, in order.
      elsewhere: (kernel, device, seconds, known_from) of each candidate that lost on another type of device, of its first device.
    """

    node: str
    op: str
    shapes: str
    device: str
    kernel: str
    why: str
    lost: tuple[tuple[str, str], ...] = ()
    site: str | None = None
    flops: int | None = None
    bytes: int | None = None
    seconds: float | None = None
    known_from: str = "unknown"
    predicted: float | None = None
    passes: tuple[str, ...] = ()
    elsewhere: tuple[tuple[str, str, float | None, str], ...] = ()

    @property
    def time(self) -> str:
        """Its seconds in a few letters: ``12.0 us``, ``~12.0 us`` of a guess, ``?``."""
        return _time(self.seconds, self.known_from)


class Explanation:
    """Result of ``session.explain(fetches)``; prints as a table.

    Attributes:
      plan: the plan, with its generated ``source``.
      rows: one :class:`Row` per node that runs, in order, bodies of conds and loops included.
      absent: device types of the session's backends that this machine has no device of, each with the probe's reason.
      before: of the parts that run before, whose results are fed to this one. Their nodes are not among ``rows``.
    """

    def __init__(
        self,
        plan: Plan,
        config: Any = None,
        absent: Mapping[str, str] | None = None,
        before: Sequence[Explanation] = (),
    ) -> None:
        self.plan = plan
        self.before = tuple(before)
        self.config = config
        self.absent = dict(absent or {})
        self.rows: list[Row] = [_row(n, plan.costs(), plan.changes.get(n.origin, ())) for n in running(plan.graph)]

    def dropped(self) -> dict[str, tuple[str, ...]]:
        """Name of each operation of which no row is left -> the passes that changed nodes of it; the last one dropped them."""
        left = {row.node for row in self.rows}
        return {name: tuple(passes) for name, passes in self.plan.changes.items() if name not in left}

    @property
    def source(self) -> str:
        """The generated Python source of the step."""
        return self.plan.source

    def compiled(self) -> dict[str, str]:
        """Name of a node -> the text that its kernel was compiled from (a region's program and its code), of those that tell."""
        return self.plan.compiled()

    def kernels(self) -> dict[str, int]:
        """Kernel -> number of nodes of the step that run it; outside of conds and loops, its launches per step."""
        placed, runs = self.plan.placement.kernels, set(self.plan.kernel_nodes)
        counts = Counter(r.full_name for n, r in placed.items() if n in runs)
        for part in self.before:
            counts.update(part.kernels())
        return dict(sorted(counts.items()))

    def cost(self) -> dict[str, int]:
        """``flops`` and ``bytes`` of all rows together, and how many rows are ``unknown`` in either.

        A body counts once, however often its loop runs it.
        """
        return {
            "flops": sum(r.flops or 0 for r in self.rows),
            "bytes": sum(r.bytes or 0 for r in self.rows),
            "unknown": sum(r.flops is None or r.bytes is None for r in self.rows),
        }

    def seconds(self) -> dict[str, Any]:
        """Seconds of all rows together, one after another: those that were ``measured``, those guessed from ``rates``, and how many
        rows are ``unknown``. A body counts once."""
        known = {
            source: [r.seconds or 0.0 for r in self.rows if r.known_from == source] for source in ("measured", "rates")
        }
        return {
            **{source: sum(seconds) for source, seconds in known.items()},
            "unknown": len(self.rows) - sum(map(len, known.values())),
        }

    def notes(self) -> list[str]:
        """Lines of the program, of executors that refused it, and of passes."""
        refusals = [f"executor {self.plan.executor}: {reason}" for reason in self.plan.refusals]
        simulated = self.plan.placement.simulation
        placed = () if simulated is None else simulation.lines(simulated)
        lines = [*self.plan.placement.lock_notes, *placed, *refusals, *self.plan.program.notes, *self.plan.notes]
        return [_indented(line) for line in lines]

    def summary(self) -> str:
        """One line: nodes before and after passes, devices, transfers, cost, planned memory, executor."""
        devices = Counter(r.device for r in self.rows if r.kernel not in ("host", "transfer"))
        moved = sum(r.kernel == "transfer" for r in self.rows)
        planned = sum(self.plan.arena_bytes.values())
        where = ", ".join(f"{d} {n}" for d, n in sorted(devices.items())) or "host"
        cost = self.cost()
        least = "at least " if cost["unknown"] else ""
        took = self.seconds()
        known = in_seconds(took["measured"] + took["rates"]) if took["unknown"] < len(self.rows) else "unknown time"
        guessed = "~" if took["rates"] or 0 < took["unknown"] < len(self.rows) else ""
        return (
            f"{_count(self.plan.translated, 'node')} -> {len(self.rows)} after pruning and passes · {where} · "
            f"{_count(moved, 'transfer')} · "
            f"{least}{_amount(cost['flops'], 1000, 'flop')}, {_amount(cost['bytes'], 1024, 'B')} moved · "
            f"{guessed}{known} · "
            f"{_amount(planned, 1024, 'B')} planned · {self.plan.executor}"
        )

    def table(self, lost: bool = False) -> str:
        """The table as text; with ``lost`` every candidate that lost and its reason, and the passes that changed a node."""
        head = ("NODE", "OP", "SHAPES", "DEVICE", "KERNEL", "TIME", "WHY")
        cells = [(r.node, r.op, r.shapes, r.device, r.kernel, r.time, " ".join(r.why.splitlines())) for r in self.rows]
        widths = [max(len(c[i]) for c in [head, *cells]) for i in range(len(head) - 1)]
        lines = []
        for cell, row in zip([head, *cells], [None, *self.rows], strict=True):
            lines.append("  ".join([c.ljust(w) for c, w in zip(cell, widths, strict=False)] + [cell[-1]]).rstrip())
            if lost and row is not None:
                other = {name: f" ({_time(took, source)} on {where})" for name, where, took, source in row.elsewhere}
                lines.extend(
                    _indented(f"    lost: {name}: {reason}{other.get(name, '')}", 8) for name, reason in row.lost
                )
                if row.passes:
                    lines.append(f"    changed by {', '.join(row.passes)}")
        return "\n".join(lines)

    def to_json(self) -> str:
        """Rows, kernel counts, cost, passes and memory as JSON."""
        return json.dumps(self.facts(), indent=2)

    def facts(self) -> dict[str, Any]:
        simulated = self.plan.placement.simulation
        return {
            "summary": self.summary(),
            "absent": self.absent,
            "rows": [asdict(r) for r in self.rows],
            "kernels": self.kernels(),
            "cost": self.cost(),
            "seconds": self.seconds(),
            "timeline": None if simulated is None else simulation.facts(simulated),
            "passes": [asdict(r) for r in self.plan.reports],
            "dropped": self.dropped(),
            "decomposed": [asdict(d) for d in self.plan.placement.decomposed],
            "loops": [asdict(n) for n in self.plan.loops],
            "regions": [asdict(n) for n in self.plan.placement.notes],
            "arena_bytes": self.plan.arena_bytes,
            "stages": [asdict(s) for s in self.plan.stages],
            "notes": self.notes(),
            "before": [part.facts() for part in self.before],
        }

    def lock(self, path: str | os.PathLike[str]) -> int:
        """Write the devices and kernels of this step's nodes to a file for ``SessionConfig(lock=...)``; how many nodes that are.

        Raises OSError.
        """
        from graphdock.placement.lock import Lock

        return Lock.write(os.fspath(path), [part.plan.placement.locked for part in (*self.before, self)])

    def diff(self, other: Explanation) -> str:
        """Text of what differs in another explanation of the same step; see :mod:`graphdock_profiler.explanation_diff`."""
        from graphdock_profiler.explanation_diff import difference

        return difference(self, other)

    def diff_facts(self, other: Explanation) -> dict[str, Any]:
        """The same as plain data."""
        from graphdock_profiler.explanation_diff import facts

        return facts(self, other)

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def text(self, lost: bool = False) -> str:
        """All that is known of the plan, and its table; ``lost`` as :meth:`table` has it."""
        head = []
        if self.config is not None:
            backends = ",".join(self.config.backends)
            head.append(
                f"config  backends={backends} ({self.config.source('backends')}) · fallback={self.config.fallback}"
            )
        head += [f"absent  no device {kind}: {reason}" for kind, reason in self.absent.items()]
        notes = self.plan.placement.notes
        found = [f"pattern {n.compiler} on {n.device}: {n.what}" for n in notes if n.pattern and n.claimed]
        refused = [
            f"{'pattern' if n.pattern else 'region '} {n.compiler} {'does not get' if n.by_host else 'refused'} "
            f"{_count(len(n.ops), 'node')} on {n.device} ({_listed(n.ops)}): {n.what}"
            for n in notes
            if not n.claimed
        ]
        became = [
            f"decomposed  {d.node} ({d.op}) on {d.device_type} -> {_count(len(d.parts), 'node')} ({_listed(d.parts)}): {d.why}"
            for d in self.plan.placement.decomposed
        ]
        loops = [
            f"written out: {n.origin}: {_count(n.count, 'iteration')}"
            if n.count
            else f"not written out: {n.origin}: {n.why}"
            for n in self.plan.loops
        ]
        lines = [
            *head,
            f"plan    {self.summary()}",
            *self._passes(),
            *self.notes(),
            *loops,
            *became,
            *found,
            *refused,
        ]
        parts = [f"inputs first, in a part that holds nothing:\n{part.text(lost)}\n" for part in self.before]
        return "\n".join([*parts, *map(_indented, lines), self.table(lost)])

    def _passes(self) -> list[str]:
        """A line that says which passes dropped how many operations, and changed how many that are left; none where none did."""
        dropped = Counter(passes[-1] for passes in self.dropped().values())
        changed = Counter(name for row in self.rows for name in row.passes)
        said = [
            f"{name} "
            + ", ".join(f"{what} {n}" for what, n in (("dropped", dropped[name]), ("changed", changed[name])) if n)
            for name in dict.fromkeys([*(r.name for r in self.plan.reports), *dropped, *changed])
            if dropped[name] or changed[name]
        ]
        return [f"passes  {' · '.join(said)}"] if said else []

    def _repr_html_(self) -> str:
        from graphdock_profiler import html

        rows = [
            (r.node, r.op, r.shapes, r.device, r.kernel, r.why, r.flops, r.bytes, (r.seconds, r.time), r.site)
            for r in self.rows
        ]
        head = ("node", "op", "shapes", "device", "kernel", "why", "flops", "bytes", "time", "made at")
        boxes = [
            html.Box(
                n.name, html.label_of(n.origin, n.op), place_of(n)[0], tuple(b.name for b in behind(n)), place_of(n)[1]
            )
            for n in self.plan.graph.nodes
            if not n.opdef.verb.silent
        ]
        return html.section(self.summary(), html.picture(boxes), html.table(head, rows))


def behind(node: PlanNode) -> list[PlanNode]:
    """The nodes that a node reads or follows; behind an alias stands what it is an alias of."""
    found: dict[PlanNode, None] = {}
    for read in [*(v.node for v in node.inputs), *node.control, *node.order]:
        while read is not None and read.verb == "alias" and read.inputs:
            read = read.inputs[0].node
        if read is not None:
            found[read] = None
    return list(found)


def _row(node: PlanNode, costs: CostModel, passes: Sequence[str]) -> Row:
    shapes = " ".join(show(v.shape) for v in node.inputs if v.dtype.name != "resource")
    cost = cost_of(
        node.opdef, node.attrs, [(v.dtype, v.shape) for v in node.inputs], [(v.dtype, v.shape) for v in node.outputs]
    )
    found = costs.predict(node)
    guess = costs.from_rates(node)
    return Row(
        node.origin,
        node.op,
        shapes,
        *place_of(node),
        node.site,
        cost.flops,
        cost.bytes,
        found.seconds,
        found.source,
        guess,
        tuple(passes),
        tuple(_elsewhere(node, costs)),
    )


def _elsewhere(node: PlanNode, costs: CostModel) -> Iterator[tuple[str, str, float | None, str]]:
    """Candidates that lost on other types of devices, and what a run takes on the first device of each."""
    if node.device is None or node.decision is None:
        return
    for lost in node.decision.candidates:
        if lost.reason is not None and lost.device != node.device.type:
            device = replace(node.device, type=lost.device, index=0)
            found = costs.predict(node, device, lost.name)
            yield lost.name, device.short(), found.seconds, found.source


def _indented(text: str, by: int = 4) -> str:
    """A note whose further lines, if it has some, are seen to belong to it."""
    return "\n".join(line if i == 0 else " " * by + line.strip() for i, line in enumerate(text.splitlines()))


def _time(seconds: float | None, known_from: str) -> str:
    if seconds is None:
        return "?"
    return ("" if known_from == "measured" else "~") + in_seconds(seconds)


def _listed(ops: Sequence[str]) -> str:
    """``Add, Mul 3, Tanh``: op types with how many there are of each."""
    return ", ".join(op if n == 1 else f"{op} {n}" for op, n in sorted(Counter(ops).items()))


def _amount(number: int, step: int, unit: str) -> str:
    """``1.5 Mflop``, ``2.0 KiB``."""
    scaled, prefixes = float(number), iter("kMGTPE" if step == 1000 else "KMGTPE")
    prefix = ""
    while scaled >= step and prefix != "E":
        scaled, prefix = scaled / step, next(prefixes)
    between = "i" if prefix and step == 1024 else ""
    return f"{scaled:.1f} {prefix}{between}{unit}" if prefix else f"{number} {unit}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
