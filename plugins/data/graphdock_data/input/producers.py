"""Producers: queues that queue runners fill with the rows of tensors, epoch after epoch."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError
from graphdock.typing import TensorLike

from graphdock_data.input.queue_runner import QueueRunner, add_queue_runner
from graphdock_data.queues.queues import FIFOQueue


def limit_epochs(tensor: TensorLike, num_epochs: int | None = None, name: str | None = None) -> Any:
    """The tensor, ``num_epochs`` times; then the step that reads it raises OutOfRangeError. The count is a local variable.

    Raises:
      InvalidArgumentError: ``num_epochs`` is not above 0.
    """
    if num_epochs is None:
        return tensor
    if num_epochs <= 0:
        raise InvalidArgumentError(f"num_epochs must be > 0 not {num_epochs}.")
    with _ops.name_scope(name or "limit_epochs") as scope:
        zero = _tf.constant(0, _tf.int64)
        epochs = _tf.Variable(zero, name="epochs", trainable=False, collections=[_tf.GraphKeys.LOCAL_VARIABLES])
        with _tf.control_dependencies([epochs.count_up_to(num_epochs)]):
            return _tf.identity(tensor, name=scope)


def input_producer(
    input_tensor: TensorLike,
    element_shape: Any = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    summary_name: str | None = None,
    name: str | None = None,
    cancel_op: Any = None,
) -> FIFOQueue:
    """A queue that a queue runner fills with the rows of a tensor.

    Args:
      element_shape: of a row, where the tensor's shape does not say it.
      num_epochs: how often each row comes; for ever by default. With it, ``tf.local_variables_initializer()`` is to be run.
      shuffle, seed: the rows of each epoch in another order.
      capacity, shared_name, name: of the queue. summary_name: of a scalar summary of how full it is.
      cancel_op: as of :class:`QueueRunner`.

    Raises:
      InvalidArgumentError: the shape of a row is not known.
    """
    with _ops.name_scope(name or "input_producer"):
        rows = _ops.convert_to_tensor(input_tensor, name="input_tensor")
        shape = rows.shape[1:].merge_with(element_shape)
        if not shape.is_fully_defined():
            raise InvalidArgumentError(
                "Either `input_tensor` must have a fully defined shape or `element_shape` must be specified"
            )
        if shuffle:
            rows = _tf.random_shuffle(rows, seed=seed)
        rows = limit_epochs(rows, num_epochs)
        kinds = {"shapes": [shape], "shared_name": shared_name, "name": name or "FIFOQueueV2"}
        queue = FIFOQueue(capacity, [rows.dtype], **kinds)
        add_queue_runner(QueueRunner(queue, [queue.enqueue_many([rows])], cancel_op=cancel_op))
        if summary_name is not None:
            note_size(queue, summary_name, capacity)
        return queue


def note_size(queue: Any, name: str, capacity: int, least: int = 0) -> None:
    """A scalar summary of how full a queue is, of what lies above ``least``."""
    size = queue.size()
    above = _tf.maximum(0, size - least) if least else size
    _tf.summary.scalar(name, _tf.cast(above, _tf.float32) * (1.0 / (capacity - least)))


def string_input_producer(
    string_tensor: TensorLike,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
    cancel_op: Any = None,
) -> FIFOQueue:
    """A queue that a queue runner fills with strings, such as names of files; arguments as of :func:`input_producer`.

    Raises:
      InvalidArgumentError: no strings, when it is made or in the step of the queue runner.
    """
    nothing = "string_input_producer requires a non-null input tensor"
    if not isinstance(string_tensor, _tf.Tensor | _tf.Variable) and not len(string_tensor):  # type: ignore[arg-type]
        raise InvalidArgumentError(nothing)
    with _ops.name_scope(name or "input_producer") as scope:
        strings = _ops.convert_to_tensor(string_tensor, _tf.string)
        with _tf.control_dependencies([_tf.Assert(_tf.greater(_tf.size(strings), 0), [nothing])]):
            strings = _tf.identity(strings)
        return input_producer(
            strings,
            [],
            num_epochs,
            shuffle,
            seed,
            capacity,
            shared_name,
            f"fraction_of_{capacity}_full",
            scope,
            cancel_op,
        )


def range_input_producer(
    limit: TensorLike,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> FIFOQueue:
    """A queue that a queue runner fills with the integers below ``limit``; arguments as of :func:`input_producer`."""
    with _ops.name_scope(name or "input_producer") as scope:
        return input_producer(
            _tf.range(limit),
            [],
            num_epochs,
            shuffle,
            seed,
            capacity,
            shared_name,
            f"fraction_of_{capacity}_full",
            scope,
        )


def slice_input_producer(
    tensor_list: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> list[Any]:
    """A row of each tensor, the same in all of them, another one in every step; arguments as of :func:`input_producer`.

    Raises:
      InvalidArgumentError: no tensors.
    """
    with _ops.name_scope(name or "input_producer"):
        tensors = [_ops.convert_to_tensor(t) for t in tensor_list]
        if not tensors:
            raise InvalidArgumentError("Expected at least one tensor in slice_input_producer().")
        queue = range_input_producer(_tf.shape(tensors[0])[0], num_epochs, shuffle, seed, capacity, shared_name)
        index = queue.dequeue()
        return [_tf.gather(t, index) for t in tensors]
