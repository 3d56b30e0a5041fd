"""Lowering of branches and loops to native ``if`` and ``while``.

A loop variable owns two buffers, read and written in turn; what a body returns is written straight into its place. A variable
that is kept in a history, or whose next value is, takes over the buffer that each iteration makes. The handlers are generators:
they yield each body that is to be lowered now, with the block that its statements go to, so that nesting costs no recursion.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphdock.contracts.bodies import carried
from graphdock.contracts.executor import SCALAR
from graphdock.contracts.ir import PlanGraph, PlanNode, Value
from graphdock.shape import concrete

from graphdock_executor.lower.histories import begin_histories, left_by_branch, push_all, scan_all
from graphdock_executor.lower.owned_buffers import is_retained, owned
from graphdock_executor.lower.records import Bodies, Slot
from graphdock_executor.lower.state import State, extend_lifetime, method, mover, new_root, slot, worker
from graphdock_executor.step_program.names import Literal, Name, Operand
from graphdock_executor.step_program.statements import Block, Branch, Compute, Copy, Leave, Let, Loop, Pair
from graphdock_executor.storage import Root

__all__ = ["lower_branch", "lower_loop"]


def lower_branch(state: State, node: PlanNode, block: Block, at: int) -> Bodies:
    end = state.given.facts.end[node]
    predicate = slot(state, node.inputs[0], SCALAR).at
    targets = [_branch_target(state, node, i, at, end) for i in range(len(node.outputs))]
    left: list[list[Slot]] = [[] for _ in node.outputs]
    before = set(state.assigned)
    blocks = (Block(), Block())
    state.after[at] = (block, len(block.statements))
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
        for i, (value, target) in enumerate(zip(body.outputs, targets, strict=True)):
            if node.outputs[i].dtype.kind == "V":
                left[i].append(slot(state, value, state.given.placed.home[node.outputs[i]]))
            _hand_over(state, value, node.outputs[i], target, inner, node)
        state.assigned = set(before)
    for i, (value, target) in enumerate(zip(node.outputs, targets, strict=True)):
        if value.dtype.kind == "V":
            target = _left_in_place(state, value, target, left[i], blocks) or left_by_branch(
                state, node, i, target, left[i]
            )
        extend_lifetime(state, value, target, end)
    state.after[end] = (block, len(block.statements))


def _branch_target(state: State, node: PlanNode, index: int, at: int, end: int) -> Slot:
    """Slot in which both branches leave an output."""
    value, given = node.outputs[index], state.given
    space = given.placed.home[value]
    if value.dtype.kind == "V":
        name = state.names.new("value")
        return Slot(name, (Root("fresh", space, value.dtype, (), at, end, name.text),), True, False, "left")
    if space == SCALAR:
        return Slot(state.names.new("scalar"), (), True, False, "scalar")
    kept = value in state.retained or any(is_retained(state, b.outputs[index]) for b in node.bodies)
    alike = concrete(value.shape) is not None and all(b.outputs[index].shape == value.shape for b in node.bodies)
    if alike and not kept:
        root, buffer = new_root(state, "planned", space, value, at)
        return Slot(buffer, (root,), True, True, "cond")
    name = state.names.new("value")
    return Slot(name, (Root("fresh", space, value.dtype, (), at, end, name.text),), True, False, "own")


def _left_in_place(
    state: State, value: Value, target: Slot, left: Sequence[Slot], blocks: Sequence[Block]
) -> Slot | None:
    """Slot of an output that one branch leaves and the other one does not: whoever reads it knows that the branch was taken.

    It is read where it is, under no name of its own, in a step that may be recorded; None where it is not always there.
    """
    given = [s for s in left if s.kind != "empty"]
    if state.given.capture is None or value in state.retained or len(given) != 1 or not given[0].static:
        return None
    for block in blocks:
        block.statements = [s for s in block.statements if not isinstance(s, Let) or s.targets != (target.at,)]
    return given[0]


def _write_straight(state: State, body: PlanGraph, direct: Sequence[tuple[Value, Root, Name]]) -> None:
    """Let the producers of body outputs write straight into the given storage, where they can."""
    inside = set(body.nodes) if direct else set()
    for value, root, name in direct:
        node = value.node
        kernel = state.given.placed.kernels.get(node) if node is not None else None
        if node is None or kernel is None or node not in inside or value in state.retained:
            continue
        if "planned" in kernel.modes and value.shape == root.shape:
            state.direct[value] = (root, name)


def _hand_over(state: State, value: Value, outer: Value, target: Slot, block: Block, node: PlanNode) -> None:
    """Make ``target`` hold a branch's output."""
    space = state.given.placed.home[outer]
    source = slot(state, value, space, node)
    assert isinstance(target.at, Name)
    if target.kind == "scalar" or target.kind == "left" and outer not in state.retained:
        block.add(Let((target.at,), (source.at,), node=node))
    elif source.at is target.at:
        return
    elif target.static:
        copy = method(state, mover(state, space, node), "copy")
        device = worker(state, space, node, block)
        block.add(Copy(copy, source.at, target.at, node=node, device=device, reads=source.roots, writes=target.roots))
    else:
        made = owned(state, value, source, space, block, node)
        block.add(Let((target.at,), (made.at,), node=node, reads=made.reads, rebinds=((target.roots[0], made.roots),)))


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
    begin_histories(state, node, block, end)
    inner = Block()
    takes = scan_all(state, node, block, inner, at)
    loop = Loop(inner, node=node, hold="the host decides when the loop ends")
    loop.pairs = tuple(state.pairs.get(node, ()))
    loop.whole = counter is None and len(loop.pairs) == len(variables)
    state.after[at] = (block, len(block.statements))
    block.add(loop)
    before = set(state.assigned)
    counters = [counter] if counter is not None and node in state.counted else []
    state.counters += counters
    state.active = None
    yield cond, inner
    test = slot(state, cond.outputs[0], SCALAR).at
    if not isinstance(test, Literal) or not test.of:
        inner.add(Leave(test, node=node))
    if counter is not None and limit >= 0:
        inner.add(Leave(counter, limit, node=node))
    inner.statements += takes
    direct = [
        (v, n.roots[0], n.at)
        for v, n in zip(body.outputs, nexts, strict=False)
        if n is not None and isinstance(n.at, Name)
    ]
    _write_straight(state, body, direct)
    yield body, inner
    state.active = None
    push_all(state, node, inner)
    _advance(state, node, body, params, nexts, inner)
    if counter is not None:
        inner.add(Compute(counter, "{0} + 1", (counter,), node=node))
    del state.counters[len(state.counters) - len(counters) :]
    state.assigned = before
    for value, where in zip(node.outputs, params, strict=False):
        extend_lifetime(state, value, where, end)
    state.after[end] = (block, len(block.statements))


def _enter(state: State, node: PlanNode, index: int, block: Block, at: int, end: int) -> tuple[Slot, Slot | None]:
    """Slot of a loop variable, and where its next value goes (None: it is set at the end of the iteration)."""
    cond, body = node.bodies
    value, parameter = node.inputs[index], body.inputs[index]
    space = state.given.placed.home[parameter]
    source = slot(state, value, space, node)
    following: Slot | None = None
    kept = parameter in state.retained or is_retained(state, body.outputs[index])
    alike = concrete(parameter.shape) is not None and body.outputs[index].shape == parameter.shape == value.shape
    if space == SCALAR and value.dtype.kind != "V":
        name = state.names.new("loop")
        where = Slot(name, (), True, False, "scalar")
        block.add(Let((name,), (source.at,), node=node))
    elif alike and not kept and value.dtype.kind != "V":
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
        pair = Pair(name, after, first_name, second_name, (first, second))
        state.pairs.setdefault(node, []).append(pair)
    else:
        name = state.names.new("loop")
        root = Root("fresh", space, value.dtype, (), at, end, name.text)
        where = Slot(name, (root,), True, False, "own")
        made = owned(state, value, source, space, block, node)
        block.add(Let((name,), (made.at,), node=node, reads=made.reads, rebinds=((root, made.roots),)))
    for graph in (cond, body):
        state.slots[graph.inputs[index]] = where
    return where, following


def _advance(
    state: State, node: PlanNode, body: PlanGraph, params: Sequence[Slot], nexts: Sequence[Slot | None], block: Block
) -> None:
    """End of an iteration: every next value is in place before any loop variable changes."""
    left: list[Name] = []
    right: list[Operand] = []
    reads: list[Root] = []
    rebinds: list[tuple[Root, tuple[Root, ...]]] = []
    for i, (where, following) in enumerate(zip(params, nexts, strict=True)):
        value = body.outputs[i]
        space = state.given.placed.home[body.inputs[i]]
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
            if where.kind == "scalar":
                right.append(source.at)
                continue
            made = owned(state, value, source, space, block, node)
            right.append(made.at)
            reads += made.reads
            rebinds.append((where.roots[0], made.roots))
    if left:
        block.add(Let(tuple(left), tuple(right), node=node, reads=tuple(reads), rebinds=tuple(rebinds)))
