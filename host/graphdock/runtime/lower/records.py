"""What lowering produces: where values are, what to build for every instance, and the statements of the step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from graphdock.contracts.device import Device
from graphdock.contracts.ir import PlanNode
from graphdock.contracts.kernel import BuildContext, KernelDef
from graphdock.runtime.source import Block
from graphdock.runtime.storage import Root
from graphdock.runtime.variable_store import VariableState

__all__ = ["Build", "Lowered", "Setup", "Slot"]


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a value is: an expression of the generated source, and the storage behind it.

    ``static`` expressions are globals whose buffer never changes, so that views of them are made once per instance.
    """

    expr: str
    roots: tuple[Root, ...] = ()
    contiguous: bool = True
    static: bool = False
    kind: str = "planned"


@dataclass(frozen=True, slots=True)
class Build:
    """A kernel to build for every instance: global name, kernel, what it is told."""

    name: str
    node: PlanNode
    kernel: KernelDef | None
    ctx: BuildContext | None
    literals: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Setup:
    """A view made once per instance: ``names = kernel(*args)``, all of them globals."""

    names: tuple[str, ...]
    kernel: str
    args: tuple[str, ...]


@dataclass
class Lowered:
    """All that an instance is made from."""

    block: Block = field(default_factory=Block)
    feeds: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    roots: list[Root] = field(default_factory=list)
    builds: list[Build] = field(default_factory=list)
    setups: list[Setup] = field(default_factory=list)
    #: global name -> (array, memory space)
    constants: dict[str, tuple[Any, str, Any]] = field(default_factory=dict)
    #: global name -> variable whose buffer it is; and of the state object itself
    variables: dict[str, VariableState] = field(default_factory=dict)
    states: dict[str, VariableState] = field(default_factory=dict)
    #: global name -> (memory space, method of its device)
    methods: dict[str, tuple[str, str]] = field(default_factory=dict)
    #: global name -> (space, root): allocates the root's buffer anew
    makers: dict[str, Root] = field(default_factory=dict)
    #: global name -> (node, in a loop)
    streams: dict[str, PlanNode] = field(default_factory=dict)
    objects: dict[str, Any] = field(default_factory=dict)
    written: set[VariableState] = field(default_factory=set)
    read: set[VariableState] = field(default_factory=set)
    checked: dict[VariableState, PlanNode] = field(default_factory=dict)
    first_bounds: list[Any] = field(default_factory=list)
    #: whether every kernel is capture_safe
    capturable: bool = True
    #: of a step that a device may capture: what comes before and after the recorded block, and the device
    before: Block = field(default_factory=Block)
    after: Block = field(default_factory=Block)
    captured_by: Device | None = None
