"""Accumulators: gradients of workers, summed until enough have come, those of an older step left out."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from graphdock.contracts import ResourceKind, ResourceRequest, dtypes, errors

from graphdock_data.resources.dropped import DROPPED
from graphdock_data.resources.exchange import Attempt, Exchange

__all__ = ["ACCUMULATOR", "Accumulator", "SparseAccumulator"]


class Accumulator(Exchange):
    """The sum of gradients that are not older than the global step, and how many they are.

    Args:
      kind: dtype of the gradients. shape: theirs; None where it is not known. mean: what is taken is divided by their number.

    Attributes:
      dropped: how many gradients came too late.
    """

    def __init__(self, name: str, kind: dtypes.DType, shape: tuple[int | None, ...] | None, mean: bool) -> None:
        super().__init__(name)
        self.kind, self.shape, self.mean = kind, shape, mean
        self.count = 0
        self.step = 0
        self.dropped = 0
        self._sum: Any = None
        #: Gradients that wait to be added in their order: the replica of each, and itself.
        self._waiting: list[tuple[int, Any]] = []
        #: Shape of the gradients, or of the rows, that have come since the last were taken.
        self._like: tuple[int, ...] | None = None
        self._was_reset = self._is_exact = self._once = False
        #: Replica -> the steps of its gradients that have come since the last were taken.
        self._steps: dict[int, list[int]] = {}

    def apply(self, step: Any, *gradient: Any, replica: int = -1, in_order: bool = False) -> None:
        """Add a gradient of a step; one of a step before the global one counts for nothing, which is logged now and then. So does,
        after a reset that says so, a second one of a replica.

        Args:
          replica: number of the replica that it is of. in_order: keep it, and add it in the order of replicas once it is taken
            (those of one replica in the order of their bytes), so that the sum is the same in whatever order they came.

        Raises:
          InvalidArgumentError: it is of another shape.
        """
        checked = self._checked(*gradient)
        with self._lock:
            given, now = int(step), self.step
            is_dropped = given < now or self._is_exact and given != now
            is_dropped = is_dropped or self._once and (given > now or replica in self._steps)
            if is_dropped:
                self.dropped += 1
                ended: list[Attempt] = []
            else:
                self._like = self._shape_of(checked)
                if in_order:
                    self._waiting.append((replica, _copied(checked)))
                else:
                    self._add(checked)
                self.count += 1
                if replica >= 0:
                    self._steps.setdefault(replica, []).append(given)
                ended = self._go_on()
        if is_dropped:
            DROPPED.note(self.name, given, now)
        for attempt in ended:
            attempt.deliver()

    def take(self, required: Any) -> Any:
        """What has come, once there are ``required`` gradients: their mean or sum. The next begin at 0, and at the next step.

        Raises:
          InvalidArgumentError: ``required`` is not above 0.
        """
        if int(required) <= 0:
            raise errors.InvalidArgumentError(f"Argument num_required must be positive, but was {int(required)}")
        return self._line_up(self._takes, Attempt(deque(), int(required), lambda found: found[0]))

    def number(self) -> Any:
        """How many gradients have come, an int32."""
        return np.array(self.count, np.int32)

    def set_step(self, step: Any) -> None:
        """The global step, which never goes back."""
        with self._lock:
            self.step = max(self.step, int(step))

    def reset(self, step: Any, once: bool = False) -> Any:
        """Begin anew at a step, which may be an earlier one. Takes that wait end with a CancelledError.

        What has come is dropped, but at the first reset to a later step. After one to an earlier step, gradients of other steps
        count for nothing until some were taken: they are of a training that went on from there before.

        Args:
          once: from now on a replica's gradient counts once until some are taken, and one of a later step not at all.

        Returns:
          Whether gradients may be lost by it for which their replicas wait, a bool: it was reset before, or has dropped some.
        """
        with self._lock:
            self._once = self._once or once
            earlier = int(step) < self.step
            had_begun = self._was_reset
            if earlier or had_begun or (once and any(found != [int(step)] for found in self._steps.values())):
                had_begun = had_begun or self.count > 0
                self._clear()
            self.step, self._was_reset, self._is_exact = int(step), True, earlier
            ended = self._end_all(
                (self._takes,), lambda: errors.CancelledError(f"the accumulator {self.name!r} was reset to step {step}")
            )
        for attempt in ended:
            attempt.deliver()
        return np.array(had_begun)

    def _clear(self) -> None:
        self._sum, self.count, self._waiting, self._like = None, 0, [], None
        self._steps.clear()

    def _take(self, attempt: Attempt) -> bool:
        if self.count < attempt.count:
            return False
        if not attempt.claim():
            return self._lost(attempt)
        for gradient in _in_order(self._waiting):
            self._add(gradient)
        attempt.items.append(self._result())
        self._clear()
        self._is_exact = False
        self.step += 1
        return True

    def _describe(self) -> str:
        return f"an accumulator of {self.count} gradients"

    def _checked(self, *gradient: Any) -> Any:
        (array,) = gradient
        for dims in (self.shape, self._like):
            if dims is not None and not _fits(array.shape, dims):
                raise self._mismatch(f"expected {_text(dims)}, got {_text(array.shape)}")
        return array

    def _shape_of(self, gradient: Any) -> tuple[int, ...]:
        shape: tuple[int, ...] = gradient.shape
        return shape

    def _mismatch(self, what: str) -> errors.InvalidArgumentError:
        return errors.InvalidArgumentError(
            f"Shape mismatch: {what}", hint=f"a gradient of the accumulator {self.name!r}"
        )

    def _add(self, gradient: Any) -> None:
        self._sum = gradient.copy() if self._sum is None else self._sum + gradient

    def _result(self) -> Any:
        if not self.mean:
            return self._sum
        return np.asarray(self._sum / np.asarray(self.count, self._sum.dtype), self._sum.dtype)


class SparseAccumulator(Accumulator):
    """The sums of gradients row by row; of a mean each row is divided by the number of gradients that had it.

    Its shape may leave out trailing dimensions: those of the first gradient since the last take hold then.
    """

    def _checked(self, *gradient: Any) -> Any:
        indices, values, shape = gradient
        if indices.ndim != 1:
            raise errors.InvalidArgumentError(
                f"Input indices should be vector but received shape: {_text(indices.shape)}"
            )
        if not values.ndim:
            raise errors.InvalidArgumentError(
                f"Values cannot be 0-dimensional. Those of a gradient of {self.name!r} are rows"
            )
        if len(indices) != len(values):
            raise errors.InvalidArgumentError(f"Expected {len(indices)} non-empty input values, got {len(values)}")
        dims, given, like = self.shape or (), tuple(shape.tolist()), self._like
        if given:
            self._compare("shape", given, dims, True)
        if len(indices) and indices.min() < 0:
            raise errors.InvalidArgumentError(f"an index of a gradient of {self.name!r} is below 0", got=str(indices))
        for limit in (dims[:1], given[:1]):
            if limit and limit[0] is not None and len(indices) and indices.max() >= limit[0]:
                place = int(np.argmax(indices >= limit[0]))
                raise self._mismatch(
                    f"index of slice {place} exceeded limits of shape; index is {indices[place]} exceeded {limit[0]}"
                )
        rows = (None, *values.shape[1:])
        self._compare("values", rows, dims if like is None else (None, *like), like is None)
        if given:
            self._compare("values", rows, (None, *given[1:]), False)
        return gradient

    def _compare(self, what: str, given: Sequence[int | None], dims: Sequence[int | None], begins: bool) -> None:
        """Compare dims of a gradient; ``begins``: it may have more of them."""
        if len(given) < len(dims) or not begins and len(given) > len(dims):
            least = "at least " if begins else ""
            raise self._mismatch(f"expected {what} rank {least}{len(dims)}, got {len(given)}")
        for i, (one, wanted) in enumerate(zip(given, dims, strict=False)):
            if None not in (one, wanted) and one != wanted:
                raise self._mismatch(f"expected {what} dim {i} to be {wanted}, got {one}")

    def _shape_of(self, gradient: Any) -> tuple[int, ...]:
        rest: tuple[int, ...] = gradient[1].shape[1:]
        return rest

    def _add(self, gradient: Any) -> None:
        indices, values, _ = gradient
        rows = {} if self._sum is None else self._sum
        for index in np.unique(indices).tolist():
            mine = values[indices == index].sum(0, dtype=values.dtype)
            before = rows.get(index)
            rows[index] = (mine, 1) if before is None else (before[0] + mine, before[1] + 1)
        self._sum = rows
        self._rest = values.shape[1:]

    def _result(self) -> Any:
        places = sorted(self._sum)
        values = np.empty((len(places), *self._rest), self.kind.np)
        for i, place in enumerate(places):
            total, count = self._sum[place]
            values[i] = total / count if self.mean else total
        first = self.shape[0] if self.shape else None
        whole = [-1 if first is None else first, *self._rest]
        return np.array(places, np.int64), values, np.array(whole, np.int64)


def _fits(given: Sequence[int], dims: Sequence[int | None]) -> bool:
    return len(given) == len(dims) and all(d is None or d == g for d, g in zip(dims, given, strict=True))


def _text(dims: Sequence[int | None]) -> str:
    return f"[{','.join('?' if d is None else str(d) for d in dims)}]"


def _in_order(waiting: list[tuple[int, Any]]) -> list[Any]:
    """Gradients in the order of replicas; of those of one replica, in the order of their bytes."""
    if len({replica for replica, _ in waiting}) == len(waiting):
        return [gradient for _, gradient in sorted(waiting, key=itemgetter(0))]
    return [gradient for _, gradient in sorted(waiting, key=lambda kept: (kept[0], _bytes(kept[1])))]


def _bytes(gradient: Any) -> tuple[bytes, ...]:
    parts = gradient if isinstance(gradient, tuple) else (gradient,)
    return tuple(part.tobytes() for part in parts)


def _copied(gradient: Any) -> Any:
    return tuple(part.copy() for part in gradient) if isinstance(gradient, tuple) else gradient.copy()


def _create(request: ResourceRequest) -> Accumulator:
    attrs = request.attrs
    make = SparseAccumulator if attrs["sparse"] else Accumulator
    shape = attrs["shape"]
    mean = attrs["reduction_type"] == "MEAN"
    return make(request.name, attrs["dtype"], None if shape is None else tuple(shape), mean)


ACCUMULATOR = ResourceKind("data.Accumulator", _create, lock="own", close=lambda found, request: found.abandon())
