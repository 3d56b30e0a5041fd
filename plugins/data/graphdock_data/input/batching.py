"""Batches: what one thread or several make is queued, and taken out in batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import ArgumentTypeError, InvalidArgumentError

from graphdock_data.input.producers import note_size
from graphdock_data.input.queue_runner import QueueRunner, add_queue_runner
from graphdock_data.queues.queues import FIFOQueue, PaddingFIFOQueue, RandomShuffleQueue
from graphdock_data.records.serialized import deserialize_many_sparse, serialize_many_sparse, serialize_sparse


class _Column(NamedTuple):
    """One component: of a SparseTensor it is text in the queue, three strings."""

    sparse: bool
    dtype: Any
    rank: int | None


class _Columns:
    """Components of what is queued: of several lists alike, as the user gave them and as they lie in the queue."""

    def __init__(self, given: list[Any], enqueue_many: bool, what: str) -> None:
        self._first = given[0]
        if isinstance(self._first, Mapping):
            for other in given[1:]:
                if not isinstance(other, Mapping) or set(other) != set(self._first):
                    raise InvalidArgumentError(
                        f"All dictionaries in tensors_list of {what}() must have the same keys",
                        expected=repr(sorted(self._first)),
                        got=repr(sorted(other) if isinstance(other, Mapping) else other),
                    )
        rows = [self._listed(each) for each in given]
        if not rows[0]:
            raise InvalidArgumentError(f"Expected at least one tensor in {what}().")
        converted = [[_tf.convert_to_tensor_or_sparse_tensor(v) for v in row] for row in rows]
        kinds = [[_column(v, enqueue_many) for v in row] for row in converted]
        for other in kinds[1:]:
            if [(k.sparse, k.dtype) for k in other] != [(k.sparse, k.dtype) for k in kinds[0]]:
                raise ArgumentTypeError(
                    "Expected types to be consistent",
                    expected=", ".join(k.dtype.name for k in kinds[0]),
                    got=", ".join(k.dtype.name for k in other),
                )
        self.kinds = kinds[0]
        text = serialize_many_sparse if enqueue_many else serialize_sparse
        self.rows = [[text(v) if isinstance(v, _tf.SparseTensor) else v for v in row] for row in converted]

    def _listed(self, given: Any) -> list[Any]:
        if isinstance(given, Mapping):
            return [given[key] for key in sorted(given)]
        return list(given) if isinstance(given, list | tuple) else [given]

    @property
    def dtypes(self) -> list[Any]:
        return [_tf.string if k.sparse else k.dtype for k in self.kinds]

    def shapes(self, given: Any, enqueue_many: bool, may_differ: bool) -> list[Any]:
        """Of the components in the queue; what is not given is what all lists have in common, or, where elements may differ,
        what each of them is known to have."""
        if given is not None:
            return [[3] if k.sparse else s for k, s in zip(self.kinds, given, strict=True)]
        found = []
        for column in zip(*self.rows, strict=True):
            shapes = [t.shape for t in column]
            if any(s.ndims is None for s in shapes):
                unknown = next(t for t in column if t.shape.ndims is None)
                raise InvalidArgumentError(f"Cannot infer Tensor's rank: {unknown}")
            shapes = [s.with_rank_at_least(1)[1:] if enqueue_many else s for s in shapes]
            merged = shapes[0]
            for shape in shapes[1:]:
                merged = merged.merge_with(shape)
            if may_differ:
                dims = zip(*(s.as_list() for s in shapes), strict=True)
                merged = _tf.TensorShape([None if None in each else each[0] for each in dims])
            found.append(merged)
        return found

    def taken(self, made: Any) -> Any:
        """What was taken out, in the form in which it was given."""
        parts = list(made) if isinstance(made, list | tuple) else [made]
        values = [
            deserialize_many_sparse(part, k.dtype, k.rank) if k.sparse else part
            for part, k in zip(parts, self.kinds, strict=True)
        ]
        if isinstance(self._first, Mapping):
            return dict(zip(sorted(self._first), values, strict=True))
        return values[0] if len(values) == 1 else values


def _column(value: Any, enqueue_many: bool) -> _Column:
    if not isinstance(value, _tf.SparseTensor):
        return _Column(False, value.dtype, None)
    rank = value.shape.ndims
    return _Column(True, value.dtype, rank if rank is None else rank - enqueue_many)


def _keep(keep_input: Any, enqueue_many: bool) -> Any:
    keep = _ops.convert_to_tensor(keep_input, _tf.bool)
    if keep.shape.ndims is None:
        raise InvalidArgumentError("`keep_input` dimensions must be known at graph construction.")
    if not enqueue_many and keep.shape.ndims == 1:
        raise InvalidArgumentError("`keep_input` cannot be a vector when `enqueue_many=False`.")
    if keep.shape.ndims > 1:
        raise InvalidArgumentError("`keep_input` must be 0 or 1 dimensions.")
    return keep


def _enqueued(queue: Any, row: list[Any], enqueue_many: bool, keep_input: Any) -> Any:
    """The operation that queues one list, or the part of it that is to be kept."""
    enqueue: Callable[[list[Any]], Any] = queue.enqueue_many if enqueue_many else queue.enqueue
    if keep_input is True:
        return enqueue(row)
    keep = _keep(keep_input, enqueue_many)
    if keep.shape.ndims == 1:
        return enqueue([_tf.boolean_mask(t, keep) for t in row])
    return _tf.cond(keep, lambda: enqueue(row), _tf.no_op)


def _batched(
    what: str,
    given: list[Any],
    batch_size: Any,
    keep_input: Any,
    make: Callable[..., Any],
    enqueue_many: bool,
    shapes: Any,
    smaller: bool,
    name: str | None,
    threads: int = 1,
    least: int = 0,
    capacity: int = 32,
    dynamic_pad: bool = False,
) -> Any:
    with _ops.name_scope(name or what) as scope:
        columns = _Columns(given, enqueue_many, what)
        if keep_input is not True:
            _keep(keep_input, enqueue_many)
        queue = make(dtypes=columns.dtypes, shapes=columns.shapes(shapes, enqueue_many, dynamic_pad))
        operations = [_enqueued(queue, row, enqueue_many, keep_input) for row in columns.rows]
        add_queue_runner(QueueRunner(queue, operations * threads))
        above = f"fraction_over_{least}_of_{capacity - least}_full" if least else f"fraction_of_{capacity}_full"
        note_size(queue, above, capacity, least)
        take = queue.dequeue_up_to if smaller else queue.dequeue_many
        return columns.taken(take(batch_size, name=scope))


def _fifo(capacity: int, dynamic_pad: bool, shared_name: str | None) -> Callable[..., Any]:
    def make(dtypes: Any, shapes: Any) -> Any:
        queue: Any = PaddingFIFOQueue if dynamic_pad else FIFOQueue
        return queue(capacity, dtypes, shapes=shapes, shared_name=shared_name)

    return make


def _shuffled(capacity: int, least: int, seed: int | None, shared_name: str | None) -> Callable[..., Any]:
    if capacity <= least:
        raise InvalidArgumentError(f"capacity {capacity} must be bigger than min_after_dequeue {least}.")

    def make(dtypes: Any, shapes: Any) -> Any:
        return RandomShuffleQueue(capacity, least, dtypes, shapes=shapes, seed=seed, shared_name=shared_name)

    return make


def maybe_batch(
    tensors: Any,
    keep_input: Any,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As :func:`batch`, of what ``keep_input``, a bool scalar, or with ``enqueue_many`` a vector, says to keep."""
    return _batched(
        "batch",
        [tensors],
        batch_size,
        keep_input,
        _fifo(capacity, dynamic_pad, shared_name),
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
        name,
        num_threads,
        capacity=capacity,
        dynamic_pad=dynamic_pad,
    )


def batch(
    tensors: Any,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Batches of tensors, which a queue runner queues.

    Args:
      tensors: a list or dict of Tensors and SparseTensors. batch_size: elements of a batch.
      num_threads: that queue. capacity, shared_name: of the queue.
      enqueue_many: the tensors are batches already, of elements along the first axis.
      shapes: of an element, where the tensors do not say it.
      dynamic_pad: dims may differ, and are filled up. allow_smaller_final_batch: the last batch may be smaller.

    Returns:
      Tensors in the form of ``tensors``, with the batch in front; of a list of one tensor just that.

    Raises:
      InvalidArgumentError: no tensors, or ranks that are not known. In the step OutOfRangeError: there is no more.
    """
    return maybe_batch(
        tensors,
        True,
        batch_size,
        num_threads,
        capacity,
        enqueue_many,
        shapes,
        dynamic_pad,
        allow_smaller_final_batch,
        shared_name,
        name,
    )


def maybe_batch_join(
    tensors_list: Any,
    keep_input: Any,
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As :func:`batch_join`, of what ``keep_input`` says to keep."""
    return _batched(
        "batch_join",
        _joined(tensors_list),
        batch_size,
        keep_input,
        _fifo(capacity, dynamic_pad, shared_name),
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
        name,
        capacity=capacity,
        dynamic_pad=dynamic_pad,
    )


def _joined(tensors_list: Any) -> list[Any]:
    rows = list(tensors_list)
    if not rows:
        raise InvalidArgumentError("Expected at least one input in batch_join().")
    return rows


def batch_join(
    tensors_list: Any,
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As :func:`batch`, of several lists of tensors alike, each of which a thread queues."""
    return maybe_batch_join(
        tensors_list,
        True,
        batch_size,
        capacity,
        enqueue_many,
        shapes,
        dynamic_pad,
        allow_smaller_final_batch,
        shared_name,
        name,
    )


def maybe_shuffle_batch(
    tensors: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As :func:`shuffle_batch`, of what ``keep_input`` says to keep."""
    return _batched(
        "shuffle_batch",
        [tensors],
        batch_size,
        keep_input,
        _shuffled(capacity, min_after_dequeue, seed, shared_name),
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
        name,
        num_threads,
        min_after_dequeue,
        capacity,
    )


def shuffle_batch(
    tensors: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As :func:`batch`, of elements in a random order.

    Args:
      min_after_dequeue: elements that stay in the queue to choose among; below ``capacity``. seed: of the order.

    Raises:
      InvalidArgumentError: ``capacity`` is not above ``min_after_dequeue``; and as :func:`batch`.
    """
    return maybe_shuffle_batch(
        tensors,
        batch_size,
        capacity,
        min_after_dequeue,
        True,
        num_threads,
        seed,
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
        shared_name,
        name,
    )


def maybe_shuffle_batch_join(
    tensors_list: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As :func:`shuffle_batch_join`, of what ``keep_input`` says to keep."""
    return _batched(
        "shuffle_batch_join",
        _joined(tensors_list),
        batch_size,
        keep_input,
        _shuffled(capacity, min_after_dequeue, seed, shared_name),
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
        name,
        least=min_after_dequeue,
        capacity=capacity,
    )


def shuffle_batch_join(
    tensors_list: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """As :func:`shuffle_batch`, of several lists of tensors alike, each of which a thread queues."""
    return maybe_shuffle_batch_join(
        tensors_list,
        batch_size,
        capacity,
        min_after_dequeue,
        True,
        seed,
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
        shared_name,
        name,
    )
