"""Facts of lowering about a step that others may follow before its work is done, or that follows such a step."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from graphdock.contracts.device import HOST_MEMORY, Device
from graphdock.contracts.ir import PlanNode
from graphdock.contracts.queue import QueuedDevice
from graphdock.contracts.runtime.resources import Resource, Variable

from graphdock_executor.lower.records import Slot
from graphdock_executor.lower.state import State, method
from graphdock_executor.step_program.names import Name, helper
from graphdock_executor.step_program.statements import Block, Call, Copy, Fill, Synchronize, walk
from graphdock_executor.storage import Root

__all__ = ["AHEAD_BYTES", "copy_ahead", "follow_after", "goes_ahead", "release_early", "touched", "waits_for_its_work"]

#: Feeds from so many bytes on are copied ahead of what the step waits for; a smaller one is quicker as a part of a recording.
AHEAD_BYTES = 1 << 16


def waits_for_its_work(state: State, devices: Collection[Device]) -> str:
    """Reason why a step can't release its locks before its work is done; empty where it can."""
    if not state.given.locked:
        return "it may wait for other steps, or calls Python"
    if not devices:
        return "no device with queues works in it"
    others = [r for r in (*state.out.read, *state.out.written) if not isinstance(r, Variable)]
    return f"it uses {min(map(str, others))}" if others else ""


def release_early(block: Block) -> None:
    """Let the step release its locks before the fences at its end, where only what is fetched is waited for."""
    end = len(block.statements)
    while end and isinstance(block.statements[end - 1], Synchronize) and block.statements[end - 1].node is None:
        end -= 1
    if end < len(block.statements):
        hold = "other steps may follow from here on"
        block.statements.insert(end, Call(helper("queued"), hold=hold))


def goes_ahead(state: State, node: PlanNode, where: Slot, root: Root) -> bool:
    """Return whether a feed is copied to a device before the step follows what is in flight: steps may be, and it is large.

    ``root``: its staging memory. In a loop or branch it is copied where it stands.
    """
    large = state.given.overlaps and where.kind == "feed" and root.nbytes >= AHEAD_BYTES
    return large and node not in state.given.facts.nesting


def copy_ahead(
    state: State,
    node: PlanNode,
    where: Slot,
    device: QueuedDevice,
    staging: tuple[Root, Name],
    target: tuple[Root, Name],
) -> None:
    """Add, at the step's begin, the copy of a feed through ``staging`` to ``target``: it touches nothing that steps share."""
    (root, name), (made, buffer) = staging, target
    fill = Fill(name, where.at, node=node, touches=(*where.roots, root), hold="the host fills staging memory")
    hold = "it goes ahead of what the step waits for"
    copy = method(state, device, "from_host")
    state.out.fills.add(fill)
    state.out.fills.add(Copy(copy, name, buffer, node=node, device=device, reads=(root,), writes=(made,), hold=hold))
    state.out.ahead = True


def follow_after(block: Block) -> None:
    """Let the step follow what is in flight after these statements."""
    block.add(Call(helper("follow"), hold="it waits for steps in flight"))


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
