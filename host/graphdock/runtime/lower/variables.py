"""Lowering of handles, and of reads and assignments of variables.

A read aliases its variable only while no write can run in the plan.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphdock.contracts.ir import PlanNode, Value
from graphdock.contracts.kernel import PLANNED
from graphdock.runtime.lower.records import Slot
from graphdock.runtime.lower.state import State, fresh, keep, method, output, slot, worker
from graphdock.runtime.program.names import Name, Suffixed
from graphdock.runtime.program.statements import Block, Call, Copy, Flag, Require
from graphdock.runtime.resources import Access, Resource, Variable
from graphdock.shape import concrete

__all__ = ["access", "lower_assign", "lower_read", "resource_name", "touch", "variable_slot"]


def touch(state: State, handle: Value, node: PlanNode, block: Block, writes: bool) -> Resource:
    """The resource behind a handle; notes that it is read (and a variable must hold a value) or written.

    Whether it holds one is checked when the step begins, but where it is read: in a branch, which may not run, and in a plan
    that empties the variable.
    """
    owner = state.given.handles[handle]
    variable = state.given.variable(owner, node)
    (state.out.written if writes else state.out.read).add(variable)
    if not isinstance(variable, Variable):
        return variable
    destroyed = owner in state.destroyed
    known = variable in state.assigned or variable in state.out.checked
    if node.verb != "assign" and (destroyed or not known):
        if state.branches or destroyed:
            name = resource_name(state, variable)
            block.add(Require(name, node=node, hold="whether a variable holds a value is checked in the step"))
        else:
            state.out.checked[variable] = node
    return variable


def variable_slot(state: State, variable: Resource) -> Slot:
    """What a kernel gets for a handle: a variable's buffer, or the resource itself.

    A variable of unknown shape changes its buffer. A step that holds no claim while it runs names whichever it has when it is
    looked up, under the claim of the statement.
    """
    if isinstance(variable, Variable) and not variable.static:
        which = ".buffer" if state.given.locked else ".current"
        return Slot(Suffixed(resource_name(state, variable), which), (), True, False, "variable")
    name = state.variable_names.get(variable)
    if name is None:
        name = state.variable_names[variable] = state.names.new("variable")
        state.out.variables[name] = variable
    return Slot(name, (), True, True, "variable")


def access(state: State, reads: Sequence[Resource] = (), writes: Sequence[Resource] = ()) -> Name | None:
    """What claims for one statement, in a step that holds no claim while it runs; None where nothing need be claimed."""
    made = Access(state.given.graph, reads, writes)
    if state.given.locked or not made:
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
    if not variable.static or concrete(value.shape) is None:
        made = fresh(state, value, given.home[value], at, "value")
        resource = resource_name(state, variable)
        assert isinstance(made.at, Name)
        snapshot = Suffixed(resource, ".snapshot")
        claim = access(state, [variable])
        block.add(Call(snapshot, (), (made.at,), claim, node=node, hold="its shape is unknown"))
        keep(state, value, made, at)
        return
    writes = given.facts.writes.get(given.handles[node.inputs[0]], ())
    until = given.facts.reach.get(value, at)
    if given.locked and not any(at < w <= until for w in writes):
        state.slots[value] = where
        return
    made = output(state, value, PLANNED, [], None, "", at, block)
    copy = method(state, variable.device.memory_space, "copy")
    claim = access(state, [variable])
    device = worker(state, variable.device.memory_space)
    block.add(Copy(copy, where.at, made.at, claim, node=node, device=device, writes=made.roots))


def lower_assign(state: State, node: PlanNode, block: Block, at: int) -> None:
    variable = touch(state, node.inputs[0], node, block, True)
    assert isinstance(variable, Variable)
    resource = resource_name(state, variable)
    claim = access(state, writes=[variable])
    space = variable.device.memory_space
    value = node.inputs[1]
    source = slot(state, value, space)
    if variable.static and value.shape == variable.dims:
        target = variable_slot(state, variable)
        copy = method(state, space, "copy")
        device = worker(state, space)
        block.add(Copy(copy, source.at, target.at, claim, node=node, device=device, reads=source.roots))
    else:
        assign = Suffixed(resource, ".assign")
        hold = "the variable's shape may change"
        block.add(Call(assign, (source.at,), (), claim, node=node, reads=source.roots, hold=hold))
    block.add(Flag(resource, node=node))
    state.assigned.add(variable)  # until the branch or body that this stands in ends
