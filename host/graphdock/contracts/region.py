"""Region compilers: a plugin takes a connected region of a placed plan and returns one kernel for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass

from graphdock.contracts.ir import PlanGraph, PlanNode, Region, Value
from graphdock.contracts.kernel import Bound, BuildContext
from graphdock.device_name import DeviceSpec
from graphdock.errors import PlanError

__all__ = ["Claim", "Refusal", "RegionCompiler", "cut_region"]


@dataclass(frozen=True, slots=True)
class Claim:
    """The compiler takes these nodes (a connected subset of the candidate), at this estimated cost in microseconds."""

    nodes: tuple[PlanNode, ...]
    cost_us: float


@dataclass(frozen=True, slots=True)
class Refusal:
    """The compiler does not take the region; ``reason`` is printed by ``explain``."""

    reason: str


class RegionCompiler(ABC):
    """Compiles regions for one device type. ``claim`` runs after placement; ``build`` yields the same Bound as a kernel."""

    device_type: str

    @abstractmethod
    def claim(self, candidate: Region) -> Claim | Refusal:
        """What of the candidate this compiler would take. Must not change the candidate."""

    @abstractmethod
    def build(self, region: Region, ctx: BuildContext) -> Bound:
        """A Bound for the claimed region; ``ctx`` describes the region as if it were one node."""


def cut_region(graph: PlanGraph, nodes: Collection[PlanNode], device: DeviceSpec) -> Region:
    """A region of a level of a plan as a graph of its own; the plan stays as it is.

    Constants that the nodes read are copied into the region. ``Region.entering`` and ``Region.leaving`` are the plan's own
    values, in the order of the region's inputs and outputs.

    Raises:
      PlanError: a node is not of this graph, or a path leaves the nodes and comes back, so that no single kernel could stand
      for them.
    """
    chosen = set(nodes)
    order = [n for n in graph.nodes if n in chosen]
    if len(order) < len(chosen):
        lost = next(n for n in nodes if n not in set(order))
        raise PlanError(f"{lost.name} is no node of graph {graph.name}")
    behind: set[PlanNode] = set()  # nodes outside that depend on the region
    inside: dict[Value, Value] = {}
    copies: dict[PlanNode, PlanNode] = {}
    region = PlanGraph(f"{graph.name}/{order[0].name}" if order else graph.name)
    entering: list[Value] = []
    for node in graph.nodes:
        before = {v.node for v in node.inputs if v.node is not None} | set(node.control)
        if node not in chosen:
            if before & (behind | chosen):
                behind.add(node)
            continue
        if before & behind:
            late = next(n for n in graph.nodes if n in before & behind)
            raise PlanError(
                f"a region with {node.name} needs {late.name}, which depends on the region and is not in it"
            )
        for value in node.inputs:
            if value in inside:
                continue
            if value.node is not None and value.node.verb == "constant":
                inside.update(_copied(value.node, {}, region))
            else:
                inside[value] = Value(value.name, value.dtype, value.shape)
                region.inputs.append(inside[value])
                entering.append(value)
        inside.update(_copied(node, inside, region, [copies[n] for n in node.control if n in copies]))
        copies[node] = region.nodes[-1]
    read_outside = {v for n in graph.nodes if n not in chosen for v in n.inputs} | set(graph.outputs)
    leaving = [v for n in order for v in n.outputs if v in read_outside]
    region.outputs = [inside[v] for v in leaving]
    return Region(region, device, tuple(entering), tuple(leaving))


def _copied(
    node: PlanNode, inside: dict[Value, Value], region: PlanGraph, control: Collection[PlanNode] = ()
) -> dict[Value, Value]:
    """Append a copy of the node to the region; the values it makes there."""
    copy = PlanNode(
        node.op,
        node.name,
        node.opdef,
        node.attrs,
        [inside[v] for v in node.inputs],
        control,
        node.requested,
        node.site_of,
        node.bodies,
        node.origins,
    )
    copy.device, copy.decision = node.device, node.decision
    made = {}
    for value in node.outputs:
        made[value] = Value(value.name, value.dtype, value.shape, copy, value.index)
        copy.outputs.append(made[value])
    region.nodes.append(copy)
    return made
