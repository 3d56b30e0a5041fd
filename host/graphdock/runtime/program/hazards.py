"""Hazards: where the host must wait for a queue, and a queue for another, because both touch one storage and one of them writes.

Work of one queue runs in order; nothing else is ordered. Before a statement that touches what other queues were given to read or
write, this pass inserts what orders them: a Fence where the host touches it, a Wait where another queue does. It follows the
statements in the order in which the host runs them; a loop's body is followed twice, so that the end of an iteration is seen from
the beginning of the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from graphdock.contracts.device import Device
from graphdock.contracts.queue import QueuedDevice
from graphdock.runtime.program.statements import Block, Branch, Loop, Statement, blocks_of
from graphdock.runtime.storage import Root

__all__ = ["order_queues"]

#: Makes the statement by which the host waits for a device's queue.
MakeFence = Callable[[QueuedDevice, Statement], Statement]
#: Makes the statement by which the first device's queue waits for the second's.
MakeWait = Callable[[QueuedDevice, QueuedDevice, Statement], Statement]


@dataclass
class _Touched:
    """The last accesses of one storage that may still be under way: device -> number of the access."""

    writes: dict[QueuedDevice, int] = field(default_factory=dict)
    reads: dict[QueuedDevice, int] = field(default_factory=dict)


@dataclass
class _Pending:
    """What queues were given and may not have done, and what each queue is known to wait for.

    Attributes:
      roots: storage -> its last accesses.
      fenced: device -> number of the access up to which the host has waited.
      ordered: waiting device -> other device -> number of the other's access up to which the first waits.
    """

    roots: dict[Root, _Touched] = field(default_factory=dict)
    fenced: dict[QueuedDevice, int] = field(default_factory=dict)
    ordered: dict[QueuedDevice, dict[QueuedDevice, int]] = field(default_factory=dict)

    def copied(self) -> _Pending:
        roots = {r: _Touched(dict(t.writes), dict(t.reads)) for r, t in self.roots.items()}
        return _Pending(roots, dict(self.fenced), {d: dict(known) for d, known in self.ordered.items()})

    def join(self, other: _Pending) -> None:
        """Either may have happened."""
        for root, touched in other.roots.items():
            mine = self.roots.setdefault(root, _Touched())
            for into, given in ((mine.writes, touched.writes), (mine.reads, touched.reads)):
                for device, number in given.items():
                    into[device] = max(into.get(device, -1), number)
        self.fenced = _both(self.fenced, other.fenced)
        self.ordered = {d: _both(known, other.ordered.get(d, {})) for d, known in self.ordered.items()}


def _both(a: dict[QueuedDevice, int], b: dict[QueuedDevice, int]) -> dict[QueuedDevice, int]:
    """What is known whichever happened."""
    return {d: min(n, b[d]) for d, n in a.items() if d in b}


class _Orderer:
    def __init__(self, fence: MakeFence, wait: MakeWait) -> None:
        self.fence = fence
        self.wait = wait
        self.number = 0
        self.pending = _Pending()

    def before(self, statement: Statement) -> list[Statement]:
        """What must stand before a statement; then the statement's own accesses are noted."""
        self.number += 1
        found: list[Statement] = []
        device = statement.device if isinstance(statement.device, QueuedDevice) else None
        on_host = statement.touches
        if device is None:
            on_host = (*statement.reads, *statement.writes, *on_host)
        for other in self._host_waits_for(on_host):
            found.append(self.fence(other, statement))
            self._learn(self.pending.fenced, other)
        if device is None:
            return found
        for other in self._queue_waits_for(device, statement.reads, statement.writes):
            found.append(self.wait(device, other, statement))
            self._learn(self.pending.ordered.setdefault(device, {}), other)
        for root in statement.reads:
            self.pending.roots.setdefault(root, _Touched()).reads[device] = self.number
        for root in statement.writes:
            self.pending.roots.setdefault(root, _Touched()).writes[device] = self.number
        return found

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


def order_queues(block: Block, fence: MakeFence, wait: MakeWait, at_end: Sequence[Root] = ()) -> None:
    """Insert the waits that a step needs.

    Args:
      fence, wait: make the statements that are inserted.
      at_end: storage that the host reads once all statements have run.
    """
    orderer = _Orderer(fence, wait)
    _run(_block(block, orderer, True))
    last = Statement(touches=tuple(at_end))
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
            before = orderer.pending.copied()
            yield _block(statement.body, orderer, insert)
            orderer.pending.join(before)  # no iteration at all, or one that was left
    if insert:
        block.statements = result
