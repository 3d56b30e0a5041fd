"""Windows of a dataset, and its reduction to one value. Names, arguments and defaults are TensorFlow 1's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import ArgumentTypeError

from graphdock_data.dataset.dataset import Dataset, argument, arguments, integer
from graphdock_data.dataset.elements import Sparse, Window, flatten, pack, refuse_windows
from graphdock_data.dataset.functions import trace
from graphdock_data.dataset.stages.grouping import Given
from graphdock_data.dataset.stages.stage import Dims, Pipeline, Stage
from graphdock_data.dataset.stages.windows import Reduce, Windows

__all__ = ["reduced", "windows"]


def windows(dataset: Dataset, size: Any, shift: Any, stride: Any, drop_remainder: Any) -> Dataset:
    """The windows of :meth:`Dataset.window`."""
    stage, leaves, ends = dataset._stage, list[Window](), list[int]()
    begin = 0
    for leaf in flatten(dataset._structure):
        end = begin + (3 if isinstance(leaf, Sparse) else 1)
        given = Given(types=stage.types[begin:end], shapes=stage.shapes[begin:end])
        leaves.append(Window(given, Dataset(given, leaf)))
        ends.append(end)
        begin = end
    size = integer(size)
    made = dataset._with(
        Windows,
        size=size,
        shift=size if shift is None else integer(shift),
        stride=integer(stride),
        drop=argument(drop_remainder, _tf.bool),
        ends=tuple(ends),
        types=(_tf.variant,) * len(leaves),
        shapes=((),) * len(leaves),
    )
    return Dataset(made._stage, pack(dataset._structure, leaves))


def reduced(dataset: Dataset, initial_state: Any, reduce_func: Callable[..., Any]) -> Any:
    """The value of :meth:`Dataset.reduce`."""
    refuse_windows(dataset._structure, "Dataset.reduce()")
    if _is_within(dataset._stage):
        raise ArgumentTypeError(
            "Dataset.reduce() is no value of a window, or of a key's elements, within the function that gets it",
            hint="flat_map(lambda window: window.batch(size)), and then map() with tf.reduce_sum or the like",
        )
    structure, values, types, shapes = arguments(initial_state)
    stage = dataset._stage
    while True:
        both = Given(types=(*types, *stage.types), shapes=(*shapes, *stage.shapes))
        next_state = trace("Dataset.reduce()", reduce_func, Dataset(both, (structure, dataset._structure)))
        same = len(flatten(next_state.structure)) == len(flatten(structure)) and next_state.types == types
        if not same:
            raise ArgumentTypeError(
                "Dataset.reduce(): the function must return a state like the first one",
                expected=", ".join(t.name for t in types),
                got=", ".join(t.name for t in next_state.types),
            )
        weaker = tuple([_weaker(a, b) for a, b in zip(shapes, next_state.shapes, strict=True)])
        if weaker == shapes:
            break
        shapes = weaker  # as in TensorFlow, a dim that changes from one element to the next is not known
    made = dataset._with(Reduce, state=values, function=next_state.function, types=types, shapes=shapes)
    pipeline = Pipeline.of(made._stage)
    parts = _ops.apply_op(
        "GraphdockReduceDataset",
        "ReduceDataset",
        dataset=pipeline,
        arguments=list(pipeline.tensors),
        output_types=list(types),
        output_shapes=list(shapes),
    )
    return pack(structure, parts, lambda leaf, *three: leaf.tensor(*three))


def _is_within(stage: Stage) -> bool:
    """Return whether a dataset goes through elements that a stage outside of it hands over."""
    stack = [stage]
    while stack:
        at = stack.pop()
        if isinstance(at, Given):
            return True
        stack.extend(
            [part for part in at.parts() if isinstance(part, Stage) and part is not getattr(at, "window", None)]
        )
    return False


def _weaker(one: Dims, other: Dims) -> Dims:
    if one is None or other is None or len(one) != len(other):
        return None
    return tuple([a if a == b else None for a, b in zip(one, other, strict=True)])
