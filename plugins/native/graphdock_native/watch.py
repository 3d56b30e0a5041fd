"""Debug mode: the memory that a native kernel reaches and that no plan watches. Buffers made at the call, and constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from graphdock.contracts.ir import PlanNode
from graphdock.errors import InternalError

__all__ = ["Margins", "keeping_constants"]

#: Bytes on each side of a buffer, a multiple of any alignment; every byte of them, and of a new buffer, is _FILL.
_MARGIN, _FILL = 64, 0xA5

_Array = np.ndarray[Any, Any]


class Margins:
    """Makes buffers with margins, and looks at the margins after the call."""

    def __init__(self, symbol: str, node: PlanNode) -> None:
        self._symbol, self._node = symbol, node
        self._made: list[tuple[str, _Array]] = []

    def new(self, what: str, shape: Sequence[int], dtype: Any) -> _Array:
        """A row-major buffer full of what no correct result contains; ``what`` is its name in messages."""
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        memory = np.full(size + 2 * _MARGIN, _FILL, np.uint8)
        self._made.append((what, memory))
        made: _Array = memory[_MARGIN : _MARGIN + size].view(dtype)
        return made.reshape(tuple(shape))

    def check(self) -> None:
        """Forget the buffers made so far.

        Raises:
          InternalError: a margin of theirs was written.
        """
        made, self._made = self._made, []
        for what, memory in made:
            before = np.flatnonzero(memory[:_MARGIN] != _FILL)
            behind = np.flatnonzero(memory[-_MARGIN:] != _FILL)
            if before.size or behind.size:
                where = (
                    f"{_MARGIN - before[0]} bytes before its beginning"
                    if before.size
                    else f"{behind[-1] + 1} bytes behind its end"
                )
                raise InternalError(
                    f"the native kernel {self._symbol} of {self._node.op} wrote beside {what}",
                    expected="writes within what it is given",
                    got=f"up to {where}",
                )


def keeping_constants(
    compute: Callable[..., Any], constants: Sequence[_Array], symbol: str, node: PlanNode
) -> Callable[..., Any]:
    """``compute``, which raises InternalError when a call changes a constant: later calls read it too."""
    kept = [array.tobytes() for array in constants]

    def call(*buffers: Any) -> Any:
        result = compute(*buffers)
        for i, (array, before) in enumerate(zip(constants, kept, strict=True)):
            if array.tobytes() != before:
                raise InternalError(
                    f"the native kernel {symbol} of {node.op} changed its constant {i}",
                    expected="constants as they were: every call reads them",
                    hint="copy it into scratch, and change that",
                )
        return result

    return call
