"""A plan as a placement problem, and the placer's answer as devices and kernels of its nodes.

The host's rules have placed the plan before. What may move is a node of the plan's own level, or what is colocated there, that
takes no variable's handle: to any device that its scopes allow and that has a kernel for it. Bodies stay where the rules put them;
their node counts as what is in them, once.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import SupportsIndex

from graphdock.contracts.costs import CostModel
from graphdock.contracts.device import HOST_MEMORY
from graphdock.contracts.ir import PlanGraph, PlanNode, Value
from graphdock.contracts.placement import (
    PlacementProblem,
    PlacementTask,
    PlacementTensor,
    Placer,
    Timeline,
    simulate,
)
from graphdock.contracts.rewriter import Rewriter
from graphdock.device_name import DeviceSpec
from graphdock.errors import GraphdockError, PluginError
from graphdock.placement.choose import Choice, Chooser
from graphdock.placement.costs import nbytes_of
from graphdock.placement.placer import Movable, Placement

__all__ = ["Simulation", "place_by"]

#: Bytes of which a transfer is asked to learn what each costs.
_SAMPLE = 1 << 20
#: A transfer of which nobody knows anything: seconds to begin, and per byte.
_GUESS = (10e-6, 1e-10)


@dataclass(frozen=True, slots=True)
class Simulation:
    """Question to a placer, and what its answer would take; ``rules``: the same of the host's rules.

    Attributes:
      unknown: tasks of which nobody knows how long they take; they count as nothing.
    """

    placer: str
    problem: PlacementProblem
    timeline: Timeline
    rules: Timeline
    unknown: int


def place_by(
    placer: Placer,
    plugin: str,
    graph: PlanGraph,
    placement: Placement,
    chooser: Chooser,
    costs: CostModel,
    memory: Callable[[DeviceSpec], str],
    devices: Sequence[DeviceSpec],
    limits: Mapping[str, int],
    engines: Mapping[str, str],
) -> Simulation:
    """Ask a placer where the movable nodes go, and put them there.

    Args:
      plugin: the placer's. placement: the host's, with what is movable. memory: device -> its memory space.
      limits: memory space -> bytes. ``engines``: device -> what computes its nodes, one after another.

    Raises:
      PluginError: the placer raised, or its answer leaves groups out, names others, or a device that a group may not be on.
    """
    problem, units, unknown = _Problem(
        graph, placement.movable, chooser, costs, memory, devices, limits, engines
    ).made()
    answer = _checked(placer, plugin, problem)
    for number, (nodes, choices) in units.items():
        spec = next(d for d in devices if d.short() == answer[number])
        _put(placement, placer, nodes, choices, spec)
    timeline = simulate(problem, [answer[i] for i in range(len(problem.groups))])
    _arrange(graph, timeline)
    return Simulation(placer.name, problem, timeline, simulate(problem, list(problem.rules)), unknown)


def _arrange(graph: PlanGraph, timeline: Timeline) -> None:
    """Put the nodes in the order in which they begin, in which queues of devices get their work, too."""
    begins: dict[PlanNode, float] = {}
    starts = iter(timeline.tasks)
    for node in graph.nodes:
        if node.opdef.verb.silent:
            behind = [*(v.node for v in node.inputs if v.node is not None), *node.control, *node.order]
            begins[node] = max([begins[n] for n in behind], default=0.0)
        else:
            begins[node] = next(starts)[1]
    order = sorted(graph.nodes, key=begins.__getitem__)
    if order != graph.nodes:
        with Rewriter(graph) as change:
            change.arrange(order)


def _put(
    placement: Placement,
    placer: Placer,
    nodes: Sequence[PlanNode],
    choices: Mapping[str, Mapping[PlanNode, Choice]],
    spec: DeviceSpec,
) -> None:
    for node in nodes:
        if node.device == spec:
            continue
        node.device = spec
        assert spec.type is not None
        choice = choices[spec.type].get(node)
        if choice is not None and choice.kernel is not None:
            placement.kernels[node] = choice.kernel
            why = f"{choice.decision.why}; {placer.name} chose {spec.short()}"
            node.decision = replace(choice.decision, why=why)


def _checked(placer: Placer, plugin: str, problem: PlacementProblem) -> Mapping[int, str]:
    def wrong(what: str) -> PluginError:
        message = f"the placer {placer.name!r} of plugin {plugin!r} {what}"
        return PluginError(message, hint='placer = "rules" under [session] does without it')

    def name(group: int) -> str:
        return next(t.name for t in problem.tasks if t.group == group)

    try:
        answer = placer.place(problem)
        if isinstance(answer, Mapping):
            answer = dict(answer)
    except GraphdockError as error:
        error.add_note(f"raised by the placer {placer.name} of plugin {plugin}")
        raise
    except Exception as error:
        raise wrong(f"failed: {type(error).__name__}: {error}") from error
    if not isinstance(answer, Mapping):
        raise wrong(f"returned {type(answer).__name__}, not a table of groups and devices")
    for group in answer:
        if not isinstance(group, SupportsIndex):  # integers of NumPy are some
            raise wrong(f"placed {group!r}, which is no number of a group but {type(group).__name__}")
        if not 0 <= operator.index(group) < len(problem.groups):
            raise wrong(f"placed {operator.index(group)}, which is none of the {len(problem.groups)} groups")
    for group, may in enumerate(problem.groups):
        if group not in answer:
            raise wrong(f"left out the group {group}, of {name(group)}")
        if answer[group] not in may:
            raise wrong(f"put {name(group)} on {answer[group]!r}; it may be on {', '.join(may)}")
    return answer


class _Problem:
    """The problem of one plan in the making; arguments are those of :func:`place_by`."""

    def __init__(
        self,
        graph: PlanGraph,
        movable: Sequence[Movable],
        chooser: Chooser,
        costs: CostModel,
        memory: Callable[[DeviceSpec], str],
        devices: Sequence[DeviceSpec],
        limits: Mapping[str, int],
        engines: Mapping[str, str],
    ) -> None:
        self._graph = graph
        self._costs = costs
        self._devices = {d.short(): d for d in devices}
        self._memory = {name: memory(d) for name, d in self._devices.items()}
        self._chooser = chooser
        self._limits, self._engines = limits, engines
        self._unknown = 0
        self._groups: list[tuple[str, ...]] = []
        self._rules: list[str] = []
        self._of: dict[PlanNode, int] = {}
        self._units: dict[int, tuple[Sequence[PlanNode], Mapping[str, Mapping[PlanNode, Choice]]]] = {}
        self._seconds: dict[object, tuple[Mapping[str, float], bool]] = {}
        own = set(graph.nodes)
        for nodes, allowed in movable:
            if all(n in own and not n.bodies for n in nodes):
                self._unit(nodes, allowed)

    def _unit(self, nodes: Sequence[PlanNode], allowed: Sequence[DeviceSpec]) -> None:
        work = [n for n in nodes if n.opdef.verb.kernel]
        choices: dict[str, dict[PlanNode, Choice]] = {}
        may = []
        for device in allowed:
            assert device.type is not None
            if device.type not in choices:
                choices[device.type] = {n: self._chooser.choose(n, device.type) for n in work}
            if all(c.kernel is not None for c in choices[device.type].values()):
                may.append(device.short())
        first = nodes[0].device
        assert first is not None
        if len(may) > 1 and first.short() in may:
            self._units[len(self._groups)] = nodes, choices
            self._of.update(dict.fromkeys(nodes, len(self._groups)))
            self._groups.append(tuple(may))
            self._rules.append(first.short())

    def made(
        self,
    ) -> tuple[PlacementProblem, dict[int, tuple[Sequence[PlanNode], Mapping[str, Mapping[PlanNode, Choice]]]], int]:
        tensors = [PlacementTensor(nbytes_of([v]) or 0, HOST_MEMORY) for v in self._graph.inputs]
        number: dict[Value, int] = {v: i for i, v in enumerate(self._graph.inputs)}
        tasks: list[PlacementTask] = []
        behind: dict[PlanNode, tuple[int, ...]] = {}  # node -> the tasks that who follows it follows
        for node in self._graph.nodes:
            after = tuple(dict.fromkeys(t for n in (*node.control, *node.order) for t in behind[n]))
            if node.opdef.verb.silent:
                if node.verb == "alias" and node.inputs[0] in number:
                    number[node.outputs[0]] = number[node.inputs[0]]
                made_by = [behind[v.node] for v in node.inputs if v.node is not None]
                behind[node] = tuple(dict.fromkeys(t for found in (after, *made_by) for t in found))
                continue
            reads = tuple(dict.fromkeys(number[v] for v in node.inputs if v in number))
            first = len(tensors)
            for value in node.outputs:
                number[value] = len(tensors)
                tensors.append(PlacementTensor(nbytes_of([value]) or 0))
            group = self._group(node)
            behind[node] = (len(tasks),)
            makes = tuple(range(first, len(tensors)))
            tasks.append(PlacementTask(node.origin, group, reads, makes, after, self._times(node, self._groups[group])))
        problem = PlacementProblem(
            tuple(self._devices),
            MappingProxyType(self._memory),
            tuple(self._groups),
            tuple(self._rules),
            tuple(tasks),
            tuple(tensors),
            MappingProxyType(self._links()),
            MappingProxyType(self._limits),
            MappingProxyType(self._engines),
        )
        return problem, self._units, self._unknown

    def _group(self, node: PlanNode) -> int:
        """The group of a node; of one that stays the group of all that stay on its device."""
        found = self._of.get(node)
        if found is None:
            name = node.device.short() if node.device is not None else next(iter(self._devices))
            for stays, may in enumerate(self._groups):
                if may == (name,):
                    return stays
            self._groups.append((name,))
            self._rules.append(name)
            found = len(self._groups) - 1
        return found

    def _times(self, node: PlanNode, may: Sequence[str]) -> Mapping[str, float]:
        if node.bodies:
            inside = [n for body in node.bodies for g in body.all_graphs() for n in g.nodes if not n.opdef.verb.silent]
            return MappingProxyType(dict.fromkeys(may, sum(self._costs.node(n) or 0.0 for n in inside)))
        same = (node.op, may, tuple((v.dtype.name, v.shape) for v in (*node.inputs, *node.outputs)))
        known = self._seconds.get(same) if node.opdef.plain else None
        if known is not None:
            self._unknown += known[1]
            return known[0]
        unit = self._units.get(self._of.get(node, -1))
        times: dict[str, float] = {}
        unknown = False
        for name in may:
            device = self._devices[name]
            kernel = None
            if unit is not None and device.type is not None and node in unit[1][device.type]:
                kernel = unit[1][device.type][node].decision.kernel
            seconds = self._costs.predict(node, device, kernel).seconds
            times[name] = 0.0 if seconds is None else seconds
            unknown = unknown or seconds is None
        self._unknown += unknown
        read_only = MappingProxyType(times)  # tasks alike share it
        if node.opdef.plain:
            self._seconds[same] = read_only, unknown
        return read_only

    def _links(self) -> dict[tuple[str, str], tuple[float, float]]:
        spaces = dict.fromkeys((HOST_MEMORY, *self._memory.values()))
        links = {}
        for a in spaces:
            for b in spaces:
                if a != b:
                    begin, much = self._costs.transfer(0, a, b), self._costs.transfer(_SAMPLE, a, b)
                    if begin is None or much is None:
                        links[a, b] = _GUESS
                    else:
                        links[a, b] = begin, max(0.0, much - begin) / _SAMPLE
        return links
