"""Segments: the longest runs of statements that a device may record once and replay, and why each ends where it does.

A run without a kernel is not worth a recording. What the host only notes about queued work (a variable now holds a value) does not
part a run: it stands behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graphdock.contracts.device import Device
from graphdock.contracts.ir import PlanNode

from graphdock_executor.step_program.names import Names, Operand, is_local
from graphdock_executor.step_program.statements import (
    Activate,
    Block,
    Copy,
    Decide,
    Flag,
    Launch,
    Segment,
    Statement,
    blocks_of,
)

__all__ = ["Boundary", "find_segments", "why_not", "within"]


@dataclass(frozen=True, slots=True)
class Boundary:
    """A statement that no recording holds.

    Attributes:
      node: the user's operation; empty for what belongs to the step as a whole.
      reason: why it stands outside, in words.
    """

    node: str
    reason: str


def find_segments(block: Block, device: Device, names: Names) -> tuple[Block, list[Segment], list[Boundary]]:
    """The block with its recordable runs as Segments, at every level; and what stands between them."""
    segments: list[Segment] = []
    boundaries: list[Boundary] = []
    top = _split(block, device, names, segments, boundaries)
    stack = [s for s in top.statements if not isinstance(s, Segment)]
    while stack:
        statement = stack.pop()
        for inner in blocks_of(statement):
            inner.statements = _split(inner, device, names, segments, boundaries).statements
            stack.extend([s for s in inner.statements if not isinstance(s, Segment)])
    return top, segments, boundaries


def _split(block: Block, device: Device, names: Names, segments: list[Segment], boundaries: list[Boundary]) -> Block:
    result, run, notes = Block(), list[Statement](), list[Statement]()

    def close() -> None:
        work = [s for s in run if not isinstance(s, Activate)]
        if any(isinstance(s, (Decide, Launch)) for s in work):
            last = run.index(work[-1])
            result.statements += [s for s in run[:last] if isinstance(s, Activate)]
            segments.append(Segment(names.new("replay"), Block(work), device=device, node=work[0].node))
            result.add(segments[-1])
            result.statements += run[last + 1 :]
        else:
            result.statements += run
        result.statements += notes  # what the host notes about work that is queued
        run.clear()
        notes.clear()

    for statement in block.statements:
        if isinstance(statement, Flag):
            notes.append(statement)
            continue
        reason = why_not(statement, device)
        if reason is None:
            run.append(statement)
            continue
        close()
        result.add(statement)
        boundaries.append(Boundary(_name(statement.node), reason))
    close()
    return result


def within(block: Block) -> Iterator[Statement]:
    """The statements of a block, and of what a device decides."""
    for statement in block.statements:
        yield statement
        if isinstance(statement, Decide):
            for inner in (statement.first, statement.second):
                yield from within(inner)


def _name(node: PlanNode | None) -> str:
    return "" if node is None else node.origin


def why_not(statement: Statement, device: Device) -> str | None:
    """Reason why the device can't record a statement; None when it can."""
    if statement.hold:
        return statement.hold
    if isinstance(statement, Activate):
        return None
    if not isinstance(statement, (Copy, Decide, Launch)):
        return "the host runs it"
    if statement.device is not device:
        return "the host runs it" if statement.device is None else f"{statement.device!r} runs it"
    if isinstance(statement, Decide):
        return None
    if statement.access is not None:
        return "it locks a variable for itself"
    if any(is_local(o) for o in _operands(statement)):
        return "a buffer of it is made in the step"
    return None


def _operands(statement: Copy | Launch) -> Iterator[Operand]:
    if isinstance(statement, Copy):
        yield from (statement.source, statement.target)
    else:
        yield from statement.args
        yield from statement.returns


def described(segments: Sequence[Segment], boundaries: Sequence[Boundary]) -> list[str]:
    """Lines for ``explain``: each recording with its length, and each reason for an end."""
    lines = []
    for segment in segments:
        lines.append(f"recorded: {len(segment.body.statements)} statements from {_name(segment.node)}")
        lines += [f"decided by the device: {_name(s.node)}" for s in within(segment.body) if isinstance(s, Decide)]
    return lines + [f"not recorded: {b.node or 'the step'}: {b.reason}" for b in boundaries]
