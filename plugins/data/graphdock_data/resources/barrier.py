"""Barriers: elements whose components come one by one, by key, and are taken once they are complete."""

from __future__ import annotations

import bisect
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from graphdock.contracts import ResourceKind, ResourceRequest, dtypes, errors

from graphdock_data.resources.exchange import Attempt, Exchange
from graphdock_data.resources.files import texts

__all__ = ["BARRIER", "Barrier"]

#: Number of the first key, as TensorFlow counts.
_FIRST = -(1 << 63)


class Barrier(Exchange):
    """Elements by key. One is complete once each of its components was inserted; they are taken in the order in which keys came,
    with the number of the insert that brought the key.

    Args:
      kinds, shapes: of the components.
    """

    def __init__(self, name: str, kinds: Sequence[dtypes.DType], shapes: Sequence[Any]) -> None:
        super().__init__(name)
        self.kinds, self.shapes = tuple(kinds), tuple(shapes)
        self.closed = self.cancelled = False
        #: The number of a key's insert and of the key itself, and its components.
        self._incomplete: dict[bytes, tuple[tuple[int, int], list[Any]]] = {}
        self._ready: list[tuple[tuple[int, int], bytes, list[Any]]] = []
        self._next, self._keys = _FIRST, 0

    def insert(self, component: int, keys: Any, values: Any) -> None:
        """One component of several keys.

        Raises:
          InvalidArgumentError: a key has that component already; or there is no such component, or values of another shape.
          CancelledError: it is closed, and a key is new, or the pending ones were cancelled.
        """
        if not 0 <= component < len(self.kinds):
            raise errors.InvalidArgumentError(
                f"the barrier {self.name!r} has no such component",
                expected=f"below {len(self.kinds)}",
                got=str(component),
            )
        dims = self.shapes[component] if self.shapes else None
        if values.shape[:1] != keys.shape or dims is not None and values.shape[1:] != tuple(dims):
            wanted = [*keys.shape, *(values.shape[1:] if dims is None else dims)]
            raise errors.InvalidArgumentError(
                f"Barrier {self.name!r}: Shape mismatch in tuple component {component}. "
                f"Expected [{','.join(map(str, wanted))}], got [{','.join(map(str, values.shape))}]"
            )
        if keys.size and not values.size:
            raise errors.InvalidArgumentError(
                f"Tensors with no elements are not supported: component {component} of the barrier {self.name!r}",
                got=f"shape {list(values.shape)}",
            )
        with self._lock:
            rows = keys.tolist()
            if self.cancelled or self.closed and any(key not in self._incomplete for key in rows):
                raise errors.CancelledError(f"Barrier {self.name!r} is closed, and takes no new keys")
            is_new = [self._insert(component, key, value) for key, value in zip(rows, values, strict=True)]
            self._next += any(is_new)
            ended = self._go_on()
        for attempt in ended:
            attempt.deliver()

    def _insert(self, component: int, key: bytes, value: Any) -> bool:
        """Return whether the key is new; all new ones of an insert have one number."""
        is_new = key not in self._incomplete
        self._keys += is_new
        number, parts = self._incomplete.setdefault(key, ((self._next, self._keys), [None] * len(self.kinds)))
        if parts[component] is not None:
            raise errors.InvalidArgumentError(
                f"Key {key!r} already has a value for component {component} in barrier {self.name!r}"
            )
        parts[component] = value
        if all(part is not None for part in parts):
            del self._incomplete[key]
            bisect.insort(self._ready, (number, key, parts), key=lambda element: element[0])
        return is_new

    def take(self, count: Any, fewer: bool) -> Any:
        """``count`` complete elements: their numbers, keys, and each component; waits until there are as many.

        Args:
          fewer: once it is closed, take what is complete.

        Raises:
          OutOfRangeError: it is closed, and no more will be complete.
        """
        if int(count) < 0:
            raise errors.InvalidArgumentError("can't take a negative number of elements", got=str(int(count)))
        return self._line_up(self._takes, Attempt(deque(), int(count), self._batch, fewer))

    def close(self, cancel_pending: bool) -> None:
        """Take no new keys; with ``cancel_pending`` no components either.

        Raises:
          CancelledError: it is closed already.
        """
        with self._lock:
            if self.cancelled or self.closed and not cancel_pending:
                raise errors.CancelledError(f"Barrier {self.name!r} is already closed.")
            self.closed, self.cancelled = True, cancel_pending
            ended = self._go_on()
        for attempt in ended:
            attempt.deliver()

    def ready(self) -> Any:
        """How many elements are complete, an int32."""
        return np.array(len(self._ready), np.int32)

    def incomplete(self) -> Any:
        """How many elements lack a component, an int32."""
        return np.array(len(self._incomplete), np.int32)

    def _take(self, attempt: Attempt) -> bool:
        there = len(self._ready)
        over = self.closed and (self.cancelled or not self._incomplete or attempt.fewer and there > 0)
        if there < attempt.count and not over:
            return False
        if not attempt.claim():
            return self._lost(attempt)
        if there < attempt.count and not (attempt.fewer and there):
            attempt.error = errors.OutOfRangeError(
                f"Barrier {self.name!r} is closed and has insufficient elements "
                f"(requested {attempt.count}, total size {there})"
            )
            return True
        attempt.items.extend(self._ready[: attempt.count])
        del self._ready[: attempt.count]
        return True

    def _describe(self) -> str:
        return f"a barrier with {len(self._ready)} complete elements"

    def _batch(self, elements: list[Any]) -> Any:
        columns: list[Any] = []
        for i, kind in enumerate(self.kinds):
            parts = [parts[i] for _, _, parts in elements]
            dims = parts[0].shape if parts else tuple(self.shapes[i]) if self.shapes else ()
            column: Any = np.empty((len(parts), *dims), kind.np)
            for row, part in enumerate(parts):
                column[row, ...] = part
            columns.append(column)
        numbers = np.array([number for (number, _), _, _ in elements], np.int64)
        return numbers, texts([key for _, key, _ in elements]), *columns


def _create(request: ResourceRequest) -> Barrier:
    return Barrier(request.name, request.attrs["component_types"], request.attrs["shapes"])


BARRIER = ResourceKind("data.Barrier", _create, lock="own", close=lambda barrier, request: barrier.abandon())
