"""A kernel that takes the handle of a variable in another memory space: copies around its launch, under one lock set.

The kernel gets a copy of the variable in its own space, and what it wrote there goes back. While the step holds its locks, copies
of known shape are statements of their own, in planned buffers; else one call does everything, under the locks of that statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphdock.contracts.device import HOST_MEMORY, Device
from graphdock.contracts.ir import PlanNode, Value
from graphdock.contracts.queue import QueuedDevice
from graphdock.contracts.runtime.resources import Resource, Variable

from graphdock_executor.lower.records import Slot
from graphdock_executor.lower.state import State, activate, copy_directly, method, new_root, new_staging
from graphdock_executor.lower.variables import variable_slot
from graphdock_executor.step_program.names import Name, Operand, helper
from graphdock_executor.step_program.statements import Block, Copy, Fill, Launch
from graphdock_executor.transfers import RemoteVariable

__all__ = ["add_around", "copy_in"]

_HOLD = "it moves a variable between the host and the device"


def copy_in(state: State, variable: Variable, device: Device, node: PlanNode, block: Block, at: int) -> Slot:
    """Add what copies a variable to a device; the place of the copy. Where it must be one call, the variable itself."""
    where = variable_slot(state, variable)
    if not (state.given.locked and variable.static):
        return where
    value = Value(variable.name, variable.dtype, variable.dims, node, 0)
    direct = _reaches(device, variable.device)
    if variable.device.memory_space != HOST_MEMORY and not direct:
        where = _to_host(state, variable.device, value, where, block, at)
    if device.memory_space != HOST_MEMORY:
        root, buffer = new_root(state, "planned", device.memory_space, value, at)
        made = Slot(buffer, (root,), True, True, "variable")
        if direct:
            activate(state, device, block, node)
            copy_directly(state, device, where, made, node, block)
        else:
            _from_host(state, device, value, where, made, block)
        where = made
    return Slot(where.at, where.roots, True, True, "variable")


def add_around(
    state: State, launch: Launch, copies: Mapping[Variable, Slot], written: Sequence[Resource], block: Block, at: int
) -> None:
    """Add a launch on copies of variables, and what takes back those that it writes."""
    node, device = launch.node, launch.device
    assert node is not None and device is not None and isinstance(launch.kernel, Name)
    whole = [(v, s.at, v in written) for v, s in copies.items() if not _is_copy(s)]
    if whole:
        launch.kernel, launch.args = _one_call(state, launch.kernel, device, whole, launch.args)
        launch.device = launch.settle = None
        launch.hold = "it moves a variable between devices"
    block.add(launch)
    for variable, copy in copies.items():
        if variable in written and _is_copy(copy):
            _copy_back(state, variable, copy, device, node, block, at)


def _is_copy(where: Slot) -> bool:
    """Return whether :func:`copy_in` made a copy; else it is the variable's own place."""
    return where.roots[0].kind != "variable"


def _copy_back(
    state: State, variable: Variable, copy: Slot, device: Device, node: PlanNode, block: Block, at: int
) -> None:
    """Add what copies a copy that :func:`copy_in` made back into its variable."""
    value = Value(variable.name, variable.dtype, variable.dims, node, 0)
    target = variable_slot(state, variable)
    if _reaches(variable.device, device):
        activate(state, variable.device, block, node)
        copy_directly(state, variable.device, copy, target, node, block)
        return
    where = copy
    if device.memory_space != HOST_MEMORY:
        if variable.device.memory_space != HOST_MEMORY or isinstance(device, QueuedDevice):
            where = _to_host(state, device, value, copy, block, at)
        else:
            _copy(state, device, "to_host", copy, target, node, block)
            return
    if variable.device.memory_space != HOST_MEMORY:
        _from_host(state, variable.device, value, where, target, block)
    else:
        assert isinstance(target.at, Name)
        block.add(Fill(target.at, where.at, node=node, touches=(*where.roots, *target.roots)))


def _reaches(device: Device, other: Device) -> bool:
    return isinstance(device, QueuedDevice) and other.memory_space != HOST_MEMORY and device.reaches(other)


def _to_host(state: State, device: Device, value: Value, where: Slot, block: Block, at: int) -> Slot:
    assert value.node is not None
    if isinstance(device, QueuedDevice):
        root, name = new_staging(state, device, value)
    else:
        root, name = new_root(state, "planned", HOST_MEMORY, value, at)
    made = Slot(name, (root,), True, True, "variable")
    _copy(state, device, "to_host", where, made, value.node, block)
    return made


def _from_host(state: State, device: Device, value: Value, where: Slot, target: Slot, block: Block) -> None:
    assert value.node is not None
    if isinstance(device, QueuedDevice) and not any(state.out.staging.get(r.device) is device for r in where.roots):
        root, name = new_staging(state, device, value)
        block.add(Fill(name, where.at, node=value.node, touches=(*where.roots, root)))
        where = Slot(name, (root,), True, True, "variable")
    _copy(state, device, "from_host", where, target, value.node, block)


def _copy(state: State, device: Device, called: str, source: Slot, target: Slot, node: PlanNode, block: Block) -> None:
    activate(state, device, block, node)
    hold = "" if isinstance(device, QueuedDevice) else _HOLD
    name = method(state, device, called)
    reads, writes = source.roots, target.roots
    block.add(Copy(name, source.at, target.at, node=node, device=device, reads=reads, writes=writes, hold=hold))


def _one_call(
    state: State,
    kernel: Name,
    device: Device,
    variables: Sequence[tuple[Variable, Operand, bool]],
    args: Sequence[Operand],
) -> tuple[Operand, tuple[Operand, ...]]:
    """A function and arguments which stand for the launch of a kernel, and copy the variables before and after.

    Args:
      variables: those of which :func:`copy_in` made no copy, each with its operand among ``args``, and whether it is written.
    """
    carried = []
    workers: list[Operand] = [_worker(state, device)]
    for variable, operand, writes in variables:
        positions = tuple([i for i, a in enumerate(args) if a is operand])
        carried.append(RemoteVariable(positions, variable.dtype, writes))
        workers.append(_worker(state, variable.device))
    name = state.names.new("object")
    state.out.objects[name] = tuple(carried)
    state.active = None
    return helper("run_on_copies"), (kernel, name, *workers, *args)


def _worker(state: State, device: Device) -> Name:
    name = state.names.new("object")
    state.out.workers[name] = device
    return name
