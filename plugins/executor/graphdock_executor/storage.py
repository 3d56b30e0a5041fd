"""Storage: what memory a value's elements lie in, how long it is live, and where in the arena it goes.

Liveness, reuse and in-place are decided per storage (a :class:`Root`), never per value: views share their source's root.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field

from graphdock.contracts.ir import PlanNode
from graphdock.dtypes import DType

__all__ = ["Root", "pack"]


@dataclass(eq=False)
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

    Best fit over blocks that died, in order of first use; a block is reused whole.

    Args:
      margin: bytes on each side of a root that nothing else has; a multiple of ``align``.
    """
    free: list[tuple[int, int]] = []  # (size, offset), sorted
    live: list[tuple[int, int, int]] = []  # (last, size, offset), sorted
    top = 0
    for root in sorted(roots, key=lambda r: r.first):
        while live and live[0][0] < root.first:
            _, size, offset = live.pop(0)
            bisect.insort(free, (size, offset))
        size = max(-(-root.nbytes // align) * align, align) + 2 * margin
        at = bisect.bisect_left(free, (size, -1))
        if at < len(free) and free[at][0] <= 4 * size:
            size, start = free.pop(at)
        else:
            start = top
            top += size
        root.offset = start + margin
        bisect.insort(live, (root.last, size, start))
    return top
