"""Results of lowering: where values are, what to build for every instance, and the statements of the step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias

from graphdock.contracts.device import Device
from graphdock.contracts.ir import PlanGraph, PlanNode
from graphdock.contracts.kernel import BuildContext, KernelDef, Prepared
from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.contracts.queue import QueuedDevice
from graphdock.contracts.runtime.resources import Resource, Variable
from graphdock.contracts.streams import StreamName
from graphdock.dtypes import DType

from graphdock_executor.step_program.names import Name, Operand
from graphdock_executor.step_program.statements import Block, NativeRun, Segment
from graphdock_executor.storage import Root

if TYPE_CHECKING:
    from graphdock.contracts.runtime.shape_checks import RuleCheck

    from graphdock_executor.step_program.segments import Boundary

__all__ = ["Bodies", "Build", "Lowered", "Setup", "Slot"]

#: Bodies of a node that are to be lowered, each with the block that its statements go to.
Bodies: TypeAlias = Iterator[tuple[PlanGraph, Block]]


@lazy_dataclass(slots=True, eq=False)
class Slot:
    """Place of a value: an operand of the step program, and the storage behind it.

    Attributes:
      at: what statements name it by.
      static: ``at`` names a buffer that stays the same for an instance's life, so that views of it are made once.
      kind: ``planned``, ``escape``, ``fresh``, ``view``, ``copy``, ``feed``, ``constant``, ``variable``, ``cond``, ``scalar``,
        ``loop`` (one of a pair of buffers), ``own`` (a name that stands for one owned buffer after another), ``history``,
        ``element`` (of a history; or a history that others hold too), ``left`` (what a taken branch leaves), ``empty``.
    """

    at: Operand
    roots: tuple[Root, ...] = ()
    contiguous: bool = True
    static: bool = False
    kind: str = "planned"


@lazy_dataclass(slots=True, eq=False)
class Build:
    """Kernel to build for every instance: the name of its compute, the kernel (None: a function of the host).

    Attributes:
      told: what it is told, or what it was told for a node alike, whose function it shares.
      literals: name -> index in the Bound's ``args`` of the object that it stands for.
      prepared: what the kernel stated, when it has ``prepare``. ``static``: then, of each of its buffers, the name where it is
        the same in every step. ``lasting``: of each input, the variable that it is, where the plan only reads that.
    """

    name: Name
    node: PlanNode
    kernel: KernelDef | None
    told: BuildContext | None
    literals: tuple[tuple[Name, int], ...] = ()
    prepared: Prepared | None = None
    static: tuple[Name | None, ...] = ()
    lasting: tuple[Variable | None, ...] = ()

    @property
    def ctx(self) -> BuildContext | None:
        """Context that tells the kernel of its own node."""
        told = self.told
        if told is None or told.node is self.node:
            return told
        facts = told.inputs, told.outputs, told.device, told.queue, told.threads
        return BuildContext(self.node, *facts, functions=told.functions)


@lazy_dataclass(slots=True, eq=False)
class Setup:
    """A view made once per instance: ``names = kernel(*args)``."""

    names: tuple[Name, ...]
    kernel: Name
    args: tuple[Operand, ...]


@lazy_dataclass
class Lowered:
    """All that an instance is made from.

    Attributes:
      fills: what the host copies into staging memory as soon as the step begins.
      constants: name -> (node, the device that puts it in place, dtype). ``variables``: name -> resource whose object (of a
        variable, its buffer) it is; ``states``: name -> the variable itself. ``methods``: name -> (device, method of it, or of its
        queue). ``makers``: name -> the root whose buffer it makes anew. ``workers``: name -> a device, or its queue. ``copiers``:
        name -> (device, dtype) of what copies a buffer of any shape. ``streams``: name -> (which stream, its device). ``events``:
        name -> the device whose queue records it. ``objects``: name -> anything else. ``staging``: what staging memory is called
        -> whose it is. ``lent``: name -> the root whose staging memory it takes anew, and whose that is.
      written, read: resources. ``checked``: variables that must hold a value when the step begins, with a node that reads them.
      first_bounds: what the kernels built while lowering; the first instance uses them.
      shapes: node whose shapes or steering elements only the step knows -> the check of them, and what it is called with; run when
        the node's kernel fails, to tell what the user did wrong.
      touches: resource -> the devices whose queues touch it (None: the host), and whether they write it; of a step with queues.
      overlaps: the step may release its locks, and end, before its work is done. ``waits``: why not, where that was asked for.
      ahead: large feeds are copied before the step follows what is in flight.
      segments: recorded parts of the step; ``boundaries``: why each recording ends where it does.
    """

    block: Block = field(default_factory=Block)
    fills: Block = field(default_factory=Block)
    feeds: list[Name] = field(default_factory=list)
    results: list[Operand] = field(default_factory=list)
    roots: list[Root] = field(default_factory=list)
    builds: list[Build] = field(default_factory=list)
    setups: list[Setup] = field(default_factory=list)
    constants: dict[Name, tuple[PlanNode, Device, DType]] = field(default_factory=dict)
    variables: dict[Name, Resource] = field(default_factory=dict)
    states: dict[Name, Variable] = field(default_factory=dict)
    methods: dict[Name, tuple[Device, str]] = field(default_factory=dict)
    workers: dict[Name, Device] = field(default_factory=dict)
    copiers: dict[Name, tuple[Device, DType]] = field(default_factory=dict)
    events: dict[Name, QueuedDevice] = field(default_factory=dict)
    makers: dict[Name, Root] = field(default_factory=dict)
    streams: dict[Name, tuple[StreamName, Device]] = field(default_factory=dict)
    objects: dict[Name, Any] = field(default_factory=dict)
    written: set[Resource] = field(default_factory=set)
    read: set[Resource] = field(default_factory=set)
    checked: dict[Variable, PlanNode] = field(default_factory=dict)
    first_bounds: list[Any] = field(default_factory=list)
    shapes: dict[PlanNode, tuple[RuleCheck, tuple[Operand, ...]]] = field(default_factory=dict)
    staging: dict[str, QueuedDevice] = field(default_factory=dict)
    lent: dict[Name, tuple[Root, QueuedDevice]] = field(default_factory=dict)
    touches: dict[Resource, dict[Device | None, bool]] = field(default_factory=dict)
    overlaps: bool = False
    waits: str = ""
    ahead: bool = False
    segments: list[Segment] = field(default_factory=list)
    boundaries: list[Boundary] = field(default_factory=list)
    native_runs: list[NativeRun] = field(default_factory=list)

    @property
    def native(self) -> dict[Operand, Build]:
        """Kernels that native code can call, by their names."""
        return {b.name: b for b in self.builds if b.prepared is not None and b.prepared.native is not None}

    @property
    def joinable(self) -> dict[Operand, Prepared]:
        """Facts of kernels that may be one with others like them, by their names."""
        return {b.name: b.prepared for b in self.builds if b.prepared is not None and b.prepared.like is not None}
