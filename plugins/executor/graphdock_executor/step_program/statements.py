"""The statements of a step program.

Each knows the node it belongs to, the device that does its work (None: the host, at once), and which storage it reads and writes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from graphdock.contracts.device import Device
from graphdock.contracts.ir import PlanNode
from graphdock.contracts.lazy_dataclass import lazy_dataclass

from graphdock_executor.step_program.names import Name, Operand
from graphdock_executor.storage import Root

__all__ = [
    "HOLDERS",
    "Activate",
    "Block",
    "Branch",
    "Call",
    "Compute",
    "Copy",
    "Decide",
    "Synchronize",
    "Fill",
    "Flag",
    "Launch",
    "Leave",
    "Let",
    "Loop",
    "NativeRun",
    "Pair",
    "Push",
    "Put",
    "Require",
    "Segment",
    "Statement",
    "Take",
    "Wait",
    "Wrap",
    "blocks_of",
    "walk",
]


@lazy_dataclass(eq=False)
class Statement:
    """Base of all statements.

    Attributes:
      node: the plan's node; None for what belongs to the step as a whole.
      device: whose queue the work goes to; None for what the host does itself.
      reads, writes: storage that the work touches, when the device does it.
      touches: storage that the host reads or writes by itself while it runs the statement, whatever the device does later.
      rebinds: storage that is let go, because its name stands for other storage from here on -> that storage, as far as other
        names stand for it; none for a new buffer.
      renames: pairs of storages: from here on the second stands for the first too.
      synchronizes: the host waits, within the statement, for all that the device's queue was given.
      settle: waits for the device's queue, before the locks of this statement alone are released.
      hold: why a device can't record it with what stands around it; empty where it can, and where none is asked to.
    """

    node: PlanNode | None = field(default=None, kw_only=True)
    device: Device | None = field(default=None, kw_only=True)
    reads: tuple[Root, ...] = field(default=(), kw_only=True)
    writes: tuple[Root, ...] = field(default=(), kw_only=True)
    touches: tuple[Root, ...] = field(default=(), kw_only=True)
    rebinds: tuple[tuple[Root, tuple[Root, ...]], ...] = field(default=(), kw_only=True)
    synchronizes: bool = field(default=False, kw_only=True)
    renames: tuple[tuple[Root, Root], ...] = field(default=(), kw_only=True)
    settle: Name | None = field(default=None, kw_only=True)
    hold: str = field(default="", kw_only=True)


@lazy_dataclass(eq=False)
class Launch(Statement):
    """``returns = kernel(args)``. ``access``: what locks for this call alone, in a step that holds no locks while it runs."""

    kernel: Operand
    args: tuple[Operand, ...]
    returns: tuple[Name, ...] = ()
    access: Name | None = None

    @classmethod
    def plain(cls, kernel: Operand, args: tuple[Operand, ...], node: PlanNode, device: Device) -> Launch:
        """A launch of which the class's own defaults say the rest: a step has many."""
        made = cls.__new__(cls)
        made.kernel, made.args, made.node, made.device = kernel, args, node, device
        return made


@lazy_dataclass(slots=True, eq=False)
class Copy(Statement):
    """``method(source, target)``: a device copies a buffer into another."""

    method: Operand
    source: Operand
    target: Operand
    access: Name | None = None


@lazy_dataclass(slots=True, eq=False)
class Call(Statement):
    """``returns = function(args)``: the host calls a function of its own, or makes a buffer."""

    function: Operand
    args: tuple[Operand, ...] = ()
    returns: tuple[Name, ...] = ()
    access: Name | None = None


@lazy_dataclass(slots=True, eq=False)
class Let(Statement):
    """``targets = values``, all at once."""

    targets: tuple[Name, ...]
    values: tuple[Operand, ...]

    def leave_out(self, names: Collection[Name]) -> None:
        """Bind all but these."""
        left = [pair for pair in zip(self.targets, self.values, strict=True) if pair[0] not in names]
        self.targets, self.values = tuple([t for t, _ in left]), tuple([v for _, v in left])


@lazy_dataclass(slots=True, eq=False)
class Compute(Statement):
    """A host scalar by its formula: ``template`` over the operands' text."""

    target: Name
    template: str
    operands: tuple[Operand, ...]


@lazy_dataclass(slots=True, eq=False)
class Wrap(Statement):
    """Two's complement wrap-around of a host scalar of so many bits."""

    target: Name
    bits: int


@lazy_dataclass(slots=True, eq=False)
class Put(Statement):
    """A host scalar becomes the element of a rank-0 buffer."""

    target: Name
    source: Operand


@lazy_dataclass(slots=True, eq=False)
class Push(Statement):
    """Appends what an iteration keeps to a history."""

    history: Name
    kept: Operand


@lazy_dataclass(slots=True, eq=False)
class Take(Statement):
    """``target`` is the last element of a history, which loses it; with an ``index`` that element, which stays."""

    target: Name
    history: Operand
    index: Name | None = None


@lazy_dataclass(slots=True, eq=False)
class Flag(Statement):
    """The variable holds a value from here on."""

    resource: Name


@lazy_dataclass(slots=True, eq=False)
class Require(Statement):
    """An error unless the variable holds a value."""

    resource: Name


@lazy_dataclass(slots=True, eq=False)
class Activate(Statement):
    """Makes a device, and its queue where it has queues, current on this thread."""

    method: Name


@lazy_dataclass(slots=True, eq=False)
class Fill(Statement):
    """The host copies an array into staging memory."""

    staging: Name
    source: Operand


@lazy_dataclass(slots=True, eq=False)
class Synchronize(Statement):
    """The host waits for all that ``device``'s queue was given; raises the error of that work."""

    method: Name


@lazy_dataclass(slots=True, eq=False)
class Wait(Statement):
    """Let what ``device``'s queue is given from now on wait for all that another device's queue was given before."""

    event: Name
    record: Name
    wait: Name


@lazy_dataclass(slots=True, eq=False)
class Branch(Statement):
    """Runs one of two blocks."""

    test: Operand
    then: Block
    otherwise: Block


@lazy_dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """The two buffers of a loop variable, and the names that stand for its value's and its next value's in turn."""

    value: Name
    following: Name
    first: Name
    second: Name
    roots: tuple[Root, Root]


@lazy_dataclass(slots=True, eq=False)
class Loop(Statement):
    """Runs a block until it is left.

    ``pairs``: of its variables, of those that have buffers of one size; ``whole``: all have, and the host counts no iterations.
    """

    body: Block
    pairs: tuple[Pair, ...] = ()
    whole: bool = False


@lazy_dataclass(slots=True, eq=False)
class Leave(Statement):
    """Leaves the loop unless ``test`` holds; with a ``limit``, once ``test`` (a count) has reached it."""

    test: Operand
    limit: int | None = None


@lazy_dataclass(slots=True, eq=False)
class Decide(Statement):
    """The device decides by ``flag``, a bool in its memory: which of two blocks runs; or it repeats the second, after the first.

    What stands in the blocks is work of the one device: ``reads`` and ``writes`` are those of all of it. Its text is
    ``method(flag, first, second)``; the blocks are functions, called what ``name`` says.
    """

    method: Name
    flag: Operand
    name: Name
    first: Block
    second: Block
    repeats: bool = False

    def functions(self) -> tuple[tuple[str, Block], ...]:
        """The blocks with the names of their functions; a second one that is empty has none."""
        blocks = (self.first, self.second) if self.repeats or self.second.statements else (self.first,)
        return tuple([(f"{self.name.text}_{i}", block) for i, block in enumerate(blocks)])


@lazy_dataclass(slots=True, eq=False)
class Segment(Statement):
    """Statements that their device records once and replays. ``replay`` runs them."""

    replay: Name
    body: Block


@lazy_dataclass(slots=True, eq=False)
class NativeRun(Statement):
    """``returns = call(args)``: launches that are one call of native code. One by one, as a trace has them, they are ``body``."""

    call: Name
    args: tuple[Name, ...]
    returns: tuple[Name, ...]
    body: Block


class Block:
    """Statements in order."""

    __slots__ = ("statements",)

    def __init__(self, statements: Sequence[Statement] = ()) -> None:
        self.statements: list[Statement] = list(statements)

    def add(self, statement: Statement) -> None:
        self.statements.append(statement)


_BLOCKS: Mapping[type[Statement], Callable[[Any], tuple[Block, ...]]] = {
    Branch: lambda s: (s.then, s.otherwise),
    Loop: lambda s: (s.body,),
    Segment: lambda s: (s.body,),
}


#: Statements with blocks inside.
HOLDERS = frozenset(_BLOCKS)


def blocks_of(statement: Statement) -> tuple[Block, ...]:
    """The blocks inside a statement, in the order in which they are printed."""
    inner = _BLOCKS.get(type(statement))
    return () if inner is None else inner(statement)


def walk(block: Block) -> Iterator[Statement]:
    """Every statement of a block and of the blocks inside, in order, without recursion."""
    stack = [iter(block.statements)]
    while stack:
        for statement in stack[-1]:
            yield statement
            if type(statement) in _BLOCKS:
                stack.extend([iter(b.statements) for b in reversed(blocks_of(statement))])
                break
        else:
            stack.pop()
