"""Explaining a plan: per node its device, kernel and why, the losers with their reasons, transfers, memory and passes."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from graphdock.contracts.ir import PlanNode
from graphdock.runtime.plan import Plan
from graphdock.session.config import SessionConfig
from graphdock.shape import show

__all__ = ["Explanation", "Row", "log_placement"]


@dataclass(frozen=True)
class Row:
    """One node of a plan.

    Attributes:
      node: the user's operation. ``op``: its type. ``shapes``: of its inputs.
      device: ``cpu:0``. ``kernel``: ``cpu.mat_mul``, ``host`` for what the host runs itself, ``transfer``.
      why: one line. ``lost``: (kernel, reason) of each candidate that lost.
      site: the user's own line.
    """

    node: str
    op: str
    shapes: str
    device: str
    kernel: str
    why: str
    lost: tuple[tuple[str, str], ...] = ()
    site: str | None = None


class Explanation:
    """What ``session.explain(fetches)`` returns; prints as a table.

    Attributes:
      plan: the plan, with its generated ``source``.
      rows: one :class:`Row` per node that runs, in order, bodies of conds and loops included.
    """

    def __init__(self, plan: Plan, config: SessionConfig | None = None) -> None:
        self.plan = plan
        self.config = config
        self.rows: list[Row] = [_row(n) for g in plan.graph.all_graphs() for n in g.nodes if not n.opdef.verb.silent]

    @property
    def source(self) -> str:
        """The generated Python source of the step."""
        return self.plan.source

    def kernels(self) -> dict[str, int]:
        """Kernel -> number of nodes of the plan that run it; outside of conds and loops, its launches per step."""
        placed = self.plan.placement.kernels
        counts = Counter(r.full_name for n, r in placed.items() if n in set(self.plan.kernel_nodes))
        return dict(sorted(counts.items()))

    def summary(self) -> str:
        """One line: nodes before and after passes, devices, transfers, planned memory, executor."""
        devices = Counter(r.device for r in self.rows if r.kernel not in ("host", "transfer"))
        moved = sum(r.kernel == "transfer" for r in self.rows)
        planned = sum(self.plan.arena_bytes.values())
        where = ", ".join(f"{d} {n}" for d, n in sorted(devices.items())) or "host"
        return (
            f"{_count(self.plan.translated, 'node')} -> {len(self.rows)} after pruning and passes · {where} · "
            f"{_count(moved, 'transfer')} · "
            f"{planned / 1024:.1f} KiB planned · straight_line"
        )

    def table(self, lost: bool = False) -> str:
        """The table as text; with ``lost`` every candidate that lost and its reason."""
        head = ("NODE", "OP", "SHAPES", "DEVICE", "KERNEL", "WHY")
        cells = [(r.node, r.op, r.shapes, r.device, r.kernel, r.why) for r in self.rows]
        widths = [max(len(c[i]) for c in [head, *cells]) for i in range(len(head) - 1)]
        lines = []
        for cell, row in zip([head, *cells], [None, *self.rows], strict=True):
            lines.append("  ".join([c.ljust(w) for c, w in zip(cell, widths, strict=False)] + [cell[-1]]).rstrip())
            if lost and row is not None:
                lines.extend(f"    lost: {name}: {reason}" for name, reason in row.lost)
        return "\n".join(lines)

    def to_json(self) -> str:
        """Rows, kernel counts, passes and memory as JSON."""
        return json.dumps(self.facts(), indent=2)

    def facts(self) -> dict[str, Any]:
        return {
            "summary": self.summary(),
            "rows": [asdict(r) for r in self.rows],
            "kernels": self.kernels(),
            "passes": [asdict(r) for r in self.plan.reports],
            "arena_bytes": self.plan.arena_bytes,
            "recordings": self.plan.recordings,
        }

    def __str__(self) -> str:
        head = []
        if self.config is not None:
            backends = ",".join(self.config.backends)
            head.append(
                f"config  backends={backends} ({self.config.source('backends')}) · fallback={self.config.fallback}"
            )
        return "\n".join([*head, f"plan    {self.summary()}", *self.plan.recordings, self.table()])

    __repr__ = __str__


def _row(node: PlanNode) -> Row:
    decision = node.decision
    shapes = " ".join(show(v.shape) for v in node.inputs if v.dtype.name != "resource")
    device = node.device.short() if node.device is not None else "host"
    if node.verb == "move":
        where = f"{node.attrs['source']} -> {node.attrs['target']}"
        return Row(
            node.origin, node.op, shapes, where, "transfer", "its reader is in another memory space", (), node.site
        )
    if decision is None or decision.kernel == "host":
        why = "the host runs it itself" if decision is None else decision.why
        return Row(node.origin, node.op, shapes, "host", "host", why, (), node.site)
    lost = tuple((c.name, c.reason) for c in decision.candidates if c.reason is not None)
    return Row(node.origin, node.op, shapes, device, decision.kernel, decision.why, lost, node.site)


def log_placement(plan: Plan) -> None:
    """Print where each node of a new plan runs, to standard error (``log_device_placement``)."""
    rows: Iterable[Row] = Explanation(plan).rows
    for row in rows:
        print(f"{row.node}: ({row.op}): {row.device} {row.kernel}", file=sys.stderr)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
