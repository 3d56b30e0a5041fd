"""Histories whose elements are rows of one array, as a kernel makes them that has run all iterations of a loop itself."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, overload

__all__ = ["RaggedHistory", "RowHistory", "TensorHistory"]


class _History(Sequence[Any]):
    """Sequence that readers take as a list: elements in the order of their making; the last may be taken off."""

    __slots__ = ("_count",)

    def __init__(self, count: int) -> None:
        self._count = count

    @abstractmethod
    def _element(self, place: int) -> Any: ...

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self._element(i) for i in range(*index.indices(self._count))]
        place = index + self._count if index < 0 else index
        if not 0 <= place < self._count:
            raise IndexError("a history has no such element")
        return self._element(place)

    def __iter__(self) -> Iterator[Any]:
        return iter(self[:])

    def pop(self) -> Any:
        """Take the last element off."""
        last = self[-1]
        self._count -= 1
        return last


class RowHistory(_History):
    """History of buffers, which are the rows of an array.

    Attributes:
      array: its first elements are the rows along the first dim, each contiguous; there may be more, and rows may lie in any
        order. Nobody writes it.
    """

    __slots__ = ("array",)

    def __init__(self, array: Any, count: int | None = None) -> None:
        super().__init__(len(array) if count is None else count)
        self.array = array

    def _element(self, place: int) -> Any:
        return self.array[place, ...]  # an array also of a number

    @property
    def rows(self) -> Any:
        """The elements as one array."""
        return self.array[: self._count]

    @property
    def arrays(self) -> list[Any]:
        """The arrays that it lies in."""
        return [self.array]

    def between(self, first: int, end: int) -> RowHistory:
        """A history of some of its elements."""
        return RowHistory(self.array[first:end])


class RaggedHistory(_History):
    """History of histories, each as long as it likes: one history of all their elements, and where each begins.

    Attributes:
      starts: int64, contiguous; element ``i`` is those of ``elements`` from ``starts[i]`` to ``starts[i + 1]``. There may be more.
      elements: whose own may be histories again. Nobody writes either.
    """

    __slots__ = ("elements", "starts")

    def __init__(self, starts: Any, elements: RowHistory | RaggedHistory, count: int | None = None) -> None:
        super().__init__(len(starts) - 1 if count is None else count)
        self.starts, self.elements = starts, elements

    def _element(self, place: int) -> Any:
        return self.elements.between(int(self.starts[place]), int(self.starts[place + 1]))

    @property
    def arrays(self) -> list[Any]:
        """The arrays that it lies in."""
        return [self.starts, *self.elements.arrays]

    def between(self, first: int, end: int) -> RaggedHistory:
        """A history of some of its elements."""
        return RaggedHistory(self.starts[first : end + 1], self.elements)


class TensorHistory(_History):
    """History of tensors that differ in their first dim, which are parts of one array.

    Attributes:
      array: all rows. ``starts``: integers; element ``i`` is the rows from ``starts[i]`` to ``starts[i + 1]``. Nobody writes
        either.
    """

    __slots__ = ("array", "starts")

    def __init__(self, starts: Any, array: Any) -> None:
        super().__init__(len(starts) - 1)
        self.starts, self.array = starts, array

    def _element(self, place: int) -> Any:
        return self.array[self.starts[place] : self.starts[place + 1]]

    @property
    def arrays(self) -> list[Any]:
        """The arrays that it lies in."""
        return [self.starts, self.array]
