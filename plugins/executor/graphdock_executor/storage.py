"""Storage: what memory a value's elements lie in, how long it is live, and where in the arena it goes.

Liveness, reuse and in-place are decided per storage (a :class:`Root`), never per value: views share their source's root.
"""

from __future__ import annotations

import bisect
import operator
from collections.abc import Sequence
from dataclasses import field

from graphdock.contracts.ir import PlanNode
from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.dtypes import DType

__all__ = ["Root", "pack"]

#: Bits of an offset.
_BITS = 48


@lazy_dataclass(eq=False)
class Root:
    """One storage.

    Attributes:
      kind: ``planned`` (in the arena), ``escape`` (new in every step, handed to the caller), ``feed`` and ``constant``
        (read-only), ``variable``, ``loop`` (one half of a ping-pong pair, in the arena), ``fresh`` (a kernel made it).
      device: key of the device whose arena holds it.
      first, last: positions in the flattened plan between which it is live.
      node: what made it necessary, for messages.
      offset: byte offset in the arena, once packed.
    """

    kind: str
    device: str
    dtype: DType
    shape: tuple[int, ...]
    first: int = 0
    last: int = 0
    name: str = ""
    node: PlanNode | None = None
    offset: int = field(default=-1)

    @property
    def nbytes(self) -> int:
        n = self.dtype.size
        for d in self.shape:
            n *= d
        return n

    def use(self, position: int) -> None:
        """Keep it live until ``position``."""
        if position > self.last:
            self.last = position


def pack(roots: Sequence[Root], align: int, margin: int = 0) -> int:
    """Give each root an offset, a multiple of ``align``, so that no two live at once overlap; returns the bytes needed.

    Best fit over what is free below the top, in order of first use: neighbours that died are one hole, and a hole is split.

    Args:
      margin: bytes on each side of a root that nothing else has; a multiple of ``align``.
    """
    holes: list[int] = []  # size and offset as one number, sorted
    begins: dict[int, int] = {}  # offset of a hole -> its size
    ends: dict[int, int] = {}  # where a hole ends -> its size
    top = 0

    def fill(size: int, offset: int) -> None:
        del holes[bisect.bisect_left(holes, size << _BITS | offset)]
        del begins[offset], ends[offset + size]

    def leave(size: int, offset: int) -> None:
        before, after = ends.get(offset), begins.get(offset + size)
        if before is not None:
            fill(before, offset - before)
            size, offset = size + before, offset - before
        if after is not None:
            fill(after, offset + size)
            size += after
        bisect.insort(holes, size << _BITS | offset)
        begins[offset] = ends[offset + size] = size

    sizes: dict[Root, int] = {}
    dying = sorted(roots, key=operator.attrgetter("last"))
    dead = 0
    for root in sorted(roots, key=operator.attrgetter("first")):
        first = root.first
        while dying[dead].last < first:
            gone = dying[dead]
            leave(sizes[gone], gone.offset - margin)
            dead += 1
        size = sizes[root] = max(-(-root.nbytes // align) * align, align) + 2 * margin
        at = bisect.bisect_left(holes, size << _BITS)
        if at < len(holes):
            hole, start = divmod(holes[at], 1 << _BITS)
            fill(hole, start)
            if hole > size:
                leave(hole - size, start + size)
        else:
            last = ends.get(top)
            start = top
            if last is not None:  # what is free at the top grows
                start -= last
                fill(last, start)
            top = start + size
        root.offset = start + margin
    return top
