"""The waits of a step: against brute force over random programs, every conflict is ordered, and every wait orders one."""

from __future__ import annotations

import random
from typing import Any

import pytest
from graphdock.contracts import DeviceInfo
from graphdock.contracts.queue import QueuedDevice
from graphdock.dtypes import float32
from graphdock_executor.step_program.hazards import order_queues
from graphdock_executor.step_program.names import Name
from graphdock_executor.step_program.statements import (
    Activate,
    Block,
    Branch,
    Call,
    Launch,
    Let,
    Loop,
    Push,
    Statement,
    Synchronize,
    Take,
    Wait,
)
from graphdock_executor.storage import Root


class Chip(QueuedDevice):
    """A device with nothing but its name."""


Chip.__abstractmethods__ = frozenset()  # type: ignore[attr-defined]
A, B, C = (Chip(DeviceInfo("chip", i)) for i in range(3))
NAME = Name("kernel", "k0")


def root(name: str = "b", kind: str = "planned") -> Root:
    return Root(kind, "space", float32, (4,), 0, 0, name)


def work(device: Any, reads: tuple[Root, ...] = (), writes: tuple[Root, ...] = (), **facts: Any) -> Statement:
    if device is None:
        return Call(NAME, (), reads=reads, writes=writes, **facts)
    return Launch(NAME, (), device=device, reads=reads, writes=writes, **facts)


class Waits(Wait):
    """A wait that knows for whom."""

    __slots__ = ("on",)


def fence(device: QueuedDevice, before: Statement) -> Statement:
    return Synchronize(NAME, device=device)


def wait(device: QueuedDevice, other: QueuedDevice, before: Statement) -> Statement:
    made = Waits(NAME, NAME, NAME, device=device)
    made.on = other
    return made


def activate(device: QueuedDevice, before: Statement) -> Statement:
    return Activate(NAME, device=device)


def waits(block: Block) -> list[str]:
    """A block's own statements without those that make a queue current."""
    return [shown(s) for s in block.statements if not isinstance(s, Activate)]


def ordered(*statements: Statement, at_end: tuple[Root, ...] = ()) -> list[str]:
    block = Block(statements)
    order_queues(block, fence, wait, activate, at_end)
    return waits(block)


def shown(s: Statement) -> str:
    if isinstance(s, Waits):
        return f"{s.device!r} waits for {s.on!r}".replace("<Chip chip:", "").replace(">", "")
    if isinstance(s, Activate):
        return f"activate {s.device.info.index}"
    if isinstance(s, Synchronize):
        return f"fence {s.device.info.index}"
    return "host" if s.device is None else f"work {s.device.info.index}"


def test_one_queue_needs_no_waits_until_the_host_reads() -> None:
    x, y = root(), root()
    assert ordered(work(A, (x,), (y,)), work(A, (y,), (x,))) == ["work 0", "work 0"]
    assert ordered(work(A, (x,), (y,)), work(None, (y,))) == ["work 0", "fence 0", "host"]
    assert ordered(work(A, (), (y,)), at_end=(y,)) == ["work 0", "fence 0"]
    assert ordered(work(A, (), (y,)), at_end=(x,)) == ["work 0"]


def test_a_queue_waits_once_for_another() -> None:
    x, y, z = root(), root(), root()
    steps = [work(A, (), (x, y)), work(B, (x,), (z,)), work(B, (y,), (z,))]
    assert ordered(*steps) == ["work 0", "1 waits for 0", "work 1", "work 1"]


def test_a_read_beside_a_read_waits_for_nobody_and_a_write_for_both() -> None:
    x = root()
    assert ordered(work(A, (x,)), work(B, (x,)), work(C, (), (x,))) == [
        *("work 0", "work 1", "2 waits for 0", "2 waits for 1", "work 2")
    ]


def test_after_a_fence_no_queue_waits_for_what_was_fenced() -> None:
    x = root()
    steps = [work(A, (), (x,)), work(None, (x,)), work(B, (x,))]
    assert ordered(*steps) == ["work 0", "fence 0", "host", "work 1"]


def test_what_the_host_reads_at_a_launch_is_fenced() -> None:
    x, y = root(), root()
    assert ordered(work(A, (), (x,)), work(A, (), (y,), touches=(x,))) == ["work 0", "fence 0", "work 0"]


def test_the_end_of_an_iteration_is_seen_from_its_beginning() -> None:
    x = root()
    body = Block([work(B, (x,)), work(A, (), (x,))])
    block = Block([Loop(body)])
    order_queues(block, fence, wait, activate)
    assert waits(body) == ["1 waits for 0", "work 1", "0 waits for 1", "work 0"]


def test_both_branches_are_seen_after_them() -> None:
    x, y = root(), root()
    block = Block([Branch(NAME, Block([work(A, (), (x,))]), Block([work(B, (), (y,))])), work(C, (x, y))])
    order_queues(block, fence, wait, activate)
    assert waits(block)[1:] == ["2 waits for 0", "2 waits for 1", "work 2"]


def test_a_name_is_given_to_another_buffer_once_all_queues_are_done_with_the_first() -> None:
    x, y = root("x", "fresh"), root("y", "fresh")
    again = Let((NAME,), (NAME,), rebinds=((x, (y,)),))
    alone = ordered(work(A, (), (x,)), work(A, (x,)), work(A, (), (y,)), again)
    assert alone == ["work 0", "work 0", "work 0", "host"]
    shared = ordered(work(A, (), (x,)), work(B, (x,)), work(A, (), (y,)), again)
    assert shared == ["work 0", "1 waits for 0", "work 1", "work 0", "fence 1", "host"]


def test_a_name_brings_what_is_pending_on_its_new_storage() -> None:
    x, y = root("x", "fresh"), root("y", "fresh")
    swap = Let((NAME, NAME), (NAME, NAME), rebinds=((x, (y,)), (y, (x,))))
    assert ordered(work(A, (), (y,)), swap, work(B, (x,)), work(B, (y,)))[1:] == [
        *("host", "1 waits for 0", "work 1", "work 1", "fence 1")
    ]


def test_what_a_step_made_is_freed_behind_all_queues_that_used_it() -> None:
    x, y = root("x", "fresh"), root("y", "fresh")
    steps = [work(A, (), (x,)), work(B, (x,)), work(A, (), (y,))]
    assert ordered(*steps) == ["work 0", "1 waits for 0", "work 1", "work 0", "fence 1"]


def test_a_queue_is_current_when_it_gets_work() -> None:
    inner, then, other = Block([work(A), work(B)]), Block([work(A)]), Block([work(B)])
    block = Block([work(A), work(A), Branch(NAME, then, other), Loop(inner), work(B)])
    order_queues(block, fence, wait, activate, current=A)
    assert [shown(s) for s in block.statements] == ["work 0", "work 0", "host", "host", "activate 1", "work 1"]
    assert [shown(s) for s in (*then.statements, *other.statements)] == ["work 0", "activate 1", "work 1"]
    assert [shown(s) for s in inner.statements] == ["activate 0", "work 0", "activate 1", "work 1"]


@pytest.mark.parametrize("seed", range(50))
def test_the_right_queue_is_current_on_every_way_through_random_programs(seed: int) -> None:
    rng = random.Random(seed)
    block = _nest(rng, 3)
    order_queues(block, fence, wait, activate, current=rng.choice([None, A]))
    for _ in range(40):
        current = None
        for statement in _walked(rng, block):
            if isinstance(statement, Activate):
                current = statement.device
            elif isinstance(statement, Launch):
                assert statement.device is current or (current is None and statement.device is A)


def _nest(rng: random.Random, depth: int) -> Block:
    block = Block()
    for _ in range(rng.randint(0, 4)):
        kind = rng.choice("wwwbl") if depth else "w"
        if kind == "w":
            block.add(work(rng.choice([A, B, None])))
        elif kind == "b":
            block.add(Branch(NAME, _nest(rng, depth - 1), _nest(rng, depth - 1)))
        else:
            block.add(Loop(_nest(rng, depth - 1)))
    return block


def _walked(rng: random.Random, block: Block) -> list[Statement]:
    """One way through a block; a loop is left anywhere among its own statements."""
    found: list[Statement] = []
    for s in block.statements:
        if isinstance(s, Branch):
            found += _walked(rng, rng.choice([s.then, s.otherwise]))
        elif isinstance(s, Loop):
            for _ in range(rng.randint(0, 2)):
                found += _walked(rng, s.body)
            leaving = _walked(rng, s.body)
            found += leaving[: rng.randint(0, len(leaving))] if not any(map(_nested, s.body.statements)) else []
        else:
            found.append(s)
    return found


def _nested(s: Statement) -> bool:
    return isinstance(s, (Branch, Loop))


@pytest.mark.parametrize("seed", range(200))
def test_random_programs_against_brute_force(seed: int) -> None:
    """Straight programs and loops run twice: a happens-before graph orders every conflict; without any one wait it does not."""
    rng = random.Random(seed)
    roots = [root(str(i)) for i in range(rng.randint(1, 4))]
    statements = [_random(rng, roots) for _ in range(rng.randint(2, 12))]
    where = rng.randrange(len(statements))
    looped = rng.random() < 0.5
    if looped:
        statements = [*statements[:where], Loop(Block(statements[where:]))]
    block = Block(statements)
    order_queues(block, fence, wait, activate)
    flat = _unrolled(block, set())
    assert not _unordered(flat)
    if not looped:
        for i, statement in enumerate(flat):
            if isinstance(statement, (Synchronize, Wait)):
                assert _unordered([*flat[:i], *flat[i + 1 :]]), f"{shown(statement)} orders nothing"


def _random(rng: random.Random, roots: list[Root]) -> Statement:
    device = rng.choice([A, B, C, A, B, None])
    picked = rng.sample(roots, rng.randint(1, min(2, len(roots))))
    cut = rng.randint(0, len(picked))
    return work(device, tuple(picked[:cut]), tuple(picked[cut:]))


def _unrolled(block: Block, skip: set[Statement]) -> list[Statement]:
    flat: list[Statement] = []
    for s in block.statements:
        if s in skip:
            continue
        flat += _unrolled(s.body, skip) * 3 if isinstance(s, Loop) else [s]
    return flat


def _unordered(flat: list[Statement]) -> list[tuple[int, int]]:
    """Pairs of conflicting accesses that nothing orders."""
    before: list[set[int]] = []
    queue_last: dict[Any, set[int]] = {}
    host: set[int] = set()
    accesses: list[tuple[int, Any, set[Root], set[Root]]] = []
    found = []
    for i, s in enumerate(flat):
        if isinstance(s, Activate):
            before.append(set())
            continue
        if isinstance(s, Synchronize):
            host |= queue_last.get(s.device, set())
            before.append(set())
            continue
        if isinstance(s, Waits):
            queue_last[s.device] = queue_last.get(s.device, set()) | queue_last.get(s.on, set())
            before.append(set())
            continue
        known = set(host)
        if s.device is not None:
            known |= queue_last.get(s.device, set())
        reads, writes = set(s.reads), set(s.writes)
        for j, other, r, w in accesses:
            on_host = s.device is None or other is None
            conflict = (writes & (r | w)) | (reads & w) | (reads & r if on_host and s.device is not other else set())
            if conflict and j not in known and not (s.device is None and other is None):
                found.append((j, i))
        before.append(known)
        accesses.append((i, s.device, reads, writes))
        if s.device is None:
            host = known | {i}
        else:
            queue_last[s.device] = known | {i}
    return found


def test_another_name_of_a_storage_is_waited_for_like_the_first() -> None:
    x, y, z = root(), root(), root()
    named = Let((NAME,), (NAME,), rebinds=((y, (x,)),))
    assert ordered(work(A, (), (x,)), named, work(B, (y,), (z,))) == ["work 0", "host", "1 waits for 0", "work 1"]
    assert ordered(work(A, (), (x,)), named, work(A, (y,), (z,))) == ["work 0", "host", "work 0"]


def test_what_a_history_holds_is_waited_for_where_it_is_read() -> None:
    kept, listed, element = root("e"), root("j"), root("i")
    writes = Block([work(A, (), (kept,)), Push(NAME, NAME, renames=((kept, listed),))])
    reads = Block([Take(NAME, NAME, rebinds=((element, (listed,)),)), work(B, (element,))])
    order_queues(Block([Loop(writes), Loop(reads)]), fence, wait, activate)
    found = [[t for s in b.statements if not (t := shown(s)).startswith("activate")] for b in (writes, reads)]
    assert found[0] == ["work 0", "host"]
    assert found[1].index("fence 0") < found[1].index("work 1"), (
        "an element that two queues use is let go after a fence"
    )
