"""Lowering: from a placed plan graph to buffers, bound kernels and the statements of a step.

One pass over the nodes decides, for every value, where its elements lie (a :class:`Slot`) and adds the statements that make it: one
handler per verb. Storage rules (DESIGN section 4): whatever escapes is written to a fresh buffer or copied; a read of a variable
aliases it only while no write can run; a view shares its source's storage; an elementwise output takes over a dying input's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from graphdock.contracts.device import HOST_MEMORY
from graphdock.contracts.executor import SCALAR
from graphdock.contracts.ir import PlanGraph, PlanNode
from graphdock.contracts.queue import QueuedDevice

from graphdock_executor.lower.kernel import lower_kernel
from graphdock_executor.lower.records import Bodies, Lowered, Slot
from graphdock_executor.lower.state import LoweringInput, State, extend_lifetime, method, resolve, slot
from graphdock_executor.lower.variables import direct_stores, lent_reads, lower_assign, lower_read
from graphdock_executor.step_program.names import Apply, Literal, Name, Operand, Suffixed, helper
from graphdock_executor.step_program.statements import Activate, Block, Call, Statement, Synchronize, Wait
from graphdock_executor.storage import Root

__all__ = ["HANDLERS", "lower"]


def _none(state: State, node: PlanNode, block: Block, at: int) -> None:
    for value in node.outputs:
        state.slots[value] = Slot(Literal(None), (), True, False, "empty")


def _nothing(state: State, node: PlanNode, block: Block, at: int) -> None:
    return None


def _alias(state: State, node: PlanNode, block: Block, at: int) -> None:
    state.alias[node.outputs[0]] = node.inputs[0]
    source = resolve(state, node.inputs[0])
    if source in state.slots:
        until = state.given.facts.last.get(node.outputs[0], at)
        for root in state.slots[source].roots:
            root.use(until)


#: Adds a node's statements to a block; of one with bodies it yields them to be lowered.
Handler = Callable[[State, PlanNode, Block, int], Bodies | None]


def _of(module: str) -> Handler:
    """The function ``lower_VERB`` of a module that is imported with the first node of the verb."""

    def lower_first(state: State, node: PlanNode, block: Block, at: int) -> Bodies | None:
        found: Handler = getattr(import_module(f"graphdock_executor.lower.{module}"), f"lower_{node.verb}")
        return found(state, node, block, at)

    return lower_first


#: Verb -> handler.
HANDLERS: Mapping[str, Handler] = {
    "kernel": lower_kernel,
    "alias": _alias,
    "none": _none,
    "constant": _nothing,
    "feed": _nothing,
    "handle": _nothing,
    "read": lower_read,
    "assign": lower_assign,
    "move": _of("move"),
    "branch": _of("bodies"),
    "loop": _of("bodies"),
    "host": _of("host"),
}


def lower(given: LoweringInput) -> Lowered:
    """The step of one plan.

    Raises:
      InternalError: a kernel could not be built; it names the node.
    """
    state = State(given)
    graph, out = given.placed.graph, state.out
    nodes = (n for level in graph.all_graphs() for n in level.nodes if n.verb == "host")
    emptied = (v for n in nodes for v, a in zip(n.inputs, n.opdef.inputs, strict=False) if a.mutates)
    state.destroyed = {given.placed.handles[v] for v in emptied}
    state.counted = _loops_that_draw(graph)
    if any(node.verb == "loop" for level in given.placed.graph.all_graphs() for node in level.holders):
        from graphdock_executor.lower.owned_buffers import retained_values

        state.retained = retained_values(given)
    state.direct_stores, state.lent = direct_stores(given), lent_reads(given)
    for value in graph.inputs:
        feed = state.names.new("feed")
        out.feeds.append(feed)
        root = Root("feed", HOST_MEMORY, value.dtype, (), 0, 0, feed.text)
        extend_lifetime(state, value, Slot(feed, (root,), True, False, "feed"), 0)
    for value in graph.outputs:
        target = given.facts.of(value)
        if target.shape is not None and target.shape != () and None not in target.shape:
            state.escapes.add(target)
    state.scalars = SCALAR in given.placed.home.values()
    state.queues = any(isinstance(d, QueuedDevice) for d in given.placed.spaces.values())
    state.crowded = _crowded(given) if state.queues else set()
    _levels(state, graph, out.block)
    if isinstance(given.capture, QueuedDevice):
        from graphdock_executor.lower.device_control_flow import record_control_flow

        record_control_flow(state, given.capture)
    _fetches(state)
    if given.placed.debug:
        _poison(state)
    if out.ahead:
        from graphdock_executor.lower import overlap

        overlap.follow_after(out.fills)
    out.block.statements[:0] = out.fills.statements
    if state.given.overlaps or state.queues:
        _order_queues(state)
    if state.queues:
        from graphdock_executor.lower import overlap

        out.touches = overlap.touched(out.block, {root: resource for resource, root in state.variable_roots.items()})
    if given.capture is not None:
        from graphdock_executor.step_program.segments import find_segments

        out.block, out.segments, out.boundaries = find_segments(out.block, given.capture, state.names)
    if not given.placed.debug and len(out.native) > 1:
        from graphdock_executor.step_program.native_runs import join_launches

        out.native_runs = join_launches(out.block, out.native, state.names)
    return out


def _crowded(given: LoweringInput) -> set[str]:
    """The memory spaces in which several queued devices run kernels of the plan."""
    devices = {given.placed.device_of(n) for n in given.placed.kernels if n.device is not None}
    spaces = [d.memory_space for d in devices if isinstance(d, QueuedDevice)]
    return {space for space in spaces if spaces.count(space) > 1}


def _order_queues(state: State) -> None:
    """Let the host and the queues wait for one another where they touch the same storage."""
    from graphdock_executor.step_program import hazards

    out = state.out
    devices = hazards.involved(out.block) if state.queues else ()
    if state.given.overlaps:
        from graphdock_executor.lower import overlap

        out.waits = overlap.waits_for_its_work(state, devices)
    if not devices:
        return
    nodes = {
        n.device: n for level in state.given.placed.graph.all_graphs() for n in level.nodes if n.device is not None
    }
    placed = {state.given.placed.device_of(n) for n in nodes.values()}
    entered = [d for d in {*devices, *placed, *out.workers.values()} if isinstance(d, QueuedDevice)]
    _keep_apart(state, entered)

    def fence(device: QueuedDevice, before: Statement) -> Synchronize:
        hold = "the host waits for the device"
        return Synchronize(method(state, device, "synchronize"), node=before.node, device=device, hold=hold)

    def wait(device: QueuedDevice, other: QueuedDevice, before: Statement) -> Wait:
        event = state.names.new("event")
        out.events[event] = other
        names = event, method(state, other, "record"), method(state, device, "wait")
        return Wait(*names, node=before.node, device=device, hold="it waits for another queue")

    def current(device: QueuedDevice, before: Statement) -> Activate:
        return Activate(method(state, device, "activate"), node=before.node, device=device)

    read = [
        r for v in state.given.placed.graph.outputs for r in slot(state, v, HOST_MEMORY).roots if r.kind == "staging"
    ]
    hazards.order_queues(out.block, fence, wait, current, read, entered[0] if len(entered) == 1 else None)
    out.overlaps = state.given.overlaps and not out.waits
    if out.overlaps:
        from graphdock_executor.lower import overlap

        overlap.release_early(out.block)


def _keep_apart(state: State, devices: Sequence[QueuedDevice]) -> None:
    """Keep buffers of a space apart in which queues of several devices work: nothing would order work on shared bytes."""
    spaces = [d.memory_space for d in devices]
    for root in state.out.roots:
        if spaces.count(root.device) > 1:
            root.first, root.last = 0, state.given.facts.final


def _loops_that_draw(graph: PlanGraph) -> set[PlanNode]:
    """Every loop around a random node."""
    found: set[PlanNode] = set()
    parents: dict[PlanGraph, tuple[PlanGraph, PlanNode]] = {}
    for level in graph.all_graphs() if graph.holders else ():
        parents.update({body: (level, node) for node in level.holders for body in node.bodies})
        for node in level.nodes:
            inside: PlanGraph | None = level if "random" in node.opdef.effects else None
            while inside is not None and inside in parents:
                inside, around = parents[inside]
                if around.verb == "loop":
                    if around in found:
                        break
                    found.add(around)
    return found


def _levels(state: State, graph: PlanGraph, block: Block) -> None:
    """Lower a graph and all its bodies, without recursion."""
    stack: list[Iterator[Any]] = [_level(state, graph, block)]
    while stack:
        body = next(stack[-1], None)
        if body is None:
            stack.pop()
        else:
            stack.append(_level(state, *body))


def _level(state: State, graph: PlanGraph, block: Block) -> Bodies:
    position, after, debug = state.given.facts.position, state.after, state.given.placed.debug
    for node in graph.nodes:
        at = position[node]
        if node.guard is not None and node.guard.shape_rule:
            from graphdock_executor.lower import guards

            guards.check_rule(state, node, node.guard, block)
        bodies = HANDLERS[node.verb](state, node, block, at)
        if bodies is not None:
            yield from bodies
        if node.guard is not None and node.guard.promised:
            from graphdock_executor.lower import guards

            guards.check_promises(state, node, node.guard, block)
        if debug:
            after.setdefault(at, (block, len(block.statements)))  # one with bodies has said what stands before them


def _fetches(state: State) -> None:
    """Results of the step: contiguous arrays that the caller owns, NumPy scalars at rank 0."""
    given: set[Root] = set()
    for value in state.given.placed.graph.outputs:
        where = slot(state, value, HOST_MEMORY)
        for root in where.roots:
            root.use(state.given.facts.final)
        result: Operand
        if value.shape == ():
            result = Suffixed(where.at, "[()]")
        elif (
            where.kind in ("escape", "fresh")
            and value.shape is not None
            and where.contiguous
            and where.roots[0] not in given
        ):
            given.add(where.roots[0])
            result = where.at
        elif value.shape is None:
            result = Apply(helper("fetch_any"), where.at)
        else:
            result = Suffixed(where.at, ".copy()")
        state.out.results.append(result)


def _poison(state: State) -> None:
    """Debug mode: overwrite every planned buffer of host memory once it is dead."""
    inserts: dict[Block, list[tuple[int, str, Name]]] = {}
    for root in state.out.roots:
        if (
            root.device == HOST_MEMORY
            and root.kind == "planned"
            and root.last < state.given.facts.final
            and root.last in state.after
        ):
            block, index = state.after[root.last]
            name = state.buffer_names[root]
            inserts.setdefault(block, []).append((index, name.text, name))
    for block, items in inserts.items():
        for index, _, name in sorted(items, key=lambda item: item[:2], reverse=True):
            block.statements.insert(index, Call(helper("poison"), (name,)))
