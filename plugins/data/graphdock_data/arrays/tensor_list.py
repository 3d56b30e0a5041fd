"""TensorList: the value of a TensorArray in a step. It never changes; a write gives another one.

Of all lists that came of one, the newest has the elements, and each older one knows what the next wrote over (Baker, "Shallow
binding makes functional arrays fast", 1991). So a write costs the same however long the list is, and a list that nobody holds any
more costs nothing. An older one that is read again looks at the newer ones, or copies the newest where they are many.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from graphdock.contracts import dtypes, errors
from graphdock.shape import Dims, compatible, show

__all__ = ["Rules", "TensorList", "summed"]

#: In place of an element that was read, and is not kept.
_READ: Any = object()
#: So many newer lists an old one looks at for an element.
_NEAR = 4


@dataclass(frozen=True, slots=True)
class Rules:
    """Operations of programs on a list.

    Attributes:
      dtype: of the elements. ``name``: for messages.
      grows: a write past the end makes it longer. ``forgets``: an element is read once.
      once: an element is written once. ``alike``: all elements have one shape, the first one's.
      lenient: what is past the end counts as not written.
    """

    dtype: dtypes.DType
    name: str = ""
    grows: bool = False
    forgets: bool = False
    once: bool = False
    alike: bool = False
    lenient: bool = False


class _Line:
    """State that the lists that came of one share: a lock, and whether the array is closed."""

    __slots__ = ("closed", "lock")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.closed = False


class TensorList:
    """Elements of one dtype, each an array; what was not written is absent.

    Any thread may read and write it. Arrays that it holds are its own: nobody writes to them.

    Args:
      dims: shape of each element, as far as it is known.
      size: how many there are. ``items``: those that were written, by index; they are taken over.
    """

    __slots__ = ("_items", "_later", "_line", "_size", "dims", "rules")

    def __init__(self, rules: Rules, dims: Dims, size: int, items: dict[int, Any], line: _Line | None = None) -> None:
        self.rules = rules
        self.dims = dims
        self._size = size
        self._items: dict[int, Any] | None = items
        #: the list that was made of this one, and what it wrote over
        self._later: tuple[TensorList, Mapping[int, Any]] | None = None
        self._line = _Line() if line is None else line

    def __len__(self) -> int:
        return self._size

    def close(self) -> None:
        """Refuse whatever follows."""
        self._line.closed = True

    # -- versions

    def _own(self) -> dict[int, Any]:
        """The elements, which this list has for itself from now on. The lock is held."""
        if self._items is None:
            chain: list[Mapping[int, Any]] = []
            at = self
            while at._items is None:
                assert at._later is not None
                at, over = at._later
                chain.append(over)
            items = dict(at._items)
            for over in reversed(chain):
                items.update(over)
            self._items, self._later = {i: item for i, item in items.items() if item is not None}, None
        return self._items

    def _item(self, index: int) -> Any:
        """An element; None where there is none. The lock is held; an old list looks at a few newer ones before it copies."""
        at = self
        for _ in range(_NEAR):
            if at._items is not None:
                return at._items.get(index)
            assert at._later is not None
            at, over = at._later
            if index in over:
                return over[index]
        return self._own().get(index)

    def _with(self, changes: Mapping[int, Any], dims: Dims) -> TensorList:
        """The list with other elements at some places. The lock is held."""
        items = self._own()
        over = {i: items.get(i) for i in changes}
        items.update(changes)
        made = TensorList(self.rules, dims, max(self._size, max(changes, default=-1) + 1), items, self._line)
        self._items, self._later = None, (made, over)
        return made

    # -- writing

    def written(self, index: int, value: np.ndarray) -> TensorList:
        """The list with a copy of ``value`` as an element."""
        return self._written({index: value})

    def scattered(self, indices: Sequence[int], rows: Sequence[np.ndarray], add: bool = False) -> TensorList:
        """The list with copies of rows as elements. ``add``: rows for one place are added up; else one place takes one."""
        if len(indices) != len(rows):
            raise self._error(f"there are {len(rows)} rows for {len(indices)} indices")
        changes: dict[int, np.ndarray] = {}
        for index, row in zip(indices, rows, strict=True):
            if index in changes and add:
                row = np.add(changes[index], row)
            elif index in changes and self.rules.once:
                raise self._error(
                    f"Could not write to TensorArray index {index} because it has already been written to."
                )
            changes[index] = row
        return self._written(changes)

    def _written(self, values: Mapping[int, np.ndarray]) -> TensorList:
        rules = self.rules
        with self._line.lock:
            self._check_open()
            items, dims, size = self._own(), self.dims, self._size
            changes: dict[int, Any] = {}
            for index, value in values.items():
                value = np.asarray(value)
                if value.dtype != rules.dtype.np:
                    raise self._error(
                        f"TensorArray dtype is {rules.dtype.name} but Op is trying to write dtype {value.dtype}."
                    )
                if index < 0 or index >= size and not rules.grows:
                    growing = "" if rules.grows else " array is not resizeable and"
                    raise self._error(f"Tried to write to index {index} but{growing} size is: {size}")
                held = items.get(index)
                if rules.once and held is not None:
                    done = "read" if held is _READ else "written to"
                    raise self._error(
                        f"Could not write to TensorArray index {index} because it has already been {done}."
                    )
                if not compatible(dims, value.shape):
                    inferred = "inferred element shape" if rules.alike else "element shape"
                    raise self._error(
                        f"Could not write to TensorArray index {index} because the value shape is {show(value.shape)} which is "
                        f"incompatible with the TensorArray's {inferred}: {show(dims)} (consider setting infer_shape=False)."
                    )
                if rules.alike:
                    dims = value.shape
                changes[index] = np.array(value, order="C")
            return self._with(changes, dims)

    # -- reading

    def read(self, indices: Iterable[int], dims: Dims) -> list[np.ndarray]:
        """Elements, which nobody may write to. Zeros stand for what was not written where the shape is known.

        Args:
          dims: what the reader knows of an element's shape.
        """
        with self._line.lock:
            self._check_open()
            found = []
            for index in indices:
                if index < 0 or index >= self._size and not self.rules.lenient:
                    raise self._error(f"Tried to read from index {index} but array size is: {self._size}")
                item = self._item(index)
                if item is _READ:
                    raise self._error(
                        f"Could not read index {index} twice because it was cleared after a previous read (perhaps try setting "
                        "clear_after_read = false?)."
                    )
                if item is None:
                    item = self._zeros(index, dims)
                elif not compatible(dims, item.shape):
                    raise self._error(f"TensorArray index {index} has shape {show(item.shape)}; expected {show(dims)}")
                if self.rules.forgets:
                    self._own()[index] = _READ
                found.append(item)
            return found

    def _zeros(self, index: int, dims: Dims) -> np.ndarray:
        for known in (self.dims, dims):
            if known is not None and None not in known:
                shape = tuple([int(d) for d in known])
                return (
                    np.full(shape, b"", object)
                    if self.rules.dtype.kind == "S"
                    else np.zeros(shape, self.rules.dtype.np)
                )
        raise self._error(
            f"Could not read from TensorArray index {index}.  Furthermore, the element shape is not fully defined: "
            f"{show(self.dims)}.  It has not been written to, and only of a whole element_shape zeros can be made."
        )

    def again(self) -> TensorList:
        """The same list, as another object: what a kernel returns is none of its inputs."""
        with self._line.lock:
            return self._with({}, self.dims)

    def plus(self, other: TensorList) -> TensorList:
        """The sums of the elements of two; what only one has is that one's."""
        few, many = sorted((self, other), key=TensorList._count)
        with few._line.lock:
            added = dict(few._own())
        with many._line.lock:
            items = many._own()
            changes = {i: np.add(items[i], item) if i in items else item for i, item in added.items()}
            return many._with(changes, many.dims if many.dims == few.dims else None)

    def _count(self) -> int:
        with self._line.lock:
            return len(self._own())

    # -- errors

    def _check_open(self) -> None:
        if self._line.closed:
            raise self._error("the array has already been closed")

    def _error(self, message: str) -> errors.InvalidArgumentError:
        return errors.InvalidArgumentError(f"TensorArray {self.rules.name or 'without a name'}: {message}")


def summed(lists: Iterable[TensorList | None]) -> TensorList | None:
    """The elements of several lists, added up; None, which is a list of nothing, where all are."""
    total: TensorList | None = None
    for each in lists:
        if isinstance(each, list):
            raise errors.UnimplementedError(
                "what a loop keeps of its iterations has no gradient by way of a loop that reads it whole"
            )
        if each is not None:
            total = each.again() if total is None else total.plus(each)
    return total
