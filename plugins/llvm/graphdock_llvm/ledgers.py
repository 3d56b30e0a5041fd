"""Ledgers of a nest of loops: which arrays each loop adds a row to in an iteration, and what the rows of one loop say of another's.

Every loop that keeps something has one ledger, with an array for each history. Rows are tensors; where what is kept is the history
that a loop within has made, a row is a number: where in the other ledger that history ends. It begins where the one before ends, so
that such an array has a zero before its first row. The ledger of a loop within is begun anew with each of its runs, unless the loop
around keeps one of its histories: then that one's run is when it begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graphdock.contracts import DType, LoopProgram, LoopRows, LoopStep, dtypes

__all__ = ["Kept", "Ledger", "ledgers_of", "loops_of", "needs_counts"]


@dataclass(frozen=True, slots=True)
class Kept:
    """One array of a ledger.

    Attributes:
      dtype, shape: of a row; numbers of the host where ``of`` says which history of which other ledger they are the ends of.
      rows: of one whose elements are tensors, parts of that history, the shape of their rows; else None.
    """

    dtype: DType
    shape: tuple[int, ...]
    of: tuple[int, int] | None = None
    rows: tuple[int, ...] | None = None

    @property
    def before(self) -> int:
        """Number of rows before the first one."""
        return self.of is not None


@dataclass(frozen=True, slots=True)
class Ledger:
    """Arrays to which one loop adds rows.

    Attributes:
      kept: its arrays. ``goes_on``: whether a run of the loop adds to what runs before have left.
      follow: numbers of the ledgers that begin when this one does, and go on otherwise.
    """

    kept: tuple[Kept, ...] = ()
    goes_on: bool = False
    follow: tuple[int, ...] = ()


def loops_of(loop: LoopProgram) -> Iterator[LoopProgram]:
    """A loop and those within, in the order in which they are printed, which numbers them."""
    yield loop
    for step in (*loop.condition, *loop.body):
        if isinstance(step.program, LoopProgram):
            yield from loops_of(step.program)


def needs_counts(loop: LoopProgram) -> bool:
    """Return whether a loop, or one within, has histories."""
    return any(one.scans or one.kept or _has_rows((*one.condition, *one.body)) for one in loops_of(loop))


def _has_rows(steps: Sequence[LoopStep]) -> bool:
    return any(isinstance(s.program, LoopRows) for s in steps)


def ledgers_of(loop: LoopProgram) -> list[Ledger]:
    """The ledgers of a nest, by the numbers of the loops."""
    made: list[Ledger] = []
    _add(loop, False, made)
    return made


def _add(loop: LoopProgram, goes_on: bool, made: list[Ledger]) -> None:
    mine = len(made)
    made.append(Ledger())
    within: dict[
        int, tuple[int, int]
    ] = {}  # history that a loop of the body makes -> its ledger, and which it is there
    around = {number for number, _ in loop.kept if loop.buffers[number].depth}
    follow = []
    for step in (*loop.condition, *loop.body):
        if isinstance(step.program, LoopProgram):
            number, results = len(made), len(step.program.results)
            histories = step.outputs[results:]
            within.update((buffer, (number, i)) for i, buffer in enumerate(histories))
            kept = not around.isdisjoint(histories)
            follow += [number] if kept else []
            _add(step.program, kept, made)
    kept_here = []
    for number, shape in loop.kept:
        buffer = loop.buffers[number]
        if buffer.depth:
            rows = tuple([d or 0 for d in shape[1:]]) if None in shape else None
            kept_here.append(Kept(dtypes.int64, (), within[number], rows))
        else:
            of_row = tuple([d or 0 for d in shape])
            kept_here.append(Kept(dtypes.uint8 if buffer.dtype.kind == "V" else buffer.dtype, of_row))
    made[mine] = Ledger(tuple(kept_here), goes_on, tuple(follow))
