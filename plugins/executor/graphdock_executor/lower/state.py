"""State of one lowering: one record, which the handlers of the verbs read and extend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from graphdock.contracts.device import HOST_MEMORY, Device
from graphdock.contracts.executor import SCALAR, PlacedGraph
from graphdock.contracts.ir import PlanNode, Value
from graphdock.contracts.kernel import KernelDef, Mode
from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.contracts.queue import QueuedDevice
from graphdock.contracts.runtime.resources import Resource, Variable
from graphdock.shape import concrete

from graphdock_executor.liveness import Liveness
from graphdock_executor.lower.modes import Form, Kinds
from graphdock_executor.lower.records import Lowered, Slot
from graphdock_executor.step_program.names import Apply, Literal, Name, Names, Operand, helper
from graphdock_executor.step_program.statements import Activate, Block, Call, Copy, Pair
from graphdock_executor.storage import Root

__all__ = [
    "LoweringInput",
    "State",
    "activate",
    "fresh",
    "worker",
    "constant",
    "copied",
    "contiguous_copy",
    "is_constant",
    "extend_lifetime",
    "method",
    "mover",
    "new_staging",
    "new_root",
    "output",
    "resolve",
    "slot",
]


@lazy_dataclass(frozen=True)
class LoweringInput:
    """The facts of a placed plan that lowering starts from; nothing here changes.

    Attributes:
      facts: how long every value is needed.
      locked: the step holds its locks on all its resources while it runs; else each access locks for itself.
      capture: the device that may record parts of the step.
    """

    placed: PlacedGraph
    facts: Liveness
    locked: bool
    capture: Device | None = None

    @property
    def overlaps(self) -> bool:
        """Return whether a step may release its locks, and end, before its work is done, where nothing in it forbids that."""
        return self.placed.steps_in_flight > 1

    def resource(self, handle: Value) -> Resource:
        """The resource of a handle, declared on first use."""
        found: Resource = self.placed.resource(handle)
        return found


@lazy_dataclass
class State:
    """Decisions so far. Used once, by one thread.

    Attributes:
      slots: value -> where it is. ``alias``: value -> the value that it is another name of.
      escapes: values handed to the caller. ``direct``: body output -> the root, and its name, that its producer writes.
      direct_stores: value -> the variable that it is assigned to, into whose memory its kernel writes it.
      lent: value that is read of a variable -> the node that reads it, where the only reader gets the variable and locks it.
      after: in debug mode, position of a node -> the block and index behind its last statement; of one with bodies those of its own
        statement, which its bodies' positions follow, and for the position after its bodies those behind it.
      assigned: variables assigned before, on every way to here. ``destroyed``: handles of variables that the plan may empty.
      crowded: memory spaces in which several queued devices work.
      retained: values that histories hold, and what hands its buffer on to them.
      branches: how many branches stand around the node that is being lowered.
      counted: loops in which something is drawn. ``counters``: names of the iteration numbers of those around here.
      pairs: loop -> the buffers of its variables, as far as these are pairs.
      scalars: the host keeps some values as Python numbers.
      active: the synchronous device that is current on the step's thread, as far as is known here.
    """

    given: LoweringInput
    out: Lowered = field(default_factory=Lowered)
    names: Names = field(default_factory=Names)
    slots: dict[Value, Slot] = field(default_factory=dict)
    alias: dict[Value, Value] = field(default_factory=dict)
    escapes: set[Value] = field(default_factory=set)
    direct: dict[Value, tuple[Root, Name]] = field(default_factory=dict)
    direct_stores: dict[Value, Variable] = field(default_factory=dict)
    lent: dict[Value, PlanNode] = field(default_factory=dict)
    after: dict[int, tuple[Block, int]] = field(default_factory=dict)
    assigned: set[Variable] = field(default_factory=set)
    destroyed: set[Value] = field(default_factory=set)
    crowded: set[str] = field(default_factory=set)
    retained: set[Value] = field(default_factory=set)
    branches: int = 0
    counted: set[PlanNode] = field(default_factory=set)
    counters: list[Name] = field(default_factory=list)
    pairs: dict[PlanNode, list[Pair]] = field(default_factory=dict)
    active: Device | None = None
    queues: bool = False
    scalars: bool = False
    forms: dict[tuple[int, ...], Form] = field(default_factory=dict)
    kinds: Kinds = field(default_factory=Kinds)
    method_names: dict[tuple[Device, str], Name] = field(default_factory=dict)
    constant_names: dict[tuple[int, str], Name] = field(default_factory=dict)
    buffer_names: dict[Root, Name] = field(default_factory=dict)
    variable_roots: dict[Resource, Root] = field(default_factory=dict)
    variable_slots: dict[Resource, Slot] = field(default_factory=dict)
    resource_names: dict[Variable, Name] = field(default_factory=dict)


def is_constant(value: Value) -> bool:
    return value.node is not None and value.node.verb == "constant"


def resolve(state: State, value: Value) -> Value:
    """The value that this one is another name of: through captures and aliases."""
    same, alias = state.given.facts.same, state.alias
    while True:
        value = same.get(value, value)
        named = alias.get(value)
        if named is None:
            return value
        value = named


def slot(state: State, value: Value, space: str | None, node: PlanNode | None = None) -> Slot:
    """Slot of a value, for a reader (``node``) in ``space``."""
    value = resolve(state, value)
    if is_constant(value):
        return constant(state, value, space or HOST_MEMORY, node)
    return state.slots[value]


def constant(state: State, value: Value, space: str, node: PlanNode | None = None) -> Slot:
    """A constant in a memory space. The device of the first node that reads it there puts it there."""
    assert value.node is not None
    array = value.node.attrs["value"]
    if space == SCALAR:
        return Slot(Literal(array.item()), kind="scalar")
    key = (id(array), space)
    name = state.constant_names.get(key)
    if name is None:
        name = state.constant_names[key] = state.names.new("constant")
        device = mover(state, space, value.node if node is None else node)
        state.out.constants[name] = (value.node, device, value.dtype)
    return Slot(name, (), True, True, "constant")


def extend_lifetime(state: State, value: Value, where: Slot, at: int) -> None:
    """Remember where ``value`` is, and keep its storage live until its last reader."""
    state.slots[value] = where
    roots = where.roots
    if roots:
        until = state.given.facts.last.get(value, at)
        for root in roots:
            if until > root.last:
                root.last = until


def new_root(state: State, kind: str, space: str, value: Value, at: int) -> tuple[Root, Name]:
    """Planned storage for a value of known shape."""
    shape = value.shape
    assert shape is not None and None not in shape
    name = state.names.new("buffer")
    root = Root(kind, space, value.dtype, shape, at, at, name.text, value.node)  # type: ignore[arg-type]
    state.out.roots.append(root)
    state.buffer_names[root] = name
    return root, name


def new_staging(state: State, device: QueuedDevice, value: Value, at: int | None = None) -> tuple[Root, Name]:
    """Staging memory for a value of known shape.

    Args:
      at: where the host is to read what a queued copy writes. Once it has, others may have the memory: it has waited for the copy.
        None for what the host writes: it serves one copy of a step then, for nobody knows when a queued copy reads it.
    """
    shape = concrete(value.shape)
    assert shape is not None
    name = state.names.new("staging")
    final = state.given.facts.final
    first, last = (0, final) if at is None else (at, at)
    root = Root("staging", staging_space(device), value.dtype, tuple(shape), first, last, name.text, value.node)
    state.out.roots.append(root)
    state.out.staging[root.device] = device
    return root, name


def staging_space(device: QueuedDevice) -> str:
    """Name of a device's staging memory among the memory spaces of a plan."""
    return f"staging of {device.info.device_type}:{device.info.index}"


def mover(state: State, space: str, node: PlanNode) -> Device:
    """Device that copies buffers of a memory space for a node: the node's own device, where that is its space."""
    if node.device is not None:
        own = state.given.placed.device_of(node)
        if own.memory_space == space:
            return own
    return state.given.placed.spaces[space]


def worker(state: State, space: str, node: PlanNode, block: Block) -> Device | None:
    """The device that works on a space's buffers for a node, and is current from here on; None where the host does, at once."""
    if space in (HOST_MEMORY, SCALAR):
        return None
    device = mover(state, space, node)
    activate(state, device, block, node)
    return device


def method(state: State, device: Device, called: str) -> Name:
    """The name of a method of a device, or of its queue. Host memory is host memory, whoever works on it."""
    key = (state.given.placed.spaces[HOST_MEMORY] if device.memory_space == HOST_MEMORY else device, called)
    name = state.method_names.get(key)
    if name is None:
        name = state.method_names[key] = state.names.new("method")
        state.out.methods[name] = key
    return name


def copy_directly(
    state: State, device: Device, source: Slot, target: Slot, node: PlanNode | None, block: Block
) -> None:
    """Add a device's copy from the memory of another one, which gets no other use in the step: nothing orders the work there."""
    for root in source.roots:
        root.use(state.given.facts.final)
    name = method(state, device, "copy")
    reads, writes = source.roots, target.roots
    block.add(Copy(name, source.at, target.at, node=node, device=device, reads=reads, writes=writes))


def copied(state: State, space: str, value: Value, source: Operand, node: PlanNode) -> Apply:
    """A new buffer with the elements of ``source``, whatever its shape."""
    if space == HOST_MEMORY:
        return Apply(helper("own_copy"), source)
    name = state.names.new("object")
    state.out.copiers[name] = (mover(state, space, node), value.dtype)
    return Apply(name, source)


def contiguous_copy(
    state: State, value: Value, source: Slot, space: str, block: Block, at: int, node: PlanNode
) -> Slot:
    if concrete(value.shape) is None:
        name = state.names.new("copy")
        made = copied(state, space, value, source.at, node)
        device = worker(state, space, node, block)
        new = Root("fresh", space, value.dtype, (), at, at, name.text)
        block.add(Call(made.function, made.args, (name,), node=node, device=device, reads=source.roots, writes=(new,)))
        return Slot(name, (new,), True, False, "fresh")
    root, buffer = new_root(state, "planned", space, value, at)
    copy = method(state, mover(state, space, node), "copy")
    device = worker(state, space, node, block)
    block.add(Copy(copy, source.at, buffer, node=node, device=device, reads=source.roots, writes=(root,)))
    return Slot(buffer, (root,), True, True, "copy")


def output(
    state: State,
    value: Value,
    mode: Mode,
    slots: Sequence[Slot],
    kernel: KernelDef | None,
    name: str,
    at: int,
    block: Block,
    once: bool = True,
) -> Slot:
    """Slot of an output, by the mode granted to it. ``once``: a view of it can be made when an instance is."""
    space = state.given.placed.home[value]
    if mode.kind == "view":
        assert kernel is not None
        source = slots[mode.input]
        static = source.static and once
        view = state.names.new("static view" if static else "value")
        made = Slot(view, source.roots, source.contiguous and kernel.views[name].contiguous, static, "view")
    elif mode.kind == "inplace":
        made = slots[mode.input]
    elif mode.kind == "fresh":
        made = fresh(state, value, space, at, "value")
        strided = kernel is not None and kernel.layout != "contiguous" and not all(s.contiguous for s in slots)
        made.contiguous = not strided or value.dtype.kind == "V"  # NumPy keeps the order of strided operands
    else:
        return planned(state, value, at, block)
    extend_lifetime(state, value, made, at)
    return made


def planned(state: State, value: Value, at: int, block: Block) -> Slot:
    """Slot of an output that its kernel writes into given memory."""
    space = state.given.placed.home[value]
    if value in state.direct:
        root, target = state.direct[value]
        made = Slot(target, (root,), True, False, "loop")
    elif value in state.retained or value in state.escapes and state.given.facts.depth_of(value) == 0:
        escape = state.names.new("escape")
        shape = tuple(value.shape or ())
        kind = "fresh" if value in state.retained else "escape"
        root = Root(kind, space, value.dtype, shape, at, state.given.facts.final, escape.text, value.node)  # type: ignore[arg-type]
        maker = state.names.new("maker")
        state.out.makers[maker] = root
        block.add(Call(maker, (), (escape,), node=value.node))
        made = Slot(escape, (root,), True, False, "escape")
    else:
        root, buffer = new_root(state, "planned", space, value, at)
        made = Slot(buffer, (root,), True, True)
    extend_lifetime(state, value, made, at)
    return made


def fresh(state: State, value: Value, space: str, at: int, meaning: str, kind: str = "fresh") -> Slot:
    """A buffer that only the step makes."""
    name = state.names.new(meaning)
    return Slot(name, (Root("fresh", space, value.dtype, (), at, at, name.text),), True, False, kind)


def activate(state: State, device: Device, block: Block, node: PlanNode) -> None:
    """Make a synchronous device current before it gets work, where it asks for that and is not current already.

    Queues are made current once all statements are there, see :mod:`graphdock_executor.step_program.hazards`.
    """
    if type(device).activate is Device.activate or state.active is device:
        return
    if not isinstance(device, QueuedDevice):
        state.active = device
        block.add(Activate(method(state, device, "activate"), node=node))
