"""Histories between loops that are regions and those who make or read them: all are to be on one device, where they lie."""

from __future__ import annotations

from collections.abc import Iterable

from graphdock.contracts import PlanGraph, PlanNode, Region, Value
from graphdock.contracts.bodies import scanned

__all__ = ["read_elsewhere"]


def read_elsewhere(region: Region, graph: PlanGraph, level: PlanGraph) -> str | None:
    """Reason why a loop can't be a region: elements of a history are moved one by one where loops make or read them, and a kernel
    has them in its own memory. None where it can."""
    histories = [v for v in (*region.entering, *region.leaving) if v.dtype.kind == "V"]
    if not histories or _devices(graph.all_graphs()) <= {region.device}:
        return None
    for history in histories:
        for node in (history.node, *(n for n in level.nodes if history in n.inputs)):
            if node is None or history in level.outputs:
                return (
                    f"{history.name}, a history, is made or read by what stands around it, in a plan of several devices"
                )
            if not _of_device(node, history, region):
                return f"{history.name}, a history, is made or read by {node.origin}, on another device"
    return None


def _of_device(node: PlanNode, history: Value, region: Region) -> bool:
    """Return whether a node that makes or reads a history does so on the device of the region."""
    if not node.bodies:
        return node.device == region.device
    loops = node.verb == "loop" and (history.node is node or scanned(node.opdef, node.attrs) > 0)
    return loops and _devices(g for b in node.bodies for g in b.all_graphs()) <= {region.device}


def _devices(graphs: Iterable[PlanGraph]) -> set[object]:
    return {n.device for g in graphs for n in g.nodes if n.device is not None and n.verb != "constant"}
