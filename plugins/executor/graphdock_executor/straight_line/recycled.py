"""Large buffers of results that the caller has dropped, used again: a new one would be zeroed by the system, page by page, which
costs as much as several visits of it."""

from __future__ import annotations

import sys
import weakref
from typing import Any

import numpy as np

__all__ = ["Recycled", "can_recycle"]

#: What ``getrefcount`` says of an array that is known here alone: the attribute, a variable, and its argument.
_MINE = 3


def can_recycle() -> bool:
    """Return whether this Python counts references, and under a lock."""
    return hasattr(sys, "getrefcount") and getattr(sys, "_is_gil_enabled", lambda: True)()


class Recycled:
    """Function that makes an array, called by one step at a time: the last one again where nobody else knows of it, neither by
    a view nor by a weak reference; else a new one. One array is kept as long as this is.
    """

    __slots__ = ("_dtype", "_last", "_shape")

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self._shape, self._dtype = shape, dtype
        self._last: np.ndarray[Any, Any] | None = None

    def __call__(self) -> np.ndarray[Any, Any]:
        last = self._last
        if last is None or sys.getrefcount(last) > _MINE or weakref.getweakrefcount(last) or not last.flags.writeable:
            last = self._last = np.empty(self._shape, self._dtype)
        return last
