"""Lowering: from a placed plan graph to buffers, bound kernels and the source of a step.

One pass over the nodes decides, for every value, where its elements lie (a :class:`Slot`) and writes the statement that makes it.
Storage rules (DESIGN section 4): whatever escapes is written to a fresh buffer or copied; a read of a variable aliases it only
while no write can run; a view shares its source's storage; an elementwise output takes over a dying input's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphdock.contracts.device import HOST_MEMORY, Device
from graphdock.contracts.ir import PlanGraph, PlanNode, Value
from graphdock.contracts.kernel import (
    FRESH,
    PLANNED,
    ArgInfo,
    Bound,
    BuildContext,
    In,
    KernelDef,
    Lit,
    Mode,
    Out,
    OutInfo,
    inplace,
    view,
)
from graphdock.plugin.registry import RegisteredKernel
from graphdock.runtime.capture import whole
from graphdock.runtime.liveness import Liveness
from graphdock.runtime.source import Block, Line
from graphdock.runtime.spaces import SCALAR, arg_of
from graphdock.runtime.storage import Root
from graphdock.runtime.variable_store import VariableState
from graphdock.shape import concrete

__all__ = ["Build", "Lowered", "Lowering", "Setup", "Slot"]

_IDENTITY = frozenset({"Identity", "StopGradient", "PlaceholderWithDefault"})
_SILENT = frozenset({"Const", "NoOp", "VarHandleOp"})


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


class Lowering:
    """Lowers one plan. Used once, under the planner's lock."""

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
        #: how many branches of conds the node being lowered stands in
        self.branches = 0

    # -- names and storage --------------------------------------------------------------------------------------------

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
        if value.node is not None and value.node.op == "Const":
            return self.constant(value, space or HOST_MEMORY)
        return self.slots[value]

    def keep(self, value: Value, slot: Slot, at: int) -> None:
        """Remember where ``value`` is, and keep its storage live until its last reader."""
        self.slots[value] = slot
        until = self.facts.last.get(value, at)
        for root in slot.roots:
            root.use(until)

    # -- the pass -------------------------------------------------------------------------------------------------------

    def run(self) -> Lowered:
        graph, out = self.graph, self.out
        for value in graph.inputs:
            feed = self.name("f")
            out.feeds.append(feed)
            root = Root("feed", HOST_MEMORY, value.dtype, (), 0, 0, feed)
            self.keep(value, Slot(feed, (root,), True, False, "feed"), 0)
        for value in graph.outputs:
            target = self.facts.of(value)
            if target.shape is not None and target.shape != () and None not in target.shape:
                self.escapes.add(target)
        self.level(graph, out.block)
        self.fetches(out.block)
        if self.debug:
            self.poison()
        if self.capture is not None:
            if out.capturable and whole(out.block):
                out.captured_by = self.capture
            else:
                out.block.items = [*out.before.items, *out.block.items, *out.after.items]
        return out

    def level(self, graph: PlanGraph, block: Block) -> None:
        for node in graph.nodes:
            at = self.facts.position[node]
            if node.op in _SILENT:
                pass
            elif node.op in _IDENTITY:
                self.alias[node.outputs[0]] = node.inputs[0]
                source = self.resolve(node.inputs[0])
                if source in self.slots:
                    until = self.facts.last.get(node.outputs[0], at)
                    for root in self.slots[source].roots:
                        root.use(until)
            elif node.op == "Cond":
                self.cond(node, block, at)
            elif node.op == "While":
                self.loop(node, block, at)
            elif node.op == "Transfer":
                self.transfer(node, block, at)
            elif node.op in ("ReadVariableOp", "AssignVariableOp", "VarIsInitializedOp", "DestroyResourceOp"):
                getattr(self, "_" + node.op)(node, block, at)
            elif node.op in ("PyFunc", "Assert", "Print"):
                self.host_op(node, block, at)
            elif node.outputs and self.home.get(node.outputs[0]) == SCALAR:
                self.scalar(node, block)
            else:
                self.kernel(node, block, at)
            self.after[at] = (block, len(block.items))

    # -- kernels --------------------------------------------------------------------------------------------------------

    def kernel(self, node: PlanNode, block: Block, at: int) -> None:
        registered = self.kernels[node]
        kernel = registered.kernel
        device = self.device_of(node)
        args = arg_of(node)
        needs = self.needs(node)
        slots: list[Slot] = []
        infos: list[ArgInfo] = []
        states: list[VariableState] = []
        for i, (value, arg) in enumerate(zip(node.inputs, args, strict=True)):
            if value.dtype.name == "resource":
                state = self.touch(value, node, block, arg.mutates)
                slots.append(self.variable_slot(state))
                infos.append(ArgInfo(arg.name, state.dtype, state.dims, device.memory_space, None, True, True))
                states.append(state)
                continue
            slot = self.slot(value, needs[i])
            if kernel.layout == "contiguous" and not slot.contiguous:
                slot = self.contiguous_copy(value, slot, needs[i] or HOST_MEMORY, block, at, node)
            source = self.resolve(value).node
            known = source.attrs["value"] if source is not None and source.op == "Const" else None
            slots.append(slot)
            infos.append(ArgInfo(arg.name, value.dtype, value.shape, needs[i] or HOST_MEMORY, known, slot.contiguous))
        modes = self.modes(node, kernel, slots, args, at)
        out_args = node.opdef.outputs
        out_names = [
            out_args[i].name if len(out_args) == len(node.outputs) else out_args[0].name for i in range(len(modes))
        ]
        ctx = BuildContext(
            node,
            tuple(infos),
            tuple(
                OutInfo(name, v.dtype, v.shape, self.home[v], mode, v in self.facts.last)
                for name, v, mode in zip(out_names, node.outputs, modes, strict=True)
            ),
            device,
            device.queue,
        )
        made = kernel.build(ctx)
        bound = made if isinstance(made, Bound) else Bound(made)
        self.out.first_bounds.append(bound)
        self.out.capturable = self.out.capturable and bound.capture_safe
        kname = self.name("k")
        call_inputs = [s.expr for s in slots]
        for i in bound.retains:
            call_inputs[i] = f"{self.copier(infos[i].memory_space, node.inputs[i])}({call_inputs[i]})"
        if "random" in node.opdef.traits:
            stream = self.name("r")
            self.out.streams[stream] = node
            call_inputs.append(stream)
        # a view that needs no value of the step but where its source lies is made once per instance
        viewed = {m.input for m in modes if m.kind == "view"}
        reads = range(len(infos)) if bound.args is None else [a.index for a in bound.args if isinstance(a, In)]
        once = not node.opdef.is_stateful and all(i in viewed or infos[i].value is not None for i in reads)
        out_slots = [
            self.output(v, mode, slots, kernel, name, at, block, once)
            for v, mode, name in zip(node.outputs, modes, out_names, strict=True)
        ]
        written = [s.expr for s, m in zip(out_slots, modes, strict=True) if m.kind in ("planned", "inplace")]
        scratch = []
        for item in bound.scratch:
            root = Root("planned", device.memory_space, item.dtype, item.shape, at, at, self.name("b"))
            self.out.roots.append(root)
            scratch.append(root.name)
        literals: list[tuple[str, int]] = []
        if bound.args is None:
            call = [*call_inputs, *written, *scratch]
        else:
            call = []
            for index, item_ in enumerate(bound.args):
                if isinstance(item_, In):
                    call.append(call_inputs[item_.index])
                elif isinstance(item_, Out):
                    call.append([*written, *scratch][item_.index])
                else:
                    call.append(self.literal(item_, index, literals))
        self.out.builds.append(Build(kname, node, kernel, ctx, tuple(literals)))
        returned = [s.expr for s, m in zip(out_slots, modes, strict=True) if m.kind in ("fresh", "view")]
        if modes and all(m.kind == "view" for m in modes) and all(s.static for s in out_slots):
            self.out.setups.append(Setup(tuple(returned), kname, tuple(call)))
            return
        self.activate(device, block, node)
        target = f"{', '.join(returned)} = " if returned else ""
        if states and not self.locked:
            locks = ", ".join(self.state_name(s) for s in states)
            text = f"{target}under(({locks},), {', '.join([kname, *call])})"
        else:
            text = f"{target}{kname}({', '.join(call)})"
        block.add(text, node)
        if "random" in node.opdef.traits and self.facts.depth[node]:
            block.add(f"{call_inputs[-1]}.advance()", node)
        if self.check_numerics:
            for value, slot in zip(node.outputs, out_slots, strict=True):
                if value.dtype.is_floating and self.home[value] == HOST_MEMORY:
                    block.add(f"finite({slot.expr}, {value.name!r})", node)

    def literal(self, item: Lit, index: int, literals: list[tuple[str, int]]) -> str:
        if item.value is None or type(item.value) in (bool, int):
            return repr(item.value)
        name = self.name("q")
        literals.append((name, index))
        return name

    def activate(self, device: Device, block: Block, node: PlanNode) -> None:
        if type(device).activate is Device.activate:
            return
        if self.capture is None:
            block.add(f"{self.method(device.memory_space, 'activate')}()", node)
        elif self.active is None:
            # once, before anything that is recorded
            self.active = self.method(device.memory_space, "activate")
            self.out.before.items.insert(0, Line(f"{self.active}()", node))

    def modes(
        self, node: PlanNode, kernel: KernelDef, slots: Sequence[Slot], args: Sequence[Any], at: int
    ) -> list[Mode]:
        names = [a.name for a in args]
        out_args = node.opdef.outputs
        outputs = node.outputs
        out_names = [
            out_args[i].name if len(out_args) == len(outputs) else out_args[0].name for i in range(len(outputs))
        ]
        if kernel.views and outputs and all(n in kernel.views for n in out_names):
            rules = [kernel.views[n] for n in out_names]
            indexes = [names.index(r.input) for r in rules]
            if all(not r.needs_contiguous or slots[i].contiguous for r, i in zip(rules, indexes, strict=True)):
                return [view(i) for i in indexes]
        if "planned" in kernel.modes and all(concrete(v.shape) is not None for v in outputs):
            result: list[Mode] = []
            taken: set[int] = set()
            for name, value in zip(out_names, outputs, strict=True):
                mode = PLANNED
                for source in kernel.inplace.get(name, ()):
                    index = names.index(source)
                    if index not in taken and self.can_take_over(node, index, value, slots, at):
                        mode = inplace(index)
                        taken.add(index)
                        break
                result.append(mode)
            return result
        return [FRESH] * len(outputs)

    def can_take_over(self, node: PlanNode, index: int, value: Value, slots: Sequence[Slot], at: int) -> bool:
        slot, source = slots[index], node.inputs[index]
        if slot.kind != "planned" or len(slot.roots) != 1 or value in self.escapes or value in self.direct:
            return False
        root = slot.roots[0]
        return (
            root.kind == "planned"
            and root.last <= at
            and slot.static
            and source.dtype is value.dtype
            and source.shape == value.shape
            and root.shape == value.shape
            and sum(s.roots == slot.roots for s in slots) == 1
        )

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

    def contiguous_copy(self, value: Value, slot: Slot, space: str, block: Block, at: int, node: PlanNode) -> Slot:
        if concrete(value.shape) is None:
            expr = self.name("t")
            block.add(f"{expr} = {self.copier(space, value)}({slot.expr})", node)
            return Slot(expr, (), True, False, "fresh")
        root = self.root("planned", space, value, at)
        block.add(f"{self.method(space, 'copy')}({slot.expr}, {root.name})", node)
        return Slot(root.name, (root,), True, True, "copy")

    def scalar(self, node: PlanNode, block: Block) -> None:
        expression = self.kernels[node].kernel.scalar
        assert expression is not None
        value = node.outputs[0]
        text = expression.format(*[self.slot(v, SCALAR).expr for v in node.inputs])
        name = self.name("s")
        block.add(f"{name} = {text}", node)
        if value.dtype.name != "bool":
            bits = value.dtype.size * 8
            half = 1 << (bits - 1)
            block.add(f"if not -{half} <= {name} < {half}: {name} = wrap({name}, {bits})", node)
        self.slots[value] = Slot(name, (), True, False, "scalar")

    def host_op(self, node: PlanNode, block: Block, at: int) -> None:
        kname = self.name("k")
        self.out.builds.append(Build(kname, node, None, None))
        self.out.first_bounds.append(None)
        self.out.capturable = False
        args = []
        for value in node.inputs:
            args.append(self.slot(value, HOST_MEMORY).expr)
        names = []
        for value in node.outputs:
            expr = self.name("v")
            names.append(expr)
            self.keep(
                value,
                Slot(expr, (Root("fresh", HOST_MEMORY, value.dtype, (), at, at, expr),), True, False, "fresh"),
                at,
            )
        target = f"{', '.join(names)} = " if names else ""
        block.add(f"{target}{kname}({', '.join(args)})", node)

    # -- transfers ------------------------------------------------------------------------------------------------------

    def transfer(self, node: PlanNode, block: Block, at: int) -> None:
        value, result = node.inputs[0], node.outputs[0]
        source, target = node.attrs["source"], node.attrs["target"]
        slot = self.slot(value, source)
        if target == SCALAR:
            expr = self.name("s")
            block.add(f"{expr} = {slot.expr}.item()", node)
            self.slots[result] = Slot(expr, (), True, False, "scalar")
            return
        if concrete(value.shape) is None:
            expr = self.name("t")
            move, other = ("push", target) if source == HOST_MEMORY else ("pull", source)
            device, dtype = self.name("o"), self.name("o")
            self.out.objects[device], self.out.objects[dtype] = self.spaces[other], value.dtype
            block.add(f"{expr} = {move}({device}, {slot.expr}, {dtype})", node)
            root = Root("fresh", target, value.dtype, (), at, at, expr)
            self.keep(result, Slot(expr, (root,), True, False, "fresh"), at)
            return
        if source == SCALAR:
            root = self.root("planned", target, result, at)
            block.add(f"{root.name}[()] = {slot.expr}", node)
            self.keep(result, Slot(root.name, (root,), True, True, "planned"), at)
            return
        if not slot.contiguous:
            slot = self.contiguous_copy(value, slot, source, block, at, node)
        other = target if source == HOST_MEMORY else source
        method = "from_host" if source == HOST_MEMORY else "to_host"
        if self.capture is not None:
            block = self.out.before if source == HOST_MEMORY else self.out.after
            for root in slot.roots:
                root.use(self.facts.final)
        self.activate(self.spaces[other], block, node)
        made = self.output(result, PLANNED, [], None, "", at, block)  # type: ignore[arg-type]
        if self.capture is not None:
            made.roots[0].first = 0
        block.add(f"{self.method(other, method)}({slot.expr}, {made.expr})", node)

    # -- variables ------------------------------------------------------------------------------------------------------

    def touch(self, handle: Value, node: PlanNode, block: Block, writes: bool) -> VariableState:
        """The variable behind a handle; notes that it is read (and must hold a value) or written.

        Whether it holds one is checked when the step begins, but in a branch of a cond, which may not run, when the branch does.
        """
        owner = self.handles[handle]
        state = self.variable(owner, node)
        (self.out.written if writes else self.out.read).add(state)
        if node.op != "AssignVariableOp" and state not in self.assigned and state not in self.out.checked:
            if self.branches:
                name = self.state_name(state)
                block.add(f"if not {name}.initialized: unset({name})", node)
            else:
                self.out.checked[state] = node
        return state

    def variable_slot(self, state: VariableState) -> Slot:
        if not state.static:
            return Slot(f"{self.state_name(state)}.buffer", (), True, False, "variable")
        for name, known in self.out.variables.items():
            if known is state:
                return Slot(name, (), True, True, "variable")
        name = self.name("w")
        self.out.variables[name] = state
        return Slot(name, (), True, True, "variable")

    def state_name(self, state: VariableState) -> str:
        for name, known in self.out.states.items():
            if known is state:
                return name
        name = self.name("x")
        self.out.states[name] = state
        return name

    def _ReadVariableOp(self, node: PlanNode, block: Block, at: int) -> None:
        state = self.touch(node.inputs[0], node, block, False)
        value = node.outputs[0]
        slot = self.variable_slot(state)
        if not state.static:
            expr = self.name("v")
            call = f"{self.state_name(state)}.snapshot"
            block.add(
                f"{expr} = {call}()" if self.locked else f"{expr} = under(({self.state_name(state)},), {call})", node
            )
            root = Root("fresh", self.home[value], value.dtype, (), at, at, expr)
            self.keep(value, Slot(expr, (root,), True, False, "fresh"), at)
            return
        writes = self.facts.writes.get(self.handles[node.inputs[0]], ())
        until = self.facts.reach.get(value, at)
        if self.locked and not any(at < w <= until for w in writes):
            self.slots[value] = slot
            return
        made = self.output(value, PLANNED, [], None, "", at, block)  # type: ignore[arg-type]
        copy = self.method(state.device.memory_space, "copy")
        if self.locked:
            block.add(f"{copy}({slot.expr}, {made.expr})", node)
        else:
            block.add(f"under(({self.state_name(state)},), {copy}, {slot.expr}, {made.expr})", node)

    def _AssignVariableOp(self, node: PlanNode, block: Block, at: int) -> None:
        state = self.touch(node.inputs[0], node, block, True)
        name = self.state_name(state)
        space = state.device.memory_space
        slot = self.slot(node.inputs[1], space)
        value = node.inputs[1]
        if state.static and value.shape == state.dims:
            target = self.variable_slot(state)
            call = [self.method(space, "copy"), slot.expr, target.expr]
        else:
            call = [f"{name}.assign", slot.expr]
        if self.locked:
            block.add(f"{call[0]}({', '.join(call[1:])})", node)
        else:
            block.add(f"under(({name},), {', '.join(call)})", node)
        (block if self.capture is None else self.out.after).add(f"{name}.initialized = True", node)
        if self.facts.depth[node] == 0 and block is self.out.block:
            self.assigned.add(state)

    def _VarIsInitializedOp(self, node: PlanNode, block: Block, at: int) -> None:
        state = self.variable(self.handles[node.inputs[0]], node)
        expr = self.name("s")
        block.add(f"{expr} = {self.state_name(state)}.initialized", node)
        value = node.outputs[0]
        if self.home[value] == SCALAR:
            self.slots[value] = Slot(expr, (), True, False, "scalar")
        else:
            root = self.root("planned", HOST_MEMORY, value, at)
            block.add(f"{root.name}[()] = {expr}", node)
            self.keep(value, Slot(root.name, (root,), True, True, "planned"), at)

    def _DestroyResourceOp(self, node: PlanNode, block: Block, at: int) -> None:
        state = self.variable(self.handles[node.inputs[0]], node)
        self.out.written.add(state)
        block.add(f"{self.state_name(state)}.destroy()", node)

    # -- control flow ---------------------------------------------------------------------------------------------------

    def producers(self, body: PlanGraph, direct: Sequence[tuple[Value, Root, str]]) -> None:
        """Let the producers of body outputs write straight into the given storage, where they can."""
        seen: set[Value] = set()
        for value, root, expr in direct:
            node = value.node
            registered = self.kernels.get(node) if node is not None else None
            if value in seen or node is None or registered is None or node not in body.nodes:
                continue
            seen.add(value)
            kernel = registered.kernel
            if "planned" in kernel.modes and not kernel.views and value.shape == root.shape:
                self.direct[value] = (root, expr)

    def cond(self, node: PlanNode, block: Block, at: int) -> None:
        end = self.facts.end[node]
        predicate = self.slot(node.inputs[0], SCALAR).expr
        targets: list[Slot] = []
        for i, value in enumerate(node.outputs):
            space = self.home[value]
            shapes = [b.outputs[i].shape for b in node.bodies]
            if space == SCALAR:
                targets.append(Slot(self.name("s"), (), True, False, "scalar"))
            elif concrete(value.shape) is not None and all(s == value.shape for s in shapes):
                root = self.root("planned", space, value, at)
                root.use(end)
                targets.append(Slot(root.name, (root,), True, True, "cond"))
            else:
                expr = self.name("v")
                targets.append(Slot(expr, (Root("fresh", space, value.dtype, (), at, end, expr),), True, False, "cond"))
        before = set(self.assigned)
        for header, body in zip((f"if {predicate}:", "else:"), node.bodies, strict=True):
            block.add(header, node)
            inner = block.nested()
            self.producers(
                body, [(v, t.roots[0], t.expr) for v, t in zip(body.outputs, targets, strict=True) if t.static]
            )
            self.branches += 1
            self.level(body, inner)
            self.branches -= 1
            for value, outer, target in zip(body.outputs, node.outputs, targets, strict=True):
                self.hand_over(value, outer, target, inner, node)
            if not inner.items:
                inner.add("pass", node)
            self.assigned = set(before)
        for value, target in zip(node.outputs, targets, strict=True):
            self.keep(value, target, end)
        self.after[end] = (block, len(block.items))

    def hand_over(self, value: Value, outer: Value, target: Slot, block: Block, node: PlanNode) -> None:
        """Make ``target`` hold a branch's output."""
        source = self.slot(value, self.home[outer])
        if target.kind == "scalar":
            block.add(f"{target.expr} = {source.expr}", node)
        elif source.expr == target.expr:
            return
        elif target.static:
            block.add(f"{self.method(self.home[outer], 'copy')}({source.expr}, {target.expr})", node)
        elif source.kind == "fresh":
            block.add(f"{target.expr} = {source.expr}", node)
        else:
            block.add(f"{target.expr} = {self.copier(self.home[outer], value)}({source.expr})", node)

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

    def loop(self, node: PlanNode, block: Block, at: int) -> None:
        end = self.facts.end[node]
        cond, body = node.bodies
        count = len(node.outputs)
        params: list[Slot] = []
        nexts: list[Slot | None] = []
        for i in range(count):
            value, parameter = node.inputs[i], body.inputs[i]
            space = self.home[parameter]
            source = self.slot(value, space)
            if space == SCALAR:
                slot = Slot(self.name("l"), (), True, False, "scalar")
                block.add(f"{slot.expr} = {source.expr}", node)
                nexts.append(None)
            elif concrete(parameter.shape) is not None and body.outputs[i].shape == parameter.shape == value.shape:
                first = self.root("loop", space, parameter, at)
                second = self.root("loop", space, parameter, at)
                until = max(end, self.facts.last.get(node.outputs[i], end))
                first.use(until)
                second.use(until)
                slot = Slot(self.name("l"), (first, second), True, False, "loop")
                after = Slot(self.name("m"), (second, first), True, False, "loop")
                block.add(f"{self.method(space, 'copy')}({source.expr}, {first.name})", node)
                block.add(f"{slot.expr} = {first.name}", node)
                block.add(f"{after.expr} = {second.name}", node)
                nexts.append(after)
            else:
                expr = self.name("l")
                slot = Slot(expr, (Root("fresh", space, value.dtype, (), at, end, expr),), True, False, "loop")
                block.add(f"{expr} = {self.copier(space, value)}({source.expr})", node)
                nexts.append(None)
            params.append(slot)
            for graph in (cond, body):
                self.slots[graph.inputs[i]] = slot
        limit = node.attrs["maximum_iterations"]
        if limit >= 0:
            counter = self.name("n")
            block.add(f"{counter} = 0", node)
        block.add("while True:", node)
        inner = block.nested()
        before = set(self.assigned)
        self.level(cond, inner)
        test = self.slot(cond.outputs[0], SCALAR).expr
        inner.add(f"if not {test}: break", node)
        if limit >= 0:
            inner.add(f"if {counter} >= {limit}: break", node)
            inner.add(f"{counter} = {counter} + 1", node)
        self.producers(
            body, [(v, n.roots[0], n.expr) for v, n in zip(body.outputs, nexts, strict=False) if n is not None]
        )
        self.level(body, inner)
        self.advance(node, body, params, nexts, inner)
        self.assigned = before
        for value, slot in zip(node.outputs, params, strict=True):
            self.keep(value, slot, end)
        self.after[end] = (block, len(block.items))

    def advance(
        self, node: PlanNode, body: PlanGraph, params: Sequence[Slot], nexts: Sequence[Slot | None], block: Block
    ) -> None:
        """End of an iteration: every next value is in place before any loop variable changes."""
        left: list[str] = []
        right: list[str] = []
        for i, (slot, following) in enumerate(zip(params, nexts, strict=True)):
            value = body.outputs[i]
            space = self.home[body.inputs[i]]
            source = self.slot(value, space)
            if source.expr == slot.expr:
                continue
            if following is not None:
                if source.expr != following.expr:
                    block.add(f"{self.method(space, 'copy')}({source.expr}, {following.expr})", node)
                left += [slot.expr, following.expr]
                right += [following.expr, slot.expr]
            elif slot.kind == "scalar" or source.kind == "fresh":
                left.append(slot.expr)
                right.append(source.expr)
            else:
                left.append(slot.expr)
                right.append(f"{self.copier(space, value)}({source.expr})")
        if left:
            block.add(f"{', '.join(left)} = {', '.join(right)}", node)

    # -- results --------------------------------------------------------------------------------------------------------

    def fetches(self, block: Block) -> None:
        given: set[Root] = set()
        for value in self.graph.outputs:
            slot = self.slot(value, HOST_MEMORY)
            for root in slot.roots:
                root.use(self.facts.final)
            if value.shape == ():
                expr = f"{slot.expr}[()]"
            elif slot.kind in ("escape", "fresh") and value.shape is not None and slot.roots[0] not in given:
                given.add(slot.roots[0])
                expr = slot.expr
            elif value.shape is None:
                expr = f"fetch_any({slot.expr})"
            else:
                expr = f"{slot.expr}.copy()"
            self.out.results.append(expr)

    def poison(self) -> None:
        """Debug mode: overwrite every planned buffer once it is dead."""
        dying: dict[int, list[str]] = {}
        for root in self.out.roots:
            if root.kind == "planned" and root.last < self.facts.final:
                dying.setdefault(root.last, []).append(root.name)
        inserts: dict[int, list[tuple[int, str]]] = {}
        blocks: dict[int, Block] = {}
        for position, names in dying.items():
            where = self.after.get(position)
            if where is None:
                continue
            block, index = where
            blocks[id(block)] = block
            inserts.setdefault(id(block), []).extend((index, n) for n in names)
        for key, items in inserts.items():
            block = blocks[key]
            for index, name in sorted(items, reverse=True):
                block.items.insert(index, Line(f"poison({name})"))
