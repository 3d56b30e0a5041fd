"""The state of one lowering: names, storage, and where each value is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphdock.contracts.device import HOST_MEMORY, Device
from graphdock.contracts.ir import PlanGraph, PlanNode, Value
from graphdock.contracts.kernel import KernelDef, Mode
from graphdock.plugin.registry import RegisteredKernel
from graphdock.runtime.liveness import Liveness
from graphdock.runtime.lower.records import Lowered, Slot
from graphdock.runtime.source import Block, Line
from graphdock.runtime.spaces import SCALAR
from graphdock.runtime.storage import Root
from graphdock.runtime.variable_store import VariableState
from graphdock.shape import concrete

__all__ = ["Base"]


class Base(ABC):
    """Facts about the plan, and what has been decided so far. Used once, under the planner's lock."""

    def __init__(
        self,
        graph: PlanGraph,
        kernels: Mapping[PlanNode, RegisteredKernel],
        home: Mapping[Value, str],
        needs: Callable[[PlanNode], list[str | None]],
        facts: Liveness,
        handles: Mapping[Value, Value],
        spaces: Mapping[str, Device],
        device_of: Callable[[PlanNode], Device],
        variable: Callable[[Value, PlanNode], VariableState],
        locked: bool,
        debug: bool,
        check_numerics: bool = False,
        capture: Device | None = None,
    ) -> None:
        self.graph = graph
        self.kernels = kernels
        self.home = home
        self.needs = needs
        self.facts = facts
        self.handles = handles
        self.spaces = spaces
        self.device_of = device_of
        self.variable = variable
        self.locked = locked
        self.debug = debug
        self.check_numerics = check_numerics
        self.capture = None if check_numerics else capture
        self.out = Lowered()
        self.slots: dict[Value, Slot] = {}
        self.alias: dict[Value, Value] = {}
        self.escapes: set[Value] = set()
        #: body output -> the root (and its expression) that its producer writes directly
        self.direct: dict[Value, tuple[Root, str]] = {}
        self.counter: dict[str, int] = {}
        self.constant_names: dict[tuple[int, str], str] = {}
        self.after: dict[int, tuple[Block, int]] = {}
        self.active: str | None = None
        self.assigned: set[VariableState] = set()
        nodes = (n for level in graph.all_graphs() for n in level.nodes)
        self.destroyed = {
            handles[n.inputs[0]] for n in nodes if n.verb == "host" and any(a.mutates for a in n.opdef.inputs)
        }
        #: how many branches of conds the node being lowered stands in
        self.branches = 0

    def name(self, prefix: str) -> str:
        number = self.counter.get(prefix, 0)
        self.counter[prefix] = number + 1
        return f"{prefix}{number}"

    def root(self, kind: str, space: str, value: Value, at: int, prefix: str = "b") -> Root:
        shape = concrete(value.shape)
        assert shape is not None
        root = Root(kind, space, value.dtype, tuple(shape), at, at, self.name(prefix))
        if kind in ("planned", "loop"):
            self.out.roots.append(root)
        return root

    def method(self, space: str, method: str) -> str:
        for name, known in self.out.methods.items():
            if known == (space, method):
                return name
        name = self.name("d")
        self.out.methods[name] = (space, method)
        return name

    def constant(self, value: Value, space: str) -> Slot:
        assert value.node is not None
        array = value.node.attrs["value"]
        if space == SCALAR:
            return Slot(repr(array.item()), kind="scalar")
        key = (id(array), space)
        name = self.constant_names.get(key)
        if name is None:
            name = self.constant_names[key] = self.name("c")
            self.out.constants[name] = (array, space, value.dtype)
        return Slot(name, (), True, True, "constant")

    def resolve(self, value: Value) -> Value:
        """The value that this one is another name of: through captures and identities."""
        while True:
            value = self.facts.of(value)
            if value not in self.alias:
                return value
            value = self.alias[value]

    def slot(self, value: Value, space: str | None) -> Slot:
        value = self.resolve(value)
        if value.node is not None and value.node.verb == "constant":
            return self.constant(value, space or HOST_MEMORY)
        return self.slots[value]

    def keep(self, value: Value, slot: Slot, at: int) -> None:
        """Remember where ``value`` is, and keep its storage live until its last reader."""
        self.slots[value] = slot
        until = self.facts.last.get(value, at)
        for root in slot.roots:
            root.use(until)

    def copier(self, space: str, value: Value) -> str:
        """A function that copies a buffer of any shape in a space into a new one."""
        if space == HOST_MEMORY:
            return "keep"
        name = self.name("o")
        device, dtype = self.spaces[space], value.dtype

        def copy(buffer: Any) -> Any:
            made = device.empty(dtype, device.shape_of(buffer))
            device.copy(buffer, made)
            return made

        self.out.objects[name] = copy
        return name

    def contiguous_copy(self, value: Value, slot: Slot, space: str, block: Block, at: int, node: PlanNode) -> Slot:
        if concrete(value.shape) is None:
            expr = self.name("t")
            block.add(f"{expr} = {self.copier(space, value)}({slot.expr})", node)
            return Slot(expr, (), True, False, "fresh")
        root = self.root("planned", space, value, at)
        block.add(f"{self.method(space, 'copy')}({slot.expr}, {root.name})", node)
        return Slot(root.name, (root,), True, True, "copy")

    def output(
        self,
        value: Value,
        mode: Mode,
        slots: Sequence[Slot],
        kernel: KernelDef,
        name: str,
        at: int,
        block: Block,
        once: bool = True,
    ) -> Slot:
        space = self.home[value]
        if mode.kind == "view":
            source = slots[mode.input]
            contiguous = source.contiguous and kernel.views[name].contiguous
            static = source.static and once
            slot = Slot(self.name("g" if static else "v"), source.roots, contiguous, static, "view")
        elif mode.kind == "inplace":
            slot = slots[mode.input]
        elif mode.kind == "fresh":
            expr = self.name("v")
            root = Root("fresh", space, value.dtype, (), at, at, expr)
            slot = Slot(expr, (root,), True, False, "fresh")
        elif value in self.direct:
            root, expr = self.direct[value]
            slot = Slot(expr, (root,), True, False, "loop")
        elif value in self.escapes and self.facts.depth_of(value) == 0:
            expr = self.name("e")
            root = Root("escape", space, value.dtype, tuple(value.shape or ()), at, self.facts.final, expr)  # type: ignore[arg-type]
            maker = self.name("z")
            self.out.makers[maker] = root
            block.add(f"{expr} = {maker}()", value.node)
            slot = Slot(expr, (root,), True, False, "escape")
        else:
            root = self.root("planned", space, value, at)
            slot = Slot(root.name, (root,), True, True, "planned")
        self.keep(value, slot, at)
        return slot

    def activate(self, device: Device, block: Block, node: PlanNode) -> None:
        if type(device).activate is Device.activate:
            return
        if self.capture is None:
            block.add(f"{self.method(device.memory_space, 'activate')}()", node)
        elif self.active is None:
            # once, before anything that is recorded
            self.active = self.method(device.memory_space, "activate")
            self.out.before.items.insert(0, Line(f"{self.active}()", node))

    @abstractmethod
    def level(self, graph: PlanGraph, block: Block) -> None:
        """Lower the nodes of one graph into ``block``."""
