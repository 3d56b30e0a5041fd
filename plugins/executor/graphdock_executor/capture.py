"""Choice of the device that may record parts of a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from graphdock.contracts.device import Device
from graphdock.contracts.ir import PlanGraph, PlanNode
from graphdock.contracts.kernel import KernelDef
from graphdock.contracts.queue import can_record
from graphdock.contracts.rewriter import Rewriter

__all__ = ["capturing_device", "feeds_first"]


def capturing_device(
    graph: PlanGraph, kernels: Mapping[PlanNode, KernelDef], device_of: Callable[[PlanNode], Device]
) -> Device | None:
    """The device that may record parts of this placed plan: the one with most kernels of those that can. None if none can."""
    counts: dict[Device, int] = {}
    for level in graph.all_graphs():
        for node in level.nodes:
            if node in kernels:
                device = device_of(node)
                counts[device] = counts.get(device, 0) + 1
    able = [d for d in counts if can_record(d)]
    return max(able, key=lambda d: counts[d]) if able else None


def feeds_first(graph: PlanGraph) -> None:
    """Let the step begin with the moves of feeds, so that none of them parts a recording."""
    fed = set(graph.inputs)
    early = [n for n in graph.nodes if n.verb == "move" and n.inputs[0] in fed and not n.control]
    if early:
        chosen = set(early)
        with Rewriter(graph) as change:
            change.arrange([*early, *(n for n in graph.nodes if n not in chosen)])
