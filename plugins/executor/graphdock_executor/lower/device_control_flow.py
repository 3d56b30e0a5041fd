"""Branches and loops that their device decides itself, within a recording, by a bool that it has made.

A branch or a loop is lowered for the host first: the predicate is moved there, and the host runs a block or another. Where all
that its blocks hold is work that the one device records, over buffers that keep their addresses, this pass puts a Decide in its
place: the predicate stays where it was made. A loop variable has two buffers that take turns; recorded once, the iteration always
reads the first, and copies the second back to it at its end.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphdock.contracts.executor import SCALAR
from graphdock.contracts.ir import PlanNode, Value
from graphdock.contracts.queue import QueuedDevice
from graphdock.errors import InternalError

from graphdock_executor.lower.state import State, method, new_root, resolve, slot
from graphdock_executor.step_program.names import Apply, Name, Suffixed, locals_of
from graphdock_executor.step_program.segments import why_not
from graphdock_executor.step_program.statements import (
    Block,
    Branch,
    Copy,
    Decide,
    Flag,
    Launch,
    Leave,
    Let,
    Loop,
    Statement,
    blocks_of,
)
from graphdock_executor.storage import Root

__all__ = ["record_control_flow"]


@dataclass(slots=True)
class _Predicate:
    """A predicate that the device has made.

    Attributes:
      sent, read: the nodes that move it to the host's memory, and make a number of it there.
      readers: how many nodes still want the number.
      kept: a copy of it that stays until all that it decides has run; made when first needed.
    """

    sent: PlanNode
    read: PlanNode
    readers: int
    kept: tuple[Root, Name] | None = None


class _Pass:
    """One pass over a step. ``flags``: predicate -> what is known of it, or why the host needs it."""

    def __init__(self, state: State, device: QueuedDevice) -> None:
        self.state = state
        self.device = device
        self.copy = method(state, device, "copy")
        self.flags: dict[Value, _Predicate | str] = {}
        self.readers: Counter[Value] = Counter()
        for level in state.given.placed.graph.all_graphs():
            self.readers.update(level.outputs)
            self.readers.update(v for node in level.nodes for v in node.inputs)

    def flag(self, value: Value) -> _Predicate | str:
        value = resolve(self.state, value)
        if value not in self.flags:
            self.flags[value] = self._predicate(value)
        return self.flags[value]

    def _predicate(self, value: Value) -> _Predicate | str:
        read = value.node
        if read is None or read.verb != "move" or read.attrs["target"] != SCALAR:
            return "the host makes its predicate"
        sent = read.inputs[0].node
        if sent is None or sent.verb != "move" or sent.attrs["source"] != self.device.memory_space:
            return "its predicate is not made on the device"
        if sent.inputs[0].shape != ():
            return "its predicate may be no scalar"
        return _Predicate(sent, read, self.readers[value])

    def held(self, statements: Sequence[Statement]) -> str:
        """Reason why the device can't record what stands in a body; empty where it can."""
        for statement in statements:
            reason = why_not(statement, self.device)
            if isinstance(statement, Flag):
                reason = "the host notes that a variable has a value"
            if reason:
                return (
                    f"{statement.node.origin if statement.node else 'the step'} stands outside of recordings: {reason}"
                )
        return ""

    def retain(self, flag: _Predicate, until: PlanNode) -> tuple[Root, Name]:
        """Have the predicate copied where it is made, into a buffer that stays until ``until`` is done."""
        state = self.state
        facts, value = state.given.facts, flag.sent.inputs[0]
        if flag.kept is None:
            flag.kept = new_root(state, "planned", self.device.memory_space, value, facts.position[flag.sent])
            where = slot(state, value, self.device.memory_space)
            copy = Copy(self.copy, where.at, flag.kept[1], node=flag.sent, device=self.device)
            copy.reads, copy.writes = where.roots, (flag.kept[0],)
            block, index = self.place(flag.sent, Copy)
            block.statements.insert(index + 1, copy)
        root = flag.kept[0]
        root.use(max(facts.end[until], facts.last.get(flag.read.outputs[0], 0)))
        return flag.kept

    def place(self, node: PlanNode, kind: type[Statement]) -> tuple[Block, int]:
        """Block and index of the first statement of that kind that was made for a node."""
        for block in _blocks(self.state.out.block):
            for index, statement in enumerate(block.statements):
                if statement.node is node and type(statement) is kind:
                    return block, index
        raise InternalError(f"no {kind.__name__} of {node.name}")

    def decided(self, flag: _Predicate) -> None:
        """One reader less; without any the host gets nothing."""
        flag.readers -= 1
        if flag.readers:
            return
        block, index = self.place(flag.read, Let)
        del block.statements[index]
        if self.readers[flag.read.inputs[0]] == 1:
            block, index = self.place(flag.sent, Copy)
            del block.statements[index]

    def statement(self, called: str, of: Statement, kept: tuple[Root, Name], first: Block, second: Block) -> Decide:
        inside = [*first.statements, *second.statements]
        root, name = kept
        made = Decide(
            method(self.state, self.device, called),
            name,
            self.state.names.new("replay"),
            first,
            second,
            called == "loop",
        )
        made.node, made.device = of.node, self.device
        made.reads = tuple(dict.fromkeys([root, *(r for s in inside for r in s.reads)]))
        made.writes = tuple(dict.fromkeys([r for s in inside for r in s.writes]))
        made.touches = tuple(dict.fromkeys([r for s in inside for r in s.touches]))
        return made


#: Names of loop variables -> the buffers that they stand for where a device decides.
_Fixed = Mapping[Name, Name]


def record_control_flow(state: State, device: QueuedDevice) -> None:
    """Let ``device`` decide what it can; what the host decides says why in its ``hold``."""
    found = list(_candidates(state.out.block))
    if not found:
        return
    reason = "in debug mode" if state.given.placed.debug else device.undecided
    work = _Pass(state, device)
    for block, statement, fixed in reversed(found):  # innermost first
        why = reason or (_branch if isinstance(statement, Branch) else _loop)(work, statement, block, fixed)
        if why:
            statement.hold += f": {why}"
            if isinstance(statement, Loop) and (
                _is_decided_within(statement)
                or not state.given.placed.debug
                and _is_worth_recording(work, statement, fixed)
            ):
                _fix_loop(work, statement)


def _candidates(block: Block) -> Iterator[tuple[Block, Statement, _Fixed]]:
    """Branches and loops, from the outside inwards, each with its block and what names of the loops around it would stand for."""
    stack: list[tuple[Block, _Fixed]] = [(block, {})]
    for outer, around in stack:
        for statement in outer.statements:
            fixed = around
            if isinstance(statement, Loop):
                fixed = {**around, **_buffers(statement)}
            if isinstance(statement, (Branch, Loop)):
                yield outer, statement, fixed
            stack += [(inner, fixed) for inner in blocks_of(statement)]


def _buffers(loop: Loop) -> dict[Name, Name]:
    return {p.value: p.first for p in loop.pairs} | {p.following: p.second for p in loop.pairs}


def _blocks(block: Block) -> Iterator[Block]:
    """A block and all within, also within what a device decides."""
    found = [block]
    for outer in found:
        for statement in outer.statements:
            found += (statement.first, statement.second) if isinstance(statement, Decide) else blocks_of(statement)
    return iter(found)


def _branch(work: _Pass, branch: Any, block: Block, fixed: _Fixed) -> str:
    """Put a Decide in the place of a branch; why not, where that can't be."""
    flag = work.flag(branch.node.inputs[0])
    if isinstance(flag, str):
        return flag
    reason = work.held([_renamed(s, fixed) for s in (*branch.then.statements, *branch.otherwise.statements)])
    if not reason:
        made = work.statement("branch", branch, work.retain(flag, branch.node), branch.then, branch.otherwise)
        block.statements[block.statements.index(branch)] = made
        work.decided(flag)
    return reason


def _loop(work: _Pass, loop: Any, block: Block, fixed: _Fixed) -> str:
    """As ``_branch``."""
    node, inner = loop.node, loop.body.statements
    leaves = [s for s in inner if isinstance(s, Leave)]
    if not loop.whole:
        return "the host counts its iterations, or keeps a variable of it"
    if len(leaves) != 1:
        return "it reads histories"
    flag = work.flag(node.bodies[0].outputs[0])
    if isinstance(flag, str):
        return flag
    apart = (*leaves, *_turns(loop))
    others = [s for s in inner if s not in apart and s.node not in (flag.sent, flag.read)]
    reason = work.held([_renamed(s, fixed) for s in others])
    if reason or flag.readers != 1:
        return reason or "the host needs its predicate"
    kept = work.retain(flag, node)
    work.decided(flag)
    _fix_loop(work, loop)
    inner = loop.body.statements
    end = inner.index(leaves[0])
    made = work.statement("loop", loop, kept, Block(inner[:end]), Block(inner[end + 1 :]))
    block.statements[block.statements.index(loop)] = made
    return ""


def _turns(loop: Loop) -> list[Let]:
    """The statement by which buffers take turns, at most one."""
    return [s for s in loop.body.statements if isinstance(s, Let) and s.node is loop.node]


def _is_decided_within(loop: Loop) -> bool:
    """Return whether a device decides something in a loop, over buffers that would take turns."""
    names = _buffers(loop)
    inside = [s for d in loop.body.statements if isinstance(d, Decide) for b in (d.first, d.second) for s in _all(b)]
    return any(name in names for s in inside for _, value in _operands(s) for name in _names(value))


def _is_worth_recording(work: _Pass, loop: Loop, fixed: _Fixed) -> bool:
    """Return whether an iteration that the host starts has more launches that only turns keep out of a recording than copies back.

    Recordings of one or two launches take no less than those.
    """
    if any(root.device != work.device.memory_space for pair in loop.pairs for root in pair.roots):
        return False
    changed = {name for turn in _turns(loop) for name in turn.targets}
    launches = [s for s in loop.body.statements if isinstance(s, Launch)]
    able = [s for s in launches if why_not(_renamed(s, fixed), work.device) is None]
    gained = [s for s in able if why_not(s, work.device)]
    return len(able) > 2 and len(gained) > sum(pair.value in changed for pair in loop.pairs)


def _fix_loop(work: _Pass, loop: Any) -> None:
    """The names of a loop's variables stand for the same buffers always; an iteration copies next values back."""
    state, fixed, pairs = work.state, _buffers(loop), loop.pairs
    changed = {name for s in _turns(loop) for name in s.targets}
    for turn in _turns(loop):
        turn.leave_out(fixed)
    copies = []
    for pair in pairs:
        if pair.value in changed:
            copies.append(Copy(work.copy, pair.second, pair.first, node=loop.node, device=work.device))
            copies[-1].reads, copies[-1].writes = pair.roots[1:], pair.roots[:1]
    turns = _turns(loop)
    inner = [s for s in loop.body.statements if s not in turns]
    # behind what the device does, for a recording; what the host notes of an iteration comes last
    loop.body.statements = [*inner, *copies, *(t for t in turns if t.targets)]
    begins = [((p.value,), (p.first,)) for p in pairs] + [((p.following,), (p.second,)) for p in pairs]
    for block in _blocks(state.out.block):
        block.statements = [
            s for s in block.statements if not isinstance(s, Let) or (s.targets, s.values) not in begins
        ]
    for statement in _all(state.out.block):
        for name, value in _operands(statement):
            setattr(statement, name, _fixed(value, fixed))
    for where in state.slots.values():
        where.at = _fixed(where.at, fixed)


def _all(block: Block) -> Iterator[Statement]:
    return (statement for inner in _blocks(block) for statement in inner.statements)


def _names(value: Any) -> Iterator[Name]:
    for operand in value if isinstance(value, tuple) else (value,):
        yield from locals_of(operand)


def _operands(statement: Statement) -> Iterator[tuple[str, Any]]:
    """The fields of a statement that hold operands."""
    for field in dataclasses.fields(statement):
        value = getattr(statement, field.name)
        one = value[0] if isinstance(value, tuple) and value else value
        if isinstance(one, (Name, Suffixed, Apply)):
            yield field.name, value


def _renamed(statement: Statement, fixed: _Fixed) -> Statement:
    return dataclasses.replace(statement, **{name: _fixed(value, fixed) for name, value in _operands(statement)})


def _fixed(value: Any, fixed: _Fixed) -> Any:
    if isinstance(value, tuple):
        return tuple([_fixed(v, fixed) for v in value])
    if isinstance(value, Suffixed):
        return Suffixed(_fixed(value.of, fixed), value.suffix)
    if isinstance(value, Apply):
        return Apply(value.function, *_fixed(value.args, fixed))
    return fixed.get(value, value) if isinstance(value, Name) else value
