"""SparseTensors in elements, three components each: put together into batches, and taken apart along the first axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from graphdock.contracts import errors

from graphdock_data.dataset.stages.stage import Element

__all__ = ["cut", "stacked"]


def stacked(rows: Sequence[Element], at: int) -> Element:
    """The SparseTensors that begin at one component of several elements, along a new first axis.

    It is as large as the largest of them.

    Raises:
      InvalidArgumentError: they are of several ranks.
    """
    shapes = [row[at + 2] for row in rows]
    if any(len(shape) != len(shapes[0]) for shape in shapes):
        raise errors.InvalidArgumentError(
            f"Cannot batch SparseTensors of several ranks, in component {at}", got=str([len(s) for s in shapes])
        )
    counts = [len(row[at + 1]) for row in rows]
    places = np.concatenate([row[at] for row in rows])
    numbers = np.repeat(np.arange(len(rows), dtype=np.int64), counts)
    whole = np.concatenate([[len(rows)], np.max(shapes, axis=0)]).astype(np.int64)
    return np.column_stack([numbers, places]), np.concatenate([row[at + 1] for row in rows]), whole


def cut(indices: Any, values: Any, shape: Any) -> Iterator[Element]:
    """The rows of a SparseTensor, along its first axis."""
    order = np.argsort(indices[:, 0], kind="stable")
    places, kept = indices[order, 1:], values[order]
    ends = np.searchsorted(indices[order, 0], np.arange(int(shape[0]) + 1))
    for first, last in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        yield places[first:last], kept[first:last], shape[1:]
