"""Transformations for ``Dataset.apply``. Names, arguments and defaults are TensorFlow 1's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphdock_data.dataset.dataset import Dataset
from graphdock_data.dataset.stages.batching import Unbatch


def unbatch() -> Callable[[Dataset], Dataset]:
    """The elements of batches, one after another."""

    def apply(dataset: Dataset) -> Dataset:
        shapes = tuple([None if dims is None else dims[1:] for dims in dataset._stage.shapes])
        return dataset._with(Unbatch, shapes=shapes)

    return apply


def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: Any = None) -> Callable[[Dataset], Dataset]:
    """The elements several times, each time in another order: ``shuffle(...).repeat(...)``."""
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: Any,
    num_parallel_batches: Any = None,
    drop_remainder: Any = False,
    num_parallel_calls: Any = None,
) -> Callable[[Dataset], Dataset]:
    """Batches of what a function makes of elements: ``map(...).batch(...)``."""
    return lambda dataset: dataset.map(map_func, num_parallel_calls).batch(batch_size, drop_remainder)
