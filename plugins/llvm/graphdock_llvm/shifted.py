"""Parts that begin elsewhere in their tensors: one function for all offsets, called by another one that adds them to addresses.

Offsets in the text would be a function for each of the rows that ``unstack`` gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from graphdock.contracts import RegionProgram

from graphdock_llvm.target import compiled

__all__ = ["Shifted", "shifted"]

#: The numbers are a function, how many buffers it has, for each a slot of the table and bytes to add, then the function's own.
_TEXT = """define void @region(ptr %table, ptr %numbers) {
entry:
  %function = load ptr, ptr %numbers
  %count.at = getelementptr i64, ptr %numbers, i64 1
  %count = load i64, ptr %count.at
  %pairs = getelementptr i64, ptr %numbers, i64 2
  %own = alloca ptr, i64 %count
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %next, %each ]
  %pair = getelementptr [2 x i64], ptr %pairs, i64 %i
  %slot = load i64, ptr %pair
  %bytes.at = getelementptr i64, ptr %pair, i64 1
  %bytes = load i64, ptr %bytes.at
  %from = getelementptr ptr, ptr %table, i64 %slot
  %address = load ptr, ptr %from
  %moved = getelementptr i8, ptr %address, i64 %bytes
  %to = getelementptr ptr, ptr %own, i64 %i
  store ptr %moved, ptr %to
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %each, label %call
call:
  %rest = getelementptr [2 x i64], ptr %pairs, i64 %count
  call void %function(ptr %own, ptr %rest)
  ret void
}
"""


@dataclass(frozen=True, slots=True)
class Shifted:
    """A program whose inputs have a slot each and no offsets.

    Attributes:
      count: how many slots stand before its outputs. ``pairs``: for each slot that of the region, and the bytes to add.
    """

    program: RegionProgram
    count: int
    pairs: Sequence[tuple[int, int]]

    def call(self, address: int) -> tuple[int, tuple[int, ...]]:
        """A function of the region's own buffers that calls that of the program, and the numbers that stand before its own."""
        return compiled(_TEXT), (address, len(self.pairs), *[n for pair in self.pairs for n in pair])


def shifted(program: RegionProgram, count: int) -> Shifted | None:
    """The program without offsets; None of one that has none.

    Args:
      count: how many inputs the region has.
    """
    if not any(i.offset for i in program.inputs):
        return None
    pairs = [(i.source, i.offset * i.dtype.size) for i in program.inputs]
    inputs = tuple([replace(i, source=number, offset=0) for number, i in enumerate(program.inputs)])
    written = [o for o in program.outputs if o.into is not None]
    outputs = (*program.made, *[replace(o, into=len(pairs) + k) for k, o in enumerate(written)])
    pairs += [(o.into or 0, 0) for o in written]
    slots = len(pairs)
    pairs += [(count + k, 0) for k in range(len(program.made) + bool(program.streams))]
    return Shifted(replace(program, inputs=inputs, outputs=outputs), slots, pairs)
