"""Lowering of branches and loops to native ``if`` and ``while``.

A loop variable owns two buffers, read and written in turn; what a body returns is written straight into its place. The
handlers are generators: they yield each body that is to be lowered now, with the block that its statements go to, so that nesting
costs no recursion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graphdock.contracts.bodies import carried
from graphdock.contracts.device import Device
from graphdock.contracts.ir import PlanGraph, PlanNode, Value
from graphdock.runtime.lower.records import Slot
from graphdock.runtime.lower.state import State, copied, keep, method, mover, new_root, slot, worker
from graphdock.runtime.program.names import Literal, Name, Operand
from graphdock.runtime.program.statements import Block, Branch, Call, Compute, Copy, Leave, Let, Loop
from graphdock.runtime.spaces import SCALAR
from graphdock.runtime.storage import Root
from graphdock.shape import concrete

__all__ = ["Bodies", "lower_branch", "lower_loop"]

#: What a handler of a node with bodies yields: a body to lower, and where its statements go.
Bodies = Iterator[tuple[PlanGraph, Block]]


def lower_branch(state: State, node: PlanNode, block: Block, at: int) -> Bodies:
    end = state.given.facts.end[node]
    predicate = slot(state, node.inputs[0], SCALAR).at
    targets = [_branch_target(state, node, i, at, end) for i in range(len(node.outputs))]
    before = set(state.assigned)
    blocks = (Block(), Block())
    block.add(Branch(predicate, *blocks, node=node, hold="the host decides which branch runs"))
    for body, inner in zip(node.bodies, blocks, strict=True):
        direct = [
            (v, t.roots[0], t.at)
            for v, t in zip(body.outputs, targets, strict=True)
            if t.static and isinstance(t.at, Name)
        ]
        _write_straight(state, body, direct)
        state.branches += 1
        state.active = None
        yield body, inner
        state.active = None
        state.branches -= 1
        for value, outer, target in zip(body.outputs, node.outputs, targets, strict=True):
            _hand_over(state, value, outer, target, inner, node)
        state.assigned = set(before)
    for value, target in zip(node.outputs, targets, strict=True):
        keep(state, value, target, end)
    state.after[end] = (block, len(block.statements))


def _branch_target(state: State, node: PlanNode, index: int, at: int, end: int) -> Slot:
    """Where both branches leave an output."""
    value, given = node.outputs[index], state.given
    space = given.home[value]
    if space == SCALAR:
        return Slot(state.names.new("scalar"), (), True, False, "scalar")
    if concrete(value.shape) is not None and all(b.outputs[index].shape == value.shape for b in node.bodies):
        root, buffer = new_root(state, "planned", space, value, at)
        return Slot(buffer, (root,), True, True, "cond")
    name = state.names.new("value")
    return Slot(name, (Root("fresh", space, value.dtype, (), at, end, name.text),), True, False, "cond")


def _write_straight(state: State, body: PlanGraph, direct: Sequence[tuple[Value, Root, Name]]) -> None:
    """Let the producers of body outputs write straight into the given storage, where they can."""
    inside = set(body.nodes) if direct else set()
    for value, root, name in direct:
        node = value.node
        kernel = state.given.kernels.get(node) if node is not None else None
        if node is None or kernel is None or node not in inside:
            continue
        if "planned" in kernel.modes and value.shape == root.shape:
            state.direct[value] = (root, name)


def _hand_over(state: State, value: Value, outer: Value, target: Slot, block: Block, node: PlanNode) -> None:
    """Make ``target`` hold a branch's output."""
    space = state.given.home[outer]
    source = slot(state, value, space, node)
    assert isinstance(target.at, Name)
    if target.kind == "scalar":
        block.add(Let((target.at,), (source.at,), node=node))
    elif source.at is target.at:
        return
    elif target.static:
        copy = method(state, mover(state, space, node), "copy")
        device = worker(state, space, node, block)
        block.add(Copy(copy, source.at, target.at, node=node, device=device, reads=source.roots, writes=target.roots))
    elif source.kind == "fresh":
        block.add(Let((target.at,), (source.at,), rebinds=((target.roots[0], source.roots),), node=node))
    else:
        made = copied(state, space, value, source.at, node)
        block.add(_new(target, made, source, worker(state, space, node, block), node))


def _new(target: Slot, made: Operand, source: Slot, device: Device | None, node: PlanNode) -> Let:
    """``target`` stands for a new buffer, which a device fills from ``source``."""
    assert isinstance(target.at, Name)
    writes = () if device is None else target.roots
    rebinds = ((target.roots[0], ()),)
    return Let((target.at,), (made,), node=node, device=device, reads=source.roots, writes=writes, rebinds=rebinds)


def lower_loop(state: State, node: PlanNode, block: Block, at: int) -> Bodies:
    end = state.given.facts.end[node]
    cond, body = node.bodies
    variables = [_enter(state, node, i, block, at, end) for i in range(carried(node.opdef, node.attrs))]
    params = [v for v, _ in variables]
    nexts = [n for _, n in variables]
    limit = node.attrs["maximum_iterations"]
    counter = state.names.new("count") if limit >= 0 or node in state.counted else None
    if counter is not None:
        block.add(Let((counter,), (Literal(0),), node=node))
    inner = Block()
    block.add(Loop(inner, node=node, hold="the host decides when the loop ends"))
    before = set(state.assigned)
    counters = [counter] if counter is not None and node in state.counted else []
    state.counters += counters
    state.active = None
    yield cond, inner
    inner.add(Leave(slot(state, cond.outputs[0], SCALAR).at, node=node))
    if counter is not None and limit >= 0:
        inner.add(Leave(counter, limit, node=node))
    direct = [
        (v, n.roots[0], n.at)
        for v, n in zip(body.outputs, nexts, strict=False)
        if n is not None and isinstance(n.at, Name)
    ]
    _write_straight(state, body, direct)
    yield body, inner
    state.active = None
    _advance(state, node, body, params, nexts, inner)
    if counter is not None:
        inner.add(Compute(counter, "{0} + 1", (counter,), node=node))
    del state.counters[len(state.counters) - len(counters) :]
    state.assigned = before
    for value, where in zip(node.outputs, params, strict=True):
        keep(state, value, where, end)
    state.after[end] = (block, len(block.statements))


def _enter(state: State, node: PlanNode, index: int, block: Block, at: int, end: int) -> tuple[Slot, Slot | None]:
    """Where a loop variable is, and where its next value goes (None: it is set at the end of the iteration)."""
    cond, body = node.bodies
    value, parameter = node.inputs[index], body.inputs[index]
    space = state.given.home[parameter]
    source = slot(state, value, space, node)
    following: Slot | None = None
    if space == SCALAR:
        name = state.names.new("loop")
        where = Slot(name, (), True, False, "scalar")
        block.add(Let((name,), (source.at,), node=node))
    elif concrete(parameter.shape) is not None and body.outputs[index].shape == parameter.shape == value.shape:
        first, first_name = new_root(state, "loop", space, parameter, at)
        second, second_name = new_root(state, "loop", space, parameter, at)
        name, after = state.names.new("loop"), state.names.new("next")
        where = Slot(name, (first, second), True, False, "loop")
        following = Slot(after, (second, first), True, False, "loop")
        copy = method(state, mover(state, space, node), "copy")
        device = worker(state, space, node, block)
        block.add(Copy(copy, source.at, first_name, node=node, device=device, reads=source.roots, writes=(first,)))
        block.add(Let((name,), (first_name,), node=node))
        block.add(Let((after,), (second_name,), node=node))
    else:
        name = state.names.new("loop")
        where = Slot(name, (Root("fresh", space, value.dtype, (), at, end, name.text),), True, False, "loop")
        made = copied(state, space, value, source.at, node)
        block.add(_new(where, made, source, worker(state, space, node, block), node))
    for graph in (cond, body):
        state.slots[graph.inputs[index]] = where
    return where, following


def _kept(state: State, space: str, value: Value, source: Slot, block: Block, node: PlanNode) -> Slot:
    """A copy of a value for the next iteration."""
    made = copied(state, space, value, source.at, node)
    device = worker(state, space, node, block)
    if device is None:
        return Slot(made)
    name = state.names.new("copy")
    new = Root("fresh", space, value.dtype, (), name=name.text)
    block.add(Call(made.function, made.args, (name,), node=node, device=device, reads=source.roots, writes=(new,)))
    return Slot(name, (new,))


def _advance(
    state: State, node: PlanNode, body: PlanGraph, params: Sequence[Slot], nexts: Sequence[Slot | None], block: Block
) -> None:
    """End of an iteration: every next value is in place before any loop variable changes."""
    left: list[Name] = []
    right: list[Operand] = []
    rebinds: list[tuple[Root, tuple[Root, ...]]] = []
    for i, (where, following) in enumerate(zip(params, nexts, strict=True)):
        value = body.outputs[i]
        space = state.given.home[body.inputs[i]]
        source = slot(state, value, space, node)
        assert isinstance(where.at, Name)
        if source.at is where.at:
            continue
        if following is not None:
            assert isinstance(following.at, Name)
            if source.at is not following.at:
                copy = method(state, mover(state, space, node), "copy")
                device = worker(state, space, node, block)
                block.add(
                    Copy(
                        copy,
                        source.at,
                        following.at,
                        node=node,
                        device=device,
                        reads=source.roots,
                        writes=following.roots,
                    )
                )
            left += [where.at, following.at]
            right += [following.at, where.at]
        else:
            left.append(where.at)
            kept = where.kind == "scalar" or source.kind == "fresh"
            following = source if kept else _kept(state, space, value, source, block, node)
            right.append(following.at)
            rebinds += [(root, following.roots) for root in where.roots]
    if left:
        block.add(Let(tuple(left), tuple(right), node=node, rebinds=tuple(rebinds)))
