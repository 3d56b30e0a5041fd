"""Hazards: where the host must wait for a queue, and a queue for another, because both touch one storage and one of them writes.

Work of one queue runs in order; nothing else is ordered. Before a statement that touches what other queues were given to read or
write, this pass inserts what orders them: a Synchronize where the host touches it, a Wait where another queue does. It follows the
statements in the order in which the host runs them; a loop's body is followed twice, so that the end of an iteration is seen from
the beginning of the next.

A buffer that a step makes is freed in the order of the queue that made it, when the last name of it goes. Where another queue has
used it too, the host waits before a name is given to another buffer, and at the end of the step, when all names go.

The same pass makes a queue current before it gets work, where another one may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from graphdock.contracts.device import Device
from graphdock.contracts.queue import QueuedDevice

from graphdock_executor.step_program.statements import Block, Branch, Loop, Statement, blocks_of
from graphdock_executor.storage import Root

__all__ = ["order_queues"]

#: Makes the statement by which the host waits for a device's queue.
MakeFence = Callable[[QueuedDevice, Statement], Statement]
#: Makes the statement by which a device's queue becomes current.
MakeActivate = Callable[[QueuedDevice, Statement], Statement]
#: Makes the statement by which the first device's queue waits for the second's.
MakeWait = Callable[[QueuedDevice, QueuedDevice, Statement], Statement]


@dataclass
class _Touched:
    """The accesses of one storage that may still be under way: device -> number of the last one.

    A write comes after all accesses before it, so that whoever waits for it has waited for those.

    Attributes:
      by: whose queues have ever touched it.
    """

    writes: dict[QueuedDevice, int] = field(default_factory=dict)
    reads: dict[QueuedDevice, int] = field(default_factory=dict)
    by: set[QueuedDevice] = field(default_factory=set)

    def read(self, device: QueuedDevice, number: int) -> None:
        self.reads[device] = number
        self.by.add(device)

    def write(self, device: QueuedDevice, number: int) -> None:
        self.writes, self.reads = {device: number}, {}
        self.by.add(device)

    def copied(self) -> _Touched:
        return _Touched(dict(self.writes), dict(self.reads), set(self.by))

    def add(self, other: _Touched) -> None:
        """Add what ``other`` was touched by."""
        self.by |= other.by
        for into, given in ((self.writes, other.writes), (self.reads, other.reads)):
            for device, number in given.items():
                into[device] = max(into.get(device, -1), number)


@dataclass
class _Pending:
    """Work that queues were given and may not have done, and what each queue is known to wait for.

    Attributes:
      roots: storage -> its last accesses.
      fenced: device -> number of the access up to which the host has waited.
      ordered: waiting device -> other device -> number of the other's access up to which the first waits.
      current: the device whose queue is current; None where that is not known.
    """

    roots: dict[Root, _Touched] = field(default_factory=dict)
    fenced: dict[QueuedDevice, int] = field(default_factory=dict)
    ordered: dict[QueuedDevice, dict[QueuedDevice, int]] = field(default_factory=dict)
    current: QueuedDevice | None = None

    def copied(self) -> _Pending:
        roots = {r: t.copied() for r, t in self.roots.items()}
        return _Pending(roots, dict(self.fenced), {d: dict(known) for d, known in self.ordered.items()}, self.current)

    def join(self, other: _Pending) -> None:
        """Either may have happened."""
        for root, touched in other.roots.items():
            self.roots.setdefault(root, _Touched()).add(touched)
        self.fenced = _both(self.fenced, other.fenced)
        self.ordered = {d: _both(known, other.ordered.get(d, {})) for d, known in self.ordered.items()}
        self.current = self.current if self.current is other.current else None


def _both(a: dict[QueuedDevice, int], b: dict[QueuedDevice, int]) -> dict[QueuedDevice, int]:
    """Facts that hold whichever happened."""
    return {d: min(n, b[d]) for d, n in a.items() if d in b}


class _Orderer:
    def __init__(self, fence: MakeFence, wait: MakeWait, activate: MakeActivate, current: QueuedDevice | None) -> None:
        self.fence = fence
        self.wait = wait
        self.activate = activate
        self.number = 0
        self.activated = 0
        self.pending = _Pending(current=current)

    def before(self, statement: Statement) -> list[Statement]:
        """Statements that must stand before a statement; then the statement's own accesses are noted."""
        self.number += 1
        found: list[Statement] = []
        for source, target in statement.renames:
            self._rename(source, target)
        device = statement.device if isinstance(statement.device, QueuedDevice) else None
        on_host = statement.touches
        if statement.rebinds:
            on_host = (*on_host, *(root for root, _ in statement.rebinds if self._is_shared(root, device)))
        if device is None:
            on_host = (*statement.reads, *statement.writes, *on_host)
        for other in self._host_waits_for(on_host):
            found.append(self.fence(other, statement))
            self._learn(self.pending.fenced, other)
        if statement.rebinds:
            self._rebind(statement.rebinds)
        if statement.node is not None and "waits" in statement.node.opdef.effects:
            self.pending.current = None  # what the user's function makes current is not known
        if device is None:
            return found
        for other in self._queue_waits_for(device, statement.reads, statement.writes):
            found.append(self.wait(device, other, statement))
            self._learn(self.pending.ordered.setdefault(device, {}), other)
        if self.pending.current is not device:
            self.pending.current = device
            self.activated += 1
            found.append(self.activate(device, statement))
        for root in statement.reads:
            self.pending.roots.setdefault(root, _Touched()).read(device, self.number)
        for root in statement.writes:
            self.pending.roots.setdefault(root, _Touched()).write(device, self.number)
        if statement.synchronizes or statement.settle is not None:
            self._learn(self.pending.fenced, device)
        return found

    def _is_shared(self, root: Root, device: QueuedDevice | None) -> bool:
        """Return whether queues have touched it that its free may not follow."""
        by = self.pending.roots.get(root, _Touched()).by
        return len(by) > 1 or bool(by and device is not None and device not in by)

    def _rebind(self, rebinds: Sequence[tuple[Root, tuple[Root, ...]]]) -> None:
        """Names stand for other storage from here on."""
        found: dict[Root, _Touched] = {}
        for root, sources in rebinds:
            joined = found.setdefault(root, _Touched())
            for source in sources:
                joined.add(self.pending.roots.get(source, _Touched()))
        self.pending.roots.update(found)

    def made_and_shared(self) -> list[Root]:
        """Storage that the step made and that more than one queue has used."""
        return [root for root, touched in self.pending.roots.items() if root.kind == "fresh" and len(touched.by) > 1]

    def _rename(self, source: Root, target: Root) -> None:
        """Let who touches the target later touch the source too. No buffer of two names is written again."""
        self.pending.roots.setdefault(target, _Touched()).add(self.pending.roots.get(source, _Touched()))

    def _learn(self, known: dict[QueuedDevice, int], other: QueuedDevice) -> None:
        """Whoever waits for a queue has waited for all that this queue waits for."""
        for device, number in self.pending.ordered.get(other, {}).items():
            known[device] = max(known.get(device, -1), number)
        known[other] = self.number

    def _host_waits_for(self, roots: Sequence[Root]) -> list[QueuedDevice]:
        """Devices whose queued work touches storage that the host is about to touch.

        The host's reads count as writes: what it touches is staging memory, whose content is unspecified while a copy is queued.
        """
        needed: dict[QueuedDevice, int] = {}
        for root in roots:
            touched = self.pending.roots.get(root)
            for accesses in () if touched is None else (touched.writes, touched.reads):
                for device, number in accesses.items():
                    if number > self.pending.fenced.get(device, -1):
                        needed[device] = max(needed.get(device, -1), number)
        return self._fewest(needed)

    def _queue_waits_for(
        self, device: QueuedDevice, reads: Sequence[Root], writes: Sequence[Root]
    ) -> list[QueuedDevice]:
        needed: dict[QueuedDevice, int] = {}
        known = self.pending.ordered.get(device, {})
        for root in (*reads, *writes):
            touched = self.pending.roots.get(root)
            if touched is None:
                continue
            for accesses in (touched.writes, touched.reads) if root in writes else (touched.writes,):
                for other, number in accesses.items():
                    if other is not device and number > max(self.pending.fenced.get(other, -1), known.get(other, -1)):
                        needed[other] = max(needed.get(other, -1), number)
        return self._fewest(needed)

    def _fewest(self, needed: dict[QueuedDevice, int]) -> list[QueuedDevice]:
        """Those of the devices for which no other one of them has waited already."""
        left = list(needed)
        for device in needed:
            others = (d for d in left if d is not device)
            if any(self.pending.ordered.get(d, {}).get(device, -1) >= needed[device] for d in others):
                left.remove(device)
        return left


def order_queues(
    block: Block,
    fence: MakeFence,
    wait: MakeWait,
    activate: MakeActivate,
    at_end: Sequence[Root] = (),
    current: QueuedDevice | None = None,
) -> None:
    """Insert the waits that a step needs, and make queues current.

    Args:
      fence, wait, activate: make the statements that are inserted.
      at_end: storage that the host reads once all statements have run.
      current: the device whose queue is current when the step begins, where that is known.
    """
    orderer = _Orderer(fence, wait, activate, current)
    _run(_block(block, orderer, True))
    last = Statement(touches=(*at_end, *orderer.made_and_shared()))
    block.statements += orderer.before(last)


def involved(block: Block) -> set[Device]:
    """The queued devices that a block gives work to."""
    found: set[Device] = set()
    stack = [block]
    while stack:
        for statement in stack.pop().statements:
            if isinstance(statement.device, QueuedDevice):
                found.add(statement.device)
            stack.extend(blocks_of(statement))
    return found


def _run(work: Iterator[Iterator]) -> None:  # type: ignore[type-arg]
    """Run a generator that yields further generators to run first."""
    stack = [work]
    while stack:
        inner = next(stack[-1], None)
        if inner is None:
            stack.pop()
        else:
            stack.append(inner)


def _block(block: Block, orderer: _Orderer, insert: bool) -> Iterator[Iterator]:  # type: ignore[type-arg]
    """Follow a block; with ``insert`` it gets its waits, without it only what is pending at its end is found out."""
    result: list[Statement] = []
    for statement in block.statements:
        result += orderer.before(statement)
        result.append(statement)
        if isinstance(statement, Branch):
            entered = orderer.pending.copied()
            yield _block(statement.then, orderer, insert)
            left, orderer.pending = orderer.pending, entered
            yield _block(statement.otherwise, orderer, insert)
            orderer.pending.join(left)
        elif isinstance(statement, Loop):
            entered = orderer.pending.copied()
            yield _block(statement.body, orderer, False)
            orderer.pending.join(entered)
            before, activated = orderer.pending.copied(), orderer.activated
            yield _block(statement.body, orderer, insert)
            orderer.pending.join(before)  # no iteration at all, or one that was left
            orderer.pending.current = before.current if orderer.activated == activated else None
    if insert:
        block.statements = result
