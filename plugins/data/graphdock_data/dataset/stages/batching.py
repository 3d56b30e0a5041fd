"""Stages that make batches of elements, and take them apart."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from graphdock.contracts import errors

from graphdock_data.dataset.stages.stage import Dims, Element, Run, Stage, Value

__all__ = ["Batch", "PaddedBatch", "Steps", "Unbatch", "batched"]


class Steps(Iterator[Element]):
    """An iterator whose elements a function makes, which goes on after an error, unlike a generator; StopIteration ends it."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[], Element]) -> None:
        self._make = make

    def __next__(self) -> Element:
        return self._make()


def batched(rows: Sequence[Element], kinds: Sequence[Any]) -> Element:
    """Elements as one, along a new first axis.

    Raises:
      InvalidArgumentError: they are of several shapes.
    """
    return tuple(
        [_stacked(parts, kind, i) for i, (parts, kind) in enumerate(zip(zip(*rows, strict=True), kinds, strict=True))]
    )


def _stacked(parts: tuple[Any, ...], kind: Any, which: int) -> Any:
    shape = parts[0].shape
    if kind.kind == "S":
        whole = np.empty((len(parts), *shape), object)
        for i, part in enumerate(parts):
            if part.shape != shape:
                raise _misfit(parts, which)
            whole[i, ...] = part
        return whole
    try:
        return np.array(parts, kind.np)
    except ValueError:
        raise _misfit(parts, which) from None


def _misfit(parts: tuple[Any, ...], which: int) -> errors.InvalidArgumentError:
    first = parts[0].shape
    at = next(i for i, part in enumerate(parts) if part.shape != first)
    return errors.InvalidArgumentError(
        f"Cannot batch tensors with different shapes in component {which}. "
        f"First element had shape {list(first)} and element {at} had shape {list(parts[at].shape)}.",
        hint="padded_batch fills elements up to one shape",
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Batch(Stage):
    """Elements in batches, the last of which may be smaller."""

    title = "BatchDataset"
    fresh = True
    source: Stage
    size: Value
    drop: Value

    def check(self, run: Run) -> None:
        if run.number(self.size) <= 0:
            raise self.refusal("Batch size must be greater than zero.", got=str(run.number(self.size)))

    def iterate(self, run: Run) -> Iterator[Element]:
        size, kinds, source = run.number(self.size), self.types, self.source.iterate(run)
        least = size if run.array(self.drop) else 1

        def step() -> Element:
            rows = list(itertools.islice(source, size))
            if len(rows) < least:
                raise StopIteration
            with self.blame():
                return self._made(run, rows, kinds)

        return Steps(step)

    def _made(self, run: Run, rows: list[Element], kinds: Sequence[Any]) -> Element:
        return batched(rows, kinds)


@dataclass(frozen=True, eq=False, kw_only=True)
class PaddedBatch(Batch):
    """Elements in batches, each filled up behind its end.

    Attributes:
      padded: one per component: a vector of the batch's dims, below 0 for that of its largest element.
      filling: one per component: what it is filled up with.
    """

    title = "PaddedBatchDataset"
    padded: tuple[Value, ...]
    filling: tuple[Value, ...]

    def _made(self, run: Run, rows: list[Element], kinds: Sequence[Any]) -> Element:
        columns = zip(zip(*rows, strict=True), self.padded, self.filling, kinds, strict=True)
        return tuple(
            [
                _filled(parts, run.array(dims).tolist(), run.array(filling), kind, i)
                for i, (parts, dims, filling, kind) in enumerate(columns)
            ]
        )


def _filled(parts: tuple[Any, ...], dims: list[int], filling: Any, kind: Any, which: int) -> Any:
    for part in parts:
        if part.ndim != len(dims):
            raise errors.InvalidArgumentError(
                "All elements in a batch must have the same rank as the padded shape for component"
                f"{which}: expected rank {len(dims)} but got element with rank {part.ndim}"
            )
    largest = [max(part.shape[axis] for part in parts) for axis in range(len(dims))]
    whole_dims = [found if asked < 0 else asked for asked, found in zip(dims, largest, strict=True)]
    if any(found > whole for found, whole in zip(largest, whole_dims, strict=True)):
        raise errors.DataLossError(
            f"Attempted to pad to a smaller size than the input element, in component {which}",
            expected=f"at most {whole_dims}",
            got=str(largest),
        )
    whole = np.empty((len(parts), *whole_dims), kind.np)
    whole[...] = filling[()]
    for i, part in enumerate(parts):
        whole[(i, *map(slice, part.shape), ...)] = part
    return whole


@dataclass(frozen=True, eq=False, kw_only=True)
class Unbatch(Stage):
    """The elements of batches."""

    title = "UnbatchDataset"
    source: Stage

    def iterate(self, run: Run) -> Iterator[Element]:
        with self.blame():
            for batch in self.source.iterate(run):
                lengths = {part.shape[:1] for part in batch}
                if len(lengths) != 1 or lengths == {()}:
                    raise errors.InvalidArgumentError(
                        "the components of an element have several first dims", got=str([part.shape for part in batch])
                    )
                for i in range(lengths.pop()[0]):
                    yield tuple([part[i, ...] for part in batch])


def batched_shapes(shapes: Sequence[Dims], size: int | None) -> tuple[Dims, ...]:
    """The shapes of batches of so many elements."""
    return tuple([None if dims is None else (size, *dims) for dims in shapes])
