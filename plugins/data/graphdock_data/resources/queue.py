"""Queues: elements of several components that steps hand to one another, in one order or another."""

from __future__ import annotations

import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from graphdock.contracts import ResourceKind, ResourceRequest, dtypes, errors

from graphdock_data.resources.exchange import Attempt
from graphdock_data.resources.tokens import TokenExchange

__all__ = ["QUEUE", "Queue", "Staging"]

Element: TypeAlias = tuple[Any, ...]
Dims: TypeAlias = "tuple[int | None, ...] | None"


class Queue(TokenExchange):
    """A queue, first in first out. Methods that may wait return the result, or the Future of it.

    Args:
      kind: its class, for messages. capacity: elements that it holds; below 0: any number.
      kinds: dtypes of the components. shapes: theirs; none where they are not known.
      pads: shapes may have unknown dims, which a batch fills up.
    """

    def __init__(
        self,
        name: str,
        kind: str,
        capacity: int,
        kinds: Sequence[dtypes.DType],
        shapes: Sequence[Dims],
        pads: bool = False,
    ) -> None:
        super().__init__(name)
        self.kind, self.kinds, self.pads = kind, tuple(kinds), pads
        self.capacity = capacity if capacity >= 0 else 1 << 62
        self.shapes: tuple[Dims, ...] | None = tuple(shapes) if shapes else None
        self.closed = False
        self._store: Any = deque()

    # -- the order of elements: a subclass has another one ----------------------------------------------------------------

    def _add(self, element: Element) -> None:
        if self._stays:
            self._keep(element)
        else:
            self._store.append(element)

    def _pop(self) -> Element:
        element: Element = self._store.popleft()
        return element

    def _restore(self, elements: Sequence[Element]) -> None:
        self._store.extendleft(reversed(elements))

    def _ready(self) -> bool:
        """Return whether an element can be taken."""
        return bool(self._store)

    def _has_room(self, element: Element) -> bool:
        """Return whether an element can be put in."""
        return len(self._store) < self.capacity

    # -- what steps call --------------------------------------------------------------------------------------------------

    def enqueue(self, *components: Any) -> Any:
        """Add an element; waits while the queue is full.

        Raises:
          CancelledError: it is closed, or is closed meanwhile with the pending ones. InvalidArgumentError: of other shapes.
        """
        self._check(components, 0)
        with self._lock:
            if not (self._puts or self._takes or self.closed or self._stays) and self._has_room(components):
                self._add(components)  # nobody waits: it is the whole of what lining up would do
                return None
        return self._line_up(self._puts, Attempt(deque([components])))

    def enqueue_many(self, *components: Any) -> Any:
        """Add the elements that lie along the first axis, one after another; as :meth:`enqueue`."""
        count = len(components[0]) if components[0].ndim else None
        for i, given in enumerate(components):
            if not given.ndim or len(given) != count:
                known = None if self.shapes is None else self.shapes[i]
                dims = given.shape[1:] if known is None else known
                raise self._misfit(i, ["?" if count is None else count, *dims], given.shape)
        self._check(components, 1)
        elements = deque(tuple(c[i, ...] for c in components) for i in range(count or 0))
        return self._line_up(self._puts, Attempt(elements)) if elements else None

    def dequeue(self) -> Any:
        """Take an element; waits while there is none.

        Raises:
          OutOfRangeError: it is closed and empty.
        """
        with self._lock:
            if not (self._puts or self._takes or self._stays) and self._ready():
                return _answer(self._pop())
        return self._line_up(self._takes, Attempt(deque(), 1, lambda found: _answer(found[0])))

    def dequeue_many(self, count: Any) -> Any:
        """Take ``count`` elements as a batch; waits until there are as many.

        Raises:
          OutOfRangeError: it is closed and has fewer. InvalidArgumentError: a count below 0, or shapes that are not known.
        """
        return self._dequeue_batch(int(count), False)

    def dequeue_up_to(self, count: Any) -> Any:
        """As :meth:`dequeue_many`, but that a closed queue gives what it has, if it has anything."""
        return self._dequeue_batch(int(count), True)

    def close(self, cancel_pending: bool) -> Any:
        """Let no more elements in; waits for the pending ones, or cancels them. Who takes gets what is left.

        Raises:
          CancelledError: it is closed already, unless the pending ones are to be cancelled.
        """
        if not cancel_pending:
            return self._line_up(self._puts, Attempt(deque(), -1))
        with self._lock:
            self.closed = True
            ended = self._end_all(
                (self._puts,),
                lambda: errors.CancelledError(f"Enqueue operation was cancelled: {self.name!r} is closed"),
            )
            ended += self._go_on()
        for attempt in ended:
            attempt.deliver()
        return None

    def size(self) -> int:
        """The number of elements."""
        with self._lock:
            return len(self._store)

    def abandon(self) -> None:
        self.closed = True
        super().abandon()
        with self._lock:
            self._store.clear()

    # -- attempts ---------------------------------------------------------------------------------------------------------

    def _put(self, attempt: Attempt) -> bool:
        if self.closed:
            if attempt.claim():
                what = (
                    f"Queue {self.name!r} is already closed."
                    if attempt.count
                    else f"{self.kind} {self.name!r} is closed."
                )
                attempt.error = errors.CancelledError(what)
                return True
            return self._lost(attempt)
        if attempt.count:  # it closes
            self.closed = True
            return True if attempt.claim() else self._lost(attempt)
        while attempt.items and self._has_room(attempt.items[0]):
            if len(attempt.items) == 1 and not attempt.claim():
                return self._lost(attempt)
            self._add(attempt.items.popleft())
            self._moves += 1
        return not attempt.items

    def _take(self, attempt: Attempt) -> bool:
        if self._stays and attempt.after is not None:
            return self._take_token(attempt)
        missing = attempt.count - len(attempt.items)
        while missing and self._ready():
            if missing == 1 and not attempt.claim():
                return self._lost(attempt)
            attempt.items.append(self._pop())
            self._moves += 1
            missing -= 1
        return not missing or self._take_end(attempt)

    def _take_token(self, attempt: Attempt) -> bool:
        if not self._has_token(attempt):
            return self._take_end(attempt)
        if not attempt.claim():
            return self._lost(attempt)
        attempt.items.append(self._store[-1])
        return True

    def _take_end(self, attempt: Attempt) -> bool:
        """End an attempt for which there is not enough, where no more will come."""
        if not self.closed or self._puts:
            return False
        if not attempt.claim():
            return self._lost(attempt)
        if not (attempt.fewer and attempt.items):
            self._give_back(attempt)
            attempt.error = errors.OutOfRangeError(
                f"{self.kind} {self.name!r} is closed and has insufficient elements "
                f"(requested {attempt.count}, current size {len(self._store)})"
            )
        return True

    def _withdraw(self, line: deque[Attempt], attempt: Attempt) -> None:
        if attempt.count >= 0:  # a close that nobody waits for any more closes when its turn comes
            super()._withdraw(line, attempt)

    def _give_back(self, attempt: Attempt) -> None:
        if attempt.finish is not None and attempt.items and not attempt.looks:
            self._restore(list(attempt.items))
            attempt.items.clear()

    def _describe(self) -> str:
        return f"{self.kind} with {len(self._store)} elements"

    # -- components -------------------------------------------------------------------------------------------------------

    def _check(self, components: Sequence[Any], batch: int) -> None:
        if self.shapes is None:
            return
        for i, (given, dims) in enumerate(zip(components, self.shapes, strict=True)):
            found = given.shape[batch:]
            if dims is None or found == dims:
                continue
            if len(found) != len(dims) or any(d is not None and d != f for d, f in zip(dims, found, strict=True)):
                raise self._misfit(i, [*given.shape[:batch], *dims], given.shape)

    def _misfit(self, component: int, wanted: Sequence[Any], got: Sequence[int]) -> errors.InvalidArgumentError:
        said = ",".join(["?" if d is None else str(d) for d in wanted])
        return errors.InvalidArgumentError(
            f"{self.kind} {self.name!r}: Shape mismatch in tuple component {component}. "
            f"Expected [{said}], got [{','.join(map(str, got))}]"
        )

    def _dequeue_batch(self, count: int, fewer: bool) -> Any:
        if count < 0:
            raise errors.InvalidArgumentError(
                f"{self.kind} {self.name!r}: can't dequeue a negative number of elements", got=str(count)
            )
        if self.shapes is None or any(dims is None or (None in dims and not self.pads) for dims in self.shapes):
            raise errors.InvalidArgumentError(
                f"{self.kind}'s DequeueMany and DequeueUpTo require the components to have specified shapes.",
                hint="tf.FIFOQueue(capacity, dtypes, shapes=...)",
            )
        if not count:
            return self._batch([])
        return self._line_up(self._takes, Attempt(deque(), count, self._batch, fewer))

    def _batch(self, elements: list[Element]) -> Any:
        stacks: list[Any] = []
        assert self.shapes is not None
        for i, (kind, dims) in enumerate(zip(self.kinds, self.shapes, strict=True)):
            parts = [element[i] for element in elements]
            stacks.append(_stacked(parts, kind, dims or ()))
        return _answer(stacks)


def _answer(components: Sequence[Any]) -> Any:
    return components[0] if len(components) == 1 else tuple(components)


def _stacked(parts: list[Any], kind: dtypes.DType, dims: tuple[int | None, ...]) -> Any:
    """Parts as a batch, each filled up behind its end to the largest."""
    whole: Any
    if None not in dims:
        shape: Any = (len(parts), *dims)
        whole = np.empty(shape, kind.np)
        for i, part in enumerate(parts):
            whole[i, ...] = part
        return whole
    largest = [max((p.shape[axis] for p in parts), default=0) if d is None else d for axis, d in enumerate(dims)]
    whole = np.full((len(parts), *largest), b"" if kind.name == "string" else 0, kind.np)
    for i, part in enumerate(parts):
        whole[(i, *map(slice, part.shape), ...)] = part
    return whole


class _Shuffled(Queue):
    """A queue that gives a random one of its elements, as long as more than ``least`` stay, or it is closed."""

    def __init__(self, *args: Any, least: int, seeds: tuple[int, int], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._store = []
        self._least = least
        self._random = random.Random(None if seeds == (0, 0) else f"{seeds[0]},{seeds[1]}")

    def _ready(self) -> bool:
        return len(self._store) > (0 if self.closed else self._least)

    def _pop(self) -> Element:
        at = self._random.randrange(len(self._store))
        self._store[at], self._store[-1] = self._store[-1], self._store[at]
        element: Element = self._store.pop()
        return element

    def _restore(self, elements: Sequence[Element]) -> None:
        self._store.extend(elements)


class _Sorted(Queue):
    """A queue that gives the element with the lowest first component; of equal ones the one that came first.

    Several are taken at once, when there are as many, so that they are the lowest of all, in order.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._store = []
        self._numbers, self._ahead = itertools.count(), itertools.count(-1, -1)

    def _add(self, element: Element) -> None:
        heapq.heappush(self._store, (int(element[0]), next(self._numbers), element))

    def _pop(self) -> Element:
        element: Element = heapq.heappop(self._store)[2]
        return element

    def _take(self, attempt: Attempt) -> bool:
        if not self.closed and len(self._store) < attempt.count - len(attempt.items) <= self.capacity:
            return False
        return super()._take(attempt)

    def _restore(self, elements: Sequence[Element]) -> None:
        # before all that have the same priority: they were ahead of these
        for element in reversed(elements):
            heapq.heappush(self._store, (int(element[0]), next(self._ahead), element))


class Staging(Queue):
    """A queue that is bounded by bytes too, and can be looked into and emptied."""

    def __init__(self, *args: Any, memory_limit: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._limit = memory_limit or 1 << 62
        self._bytes = 0

    def _check(self, components: Sequence[Any], batch: int) -> None:
        super()._check(components, batch)
        if (size := _bytes_of(components)) > self._limit:
            raise errors.ResourceExhaustedError(
                f"{self.kind} {self.name!r}: an element is larger than the memory limit",
                expected=f"{self._limit} bytes",
                got=f"{size} bytes",
            )

    def _add(self, element: Element) -> None:
        super()._add(element)
        self._bytes += _bytes_of(element)

    def _pop(self) -> Element:
        element = super()._pop()
        self._bytes -= _bytes_of(element)
        return element

    def _restore(self, elements: Sequence[Element]) -> None:
        super()._restore(elements)
        self._bytes += sum(map(_bytes_of, elements))

    def _has_room(self, element: Element) -> bool:
        return super()._has_room(element) and self._bytes + _bytes_of(element) <= self._limit

    def peek(self, index: Any) -> Any:
        """The element at a place, which stays; waits until there are as many."""
        attempt = Attempt(deque(), int(index) + 1, lambda found: _answer(found[0]), looks=True)
        if attempt.count < 1:
            raise errors.InvalidArgumentError(f"{self.kind} {self.name!r}: no such place", got=str(int(index)))
        return self._line_up(self._takes, attempt)

    def _take(self, attempt: Attempt) -> bool:
        if not attempt.looks:
            return super()._take(attempt)
        if len(self._store) < attempt.count:
            return False
        if not attempt.claim():
            return self._lost(attempt)
        attempt.items.append(tuple(c.copy() for c in self._store[attempt.count - 1]))
        return True

    def clear(self) -> None:
        """Drop all elements."""
        with self._lock:
            self._store.clear()
            self._bytes = 0
            ended = self._go_on()
        for attempt in ended:
            attempt.deliver()


def _bytes_of(element: Sequence[Any]) -> int:
    return sum(int(component.nbytes) for component in element)


def _create(request: ResourceRequest) -> Queue:
    attrs = request.attrs
    kinds, shapes, capacity = attrs["component_types"], attrs["shapes"], attrs["capacity"]
    make = _MAKERS[attrs["order"]]
    return make(request.name, capacity, kinds, shapes, attrs)


def _fifo(name: str, capacity: int, kinds: Any, shapes: Any, attrs: Any) -> Queue:
    return Queue(name, "FIFOQueue", capacity, kinds, shapes)


def _padding(name: str, capacity: int, kinds: Any, shapes: Any, attrs: Any) -> Queue:
    return Queue(name, "PaddingFIFOQueue", capacity, kinds, shapes, pads=True)


def _shuffled(name: str, capacity: int, kinds: Any, shapes: Any, attrs: Any) -> Queue:
    seeds = (attrs["seed"], attrs["seed2"])
    least = attrs["min_after_dequeue"]
    if 0 <= capacity <= least:
        raise errors.InvalidArgumentError(
            f"the queue {name!r} could never give an element: min_after_dequeue {least} must be < capacity {capacity}"
        )
    return _Shuffled(name, "RandomShuffleQueue", capacity, kinds, shapes, least=least, seeds=seeds)


def _sorted(name: str, capacity: int, kinds: Any, shapes: Any, attrs: Any) -> Queue:
    return _Sorted(name, "PriorityQueue", capacity, (dtypes.int64, *kinds), ((), *shapes) if shapes else ())


def _staging(name: str, capacity: int, kinds: Any, shapes: Any, attrs: Any) -> Queue:
    return Staging(name, "StagingArea", capacity or -1, kinds, shapes, memory_limit=attrs["memory_limit"])


_MAKERS: dict[str, Callable[..., Queue]] = {
    "fifo": _fifo,
    "padding": _padding,
    "shuffled": _shuffled,
    "sorted": _sorted,
    "staging": _staging,
}

QUEUE = ResourceKind("data.Queue", _create, lock="own", close=lambda queue, request: queue.abandon())
