"""Lowering of histories: lists of owned buffers, appended to by the loop that makes them and read from their end.

A list that one loop alone reads, and reads last, loses each element as it is taken, so that its memory is free again at once. Any
other list stays as it is: nobody changes a list that somebody else may hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from graphdock.contracts.bodies import elements, stacked
from graphdock.contracts.executor import SCALAR
from graphdock.contracts.ir import PlanNode, Value

from graphdock_executor.lower.owned_buffers import owned
from graphdock_executor.lower.records import Slot
from graphdock_executor.lower.state import State, extend_lifetime, resolve, slot
from graphdock_executor.step_program.names import Apply, Literal, Name, helper
from graphdock_executor.step_program.statements import Block, Call, Compute, Leave, Let, Push, Statement, Take
from graphdock_executor.storage import Root

__all__ = ["begin_histories", "left_by_branch", "push_all", "scan_all"]


def begin_histories(state: State, node: PlanNode, block: Block, end: int) -> None:
    """Make an empty list for each history of a loop."""
    for history, _ in stacked(node):
        name = state.names.new("history")
        block.add(Let((name,), (Literal([]),), node=node))
        root = Root("fresh", state.given.placed.home[history], history.dtype, (), end, end, name.text)
        extend_lifetime(state, history, Slot(name, (root,), True, False, "history"), end)


def push_all(state: State, node: PlanNode, block: Block) -> None:
    """End of an iteration: append what it keeps."""
    for history, value in stacked(node):
        space = state.given.placed.home[history]
        made = owned(state, value, slot(state, value, space, node), space, block, node)
        where = state.slots[history]
        assert isinstance(where.at, Name)
        block.add(Push(where.at, made.at, node=node, reads=made.reads, renames=made.known_as(where.roots[0])))


def scan_all(state: State, node: PlanNode, before: Block, block: Block, at: int) -> list[Statement]:
    """Let a loop end when its histories are exhausted; the statements that take the elements of an iteration.

    ``before`` stands in front of the loop, ``block`` is the beginning of its body.
    """
    pairs = list(elements(node))
    lists = [slot(state, history, None) for history, _ in pairs]
    if state.given.placed.debug and len(lists) > 1:
        before.add(Call(helper("same_lengths"), tuple([x.at for x in lists]), node=node, hold="the host runs it"))
    times = Counter(node.inputs)
    takes: list[Statement] = []
    count: Name | None = None
    ended = False
    for (history, element), given in zip(pairs, lists, strict=True):
        target = state.names.new("element")
        where = state.slots[element] = _element_slot(state, element, target, at)
        rebinds = tuple([(mine, given.roots) for mine in where.roots])
        if times[history] == 1 and _read_last(state, history, at):
            if not ended:
                block.add(Leave(given.at, node=node))
            takes.append(Take(target, given.at, node=node, rebinds=rebinds))
        else:
            if count is None:
                count = state.names.new("count")
                before.add(Let((count,), (Apply(helper("len"), given.at),), node=node))
                block.add(Leave(count, node=node))
                takes.insert(0, Compute(count, "{0} - 1", (count,), node=node))
            takes.append(Take(target, given.at, count, node=node, rebinds=rebinds))
        ended = True
    return takes


def _element_slot(state: State, element: Value, target: Name, at: int) -> Slot:
    space = state.given.placed.home[element]
    if space == SCALAR and element.dtype.kind != "V":
        return Slot(target, (), True, False, "scalar")
    return Slot(target, (Root("fresh", space, element.dtype, (), at, at, target.text),), True, False, "element")


def _read_last(state: State, history: Value, at: int) -> bool:
    """Return whether the loop alone holds the list, and nothing reads it afterwards, not even what a queue was given before."""
    facts = state.given.facts
    value = facts.of(history)
    if resolve(state, history) is not value or state.given.placed.home[value] in state.crowded:
        return False
    return state.slots[value].kind == "history" and facts.last.get(value) == at


def left_by_branch(state: State, node: PlanNode, index: int, target: Slot, left: Sequence[Slot]) -> Slot:
    """Slot of a variant that a branch leaves, from where it was in each branch: the storage is that of both, nothing is copied."""
    kept = node.outputs[index] in state.retained
    roots = target.roots if kept else tuple(dict.fromkeys([r for s in left for r in s.roots]))
    contiguous = kept or all(s.contiguous for s in left)
    kind = "own" if kept else "left"
    if all(s.kind in ("history", "empty") for s in left):
        depth = state.given.facts.depth_of
        given = Counter([resolve(state, v) for body in node.bodies for v in body.outputs])
        sources = [
            resolve(state, b.outputs[index]) for b, s in zip(node.bodies, left, strict=True) if s.kind == "history"
        ]
        alone = all(given[v] == 1 and depth(v) > depth(node.outputs[index]) for v in sources)
        kind = "history" if alone else "element"
    return replace(target, roots=roots, contiguous=contiguous, kind=kind)
