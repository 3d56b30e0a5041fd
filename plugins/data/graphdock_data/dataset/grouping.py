"""Transformations that bring elements of one key together. Names, arguments and defaults are TensorFlow 1's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import graphdock as _tf
import numpy as np
from graphdock import ops as _ops
from graphdock.errors import ArgumentTypeError, InvalidArgumentError

from graphdock_data.dataset.dataset import Dataset
from graphdock_data.dataset.elements import flatten, map_up_to, sparse_at
from graphdock_data.dataset.functions import trace, trace_dataset, trace_key
from graphdock_data.dataset.stages.grouping import Given, GroupByReducer, GroupByWindow
from graphdock_data.dataset.transformations import Transformation

_KEYS = Dataset(Given(types=(_tf.int64,), shapes=((),)), 0)


def group_by_window(
    key_func: Callable[..., Any],
    reduce_func: Callable[[Any, Dataset], Dataset],
    window_size: Any = None,
    window_size_func: Callable[[Any], Any] | None = None,
) -> Transformation:
    """Elements of one key, in windows, each of which becomes a dataset.

    Args:
      key_func: of an element; gives its key, a scalar int64.
      reduce_func: of a key and a dataset of at most so many elements of it; gives a dataset.
      window_size: of every key. window_size_func: of a key, gives its size; one of the two.

    Raises:
      ValueError: both or neither of the sizes; a key that is no scalar int64. TypeError: ``reduce_func`` gives no dataset.
    """
    if (window_size is None) == (window_size_func is None):
        raise InvalidArgumentError("Must pass either window_size or window_size_func, but not both.")
    size_of = window_size_func or (lambda key: window_size)

    def apply(dataset: Dataset) -> Dataset:
        stage = dataset._stage
        window = Given(types=stage.types, shapes=stage.shapes)
        inside = Dataset(window, dataset._structure)
        sizes = trace_key("group_by_window()", lambda key: _ops.convert_to_tensor(size_of(key), _tf.int64), _KEYS)
        traced = trace_dataset("group_by_window()", lambda key: reduce_func(key, inside), _KEYS)
        made = dataset._with(
            GroupByWindow,
            key=trace_key("group_by_window()", key_func, dataset),
            size=sizes,
            reduce=traced.function,
            window=window,
            types=traced.types,
            shapes=traced.shapes,
        )
        return Dataset(made._stage, traced.structure)

    return apply


def bucket_by_sequence_length(
    element_length_func: Callable[..., Any],
    bucket_boundaries: Sequence[int],
    bucket_batch_sizes: Sequence[int],
    padded_shapes: Any = None,
    padding_values: Any = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: bool = False,
) -> Transformation:
    """Batches of elements of similar lengths, filled up to one shape.

    Args:
      element_length_func: of an element; gives its length, a scalar int32.
      bucket_boundaries: lengths at which a bucket ends and the next one begins, rising.
      bucket_batch_sizes: one per bucket, so one more.
      padded_shapes, padding_values: as of ``padded_batch``. no_padding: elements are of one shape, or sparse.
      pad_to_bucket_boundary: dims that are not known become one less than the bucket's end; longer elements are refused.
      drop_remainder: batches are full.

    Raises:
      ValueError: sizes that do not fit the boundaries.
    """
    if len(bucket_batch_sizes) != len(bucket_boundaries) + 1:
        raise InvalidArgumentError("len(bucket_batch_sizes) must equal len(bucket_boundaries) + 1")
    ends = np.array([*bucket_boundaries, np.iinfo(np.int32).max], np.int32)
    sizes = np.array(bucket_batch_sizes, np.int64)

    def bucket(*element: Any) -> Any:
        length = _ops.convert_to_tensor(element_length_func(*element), _tf.int32)
        return _tf.reduce_sum(_tf.cast(length >= _tf.constant(ends), _tf.int64))

    def batched(number: Any, window: Dataset) -> Dataset:
        size = _tf.gather(_tf.constant(sizes), number)
        if no_padding:
            return window.batch(size, drop_remainder)
        shapes = padded_shapes
        if shapes is None:
            shapes = window.output_shapes
        if pad_to_bucket_boundary:
            longest = _tf.gather(_tf.constant(ends), number)
            fits = _tf.Assert(
                longest < _tf.constant(ends[-1]),
                ["When pad_to_bucket_boundary=True, elements must have length < max(bucket_boundaries)."],
            )
            with _tf.control_dependencies([fits]):
                end = _tf.cast(longest - 1, _tf.int64)
            shapes = _filled(window, shapes, end)
        return window.padded_batch(size, shapes, padding_values, drop_remainder)

    def apply(dataset: Dataset) -> Dataset:
        if not no_padding and sparse_at(dataset._structure):
            raise ArgumentTypeError("Batching of padded sparse tensors is not currently supported")
        return dataset.apply(
            group_by_window(bucket, batched, window_size_func=lambda number: _tf.gather(_tf.constant(sizes), number))
        )

    return apply


def _filled(window: Dataset, shapes: Any, end: Any) -> Any:
    """Padded shapes with a length for each dim that is not known."""

    def one(shape: Any) -> Any:
        dims = [None if d in (None, -1) else d for d in _tf.TensorShape(shape).as_list()]
        parts = [end if d is None else _tf.constant(d, _tf.int64) for d in dims]
        return _tf.stack(parts) if parts else _tf.constant([], _tf.int64)

    return map_up_to(one, window._structure, shapes)


class Reducer:
    """A reduction of the elements of one key to one.

    Args:
      init_func: of a key; gives the first state. reduce_func: of a state and an element; gives the next state.
      finalize_func: of the last state; gives the result.
    """

    def __init__(
        self, init_func: Callable[..., Any], reduce_func: Callable[..., Any], finalize_func: Callable[..., Any]
    ) -> None:
        self.init_func, self.reduce_func, self.finalize_func = init_func, reduce_func, finalize_func


def group_by_reducer(key_func: Callable[..., Any], reducer: Reducer) -> Transformation:
    """One element for each key, in the order of the keys.

    Args:
      key_func: of an element; gives its key, a scalar int64.

    Raises:
      TypeError: a state of another structure or dtypes than the first one.
    """

    def apply(dataset: Dataset) -> Dataset:
        stage = dataset._stage
        begin = trace("group_by_reducer()", reducer.init_func, _KEYS)
        unknown = tuple([None if dims is None else (None,) * len(dims) for dims in begin.shapes])
        both = Given(types=(*begin.types, *stage.types), shapes=(*unknown, *stage.shapes))
        whole = Dataset(both, (begin.structure, dataset._structure))
        reduce = trace("group_by_reducer()", reducer.reduce_func, whole)
        if reduce.types != begin.types or len(flatten(reduce.structure)) != len(flatten(begin.structure)):
            raise ArgumentTypeError("`reduce_func` must return a state like `init_func`'s", got=repr(reduce.result))
        state = Dataset(Given(types=begin.types, shapes=unknown), begin.structure)
        finish = trace("group_by_reducer()", reducer.finalize_func, state)
        made = dataset._with(
            GroupByReducer,
            key=trace_key("group_by_reducer()", key_func, dataset),
            begin=begin.function,
            reduce=reduce.function,
            finish=finish.function,
            types=finish.types,
            shapes=finish.shapes,
        )
        return Dataset(made._stage, finish.structure)

    return apply
