"""Staging maps: elements by key, whose components may come and go one by one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from graphdock.contracts import ResourceKind, ResourceRequest, errors

from graphdock_data.resources.exchange import Attempt, Exchange

__all__ = ["STAGING_MAP", "StagingMap"]

#: Component -> value, of an element.
Parts: TypeAlias = dict[int, Any]


class _Keyed(Attempt):
    """An attempt that is about one key.

    Attributes:
      key: None for the first that there is. indices: components. parts: what is put.
    """

    __slots__ = ("indices", "key", "parts")

    def __init__(
        self,
        key: int | None,
        indices: tuple[int, ...],
        parts: Parts | None = None,
        finish: Callable[[list[Any]], Any] | None = None,
        looks: bool = False,
    ) -> None:
        super().__init__(deque(), 1, finish, looks=looks)
        self.key, self.indices, self.parts = key, indices, parts or {}


class StagingMap(Exchange):
    """Elements by key. Methods that may wait return the result, or the Future of it; each wait ends as soon as it can.

    An element is in the map once it has all its components, and out of it when the last one was taken. What lacks components
    counts for ``memory_limit`` and not for ``capacity``.

    Args:
      shapes: of the components; none where they are not known. count: how many components there are.
      ordered: ``get_any`` gives the least key, else the one that came first.
      capacity: elements that it holds. memory_limit: bytes that it holds. 0: any number.
    """

    def __init__(
        self, name: str, count: int, shapes: Sequence[Any], ordered: bool, capacity: int, memory_limit: int
    ) -> None:
        super().__init__(name)
        self.count, self.shapes, self.ordered = count, tuple(shapes), ordered
        self._capacity, self._limit = capacity or 1 << 62, memory_limit or 1 << 62
        self._map: dict[int, Parts] = {}
        self._incomplete: dict[int, Parts] = {}
        self._bytes = 0

    # -- what steps call --------------------------------------------------------------------------------------------------

    def put(self, indices: tuple[int, ...], key: Any, *values: Any) -> Any:
        """Put components of an element; waits for room. An element whose key is in the map already is dropped.

        Raises:
          InvalidArgumentError: of other shapes, or the key has such a component already, without being complete.
          ResourceExhaustedError: they are larger than the memory limit.
        """
        parts = dict(zip(indices, values, strict=True))
        for index, value in parts.items():
            dims = self.shapes[index] if self.shapes else None
            if dims is not None and value.shape != tuple(dims):
                raise errors.InvalidArgumentError(
                    f"component {index} of the staging map {self.name!r} is of another shape",
                    expected=str(list(dims)),
                    got=str(list(value.shape)),
                )
        if (size := _bytes_of(parts)) > self._limit:
            raise errors.ResourceExhaustedError(
                f"Attempted to insert tensors with combined size of {size} bytes into the staging map {self.name!r}",
                expected=f"{self._limit} bytes",
                got=f"{size} bytes",
            )
        return self._line_up(self._puts, _Keyed(int(key), indices, parts))

    def get(self, indices: tuple[int, ...], key: Any) -> Any:
        """Take components of an element; waits until its key is there.

        Raises:
          InvalidArgumentError: one of them was taken before.
        """
        return self._line_up(self._takes, _Keyed(int(key), indices, finish=lambda found: _answer(found[1:])))

    def get_any(self, indices: tuple[int, ...]) -> Any:
        """A key and components of its element, which are taken; waits while there is none. Raises as :meth:`get`."""
        return self._line_up(self._takes, _Keyed(None, indices, finish=tuple))

    def peek(self, indices: tuple[int, ...], key: Any) -> Any:
        """Components of an element, which stay; as :meth:`get`."""
        attempt = _Keyed(int(key), indices, finish=lambda found: _answer([f.copy() for f in found[1:]]), looks=True)
        return self._line_up(self._takes, attempt)

    def size(self) -> Any:
        """The number of elements, an int32."""
        return np.array(len(self._map), np.int32)

    def incomplete_size(self) -> Any:
        """The number of elements that lack components, an int32."""
        return np.array(len(self._incomplete), np.int32)

    def clear(self) -> None:
        """Drop all elements, complete or not."""
        with self._lock:
            self._map.clear()
            self._incomplete.clear()
            self._bytes = 0
            ended = self._go_on()
        for attempt in ended:
            attempt.deliver()

    def abandon(self) -> None:
        super().abandon()
        self.clear()

    # -- attempts ---------------------------------------------------------------------------------------------------------

    def _next_ended(self, line: deque[Attempt], advance: Callable[[Attempt], bool]) -> Attempt | None:
        for at, attempt in enumerate(line):
            if advance(attempt):
                del line[at]
                return attempt
        return None

    def _put(self, attempt: Any) -> bool:
        key, parts = attempt.key, attempt.parts
        size, whole = _bytes_of(parts), len(parts) == self.count
        if self._bytes + size > self._limit or whole and len(self._map) >= self._capacity:
            return False
        if not attempt.claim():
            return self._lost(attempt)
        if not whole:
            found = self._incomplete.setdefault(key, {})
            for index in attempt.indices:
                if index in found:
                    attempt.error = errors.InvalidArgumentError(
                        f"The tensor for index {index} for key {key} was already initialized in {self.name!r}"
                    )
                    return True
            found.update(parts)
            self._bytes += size
            if len(found) < self.count:
                return True
            parts, size = self._incomplete.pop(key), 0
        if key in self._map:
            self._bytes -= _bytes_of(parts) - size
            return True
        self._map[key] = parts
        self._bytes += size
        return True

    def _take(self, attempt: Any) -> bool:
        key = attempt.key
        if key is None and self._map:
            key = min(self._map) if self.ordered else next(iter(self._map))
        if key not in self._map:
            return False
        if not attempt.claim():
            return self._lost(attempt)
        found = self._map[key]
        for index in attempt.indices:
            if index not in found:
                attempt.error = errors.InvalidArgumentError(
                    f"The tensor at index {index} for key {key} has already been removed from {self.name!r}"
                )
                return True
        attempt.items.append(np.array(key, np.int64))
        attempt.items.extend(found[index] for index in attempt.indices)
        if not attempt.looks:
            self._bytes -= _bytes_of({index: found.pop(index) for index in attempt.indices})
            if not found:
                del self._map[key]
        return True

    def _describe(self) -> str:
        return f"a staging map with {len(self._map)} elements"


def _answer(components: Sequence[Any]) -> Any:
    return components[0] if len(components) == 1 else tuple(components)


def _bytes_of(parts: Parts) -> int:
    return sum(int(value.nbytes) for value in parts.values())


def _create(request: ResourceRequest) -> StagingMap:
    attrs = request.attrs
    count = len(attrs["component_types"])
    return StagingMap(request.name, count, attrs["shapes"], attrs["ordered"], attrs["capacity"], attrs["memory_limit"])


STAGING_MAP = ResourceKind("data.StagingMap", _create, lock="own", close=lambda area, request: area.abandon())
