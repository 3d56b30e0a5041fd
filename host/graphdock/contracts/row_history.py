"""A history whose elements are rows of one array, as a kernel makes it that has run all iterations of a loop itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

__all__ = ["RowHistory"]


class RowHistory(Sequence[Any]):
    """Sequence that readers take as a list of buffers: elements in the order of their making; the last may be taken off.

    Attributes:
      array: its first elements are the rows along the first dim, each contiguous; there may be more, and rows may lie in any
        order. Nobody writes it.
    """

    __slots__ = ("_count", "array")

    def __init__(self, array: Any, count: int | None = None) -> None:
        self.array = array
        self._count = len(array) if count is None else count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self.array[i, ...] for i in range(*index.indices(self._count))]
        place = index + self._count if index < 0 else index
        if not 0 <= place < self._count:
            raise IndexError("a history has no such element")
        return self.array[place, ...]  # an array also of a number

    def __iter__(self) -> Iterator[Any]:
        return iter(self[:])

    def pop(self) -> Any:
        """Take the last element off."""
        last = self[-1]
        self._count -= 1
        return last

    @property
    def rows(self) -> Any:
        """The elements as one array."""
        return self.array[: self._count]
