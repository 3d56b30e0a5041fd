"""Lowering of the verb ``move``: a tensor goes to another memory space, or becomes a host scalar or leaves off being one."""

from __future__ import annotations

from graphdock.contracts.device import HOST_MEMORY
from graphdock.contracts.ir import PlanNode
from graphdock.contracts.kernel import PLANNED
from graphdock.runtime.lower.records import Slot
from graphdock.runtime.lower.state import State, activate, contiguous_copy, fresh, keep, method, new_root, output, slot
from graphdock.runtime.program.names import Name, Suffixed, helper
from graphdock.runtime.program.statements import Block, Call, Copy, Let, Put
from graphdock.runtime.spaces import SCALAR
from graphdock.shape import concrete

__all__ = ["lower_move"]


def lower_move(state: State, node: PlanNode, block: Block, at: int) -> None:
    value, result = node.inputs[0], node.outputs[0]
    source, target = node.attrs["source"], node.attrs["target"]
    where = slot(state, value, source)
    if target == SCALAR:
        name = state.names.new("scalar")
        item = Suffixed(where.at, ".item()")
        block.add(Let((name,), (item,), node=node, reads=where.roots, hold="the host needs its value"))
        state.slots[result] = Slot(name, (), True, False, "scalar")
    elif concrete(value.shape) is None:
        _of_unknown_shape(state, node, where, block, at)
    elif source == SCALAR:
        root, buffer = new_root(state, "planned", target, result, at)
        block.add(Put(buffer, where.at, node=node, writes=(root,)))
        keep(state, result, Slot(buffer, (root,), True, True, "planned"), at)
    else:
        if not where.contiguous:
            where = contiguous_copy(state, value, where, source, block, at, node)
        other = target if source == HOST_MEMORY else source
        device = state.given.spaces[other]
        activate(state, device, block, node)
        made = output(state, result, PLANNED, [], None, "", at, block)
        copy = method(state, other, "from_host" if source == HOST_MEMORY else "to_host")
        block.add(
            Copy(
                copy,
                where.at,
                made.at,
                node=node,
                device=device,
                reads=where.roots,
                writes=made.roots,
                hold="it moves a tensor between the host and the device",
            )
        )


def _of_unknown_shape(state: State, node: PlanNode, where: Slot, block: Block, at: int) -> None:
    result, source, target = node.outputs[0], node.attrs["source"], node.attrs["target"]
    made = fresh(state, result, target, at, "copy")
    function, other = ("push", target) if source == HOST_MEMORY else ("pull", source)
    device, dtype = state.names.new("object"), state.names.new("object")
    state.out.objects[device], state.out.objects[dtype] = state.given.spaces[other], result.dtype
    assert isinstance(made.at, Name)
    args = (device, where.at, dtype)
    block.add(Call(helper(function), args, (made.at,), node=node, reads=where.roots, hold="its shape is unknown"))
    keep(state, result, made, at)
