"""Stages that make batches of elements, and take them apart."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from graphdock.contracts import errors

from graphdock_data.dataset.stages.sparse import cut, stacked
from graphdock_data.dataset.stages.stage import Element, Function, Resumed, Run, Stage, Steps, Value, fill

__all__ = [
    "Batch",
    "MappedBatch",
    "PaddedBatch",
    "SparseBatch",
    "Unbatch",
    "batched",
    "length_of",
    "parts_of",
    "rows_of",
]


def batched(rows: Sequence[Element], kinds: Sequence[Any], sparse: Sequence[int] = ()) -> Element:
    """Elements as one, along a new first axis.

    Args:
      sparse: where the components of SparseTensors begin.

    Raises:
      InvalidArgumentError: they are of several shapes.
    """
    if sparse:
        return _mixed(rows, kinds, sparse)
    return tuple(
        [_stacked(parts, kind, i) for i, (parts, kind) in enumerate(zip(zip(*rows, strict=True), kinds, strict=True))]
    )


def _mixed(rows: Sequence[Element], kinds: Sequence[Any], sparse: Sequence[int]) -> Element:
    made: list[Any] = []
    while (at := len(made)) < len(kinds):
        if at in sparse:
            made += stacked(rows, at)
        else:
            made.append(_stacked(tuple([row[at] for row in rows]), kinds[at], at))
    return tuple(made)


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
    """Elements in batches, the last of which may be smaller.

    Attributes:
      sparse: where the components of SparseTensors begin.
    """

    title = "BatchDataset"
    fresh = True
    source: Stage
    size: Value
    drop: Value
    sparse: tuple[int, ...] = ()

    def check(self, run: Run) -> None:
        if run.number(self.size) <= 0:
            raise self.refusal("Batch size must be greater than zero.", got=str(run.number(self.size)))

    def iterate(self, run: Run) -> Iterator[Element]:
        size, kinds, source = run.number(self.size), self.types, self.source.iterate(run)
        least = size if run.array(self.drop) else 1

        def step() -> Element:
            rows: list[Element] = []
            fill(rows, source, size)
            if len(rows) < least:
                raise StopIteration
            with self.blame():
                return self._made(run, rows, kinds)

        return Steps(step)

    def _made(self, run: Run, rows: list[Element], kinds: Sequence[Any]) -> Element:
        return batched(rows, kinds, self.sparse)


@dataclass(frozen=True, eq=False, kw_only=True)
class MappedBatch(Batch):
    """Elements in batches, of each of which a function makes one of another kind: a map before a batch, vectorized."""

    function: Function

    def _made(self, run: Run, rows: list[Element], kinds: Sequence[Any]) -> Element:
        compute = run.state((self, "function"), lambda: run.call(self.function))
        made: Element = compute(*batched(rows, self.source.types))
        return made


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
class SparseBatch(Batch):
    """Dense elements of several shapes in batches, as SparseTensors.

    Attributes:
      row: the dims of an element; None for those of the largest of its batch. kind: of the elements.
    """

    title = "DenseToSparseBatchDataset"
    row: tuple[int | None, ...]
    kind: Any

    def _made(self, run: Run, rows: list[Element], kinds: Sequence[Any]) -> Element:
        parts = [row[0] for row in rows]
        for part in parts:
            if part.ndim != len(self.row):
                raise errors.InvalidArgumentError(
                    f"Dense element of rank {part.ndim}", expected=f"rank {len(self.row)}, as of row_shape"
                )
        largest = np.max([part.shape for part in parts], axis=0).tolist()
        dims = [found if asked is None else asked for asked, found in zip(self.row, largest, strict=True)]
        if any(found > dim for found, dim in zip(largest, dims, strict=True)):
            raise errors.DataLossError("an element is larger than row_shape", expected=str(dims), got=str(largest))
        places = [np.indices(part.shape, np.int64).reshape(part.ndim, part.size).T for part in parts]
        sparse = [(place, np.ravel(part), np.array(dims, np.int64)) for place, part in zip(places, parts, strict=True)]
        return stacked(sparse, 0)


@dataclass(frozen=True, eq=False, kw_only=True)
class Unbatch(Stage):
    """The elements of batches."""

    title = "UnbatchDataset"
    source: Stage
    sparse: tuple[int, ...] = ()

    def iterate(self, run: Run) -> Iterator[Element]:
        source = self.source.iterate(run)
        return Resumed(lambda: self._rows(source))

    def _rows(self, source: Iterator[Element]) -> Iterator[Element]:
        for batch in source:
            lengths = {length_of(batch, at, self.sparse) for at in parts_of(len(batch), self.sparse)}
            if len(lengths) != 1 or None in lengths:
                raise self.refusal(
                    "the components of an element have several first dims", got=str([part.shape for part in batch])
                )
            if self.sparse:
                yield from rows_of(batch, self.sparse)
                continue
            for i in range(lengths.pop() or 0):
                yield tuple([part[i, ...] for part in batch])


def parts_of(count: int, sparse: Sequence[int]) -> list[int]:
    """Where the tensors of an element begin, among so many components."""
    return [at for at in range(count) if at - 1 not in sparse and at - 2 not in sparse]


def length_of(components: Sequence[Any], at: int, sparse: Sequence[int]) -> int | None:
    """How long the tensor at a component is along its first axis; None of a scalar."""
    dims = components[at + 2] if at in sparse else components[at].shape
    return int(dims[0]) if len(dims) else None


def rows_of(components: Sequence[Any], sparse: Sequence[int]) -> Iterator[Element]:
    """What lies along the first axis of tensors, some of them sparse."""
    columns = [
        cut(*components[at : at + 3]) if at in sparse else _dense_rows(components[at])
        for at in parts_of(len(components), sparse)
    ]
    for row in zip(*columns, strict=False):
        yield tuple(itertools.chain.from_iterable(row))


def _dense_rows(array: Any) -> Iterator[Element]:
    return ((array[i, ...],) for i in range(len(array)))
