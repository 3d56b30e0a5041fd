"""Computation of a whole loop: region programs one behind the other, over buffers, until a condition no longer holds.

A :class:`LoopProgram` has *buffers*, each a tensor of known shape, row by row without gaps. Some are given, some are constants,
some are its loop variables; the others are what its steps make. One iteration runs the steps of the condition, reads its test, and
runs those of the body; then every loop variable becomes its next value, all at once. A step reads buffers that are given, constant,
loop variables, or made by steps before it, of the same iteration.

A loop may read *histories*, each a sequence of tensors of one shape: an iteration has one element of each, the first iteration the
last one, and behind the one that has the first elements none follows, whatever the condition says. All are equally long. And it
may make histories, to which each iteration adds what a buffer holds behind its steps, before loop variables become their next
values. How many iterations there are nobody knows before they have run, unless the loop reads histories or has a ``limit``.

Loops within loops do so too, so that a buffer may be a history itself (``LoopBuffer.depth``): one that a loop within makes, that a
loop within reads, or that is made of rows. An outer loop may keep it, and has a history of histories then, whose elements differ in
length; and the elements of a history of histories that it reads are histories.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphdock.contracts.region_program import RegionProgram
from graphdock.dtypes import DType

__all__ = ["LoopBuffer", "LoopCopy", "LoopProgram", "LoopRows", "LoopStep"]


@dataclass(frozen=True, slots=True)
class LoopBuffer:
    """One tensor of a loop, or a history.

    Attributes:
      shape: of whoever made it; a step may read it under another one, of as many elements.
      value: its elements, an array, where it is a constant; else None.
      depth: 0 for a tensor; else it is a history of tensors of that shape, or for 2 a history of histories of such, and so on.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    value: Any = None
    depth: int = 0


@dataclass(frozen=True, slots=True)
class LoopCopy:
    """A copy of a part of a buffer to a part of another one, of the same dtype.

    Attributes:
      shape: of the part, whose dims are its own.
      strides: elements from place to place of each dim, where they are read, and ``offset`` those before the first one. They may
        be negative, for what is read from its end.
      into, at: the same where they are written.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    into: tuple[int, ...]
    at: int

    def __str__(self) -> str:
        read, written = (
            f"strides {', '.join(map(str, strides))} from {first}"
            for strides, first in ((self.strides, self.offset), (self.into, self.at))
        )
        return f"copy {list(self.shape)}, {read}, to {written}"


@dataclass(frozen=True, slots=True)
class LoopRows:
    """The rows of a tensor as a history, or a history as the rows of a tensor: its output's ``depth`` says which.

    Attributes:
      count: of the rows. A history that has not so many elements is an error of the step.
      backwards: whether the first element is the last row.
    """

    count: int
    backwards: bool

    def __str__(self) -> str:
        return f"{self.count} rows{', the last one first' if self.backwards else ''}"


@dataclass(frozen=True, slots=True)
class LoopStep:
    """A program, a copy, rows, or a loop within the loop, over buffers.

    Attributes:
      inputs: the buffer of each of its inputs (``RegionInput.source``, ``LoopProgram.given``). ``outputs``: of each that it makes;
        several copies, one behind the other, make the parts of one buffer; a loop makes its results, and then its histories.
    """

    program: RegionProgram | LoopCopy | LoopRows | LoopProgram
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LoopProgram:
    """One loop.

    Attributes:
      given: the buffers that it is given, in the order of the region's inputs. One of ``scans`` stands for a history: it has the
        element of the iteration, and in the condition none.
      variables: the buffer of each loop variable, and ``initial`` the one that it begins as.
      condition: steps, and ``test`` the bool that goes on where it holds.
      body: steps, and ``following`` the buffer that each loop variable becomes; itself where it stays as it is.
      limit: iterations at most; None for no limit.
      results: numbers of the loop variables that leave, in the order of the region's outputs.
      scans: the given buffers that are elements of histories; what is given is one deeper than the buffer. Histories that one
        loop reads have as many elements; where a loop within is given others, the step is in error.
      kept: the buffers of which histories are made, each with the shape that their elements have there; these leave behind
        ``results``. A buffer of variant has no elements, and its history tells only how many iterations there were. One that is
        a history is made by a loop of the body; where the first dim of its shape is None its elements lie end to end as the rows
        of one tensor, of a number that differs from iteration to iteration.
    """

    name: str
    buffers: tuple[LoopBuffer, ...]
    given: tuple[int, ...]
    variables: tuple[int, ...]
    initial: tuple[int, ...]
    condition: tuple[LoopStep, ...]
    test: int
    body: tuple[LoopStep, ...]
    following: tuple[int, ...]
    limit: int | None
    results: tuple[int, ...]
    scans: tuple[int, ...] = ()
    kept: tuple[tuple[int, tuple[int | None, ...]], ...] = ()

    def __str__(self) -> str:
        def steps(these: tuple[LoopStep, ...]) -> list[str]:
            lines = []
            for step in these:
                places = [", ".join(f"b{n}" for n in part) for part in (step.inputs, step.outputs)]
                lines.append(f"({places[0]}) -> ({places[1]}):")
                lines += str(step.program).split("\n")
            return [f"    {line}" for line in lines]

        lines = [f"loop {self.name} (given {', '.join(f'b{n}' for n in self.given)}) {{"]
        for number, buffer in enumerate(self.buffers):
            how = ", of a history" if number in self.scans else "" if buffer.value is None else ", constant"
            of = "".join(["history of ", *["histories of "] * (buffer.depth - 1)]) if buffer.depth else ""
            lines.append(f"  b{number}: {of}{buffer.dtype.name}{list(buffer.shape)}{how}  # {buffer.name}")
        pairs = zip(self.variables, self.initial, strict=True)
        lines += [f"  b{variable} begins as b{first}" for variable, first in pairs]
        lines += [f"  while b{self.test}:", *steps(self.condition), "  do:", *steps(self.body)]
        lines += [f"    keep b{n} as {list(shape)}" for n, shape in self.kept]
        lines += [f"    b{v} becomes b{n}" for v, n in zip(self.variables, self.following, strict=True) if v != n]
        lines += [] if self.limit is None else [f"  at most {self.limit} times"]
        left = [f"b{self.variables[r]}" for r in self.results] + [f"the history of b{n}" for n, _ in self.kept]
        return "\n".join([*lines, f"  return {', '.join(left)}", "}"])
