"""What lowering finds out about a step that others may follow before its work is done, or that follows such a step."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from graphdock.contracts.device import HOST_MEMORY, Device
from graphdock.contracts.queue import QueuedDevice
from graphdock.runtime.lower.state import State
from graphdock.runtime.program.names import helper
from graphdock.runtime.program.statements import Block, Call, Copy, Fence, walk
from graphdock.runtime.resources import Resource, Variable
from graphdock.runtime.storage import Root

__all__ = ["let_go", "touched", "waits_for_its_work"]


def waits_for_its_work(state: State, devices: Collection[Device]) -> str:
    """Why a step can't give up its claim before its work is done; empty where it can."""
    if not state.given.locked:
        return "it may wait for other steps, or calls Python"
    if not devices:
        return "no device with queues works in it"
    others = [r for r in (*state.out.read, *state.out.written) if not isinstance(r, Variable)]
    return f"it uses {min(map(str, others))}" if others else ""


def let_go(block: Block) -> None:
    """Let the step give up its claim before the fences at its end, where only what is fetched is waited for."""
    end = len(block.statements)
    while end and isinstance(block.statements[end - 1], Fence) and block.statements[end - 1].node is None:
        end -= 1
    if end < len(block.statements):
        hold = "other steps may follow from here on"
        block.statements.insert(end, Call(helper("queued"), hold=hold))


def touched(block: Block, resources: Mapping[Root, Resource]) -> dict[Resource, dict[Device | None, bool]]:
    """Resource -> the devices whose queues touch it, None where the host does at once, and whether they write it.

    Variables in host memory are left out: the host has touched them when the step's work is queued.
    """
    found: dict[Resource, dict[Device | None, bool]] = {}
    for statement in walk(block):
        accesses = [(root, False) for root in statement.reads]
        accesses += [(root, True) for root in (*statement.writes, *statement.touches)]
        for root, writes in accesses:
            resource = resources.get(root)
            if resource is None or resource.device.memory_space == HOST_MEMORY:
                continue
            device = statement.device if root not in statement.touches else None
            elsewhere = isinstance(device, QueuedDevice) and device.memory_space != resource.device.memory_space
            if elsewhere and not isinstance(statement, Copy):
                device = resource.device  # a kernel elsewhere, which gets a copy through the variable's own queue
            key = device if isinstance(device, QueuedDevice) else None
            devices = found.setdefault(resource, {})
            devices[key] = devices.get(key, False) or writes
    return found
