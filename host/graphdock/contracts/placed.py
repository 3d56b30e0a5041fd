"""Places of a plan's nodes, as its readers print them."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from graphdock.contracts.ir import PlanGraph, PlanNode

__all__ = ["log_placement", "place_of", "running"]


def running(graph: PlanGraph) -> Iterable[PlanNode]:
    """The nodes of a plan that run, in order, bodies of conds and loops included."""
    return (n for g in graph.all_graphs() for n in g.nodes if not n.opdef.verb.silent)


def place_of(node: PlanNode) -> tuple[str, str, str, tuple[tuple[str, str], ...]]:
    """Device, kernel, why, and who lost."""
    decision = node.decision
    if node.verb == "move":
        where = f"{node.attrs['source']} -> {node.attrs['target']}"
        return where, "transfer", "its reader is in another memory space" if decision is None else decision.why, ()
    if decision is None or decision.kernel == "host":
        return "host", "host", "the host runs it itself" if decision is None else decision.why, ()
    device = node.device.short() if node.device is not None else "host"
    lost = tuple((c.name, c.reason) for c in decision.candidates if c.reason is not None)
    return device, decision.kernel, decision.why, lost


def log_placement(graph: PlanGraph) -> None:
    """Print where each node of a new plan runs, to standard error (``log_device_placement``)."""
    for node in running(graph):
        device, kernel, *_ = place_of(node)
        print(f"{node.origin}: ({node.op}): {device} {kernel}", file=sys.stderr)
