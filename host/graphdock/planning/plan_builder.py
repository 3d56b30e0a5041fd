"""PlanBuilder: a plan in the making. One object goes through the stages of planning; each fills in what it decides."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeVar

from graphdock.config.session_config import SessionConfig
from graphdock.contracts.bodies import LoopWriter
from graphdock.contracts.device import HOST_MEMORY, Device
from graphdock.contracts.effects import handle_of, resource_name
from graphdock.contracts.executor import Executor, PlacedGraph, Program, StageReport
from graphdock.contracts.ir import PlanGraph, PlanNode, Value
from graphdock.contracts.kernel import Prepared
from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.contracts.passes import PlanContext, RegionNote
from graphdock.contracts.queue import QueuedDevice
from graphdock.contracts.resource import VARIABLE
from graphdock.contracts.runtime.resources import Resource, ResourceStore
from graphdock.contracts.step import StepServices
from graphdock.contracts.streams import RandomOrdinals
from graphdock.device_name import DeviceSpec
from graphdock.dtypes import string
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.passes.pipeline import PassReport
from graphdock.placement.choose import Chooser
from graphdock.placement.placer import Decomposed, Placement
from graphdock.planning.decompose import Decomposer
from graphdock.planning.spaces import Spaces
from graphdock.plugin.host import Host
from graphdock.plugin.registry import RegisteredPass
from graphdock.shape import Dims

if TYPE_CHECKING:
    from graphdock.contracts.pattern import RegisteredPattern
    from graphdock.contracts.placement import Placer
    from graphdock.contracts.region import RegisteredCompiler
    from graphdock.passes.history import PassHistory
    from graphdock.placement.costs import Costs
    from graphdock.placement.lock import Lock
    from graphdock.planning.derived import Derivation

__all__ = ["PlanBuilder", "PlanningContext"]

T = TypeVar("T")


@lazy_dataclass(frozen=True)
class PlanningContext:
    """Facts that all plans of a session are made with. Nothing here changes.

    Attributes:
      config: the session's, resolved.
      compilers: region compilers in the order in which they are asked; none where fusion is off.
      devices: whole names, in order of preference. ``opened``: name -> the open device.
      spaces: memory space -> a device that copies and allocates there.
      switches: pass name -> whether it runs. ``passes``: those that do, in order. ``pass_options``: plugin -> its options.
      settings: all that the passes of the phase ``simplify`` depend on, for keys.
      options: plugin of ``backends`` -> its options, defaults filled in.
      placer: what chooses devices, and its plugin; None where the host's rules do. ``limits``: memory space -> bytes.
      lock: what goes before either. ``memory_budget``: device type -> bytes.
      costs: what nodes and transfers take; made when it is first asked for.
      threads: on so many a kernel may compute. ``workers``: on so many kernels of several nodes are
        to run at once, as the configuration says; 1 where it says nothing.
      is_part: the session runs a task's part of a step, so that jobs and tasks that scopes in bodies ask for are its own.
    """

    host: Host
    config: SessionConfig
    chooser: Chooser
    decomposer: Decomposer
    compilers: Sequence[RegisteredCompiler]
    devices: Sequence[DeviceSpec]
    opened: Mapping[DeviceSpec, Device]
    spaces: Mapping[str, Device]
    executors: Sequence[Callable[[], Executor]]
    function: Callable[[Any], Callable[..., Sequence[Any]]]
    services: StepServices
    ordinals: RandomOrdinals
    switches: Mapping[str, bool]
    passes: Sequence[RegisteredPass]
    pass_options: Callable[[str], Mapping[str, Any]]
    settings: Hashable
    costs: Callable[[], Costs]
    placer: tuple[Placer, str] | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    lock: Lock | None = None
    memory_budget: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    threads: int = 1
    workers: int = 1
    is_part: bool = False

    def in_phase(self, phase: str) -> list[RegisteredPass]:
        """The passes of a phase that run, in order."""
        return [row for row in self.passes if row.each.phase == phase]

    def reaches(self, source: str, target: str) -> bool:
        """Return whether the devices of a memory space copy from another one."""
        device = self.spaces[target]
        return isinstance(device, QueuedDevice) and device.reaches(self.spaces[source])

    def resource(self, handle: Value) -> Resource:
        """The resource that the output of a ``handle`` node names: declared, of which nothing is made yet."""
        owner = handle.node
        assert owner is not None and owner.device is not None
        container, name = resource_name(owner)
        assert owner.opdef.resource is not None  # check_handles saw to it
        kind = self.host.resource_kind(owner.opdef.resource, owner.opdef.package)
        device = self.opened[owner.device]
        strings = kind is VARIABLE and owner.attrs["dtype"] is string  # only in host memory are there strings
        if strings or device.memory_space == HOST_MEMORY:
            device = self.spaces[HOST_MEMORY]
        store: ResourceStore = self.services.container(container)
        return store.declare(kind, name, owner.attrs, device)


@lazy_dataclass
class PlanBuilder:
    """A plan in the making. Used once, by one thread, under the planner's lock.

    Attributes:
      outputs, targets, feeds: what the plan is for; each fed tensor with its shape.
      dry: it is made to be explained, and never runs. ``done``: operations that a part of the step before has run.
        ``captured``: placeholder of a handle, of a body that is planned by itself -> the operation that makes the handle.
        ``pieces``: its steps are fed and fetched piece by piece, so that no pass may make two operations one.
        ``primitives``: some of its nodes are dataflow's primitives, so that what a node gives may be dead, and no pass may run.
      graph: the plan graph, from translation on; ``translated``: how many nodes it had at first, bodies included.
        ``exact``: it holds nothing that is not needed.
      contexts: name of each pass that has run, but in the phase ``simplify`` -> what it was given, said and made.
      simplify_notes: name of each pass of the phase ``simplify`` of a third party -> what it said, each once.
      history: which passes changed which nodes, of a plan that is explained.
      loop_writer: what wrote loops out, if a pass brought it.
      refused: node -> kernel's full name -> why it refused. ``prepared``: what the chosen kernels stated that have ``prepare``.
      derivations: handle of a derived value -> what it is made of. ``constant_reads``: values of variables that the plan does not
        write, which may be -> the handles of these; ``other_reads``: why those of others may not.
      scalars: values that the host keeps as Python numbers. ``handles``: handle anywhere -> the output of the op that names the
        resource.
      patterns: those whose anchors stand in it.
      executor: name of the one that made the program. ``refusals``: a line for each that was asked before, with its reason.
      stages: the stages that it went through.
      later: what is to be compiled while steps run without it; None where steps wait for it.
    """

    setting: PlanningContext
    outputs: Sequence[Tensor]
    targets: Sequence[Operation]
    feeds: Sequence[tuple[Tensor, Dims]]
    dry: bool = False
    done: Collection[Operation] = ()
    captured: Mapping[Tensor, Operation] = field(default_factory=dict)
    pieces: bool = False
    primitives: bool = False
    graph: PlanGraph = field(default_factory=lambda: PlanGraph("main"))
    translated: int = 0
    exact: bool = False
    reports: Sequence[PassReport] = ()
    decomposed: Sequence[Decomposed] = ()
    tried: Mapping[PlanNode, str] = field(default_factory=dict)
    placement: Placement = field(default_factory=Placement)
    refused: dict[PlanNode, dict[str, str]] = field(default_factory=dict)
    prepared: Mapping[PlanNode, Prepared] = field(default_factory=dict)
    contexts: dict[str, PlanContext] = field(default_factory=dict)
    simplify_notes: dict[str, dict[RegionNote | str, None]] = field(default_factory=dict)
    history: PassHistory | None = None
    loop_writer: LoopWriter | None = None
    derivations: dict[Value, Derivation] = field(default_factory=dict)
    constant_reads: Mapping[Value, Value] = field(default_factory=dict)
    other_reads: Mapping[Value, str] = field(default_factory=dict)
    scalars: set[Value] = field(default_factory=set)
    spaces: Spaces | None = None
    handles: Mapping[Value, Value] = field(default_factory=dict)
    patterns: Sequence[RegisteredPattern] = ()
    placed: PlacedGraph | None = None
    program: Program | None = None
    executor: str = ""
    refusals: list[str] = field(default_factory=list)
    stages: list[StageReport] = field(default_factory=list)
    later: list[Callable[[], Any]] | None = None
    _seen: dict[str, list[list[PlanNode]]] = field(default_factory=dict)

    @property
    def fixed(self) -> bool:
        """Return whether its nodes stay what they are: no pass may run."""
        return self.pieces or self.primitives

    @property
    def holds(self) -> bool:
        """Return whether a step holds its locks while it runs: no node of it waits for others."""
        waiting = any(["waits" in n.opdef.effects for g in self.graph.all_graphs() for n in g.nodes])
        return not (waiting or self.pieces)

    @property
    def chooser(self) -> Chooser:
        """The session's, with what has refused in this plan."""
        return self.setting.chooser.without(self.refused) if self.refused else self.setting.chooser

    def name_resources(self) -> None:
        """Find what the handles of the graph name, unless that is known."""
        if self.has_changed_for("handles"):
            self.handles = handle_of(self.graph)

    def has_changed_for(self, reader: str) -> bool:
        """Return whether the graph's lists of nodes are others than when the reader asked last: who changes one sets another."""
        lists, seen = [level.nodes for level in self.graph.all_graphs()], self._seen.get(reader, [])
        self._seen[reader] = lists
        return len(lists) != len(seen) or any([a is not b for a, b in zip(lists, seen, strict=True)])

    def noted(self, kind: type[T]) -> list[T]:
        """Return what passes said in records of this kind, in the order of their running."""
        return [note for _, note in self._notes() if isinstance(note, kind)]

    def said(self) -> list[tuple[str, str]]:
        """Return what passes said in words: the name of each, and a line."""
        return [(name, note) for name, note in self._notes() if isinstance(note, str)]

    def _notes(self) -> Iterator[tuple[str, RegionNote | str]]:
        for name, said in (*self.simplify_notes.items(), *((n, c.notes) for n, c in self.contexts.items())):
            yield from ((name, note) for note in said)

    def resource(self, handle: Value) -> Resource:
        """The resource that a handle anywhere in the plan names."""
        return self.setting.resource(self.handles[handle])
