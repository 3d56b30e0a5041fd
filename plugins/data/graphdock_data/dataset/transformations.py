"""Transformations for ``Dataset.apply``. Names, arguments and defaults are TensorFlow 1's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import graphdock as _tf
import numpy as np
from graphdock import ops as _ops
from graphdock.errors import ArgumentTypeError, InvalidArgumentError
from graphdock.typing import DTypeLike

from graphdock_data.dataset.dataset import Dataset, argument, integer, seeds
from graphdock_data.dataset.elements import Sparse, dims_of, spread
from graphdock_data.dataset.functions import Traced, trace
from graphdock_data.dataset.stages.batching import SparseBatch
from graphdock_data.dataset.stages.choosing import Directed, Draws, IgnoreErrors, Scan, TakeWhile, Unique
from graphdock_data.dataset.stages.grouping import Given
from graphdock_data.dataset.stages.prefetch import AUTO
from graphdock_data.dataset.stages.stage import Value

Transformation: TypeAlias = Callable[[Dataset], Dataset]

#: Of an argument that says how many calls, or elements ahead: as TensorFlow tunes it.
AUTOTUNE = -1


def unbatch() -> Transformation:
    """The elements of batches, one after another."""
    return lambda dataset: dataset.unbatch()


def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: Any = None) -> Transformation:
    """The elements several times, each time in another order: ``shuffle(...).repeat(...)``."""
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: Any,
    num_parallel_batches: Any = None,
    drop_remainder: Any = False,
    num_parallel_calls: Any = None,
) -> Transformation:
    """Batches of what a function makes of elements: ``map(...).batch(...)``."""
    return lambda dataset: dataset.map(map_func, num_parallel_calls).batch(batch_size, drop_remainder)


def parallel_interleave(
    map_func: Callable[..., Any],
    cycle_length: Any,
    block_length: Any = 1,
    sloppy: Any = False,
    buffer_output_elements: Any = None,
    prefetch_input_elements: Any = None,
) -> Transformation:
    """``interleave`` whose datasets threads read ahead; the order is kept also where it may be ``sloppy``.

    Args:
      buffer_output_elements: that are made ahead of each dataset. prefetch_input_elements: without effect.
    """
    ahead = AUTO if buffer_output_elements is None else buffer_output_elements
    return lambda dataset: dataset._interleaved(
        "parallel_interleave()", map_func, cycle_length, block_length, integer(ahead)
    )


def ignore_errors() -> Transformation:
    """The elements without those whose making failed."""
    return lambda dataset: dataset._with(IgnoreErrors)


def take_while(predicate: Callable[..., Any]) -> Transformation:
    """The elements before the first one for which a function, as of ``filter``, does not hold."""

    def apply(dataset: Dataset) -> Dataset:
        traced = trace("take_while()", predicate, dataset)
        if traced.types != (_tf.bool,) or traced.shapes[0] not in ((), None):
            raise InvalidArgumentError("`predicate` must return a scalar boolean tensor.", got=str(traced.result))
        return dataset._with(TakeWhile, function=traced.function)

    return apply


def unique() -> Transformation:
    """The elements that were not there before: scalars int32, int64 or string.

    Raises:
      TypeError: other elements.
    """

    def apply(dataset: Dataset) -> Dataset:
        if dataset.output_types not in (_tf.int32, _tf.int64, _tf.string):
            raise ArgumentTypeError(
                "`tf.data.experimental.unique()` only supports inputs with a single `tf.int32`, `tf.int64`, or "
                "`tf.string` component.",
                got=str(dataset.output_types),
            )
        return dataset._with(Unique)

    return apply


def enumerate_dataset(start: Any = 0) -> Transformation:
    """Pairs of a number int64, counted from ``start`` on, and an element."""
    return lambda dataset: dataset.enumerate(start)


def dense_to_sparse_batch(batch_size: Any, row_shape: Any) -> Transformation:
    """Batches of dense elements of several shapes, as SparseTensors.

    Args:
      row_shape: how large each element is taken to be; None for as large as the largest of its batch.

    Raises:
      TypeError: elements of several components. In the step DataLossError: an element does not fit.
    """

    def apply(dataset: Dataset) -> Dataset:
        if dataset._structure != 0:
            raise ArgumentTypeError(
                "`dense_to_sparse_batch()` requires an input dataset of one tensor", got=str(dataset.output_types)
            )
        dims = tuple(_tf.TensorShape(row_shape).as_list())
        structure, kind = Sparse((None, *dims)), dataset._stage.types[0]
        stage = dataset._with(
            SparseBatch,
            size=integer(batch_size),
            drop=Value(np.array(False)),
            row=dims,
            kind=kind,
            types=tuple(structure.kinds(kind)),
            shapes=tuple(structure.shapes()),
        )._stage
        return Dataset(stage, structure)

    return apply


def scan(initial_state: Any, scan_func: Callable[..., Any]) -> Transformation:
    """What a function makes of a state and each element.

    Args:
      initial_state: nested structure of tensors.
      scan_func: of a state and an element; returns the next state and an element of the result.

    Raises:
      TypeError: it returns no pair, or a state of another structure or dtypes.
    """

    def apply(dataset: Dataset) -> Dataset:
        structure, tensors = spread(initial_state)
        types, width = tuple([t.dtype for t in tensors]), len(tensors)
        shapes = tuple([dims_of(t.shape) for t in tensors])
        stage = dataset._stage
        while True:
            both = Given(types=(*types, *stage.types), shapes=(*shapes, *stage.shapes))
            traced = trace("scan()", scan_func, Dataset(both, (structure, dataset._structure)))
            _check_state(traced, structure, types)
            found = traced.shapes[:width]
            relaxed = tuple([a if a == b else None for a, b in zip(shapes, found, strict=True)])
            if relaxed == shapes:
                break
            shapes = relaxed
        named = {"types": traced.types[width:], "shapes": traced.shapes[width:], "function": traced.function}
        made = dataset._with(Scan, initial=tuple([argument(t) for t in tensors]), **named)
        return Dataset(made._stage, traced.structure[1])

    return apply


def _check_state(traced: Traced, structure: Any, types: tuple[Any, ...]) -> None:
    if not isinstance(traced.structure, tuple) or len(traced.structure) != 2:
        raise ArgumentTypeError(
            "The scan function must return a pair comprising the new state and the output value.",
            got=repr(traced.result),
        )
    if traced.structure[0] != structure or traced.types[: len(types)] != types:
        raise ArgumentTypeError("the scan function must return a state like the first one", got=repr(traced.result[0]))


def choose_from_datasets(datasets: Sequence[Dataset], choice_dataset: Dataset) -> Dataset:
    """The next element of that one of ``datasets`` which each element of ``choice_dataset`` names.

    Raises:
      TypeError: the choices are no scalars int64, or the datasets of several structures.
    """
    if choice_dataset.output_types != _tf.int64 or choice_dataset._stage.shapes[0] not in ((), None):
        raise ArgumentTypeError("`choice_dataset` must be a dataset of scalar `tf.int64` tensors.")
    return _directed(datasets, choice_dataset)


def sample_from_datasets(datasets: Sequence[Dataset], weights: Any = None, seed: Any = None) -> Dataset:
    """The next element of a random one of ``datasets``.

    Args:
      weights: how often each of them comes, a vector of floats; default: all as often.

    Raises:
      ValueError: not as many weights as datasets.
    """
    known = [1.0] * len(datasets) if weights is None else weights
    found = argument(known, None if isinstance(known, _tf.Tensor) else _tf.float64)
    dims = found.array.shape if found.tensor is None else dims_of(found.tensor.shape)
    if dims is not None and dims != (len(datasets),):
        raise InvalidArgumentError("`weights` must be a vector of length `len(datasets)`", got=str(dims))
    draws = Draws(weights=found, seeds=seeds(seed), types=(_tf.int64,), shapes=((),))
    return _directed(datasets, Dataset(draws, 0))


def _directed(datasets: Sequence[Dataset], selector: Dataset) -> Dataset:
    whole = datasets[0]
    for one in datasets[1:]:
        whole = whole.concatenate(one)  # refuses those that do not fit, and knows the shapes that all have
    sources = tuple([one._stage for one in datasets])
    stage = Directed(selector=selector._stage, sources=sources, types=whole._stage.types, shapes=whole._stage.shapes)
    return Dataset(stage, whole._structure)


def Counter(start: Any = 0, step: Any = 1, dtype: DTypeLike = "int64") -> Dataset:
    """Numbers from ``start`` on, for good."""
    kind = _tf.as_dtype(dtype)
    limit = int(np.iinfo(np.int64).max)
    counted = Dataset.range(start, limit if not isinstance(step, int) or step > 0 else -limit, step)
    return counted if kind is _tf.int64 else counted.map(lambda number: _tf.cast(number, kind))


class RandomDataset(Dataset):
    """Random integers int64 below 2**32, for good.

    Args:
      seed: as of :meth:`Dataset.shuffle`.
    """

    def __init__(self, seed: Any = None) -> None:
        super().__init__(Draws(weights=None, seeds=seeds(seed), types=(_tf.int64,), shapes=((),)), 0)


def copy_to_device(target_device: str, source_device: str = "/cpu:0") -> Transformation:
    """The same elements: a step moves them to the device that reads them."""
    return lambda dataset: dataset


def prefetch_to_device(device: str, buffer_size: Any = None) -> Transformation:
    """The elements, made ahead by a thread: a step moves them to the device that reads them."""
    return lambda dataset: dataset.prefetch(AUTOTUNE if buffer_size is None else buffer_size)


def rejection_resample(
    class_func: Callable[..., Any], target_dist: Any, initial_dist: Any = None, seed: Any = None
) -> Transformation:
    """Pairs of a class and an element, some of which are dropped so that classes come as often as asked for.

    Args:
      class_func: of an element; gives its class, a scalar int32.
      target_dist: how often each class is to come, a vector of floats. initial_dist: how often it comes; default: as often as it
        came so far.
      seed: of the choice.
    """
    target = _ops.convert_to_tensor(target_dist, _tf.float32)

    def apply(dataset: Dataset) -> Dataset:
        def classed(*element: Any) -> Any:
            which = _ops.convert_to_tensor(class_func(*element), _tf.int32)
            return which, element[0] if len(element) == 1 else element

        pairs = dataset.map(classed)
        if initial_dist is None:
            first = _tf.ones_like(target)

            def count(counts: Any, pair: Any) -> Any:
                return counts + _tf.one_hot(pair[0], _tf.size(counts), dtype=_tf.float32), (counts, *pair)

            counted = pairs.apply(scan(first, count))
        else:
            known = _ops.convert_to_tensor(initial_dist, _tf.float32)
            counted = pairs.map(lambda which, row: (known, which, row))

        def kept(counts: Any, which: Any, row: Any) -> Any:
            ratio = target / _tf.maximum(counts / _tf.reduce_sum(counts), 1e-16)
            return _tf.random_uniform([], seed=seed) < _tf.gather(ratio / _tf.reduce_max(ratio), which)

        return counted.filter(kept).map(lambda counts, which, row: (which, row))

    return apply
