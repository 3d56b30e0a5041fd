"""Lowering of the verb ``move``: a tensor goes to another memory space, or becomes a host scalar or leaves off being one."""

from __future__ import annotations

from math import prod

from graphdock.contracts.device import HOST_MEMORY, Device
from graphdock.contracts.executor import SCALAR
from graphdock.contracts.ir import PlanNode, Value
from graphdock.contracts.kernel import PLANNED
from graphdock.contracts.queue import QueuedDevice
from graphdock.shape import concrete

from graphdock_executor.lower.guards import check_predicate
from graphdock_executor.lower.overlap import copy_ahead, goes_ahead
from graphdock_executor.lower.records import Slot
from graphdock_executor.lower.state import (
    State,
    activate,
    contiguous_copy,
    copy_directly,
    extend_lifetime,
    fresh,
    method,
    mover,
    new_root,
    new_staging,
    output,
    slot,
    staging_space,
)
from graphdock_executor.step_program.names import Name, Suffixed, helper
from graphdock_executor.step_program.statements import Block, Call, Copy, Fill, Let, Put
from graphdock_executor.storage import Root

__all__ = ["lower_move"]


def lower_move(state: State, node: PlanNode, block: Block, at: int) -> None:
    value, result = node.inputs[0], node.outputs[0]
    source, target = node.attrs["source"], node.attrs["target"]
    where = slot(state, value, source, node)
    if target == SCALAR:
        name = state.names.new("scalar")
        if value.shape != ():
            check_predicate(state, node, where, block)
        item = Suffixed(where.at, ".item()")
        block.add(Let((name,), (item,), node=node, reads=where.roots, hold="the host needs its value"))
        state.slots[result] = Slot(name, (), True, False, "scalar")
    elif concrete(value.shape) is None:
        _of_unknown_shape(state, node, where, block, at)
    elif source == SCALAR:
        root, buffer = new_root(state, "planned", target, result, at)
        block.add(Put(buffer, where.at, node=node, writes=(root,)))
        extend_lifetime(state, result, Slot(buffer, (root,), True, True, "planned"), at)
    else:
        if not where.contiguous:
            where = contiguous_copy(state, value, where, source, block, at, node)
        if HOST_MEMORY not in (source, target):
            _directly(state, node, where, block, at)
            return
        device = mover(state, target if source == HOST_MEMORY else source, node)
        activate(state, device, block, node)
        if isinstance(device, QueuedDevice):
            _through_staging(state, node, where, device, block, at)
        else:
            _at_once(state, node, where, device, block, at)


def _at_once(state: State, node: PlanNode, where: Slot, device: Device, block: Block, at: int) -> None:
    made = output(state, node.outputs[0], PLANNED, [], None, "", at, block)
    copy = method(state, device, "from_host" if node.attrs["source"] == HOST_MEMORY else "to_host")
    hold = "it moves a tensor between the host and the device"
    block.add(Copy(copy, where.at, made.at, node=node, device=device, reads=where.roots, writes=made.roots, hold=hold))


def _directly(state: State, node: PlanNode, where: Slot, block: Block, at: int) -> None:
    """The reader's device copies from the memory of the other one."""
    device = mover(state, node.attrs["target"], node)
    activate(state, device, block, node)
    made = output(state, node.outputs[0], PLANNED, [], None, "", at, block)
    copy_directly(state, device, where, made, node, block)


def _through_staging(state: State, node: PlanNode, where: Slot, device: QueuedDevice, block: Block, at: int) -> None:
    """A queued copy reads or writes staging memory, which the host fills before, or reads after a fence."""
    value, result = node.inputs[0], node.outputs[0]
    to_device = node.attrs["source"] == HOST_MEMORY
    if not to_device and _is_callers(state, result, device):
        _lent(state, node, where, device, block, at)
        return
    if to_device and where.kind == "staging" and [r.device for r in where.roots] == [staging_space(device)]:
        # it came from this device, and goes back in the order of the queue: the host waits for nothing
        made = output(state, result, PLANNED, [], None, "", at, block)
        copy = method(state, device, "from_host")
        block.add(Copy(copy, where.at, made.at, node=node, device=device, reads=where.roots, writes=made.roots))
        return
    root, name = new_staging(state, device, value, None if to_device else at)
    if goes_ahead(state, node, where, root):
        target, buffer = new_root(state, "planned", node.attrs["target"], result, 0)
        extend_lifetime(state, result, Slot(buffer, (target,), True, True, "planned"), at)
        copy_ahead(state, node, where, device, (root, name), (target, buffer))
    elif to_device:
        touches, hold = (*where.roots, root), "the host fills staging memory"
        fill = Fill(name, where.at, node=node, touches=touches, hold=hold)
        (state.out.fills if where.kind == "feed" and node not in state.given.facts.nesting else block).add(fill)
        made = output(state, result, PLANNED, [], None, "", at, block)
        copy = method(state, device, "from_host")
        block.add(Copy(copy, name, made.at, node=node, device=device, reads=(root,), writes=made.roots))
    else:
        copy = method(state, device, "to_host")
        block.add(Copy(copy, where.at, name, node=node, device=device, reads=where.roots, writes=(root,)))
        extend_lifetime(state, result, Slot(name, (root,), True, True, "staging"), at)


def _is_callers(state: State, value: Value, device: QueuedDevice) -> bool:
    """Return whether staging memory of its own is taken for what is fetched."""
    nbytes = value.dtype.size * prod(concrete(value.shape) or ())
    fetched = value in state.escapes and state.given.facts.depth_of(value) == 0
    return fetched and 0 < device.fetch_bytes <= nbytes


def _lent(state: State, node: PlanNode, where: Slot, device: QueuedDevice, block: Block, at: int) -> None:
    """Copy what is fetched into staging memory that the caller keeps as his array."""
    result = node.outputs[0]
    name, maker = state.names.new("escape"), state.names.new("maker")
    shape = tuple(concrete(result.shape) or ())
    root = Root("staging", staging_space(device), result.dtype, shape, at, state.given.facts.final, name.text, node)
    state.out.lent[maker] = root, device
    hold = "the caller keeps its memory"
    block.add(Call(maker, (), (name,), node=node, hold=hold))
    copy = method(state, device, "to_host")
    block.add(Copy(copy, where.at, name, node=node, device=device, reads=where.roots, writes=(root,), hold=hold))
    extend_lifetime(state, result, Slot(name, (root,), True, False, "escape"), at)


def _of_unknown_shape(state: State, node: PlanNode, where: Slot, block: Block, at: int) -> None:
    result, source, target = node.outputs[0], node.attrs["source"], node.attrs["target"]
    made = fresh(state, result, target, at, "copy")
    function, other = ("push", target) if source == HOST_MEMORY else ("pull", source)
    device, dtype = state.names.new("object"), state.names.new("object")
    state.out.workers[device], state.out.objects[dtype] = mover(state, other, node), result.dtype
    activate(state, state.out.workers[device], block, node)
    assert isinstance(made.at, Name)
    args = (device, where.at, dtype)
    moved = Call(helper(function), args, (made.at,), node=node, reads=where.roots, hold="its shape is unknown")
    worker = state.out.workers[device]
    if isinstance(worker, QueuedDevice):
        moved.device, moved.synchronizes = worker, True
        if function == "push":
            moved.reads, moved.writes, moved.touches = (), made.roots, where.roots
    block.add(moved)
    extend_lifetime(state, result, made, at)
