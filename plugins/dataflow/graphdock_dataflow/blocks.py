"""Memory of large results that nobody knows any more, used again: new memory is zeroed by the system, page by page, which costs
as much as several visits of it."""

from __future__ import annotations

import math
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["LARGE", "Blocks", "can_count"]

#: Bytes from which memory is worth being used again: less than that the C library keeps for itself.
LARGE = 1 << 17
#: What the first element of each array is aligned to.
_ALIGN = 64


def can_count() -> bool:
    """Return whether this Python counts references, and under a lock."""
    return hasattr(sys, "getrefcount") and getattr(sys, "_is_gil_enabled", lambda: True)()


class _Lease(weakref.ref[Any]):
    """A block that was given out, where arrays over it begin, and a reference to the one there is: calls back when that is gone."""

    __slots__ = ("block", "start")
    block: np.ndarray[Any, Any]
    start: int


def _holders(lease: _Lease) -> int:
    block = lease.block
    return sys.getrefcount(block)


class Blocks:
    """Blocks of memory, each under one array at a time. Any threads may ask at once.

    A block is given out again when the array over it is gone and nothing else holds it: not a view, nor what has taken its memory.
    So as many of a size are kept as were in use at once. One that something else holds is forgotten, and ends with its last holder.
    """

    def __init__(self) -> None:
        self._out: dict[int, _Lease] = {}
        self._back: dict[int, list[_Lease]] = {}
        own = _Lease(np.empty(0))
        own.block = np.empty(0)
        self._alone = _holders(own)

    def maker(self, dtype: Any, shape: Sequence[int]) -> Callable[[], np.ndarray[Any, Any]]:
        """Function that gives a new array, of which no element is set, over a block that no other one has."""
        nbytes = math.prod(shape) * dtype.itemsize
        out, alone = self._out, self._alone
        back = self._back.setdefault(nbytes, [])
        come_back = back.append  # not a function of ours: nothing runs between an array's end and this

        def make() -> np.ndarray[Any, Any]:
            while True:
                try:
                    ended = back.pop()
                except IndexError:
                    block = np.empty(nbytes + _ALIGN, np.uint8)
                    start = -block.ctypes.data % _ALIGN
                    break
                del out[id(ended)]
                if _holders(ended) == alone:
                    block, start = ended.block, ended.start
                    break
            made = np.ndarray(shape, dtype, block, start)
            lease = _Lease(made, come_back)
            lease.block, lease.start = block, start
            out[id(lease)] = lease
            return made

        return make
