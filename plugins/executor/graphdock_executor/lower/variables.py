"""Lowering of handles, and of reads and assignments of variables.

A read aliases its variable only while no write can run in the plan. In a step that holds no locks while it runs, a read is a copy,
unless one kernel alone takes it: that kernel gets the variable itself, under the locks of its own statement.

Some values a kernel writes straight into the variables that they are assigned to, so that nobody copies them there. A kernel of
mode ``all_or_nothing`` writes nothing before all that may be refused has been accepted. So a variable may lend it its memory where
the assignment comes right after the kernel, and nothing else in the plan knows the variable or the value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from graphdock.contracts.device import HOST_MEMORY, Device
from graphdock.contracts.executor import SCALAR
from graphdock.contracts.ir import PlanNode, Value
from graphdock.contracts.kernel import PLANNED
from graphdock.contracts.queue import QueuedDevice
from graphdock.contracts.runtime.access import Access
from graphdock.contracts.runtime.resources import Resource, Variable
from graphdock.dtypes import string, uint8
from graphdock.shape import concrete

from graphdock_executor.lower.records import Slot
from graphdock_executor.lower.state import (
    LoweringInput,
    State,
    extend_lifetime,
    fresh,
    method,
    mover,
    output,
    slot,
    worker,
)
from graphdock_executor.step_program.names import Literal, Name, Operand, Suffixed, helper
from graphdock_executor.step_program.statements import Block, Call, Copy, Flag, Require
from graphdock_executor.storage import Root

__all__ = [
    "access",
    "direct_stores",
    "is_remote",
    "lent_reads",
    "lower_assign",
    "lower_read",
    "lower_read_as_copy",
    "resource_name",
    "settled",
    "store_directly",
    "touch",
    "variable_slot",
]


def touch(state: State, handle: Value, node: PlanNode, block: Block, writes: bool) -> Resource:
    """The resource behind a handle; notes that it is read (and a variable must hold a value) or written.

    Whether it holds one is checked when the step begins, but where it is read: in a branch, which may not run, and in a plan
    that empties the variable.
    """
    owner = state.given.placed.handles[handle]
    variable = state.given.resource(owner)
    (state.out.written if writes else state.out.read).add(variable)
    if not isinstance(variable, Variable):
        return variable
    destroyed = owner in state.destroyed
    if node.verb != "assign" and (destroyed or not (variable in state.out.checked or variable in state.assigned)):
        if state.branches or destroyed:
            name = resource_name(state, variable)
            block.add(Require(name, node=node, hold="whether a variable holds a value is checked in the step"))
        else:
            state.out.checked[variable] = node
    return variable


def variable_slot(state: State, variable: Resource) -> Slot:
    """Slot that a kernel gets for a handle: a variable's buffer, or the resource itself.

    A variable of unknown shape changes its buffer. A step that holds no locks while it runs names whichever it has when it is
    looked up, under the locks of the statement.
    """
    if isinstance(variable, Variable) and not variable.static:
        which = ".buffer" if state.given.locked else ".current"
        where = Suffixed(resource_name(state, variable), which)
        return Slot(where, (_root(state, variable),), True, False, "variable")
    found = state.variable_slots.get(variable)
    if found is None:
        name = state.names.new("variable")
        found = state.variable_slots[variable] = Slot(name, (_root(state, variable),), True, True, "variable")
        state.out.variables[name] = variable
    return found


def _root(state: State, resource: Resource) -> Root:
    """A resource's storage, as statements name what they touch."""
    root = state.variable_roots.get(resource)
    if root is None:
        space, dtype = (
            (resource.device.memory_space, resource.dtype) if isinstance(resource, Variable) else (HOST_MEMORY, uint8)
        )
        root = state.variable_roots[resource] = Root("variable", space, dtype, (), 0, state.given.facts.final)
    return root


def settled(state: State, device: Device | None, lock_set: Name | None) -> Name | None:
    """Name of what waits for a queue before a statement's locks are released; None where its work is done at once."""
    if lock_set is None or not isinstance(device, QueuedDevice):
        return None
    return method(state, device, "synchronize")


def access(state: State, reads: Sequence[Resource] = (), writes: Sequence[Resource] = ()) -> Name | None:
    """Name of what locks for one statement, in a step that holds no locks while it runs; None where nothing need be locked."""
    if state.given.locked or not (reads or writes):
        return None
    made = Access(state.given.placed.graph, reads, writes)
    if not made:
        return None
    name = state.names.new("access")
    state.out.objects[name] = made
    return name


def resource_name(state: State, variable: Variable) -> Name:
    name = state.resource_names.get(variable)
    if name is None:
        name = state.resource_names[variable] = state.names.new("resource")
        state.out.states[name] = variable
    return name


def lower_read(state: State, node: PlanNode, block: Block, at: int) -> None:
    given = state.given
    variable = touch(state, node.inputs[0], node, block, False)
    assert isinstance(variable, Variable)
    value = node.outputs[0]
    where = variable_slot(state, variable)
    known = variable.static and concrete(value.shape) is not None
    writes = given.facts.writes.get(given.placed.handles[node.inputs[0]], ())
    until = given.facts.reach.get(value, at)
    if known and given.locked and value not in state.retained and not any(at < w <= until for w in writes):
        state.slots[value] = where
        return
    if known and value in state.lent:
        state.slots[value] = where
        return
    lower_read_as_copy(state, node, block, at)


def lent_reads(given: LoweringInput) -> dict[Value, PlanNode]:
    """Reads, by their values, whose only reader gets the variable itself, in a step that holds no locks while it runs.

    The reader is a kernel of the same level that waits for nothing; it locks the variable. None in debug mode, which looks
    at values between statements.
    """
    found: dict[Value, PlanNode] = {}
    if given.locked or given.placed.debug:
        return found
    facts, kernels, home = given.facts, given.placed.kernels, given.placed.home
    for level in given.placed.graph.all_graphs():
        reads = {n.outputs[0]: n for n in level.nodes if n.verb == "read" and concrete(n.outputs[0].shape) is not None}
        if not reads:
            continue
        readers: dict[Value, list[PlanNode]] = {value: [] for value in reads}
        follows: dict[PlanNode, list[int]] = {node: [] for node in reads.values()}
        for node in level.nodes:
            for value in node.inputs:
                if value in readers:
                    readers[value].append(node)
            for before in (*node.control, *node.order):
                if before in follows:
                    follows[before].append(facts.position[node])
        for value, node in reads.items():
            if len(readers[value]) != 1 or value in level.outputs:
                continue
            (reader,) = readers[value]
            at, until = facts.position[node], facts.position[reader]
            writes = facts.writes.get(given.placed.handles[node.inputs[0]], ())
            alone = facts.reach.get(value) == until and not any(at < w <= until for w in writes)
            alone = alone and all(behind >= until for behind in follows[node])  # such as what lets other steps write
            scalar = bool(reader.outputs) and home.get(reader.outputs[0]) == SCALAR
            if alone and reader in kernels and not scalar and "waits" not in reader.opdef.effects:
                found[value] = node
    return found


def lower_read_as_copy(state: State, node: PlanNode, block: Block, at: int) -> None:
    """Add what copies a variable, under the locks of that statement where the step holds none."""
    given = state.given
    variable = given.resource(given.placed.handles[node.inputs[0]])
    assert isinstance(variable, Variable)
    value = node.outputs[0]
    where = variable_slot(state, variable)
    space = variable.device.memory_space
    known = variable.static and concrete(value.shape) is not None
    lock_set = access(state, [variable])
    if known:
        made = output(state, value, PLANNED, [], None, "", at, block)
    else:
        made = fresh(state, value, given.placed.home[value], at, "value")
        extend_lifetime(state, value, made, at)
    device = worker(state, space, node, block)
    settle = settled(state, device, lock_set)
    if not known:
        resource = resource_name(state, variable)
        assert isinstance(made.at, Name)
        block.add(
            Call(
                Suffixed(resource, ".snapshot"),
                _by(state, variable, node),
                (made.at,),
                lock_set,
                node=node,
                device=device,
                reads=where.roots,
                writes=made.roots,
                settle=settle,
                hold="its shape is unknown",
            )
        )
        return
    copy = method(state, mover(state, space, node), "copy")
    block.add(
        Copy(
            copy,
            where.at,
            made.at,
            lock_set,
            node=node,
            device=device,
            reads=where.roots,
            writes=made.roots,
            settle=settle,
        )
    )


def _by(state: State, variable: Variable, node: PlanNode) -> tuple[Operand, ...]:
    """The queue through which a variable of unknown shape is copied; nothing where its device works at once."""
    device = mover(state, variable.device.memory_space, node)
    if not isinstance(device, QueuedDevice):
        return ()
    name = state.names.new("object")
    state.out.workers[name] = device
    return (name,)


def lower_assign(state: State, node: PlanNode, block: Block, at: int) -> None:
    variable = touch(state, node.inputs[0], node, block, True)
    assert isinstance(variable, Variable)
    resource = resource_name(state, variable)
    lock_set = access(state, writes=[variable])
    space = variable.device.memory_space
    value = node.inputs[1]
    if value in state.direct_stores:
        _flag(state, node, variable, block)
        return
    source = slot(state, value, space, node)
    target = variable_slot(state, variable)
    device = worker(state, space, node, block)
    settle = settled(state, device, lock_set)
    if variable.static and value.shape == variable.dims:
        copy = method(state, mover(state, space, node), "copy")
        block.add(
            Copy(
                copy,
                source.at,
                target.at,
                lock_set,
                node=node,
                device=device,
                reads=source.roots,
                writes=target.roots,
                settle=settle,
            )
        )
    else:
        assign = Suffixed(resource, ".assign")
        args = (source.at, *_by(state, variable, node))
        block.add(
            Call(
                assign,
                args,
                (),
                lock_set,
                node=node,
                device=device,
                reads=source.roots,
                writes=target.roots,
                settle=settle,
                rebinds=tuple([(root, ()) for root in target.roots]),
                hold="the variable's shape may change",
            )
        )
    _flag(state, node, variable, block)


def _flag(state: State, node: PlanNode, variable: Variable, block: Block) -> None:
    """The variable holds its new value from here on."""
    block.add(Flag(resource_name(state, variable), node=node))
    if state.given.placed.check_numerics and variable.dtype.is_floating:
        from graphdock_executor.lower.check_numerics import check_buffer

        space, target = variable.device.memory_space, variable_slot(state, variable)
        check_buffer(state, space, variable.dtype, target, block, node, Literal(variable.name))
    state.assigned.add(variable)  # until the branch or body that this stands in ends


def is_remote(resource: Resource, device: Device) -> bool:
    """Return whether a kernel of the device gets a copy of a variable. Strings are in host memory, whatever the device."""
    return (
        isinstance(resource, Variable)
        and resource.dtype is not string
        and resource.device.memory_space != device.memory_space
    )


#: Verbs of nodes that run nothing.
_IDLE = frozenset({"constant", "handle", "none"})


def direct_stores(given: LoweringInput) -> dict[Value, Variable]:
    """Value -> the variable in whose memory its kernel writes it.

    None in a step that holds no locks while it runs, for others see the variable between kernel and assignment; and none in debug
    mode, which fills outputs with what no result contains before a kernel is called.
    """
    makers = {n for n, kernel in given.placed.kernels.items() if "all_or_nothing" in kernel.modes and n.guard is None}
    if not makers or not given.locked or given.placed.debug:
        return {}
    used = _uses(given)
    nodes = given.placed.graph.nodes
    found: dict[Value, Variable] = {}
    for i, node in enumerate(nodes):
        if node in makers:
            for assign in _assignments(nodes[i + 1 :], node):
                value, variable = assign.inputs[1], given.resource(given.placed.handles[assign.inputs[0]])
                if used[value] == 1 and used[variable] == 1 and _fits(given, value, variable):
                    assert isinstance(variable, Variable)
                    found[value] = variable
    return found


def _assignments(behind: Sequence[PlanNode], maker: PlanNode) -> Iterator[PlanNode]:
    """The assignments of what a node makes, up to the first node that does anything else."""
    for node in behind:
        if node.verb == "assign" and node.inputs[1].node is maker and node.guard is None:
            yield node
        elif node.verb not in _IDLE:
            return


def _uses(given: LoweringInput) -> Counter[object]:
    """Of every value, and of every resource, how many inputs of nodes it is; a result of the step is used once more."""
    used: Counter[object] = Counter(given.placed.graph.outputs)
    for level in given.placed.graph.all_graphs():
        used.update(level.outputs)
        for node in level.nodes:
            used.update(node.inputs)
            used.update({given.resource(given.placed.handles[v]) for v in node.inputs if v in given.placed.handles})
    return used


def _fits(given: LoweringInput, value: Value, variable: object) -> bool:
    return (
        isinstance(variable, Variable)
        and variable.static
        and variable.dims == value.shape
        and variable.dtype is not string
        and variable.device.memory_space == HOST_MEMORY == given.placed.home[value]
    )


def store_directly(
    state: State, kernel: Name, variables: Sequence[Variable], args: Sequence[Operand]
) -> tuple[Operand, tuple[Operand, ...]]:
    """A function and arguments that stand for the launch of a kernel on variables' memory."""
    name = state.names.new("object")
    state.out.objects[name] = tuple(variables)
    return helper("all_or_nothing"), (kernel, name, *args)
