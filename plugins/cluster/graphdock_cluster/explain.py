"""PartitionExplanation: what each task runs of a step, by which kernels, and what they send one another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from graphdock.contracts.cluster import TaskName

from graphdock_cluster.partition.cut import Part, Partition

__all__ = ["PartitionExplanation"]


class PartitionExplanation:
    """Printed, a table of tasks, one of the tensors on their way, and the kernels of each part.

    Args:
      cut: the step. ``own``: the session's own task.
      plans: of the parts, as their tasks say: ``task``, ``kernels`` and ``devices`` with the number of nodes of each, ``table`` and
        ``source``. Those of one task stand in the order in which they run.
    """

    def __init__(self, cut: Partition, own: TaskName, plans: Sequence[Mapping[str, Any]] = ()) -> None:
        self.partition, self.own, self.plans = cut, own, tuple(plans)

    def facts(self) -> dict[str, Any]:
        """The same as plain data: per part its task, operations, feeds, fetches; per edge sender, receiver, dtype, bytes; plans.

        Of the two parts of a task, the first runs before the second; what the second needs of it is an edge of the task to itself.
        """
        return {
            "tasks": [self._task(p) for p in self.partition.parts],
            "edges": self._edges(),
            "messages": self.messages,
            "plans": [dict(plan) for plan in self.plans],
        }

    @property
    def messages(self) -> int:
        """Messages of one step at most: one starts each part, one answers, one per tensor sent: small ones may share it."""
        others = {p.task for p in self.partition.parts} - {self.own}
        return 2 * len(others) + sum(bool(edge["from"] != edge["to"]) for edge in self._edges())

    def __str__(self) -> str:
        facts = self.facts()
        lines = [f"{'task':24} {'operations':>10} {'sends':>6} {'receives':>8}"]
        for row in facts["tasks"]:
            lines.append(f"{row['task']:24} {row['operations']:>10} {row['sends']:>6} {row['receives']:>8}")
        for edge in facts["edges"]:
            size = "?" if edge["bytes"] is None else f"{edge['bytes']:,} B"
            lines.append(f"{edge['edge']}: {edge['from']} to {edge['to']}, {edge['dtype']} {size}")
        lines.append(f"{facts['messages']} messages a step")
        for plan in self.plans:
            nodes = ", ".join(f"{device} {count}" for device, count in plan["devices"].items())
            kernels = ", ".join(f"{name} {count}" for name, count in plan["kernels"].items())
            lines.append(f"{plan['task']} runs nodes on {nodes or 'the host'}; kernels: {kernels or 'none'}")
        return "\n".join(lines)

    def _task(self, part: Part) -> dict[str, Any]:
        kinds = Counter(op.type for op in part.graph.get_operations())
        own = sum(kinds[name] for name in ("Send", "Recv"))
        return {
            "task": str(part.task),
            "operations": sum(kinds.values()) - own,
            "sends": part.sends,
            "receives": len(part.receives),
            "feeds": len(part.feeds),
            "fetches": len(part.fetches),
        }

    def _edges(self) -> list[dict[str, Any]]:
        rows = []
        for part in self.partition.parts:
            for op in part.graph.get_operations():
                if op.type != "Send":
                    continue
                value = op.inputs[1]
                count = value.shape.num_elements()
                each = 2 if op.node_attrs["compress"] and value.dtype.name == "float32" else value.dtype.size
                size = None if count is None or not each else count * each
                rows.append(
                    {
                        "edge": op.node_attrs["edge"],
                        "from": str(part.task),
                        "to": op.node_attrs["task"],
                        "dtype": value.dtype.name,
                        "bytes": size,
                    }
                )
        return rows
