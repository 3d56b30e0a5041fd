"""Accumulators: gradients of workers, summed until enough have come, those of an older step left out."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from graphdock.contracts import ResourceKind, ResourceRequest, dtypes, errors

from graphdock_data.resources.exchange import Attempt, Exchange

__all__ = ["ACCUMULATOR", "Accumulator", "SparseAccumulator"]


class Accumulator(Exchange):
    """The sum of gradients that are not older than the global step, and how many they are.

    Args:
      kind: dtype of the gradients. shape: theirs; None where it is not known. mean: what is taken is divided by their number.
    """

    def __init__(self, name: str, kind: dtypes.DType, shape: tuple[int | None, ...] | None, mean: bool) -> None:
        super().__init__(name)
        self.kind, self.shape, self.mean = kind, shape, mean
        self.count = 0
        self.step = 0
        self._sum: Any = None

    def apply(self, step: Any, *gradient: Any) -> None:
        """Add a gradient of a step; one of a step before the global one counts for nothing.

        Raises:
          InvalidArgumentError: it is of another shape.
        """
        checked = self._checked(*gradient)
        with self._lock:
            if int(step) < self.step:
                return
            self._add(checked)
            self.count += 1
            ended = self._go_on()
        for attempt in ended:
            attempt.deliver()

    def take(self, required: Any) -> Any:
        """What has come, once there are ``required`` gradients: their mean or sum. The next begin at 0, and at the next step.

        Raises:
          InvalidArgumentError: ``required`` is not above 0.
        """
        if int(required) <= 0:
            raise errors.InvalidArgumentError("Argument num_required must be positive", got=str(int(required)))
        return self._line_up(self._takes, Attempt(deque(), int(required), lambda found: found[0]))

    def number(self) -> Any:
        """How many gradients have come, an int32."""
        return np.array(self.count, np.int32)

    def set_step(self, step: Any) -> None:
        """The global step, which never goes back."""
        with self._lock:
            self.step = max(self.step, int(step))

    def _take(self, attempt: Attempt) -> bool:
        if self.count < attempt.count:
            return False
        if not attempt.claim():
            return self._lost(attempt)
        attempt.items.append(self._result())
        self._sum, self.count = None, 0
        self.step += 1
        return True

    def _describe(self) -> str:
        return f"an accumulator of {self.count} gradients"

    def _checked(self, *gradient: Any) -> Any:
        (array,) = gradient
        self._fits(array.shape, self.shape)
        with self._lock:
            if self._sum is not None and self._sum.shape != array.shape:
                raise self._misfit(self._sum.shape, array.shape)
        return array

    def _fits(self, given: tuple[int, ...], dims: tuple[int | None, ...] | None) -> None:
        if dims is not None and (
            len(given) != len(dims) or any(d is not None and d != g for d, g in zip(dims, given, strict=True))
        ):
            raise self._misfit(dims, given)

    def _misfit(self, expected: Any, got: Any) -> errors.InvalidArgumentError:
        return errors.InvalidArgumentError(
            f"Shape mismatch: the accumulator {self.name!r} has gradients of another shape",
            expected=str(list(expected)),
            got=str(list(got)),
        )

    def _add(self, gradient: Any) -> None:
        self._sum = gradient.copy() if self._sum is None else self._sum + gradient

    def _result(self) -> Any:
        if not self.mean:
            return self._sum
        return np.asarray(self._sum / np.asarray(self.count, self._sum.dtype), self._sum.dtype)


class SparseAccumulator(Accumulator):
    """The sums of gradients row by row; of a mean each row is divided by the number of gradients that had it."""

    def _checked(self, *gradient: Any) -> Any:
        indices, values, shape = gradient
        if len(indices) != len(values):
            raise errors.InvalidArgumentError(f"{len(indices)} indices for {len(values)} rows of {self.name!r}")
        if len(shape):
            self._fits(tuple(shape.tolist()), self.shape)
            self._fits(values.shape[1:], tuple(shape.tolist())[1:])
            limit: int | None = int(shape[0])
        else:
            limit = None
            if self.shape is not None:
                self._fits(values.shape[1:], self.shape[1:])
                limit = self.shape[0]
        if len(indices) and (indices.min() < 0 or limit is not None and indices.max() >= limit):
            raise errors.InvalidArgumentError(
                f"an index of a gradient of {self.name!r} is out of range", expected=f"0 to {limit}", got=str(indices)
            )
        with self._lock:
            rows = next(iter(self._sum.values()))[0].shape if self._sum else values.shape[1:]
        if rows != values.shape[1:]:
            raise self._misfit(rows, values.shape[1:])
        return gradient

    def _add(self, gradient: Any) -> None:
        indices, values, shape = gradient
        rows = {} if self._sum is None else self._sum
        for index in np.unique(indices).tolist():
            mine = values[indices == index].sum(0, dtype=values.dtype)
            before = rows.get(index)
            rows[index] = (mine, 1) if before is None else (before[0] + mine, before[1] + 1)
        self._sum = rows
        self._rest = values.shape[1:]
        self._shape = shape

    def _result(self) -> Any:
        places = sorted(self._sum)
        values = np.empty((len(places), *self._rest), self.kind.np)
        for i, place in enumerate(places):
            total, count = self._sum[place]
            values[i] = total / count if self.mean else total
        known = self.shape
        whole = self._shape if len(self._shape) else [-1 if d is None else d for d in known or (-1, *self._rest)]
        return np.array(places, np.int64), values, np.array(whole, np.int64)


def _create(request: ResourceRequest) -> Accumulator:
    attrs = request.attrs
    make = SparseAccumulator if attrs["sparse"] else Accumulator
    shape = attrs["shape"]
    mean = attrs["reduction_type"] == "MEAN"
    return make(request.name, attrs["dtype"], None if shape is None else tuple(shape), mean)


ACCUMULATOR = ResourceKind("data.Accumulator", _create, lock="own", close=lambda found, request: found.abandon())
