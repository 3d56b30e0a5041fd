"""Access history: which work on queues may still read or write what outlives the step that queued it.

Where steps overlap on a device, a step releases its lock on a variable once all its work is queued. The variable keeps the fence
of the last write, and of the last read of each stream slot. A later access comes after them: a read after the write, a write after
all. On another stream slot its queue waits for them, on the host the host does, and on their own nothing need be done.

Threads: fences are looked at and changed under the lock of their resource. Steps that read at once touch different ones.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol

__all__ = ["Fence", "AccessHistory"]


class Fence(Protocol):
    """The point of a queue behind all that one step gave it."""

    @property
    def over(self) -> bool:
        """Whether the host knows already that the work is done."""

    def wait_host(self) -> None:
        """Wait until the work is done. Raises DeviceLostError on a lost device."""


class AccessHistory:
    """The fences of the accesses of one resource.

    Attributes:
      writes: of the last step that wrote it, one per stream slot that did.
      reads: stream slot -> the fence of the last step that has read it there since.
    """

    __slots__ = ("reads", "writes")

    def __init__(self) -> None:
        self.writes: tuple[Fence, ...] = ()
        self.reads: dict[Hashable, Fence] = {}

    def before(self, writes: bool) -> Sequence[Fence]:
        """Fences that an access comes after and that the host does not know to be over; the writes that are over are dropped."""
        if self.writes:
            self.writes = tuple([t for t in self.writes if not t.over])
        if not (writes and self.reads):
            return self.writes
        return [*self.writes, *[t for t in self.reads.values() if not t.over]]

    def add(self, writes: tuple[Fence, ...], reads: Mapping[Any, Fence]) -> None:
        """A step is queued, which came after what was here.

        Args:
          writes: of its stream slots that write. reads: of those that only read.
        """
        if writes:
            self.writes = writes
            self.reads = dict(reads)
        else:
            self.reads.update(reads)

    def wait_host(self, writes: bool) -> None:
        """The host waits for what an access comes after. Raises DeviceLostError on a lost device."""
        for fence in self.before(writes):
            fence.wait_host()
