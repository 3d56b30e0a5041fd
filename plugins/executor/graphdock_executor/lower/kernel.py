"""Lowering of the verb ``kernel``: each output gets its mode, the kernel is built, and its call is a Launch."""

from __future__ import annotations

import operator
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import field
from typing import Any

from graphdock.contracts.device import HOST_MEMORY, Device
from graphdock.contracts.executor import SCALAR
from graphdock.contracts.ir import PlanNode, Value, arg_of
from graphdock.contracts.kernel import (
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
    build_kernel,
)
from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.contracts.opdef import ArgDef
from graphdock.contracts.queue import QueuedDevice
from graphdock.contracts.runtime.resources import Resource, Variable
from graphdock.contracts.streams import streams_of
from graphdock.shape import concrete

from graphdock_executor.lower.modes import (
    Form,
    Granted,
    Kind,
    Shared,
    attributes_of,
    fixed_modes,
    form_of,
    grant,
    is_shareable,
)
from graphdock_executor.lower.records import Build, Setup, Slot
from graphdock_executor.lower.state import (
    State,
    activate,
    constant,
    contiguous_copy,
    copied,
    extend_lifetime,
    output,
    planned,
    resolve,
    slot,
)
from graphdock_executor.lower.variables import (
    access,
    is_remote,
    lower_read_as_copy,
    settled,
    store_directly,
    touch,
    variable_slot,
)
from graphdock_executor.step_program.names import Literal, Name, Operand, Suffixed
from graphdock_executor.step_program.statements import Block, Call, Compute, Launch, Wrap
from graphdock_executor.storage import Root

__all__ = ["lower_kernel"]

_AT = operator.attrgetter("at")
_NO_LITERALS: tuple[tuple[Name, int], ...] = ()


def lower_kernel(state: State, node: PlanNode, block: Block, at: int) -> None:
    """A node that a kernel computes, or that the host computes as a scalar by the op's formula."""
    placed = state.given.placed
    if state.scalars and node.outputs and placed.home.get(node.outputs[0]) == SCALAR:
        _scalar(state, node, block)
        return
    kernel, device = placed.kernels[node], placed.device_of(node)
    slots, numbers, taken = _inputs(state, node, kernel, device, block, at)
    touched = taken.touched
    kind = _kind(state, node, kernel, device, slots, numbers, taken)
    form, infos = kind.form, kind.infos
    steering = [i for i in form.steered if node.constant(i) is None] if form.steered else ()
    if kind.unknown or steering:
        _note_shapes(state, node, steering)
    modes = kind.fixed or grant(state, node, form, slots, at, kind.plans)
    granted = _granted(state, node, kind, modes)
    prepared = placed.prepared.get(node)
    if prepared is None:
        shared = _bound(state, node, kernel, device, kind, granted)
        if shared.is_plain and (taken is _NOTHING or (state.given.locked and not taken.copies)):
            _launch_alike(state, node, kernel, device, slots, modes, shared, block, at)
            return
        bound, told = shared.bound, shared.told
    else:
        told = _told(state, node, device, kind, granted)
        bound = prepared.facts()
    state.out.first_bounds.append(bound)
    name = state.names.new("kernel")
    given: list[Operand] = list(map(_AT, slots))
    for i in bound.retains:
        if node.inputs[i] in state.lent:  # what it keeps must be copied under a lock of its own
            lower_read_as_copy(state, state.lent[node.inputs[i]], block, at)
            given[i] = state.slots[node.inputs[i]].at
        given[i] = copied(state, infos[i].memory_space, node.inputs[i], given[i], node)
    streams = []
    for identity in streams_of(node) if form.random else ():
        streams.append(state.names.new("stream"))
        state.out.streams[streams[-1]] = (identity, device)
    given += streams
    # a view that needs no value of the step but where its source lies is made once per instance
    viewed = {m.input for m in modes if m.kind == "view"} if form.views else ()
    once = bool(viewed) and not node.opdef.is_stateful and _needs_nothing_else(bound, infos, viewed)
    made: list[Slot] = []
    written: list[Operand] = []
    returned: list[Name] = []
    for i, value in enumerate(node.outputs):
        mode = modes[i]
        if value in state.direct_stores:
            where = variable_slot(state, state.direct_stores[value])
        else:
            where = output(state, value, mode, slots, kernel, form.outputs[i], at, block, once)
        made.append(where)
        if mode.kind in ("planned", "inplace"):
            written.append(where.at)
        else:
            assert isinstance(where.at, Name)
            returned.append(where.at)
    scratch = _scratch(state, bound, device.memory_space, at, node) if bound.scratch else []
    if bound.args is None and not scratch:
        args, literals = given + written, _NO_LITERALS
    else:
        args, literals = _call(state, bound, given, [*written, *(name for _, name in scratch)])
    static = () if prepared is None else _static(slots, made, modes, bound, scratch)
    lasting = () if prepared is None else _lasting(state, node, slots)
    state.out.builds.append(Build(name, node, kernel, told, literals, prepared, static, lasting))
    if viewed and all(s.static for s in made):
        state.out.setups.append(Setup(tuple(returned), name, tuple(args)))
        return
    for stream in streams if state.counters else ():
        block.add(Call(Suffixed(stream, ".at"), tuple(state.counters), node=node, hold="the host counts iterations"))
    activate(state, device, block, node)
    lock_set = access(state, [r for r, w in touched if not w], [r for r, w in touched if w]) if touched else None
    launch = Launch(name, tuple(args), tuple(returned), lock_set, node=node, device=device)
    if state.direct_stores:
        straight = [state.direct_stores[v] for v in node.outputs if v in state.direct_stores]
        if straight:
            launch.kernel, launch.args = store_directly(state, name, straight, launch.args)
    if lock_set is not None:
        launch.settle = settled(state, device, lock_set)
    if state.queues:
        launch.reads, launch.writes, launch.touches = _storages(slots, infos, form.args, made, scratch)
    if state.given.capture is not None:
        launch.hold = _hold(state, node, bound, infos, device)
    if taken.copies:
        from graphdock_executor.lower.remote_variables import add_around

        add_around(state, launch, taken.copies, [r for r, w in touched if w], block, at)
    else:
        block.add(launch)
    if placed.check_numerics:
        from graphdock_executor.lower.check_numerics import check_launch

        check_launch(state, node, made, [r for r, w in touched if w], block)


def _launch_alike(
    state: State,
    node: PlanNode,
    kernel: KernelDef,
    device: Device,
    slots: Sequence[Slot],
    modes: Sequence[Mode],
    shared: Shared,
    block: Block,
    at: int,
) -> None:
    """A call of a kernel that takes its inputs and writes its outputs, and nothing else."""
    out, name, bound = state.out, state.names.new("kernel"), shared.bound
    args: list[Operand] = list(map(_AT, slots))
    written: list[Operand] = []
    for i, value in enumerate(node.outputs):
        mode = modes[i]
        if mode is PLANNED:
            written.append(planned(state, value, at, block).at)
        else:
            made = slots[mode.input]
            extend_lifetime(state, value, made, at)
            written.append(made.at)
    if bound.scratch:
        written += [name for _, name in _scratch(state, bound, device.memory_space, at, node)]
    literals = _NO_LITERALS
    if bound.args is None:
        args += written
    else:
        args, literals = _call(state, bound, args, written)
    out.first_bounds.append(bound)
    out.builds.append(Build(name, node, kernel, shared.told, literals))
    block.statements.append(Launch.plain(name, tuple(args), node, device))


def _is_plain(state: State, kind: Kind, bound: Bound, device: Device) -> bool:
    """Return whether calls of nodes of a kind are no more than :func:`_launch_alike` makes of them."""
    form, given = kind.form, state.given
    more = form.views or form.all_or_nothing or form.random or bound.retains
    around = state.queues or given.capture is not None or given.placed.check_numerics
    return kind.plans and not (more or around) and type(device).activate is Device.activate


def _kind(
    state: State,
    node: PlanNode,
    kernel: KernelDef,
    device: Device,
    slots: Sequence[Slot],
    numbers: list[int],
    taken: _Taken,
) -> Kind:
    """Key of what a node has in common with others that are lowered alike; not with one that takes resources but variables."""
    key: Hashable = None
    opdef, outputs = node.opdef, node.outputs
    attrs = () if opdef.plain else attributes_of(node)
    if attrs is not None and len(numbers) == len(slots):
        last, new = state.given.facts.last, state.kinds.new
        for value in outputs:
            numbers.append(new(value) if value in last else ~new(value))
        key = id(opdef), id(kernel), id(device), attrs, len(outputs), *numbers
        known = state.kinds.known.get(key)
        if known is not None:
            return known
    form = form_of(node, kernel, state.forms)
    unknown = any([v.shape is None or None in v.shape for v in node.inputs])
    plans = form.plans and not form.waits and not any([concrete(v.shape) is None for v in node.outputs])
    shares = key is not None and kernel.prepare is None
    fixed = fixed_modes(form, plans, outputs)
    infos = tuple(_infos(state, node, form, device, slots, taken))
    kind = Kind(form, infos, unknown, plans, fixed, shares, form.bare or not opdef.plain)
    if key is not None:
        state.kinds.known[key] = kind
    return kind


def _granted(state: State, node: PlanNode, kind: Kind, modes: Sequence[Mode]) -> Granted:
    """Parts that nodes of a kind with these modes have in common."""
    home, outputs = state.given.placed.home, node.outputs
    key: Hashable
    if len(outputs) == 1:
        key = id(modes[0]), home[outputs[0]]
    else:
        key = tuple([(id(mode), home[v]) for mode, v in zip(modes, outputs, strict=True)])
    granted = kind.granted.get(key)
    if granted is None:
        last = state.given.facts.last
        infos = [
            OutInfo(name, v.dtype, v.shape, home[v], mode, v in last)
            for name, v, mode in zip(kind.form.outputs, outputs, modes, strict=True)
        ]
        granted = kind.granted[key] = Granted(tuple(infos))
    return granted


def _told(state: State, node: PlanNode, device: Device, kind: Kind, granted: Granted) -> BuildContext:
    placed = state.given.placed
    return BuildContext(
        node, kind.infos, granted.outputs, device, device.queue, placed.threads, functions=placed.function
    )


def _bound(state: State, node: PlanNode, kernel: KernelDef, device: Device, kind: Kind, granted: Granted) -> Shared:
    """The kernel, made for the node or for one alike, and what it was told."""
    key: Hashable = None
    if kind.shares:
        key = () if kind.bare else attributes_of(node)
        found = None if key is None else granted.bounds.get(key)
        if found is not None:
            if not found.proven:  # a second node is the first that asks
                kind.shares = found.proven = is_shareable(found.bound, node)
                found.is_plain = found.proven and _is_plain(state, kind, found.bound, device)
            if found.proven:
                return found
    told = _told(state, node, device, kind, granted)
    made = Shared(_built(kernel, told, node), told)
    if key is not None:
        granted.bounds[key] = made
    return made


def _note_shapes(state: State, node: PlanNode, steering: Sequence[int]) -> None:
    """Remember how to check the actual shapes of a kernel's inputs, and the elements of those that steer it, should it fail."""
    from graphdock_executor.lower.guards import rule_check

    check, found, _ = rule_check(state, node, steering)
    state.out.shapes[node] = check, tuple([s.at for s in found])


def _needs_nothing_else(bound: Bound, infos: Sequence[ArgInfo], viewed: Collection[int]) -> bool:
    """Return whether a call takes only what is viewed and what never changes."""
    taken = range(len(infos)) if bound.args is None else [a.index for a in bound.args if isinstance(a, In)]
    return all(i in viewed or infos[i].value is not None for i in taken)


def _storages(
    slots: Sequence[Slot],
    infos: Sequence[ArgInfo],
    args: Sequence[ArgDef],
    made: Sequence[Slot],
    scratch: Sequence[tuple[Root, Name]],
) -> tuple[tuple[Root, ...], tuple[Root, ...], tuple[Root, ...]]:
    """Storage that a launch reads and writes, and what the host touches while it makes the launch."""
    pairs = list(zip(slots, infos, strict=True))
    reads = tuple([r for s, i in pairs if i.memory_space != HOST_MEMORY for r in s.roots])
    touches = tuple([r for s, i in pairs if i.memory_space == HOST_MEMORY for r in s.roots])
    changed = [r for s, arg in zip(slots, args, strict=True) if arg.mutates for r in s.roots]
    return reads, (*changed, *(r for s in made for r in s.roots), *(r for r, _ in scratch)), touches


@lazy_dataclass(slots=True)
class _Taken:
    """Resources that a node takes.

    Attributes:
      touched: the resources among its inputs, with whether it writes them.
      copies: what it gets for variables that live elsewhere. ``variables``: input -> the resource behind it.
    """

    touched: list[tuple[Resource, bool]] = field(default_factory=list)
    copies: dict[Variable, Slot] = field(default_factory=dict)
    variables: dict[int, Resource] = field(default_factory=dict)


#: What nearly all nodes take.
_NOTHING = _Taken()


def _inputs(
    state: State, node: PlanNode, kernel: KernelDef, device: Device, block: Block, at: int
) -> tuple[list[Slot], list[int], _Taken]:
    """Places of a node's inputs; their numbers, as :class:`Kinds` has them, those of strided ones negative; and its resources."""
    needs_of, kinds, taken = state.given.placed.needs, state.kinds, _NOTHING
    slots: list[Slot] = []
    numbers: list[int] = []
    numbered, known, same, alias, lends = kinds.numbered, state.slots, state.given.facts.same, state.alias, state.lent
    for i, value in enumerate(node.inputs):
        if value.dtype.kind == "R":
            taken = _Taken() if taken is _NOTHING else taken
            slots.append(_resource(state, node, i, value, device, block, at, taken))
            resource = taken.variables[i]
            if isinstance(resource, Variable):
                numbers.append(kinds.variable(resource))
            continue
        source = resolve(state, value) if value in same or value in alias else value
        if source.node is not None and source.node.verb == "constant":
            where = constant(state, source, needs_of(node)[i] or HOST_MEMORY, node)
            number = kinds.constant(source.node.attrs["value"], value)
        else:
            where, number = known[source], numbered.get(value) or kinds.number(value)
            lent = lends.get(source) if lends else None
            if lent is not None:
                taken = _Taken() if taken is _NOTHING else taken
                taken.touched.append((state.given.resource(state.given.placed.handles[lent.inputs[0]]), False))
        if not where.contiguous:
            if kernel.layout != "contiguous":
                number = ~number
            else:
                where = contiguous_copy(state, value, where, needs_of(node)[i] or HOST_MEMORY, block, at, node)
        slots.append(where)
        numbers.append(number)
    return slots, numbers, taken


def _resource(
    state: State, node: PlanNode, index: int, value: Value, device: Device, block: Block, at: int, taken: _Taken
) -> Slot:
    """Slot of a handle."""
    writes = arg_of(node)[index].access != "reads"
    resource = taken.variables[index] = touch(state, value, node, block, writes)
    taken.touched.append((resource, writes))
    if not (isinstance(resource, Variable) and is_remote(resource, device)):
        return variable_slot(state, resource)
    if resource not in taken.copies:
        from graphdock_executor.lower.remote_variables import copy_in

        taken.copies[resource] = copy_in(state, resource, device, node, block, at)
    return taken.copies[resource]


def _infos(
    state: State, node: PlanNode, form: Form, device: Device, slots: Sequence[Slot], taken: _Taken
) -> Iterator[ArgInfo]:
    """Facts of the inputs that a kernel is told."""
    needs = state.given.placed.needs(node)
    for i, (value, arg, where) in enumerate(zip(node.inputs, form.args, slots, strict=True)):
        resource = taken.variables.get(i)
        if isinstance(resource, Variable):
            yield ArgInfo(arg.name, resource.dtype, resource.dims, device.memory_space, None, True, True)
        elif resource is not None:
            yield ArgInfo(arg.name, value.dtype, (), HOST_MEMORY)
        else:
            maker = resolve(state, value).node
            known = maker.attrs["value"] if maker is not None and maker.verb == "constant" else None
            yield ArgInfo(arg.name, value.dtype, value.shape, needs[i] or HOST_MEMORY, known, where.contiguous)


def _built(kernel: KernelDef, ctx: BuildContext, node: PlanNode) -> Bound:
    try:
        return build_kernel(kernel, ctx)
    except Exception as error:  # noqa: BLE001 - whatever a kernel raises is raised again with its node
        from graphdock.contracts.kernel_errors import kernel_error

        explained = kernel_error(error, node, "could not be built")
        if explained is error:
            raise
        raise explained from error


def _static(
    slots: Sequence[Slot],
    made: Sequence[Slot],
    modes: Sequence[Mode],
    bound: Bound,
    scratch: Sequence[tuple[Root, Name]],
) -> tuple[Name | None, ...]:
    """Of each input, planned output and scratch buffer, the name where it is the same in every step."""
    written = [s for s, m in zip(made, modes, strict=True) if m.kind in ("planned", "inplace")]
    names = [s.at if s.static and isinstance(s.at, Name) else None for s in (*slots, *written)]
    for i in bound.retains:
        names[i] = None  # a copy is handed over
    return (*names, *(name for _, name in scratch))


def _lasting(state: State, node: PlanNode, slots: Sequence[Slot]) -> tuple[Variable | None, ...]:
    """Of each input, the variable whose buffer it is, where nothing in the plan writes that."""
    given, found = state.given, []
    for value, where in zip(node.inputs, slots, strict=True):
        read = resolve(state, value).node if where.kind == "variable" and where.static else None
        handle = given.placed.handles[read.inputs[0]] if read is not None and read.verb == "read" else None
        resource = None if handle is None or handle in given.facts.writes else given.resource(handle)
        found.append(resource if isinstance(resource, Variable) else None)
    return tuple(found)


def _hold(state: State, node: PlanNode, bound: Bound, infos: Sequence[ArgInfo], device: Device) -> str:
    """Reason why a device can't record the launch: what the host hands over would be frozen."""
    if not bound.capture_safe:
        return "its kernel is not capture_safe"
    if "random" in node.opdef.effects and not isinstance(device, QueuedDevice):
        return "its random counter is read when it is launched"
    if "random" in node.opdef.effects and state.counters:
        return "the iteration it draws for is read when it is launched"
    if any(i.memory_space == HOST_MEMORY and i.value is None for i in infos):
        return "it reads host memory"
    return ""


def _scratch(state: State, bound: Bound, space: str, at: int, node: PlanNode) -> list[tuple[Root, Name]]:
    found = []
    for item in bound.scratch:
        name = state.names.new("buffer")
        root = Root("planned", space, item.dtype, item.shape, at, at, name.text, node)
        state.out.roots.append(root)
        state.buffer_names[root] = name
        found.append((root, name))
    return found


def _call(
    state: State, bound: Bound, given: Sequence[Operand], buffers: Sequence[Operand]
) -> tuple[list[Operand], tuple[tuple[Name, int], ...]]:
    """The arguments as the Bound orders them, and the objects among them that it asked for."""
    if bound.args is None:
        return [*given, *buffers], ()
    literals: list[tuple[Name, int]] = []
    args: list[Operand] = []
    for index, item in enumerate(bound.args):
        if isinstance(item, In):
            args.append(given[item.index])
        elif isinstance(item, Out):
            args.append(buffers[item.index])
        else:
            args.append(_literal(state, item, index, literals))
    return args, tuple(literals)


def _literal(state: State, item: Lit, index: int, literals: list[tuple[Name, int]]) -> Operand:
    if item.value is None or type(item.value) in (bool, int):
        return Literal(item.value)
    name = state.names.new("literal")
    literals.append((name, index))
    return name


def _scalar(state: State, node: PlanNode, block: Block) -> None:
    value = node.outputs[0]
    template: Any = state.given.placed.formula(node)
    operands = tuple([slot(state, v, SCALAR).at for v in node.inputs])
    name = state.names.new("scalar")
    block.add(Compute(name, template, operands, node=node))
    if value.dtype.name != "bool":
        block.add(Wrap(name, value.dtype.size * 8, node=node))
    extend_lifetime(state, value, Slot(name, (), True, False, "scalar"), 0)
