"""Queues of elements of several components, in the graph."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import ArgumentTypeError, InvalidArgumentError
from graphdock.typing import DTypeLike, TensorLike


def _dtypes(given: Any) -> list[Any]:
    return [_tf.as_dtype(d) for d in (given if isinstance(given, list | tuple) else [given])]


def _shapes(given: Any, count: int, unknown_dims: bool = False) -> list[Any] | None:
    if unknown_dims and (not isinstance(given, list | tuple) or any(s is None or isinstance(s, int) for s in given)):
        raise InvalidArgumentError(
            "When providing partial shapes, a list of shapes must be provided: Shapes of all components are needed",
            got=repr(given),
        )
    if given is None:
        return None
    listed = [given] if isinstance(given, _tf.TensorShape) else given
    if not isinstance(listed, list | tuple):
        raise ArgumentTypeError("shapes must be a TensorShape or a list or tuple of TensorShapes.", got=repr(given))
    if all(s is None or isinstance(s, int) for s in listed):
        listed = [listed]  # one shape
    shapes = [_tf.TensorShape(s) for s in listed]
    if unknown_dims and any(s.ndims is None for s in shapes):
        raise InvalidArgumentError(f"All shapes must have a defined rank: {shapes}")
    if not unknown_dims and not all(s.is_fully_defined() for s in shapes):
        raise InvalidArgumentError(f"All shapes must be fully defined: {shapes}")
    if len(shapes) != count:
        raise InvalidArgumentError(f"Queue shapes must have the same length as dtypes: {len(shapes)} for {count}")
    return shapes


def _names(given: Any, count: int) -> list[str] | None:
    if given is None:
        return None
    names = list(given) if isinstance(given, list | tuple) else [given]
    if len(names) != count:
        raise InvalidArgumentError(f"List of names must have the same length as the list of dtypes: {names}")
    return names


class QueueBase:
    """A queue in the graph; what makes one are its subclasses.

    Args:
      dtypes, shapes, names: of the components; shapes and names may be None.
      queue_ref: the tensor that names the queue.
    """

    def __init__(self, dtypes: Any, shapes: Any, names: Any, queue_ref: Any) -> None:
        self._dtypes = _dtypes(dtypes)
        count = len(self._dtypes)
        if shapes is not None and len(shapes) != count:
            raise InvalidArgumentError(f"Queue shapes must have the same length as dtypes: {len(shapes)} for {count}")
        self._shapes = [_tf.TensorShape(s) for s in (shapes if shapes is not None else [None] * count)]
        self._names = _names(names, count)
        self._queue_ref = queue_ref

    @staticmethod
    def from_list(index: TensorLike, queues: Sequence[QueueBase]) -> QueueBase:
        """The queue of a list at a place that the step computes.

        Args:
          index: an integer scalar. queues: of the same dtypes and names.

        Raises:
          ArgumentTypeError: no list of queues, or of others that differ.
        """
        if not queues or not isinstance(queues, list) or not all(isinstance(q, QueueBase) for q in queues):
            raise ArgumentTypeError("A list of queues expected")
        first = queues[0]
        if not all(first.dtypes == q.dtypes for q in queues[1:]):
            raise ArgumentTypeError("Queues do not have matching component dtypes.")
        if not all(first.names == q.names for q in queues[1:]):
            raise ArgumentTypeError("Queues do not have matching component names.")
        return _OneOf(_ops.convert_to_tensor(index), queues)

    @property
    def queue_ref(self) -> Any:
        """The tensor that names the queue."""
        return self._queue_ref

    @property
    def name(self) -> str:
        return str(self._queue_ref.op.name)

    @property
    def dtypes(self) -> list[Any]:
        return self._dtypes

    @property
    def shapes(self) -> list[Any]:
        return self._shapes

    @property
    def names(self) -> list[str] | None:
        return self._names

    def enqueue(self, vals: Any, name: str | None = None) -> Any:
        """An operation that adds an element; its step waits while the queue is full.

        Args:
          vals: a component, a list of all of them, or a dict by their names.

        Raises:
          InvalidArgumentError: other components than the queue's. In the step CancelledError: the queue is closed.
        """
        with self._scope(name, "enqueue") as scope:
            tensors = self._components(vals)
            for tensor, shape in zip(tensors, self._shapes, strict=True):
                tensor.shape.assert_is_compatible_with(shape)
            return self._run("QueueEnqueueV2", scope, components=tensors)

    def enqueue_many(self, vals: Any, name: str | None = None) -> Any:
        """An operation that adds the elements that lie along the first axis, one after another; as :meth:`enqueue`."""
        with self._scope(name, "EnqueueMany") as scope:
            tensors = self._components(vals)
            batch = _tf.TensorShape([None])
            for tensor, shape in zip(tensors, self._shapes, strict=True):
                found = tensor.shape.with_rank_at_least(1)
                batch = batch.merge_with(found[:1])
                found[1:].assert_is_compatible_with(shape)
            return self._run("QueueEnqueueManyV2", scope, components=tensors)

    def dequeue(self, name: str | None = None) -> Any:
        """An element: a tensor, a list of them, or a dict by their names; its step waits while there is none.

        Raises:
          in the step OutOfRangeError: the queue is closed and empty.
        """
        made = self._run("QueueDequeueV2", self._op_name(name, "Dequeue"), component_types=self._dtypes)
        return self._answer(made, lambda shape: shape)

    def dequeue_many(self, n: TensorLike, name: str | None = None) -> Any:
        """A batch of ``n`` elements, as :meth:`dequeue` gives one; its step waits until there are as many.

        Raises:
          in the step OutOfRangeError: the queue is closed and has fewer. InvalidArgumentError: it was made without shapes.
        """
        made = self._run("QueueDequeueManyV2", self._op_name(name, "DequeueMany"), n=n, component_types=self._dtypes)
        count = None
        if not isinstance(n, _tf.Tensor):
            count = int(n)  # type: ignore[call-overload]
        elif n.op.type == "Const":
            count = int(n.op.node_attrs["value"])
        batch = _tf.TensorShape([None if count is None else int(count)])
        return self._answer(made, batch.concatenate)

    def dequeue_up_to(self, n: TensorLike, name: str | None = None) -> Any:
        """As :meth:`dequeue_many`, but that a closed queue gives what it has, if it has anything."""
        made = self._run("QueueDequeueUpToV2", self._op_name(name, "DequeueUpTo"), n=n, component_types=self._dtypes)
        return self._answer(made, _tf.TensorShape([None]).concatenate)

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Any:
        """An operation that lets no more elements in, behind those that wait; these are cancelled if that is asked for.

        Raises:
          in the step CancelledError: the queue is closed already.
        """
        return self._run("QueueCloseV2", self._op_name(name, "Close"), cancel_pending_enqueues=cancel_pending_enqueues)

    def is_closed(self, name: str | None = None) -> Any:
        """Return whether the queue is closed, a scalar bool."""
        return self._run("QueueIsClosedV2", self._op_name(name, "Is_Closed"))

    def size(self, name: str | None = None) -> Any:
        """The number of elements, a scalar int32."""
        return self._run("QueueSizeV2", self._op_name(name, "Size"))

    # -- parts ------------------------------------------------------------------------------------------------------------

    def _run(self, op: str, name: str, **inputs: Any) -> Any:
        return _ops.apply_op(op, handle=self._queue_ref, name=name, **inputs)

    def _op_name(self, name: str | None, what: str) -> str:
        return name or f"{self.name.rpartition('/')[2]}_{what}"

    def _scope(self, name: str | None, what: str) -> Any:
        return _ops.name_scope(self._op_name(name, what))

    def _components(self, vals: Any) -> list[Any]:
        if isinstance(vals, Mapping):
            if not self._names:
                raise InvalidArgumentError("Queue must have names to enqueue a dictionary")
            if sorted(self._names) != sorted(vals):
                raise InvalidArgumentError(
                    "Keys in dictionary to enqueue do not match names of Queue.",
                    expected=", ".join(sorted(self._names)),
                    got=", ".join(sorted(vals)),
                )
            listed: Sequence[Any] = [vals[n] for n in self._names]
        elif self._names:
            raise InvalidArgumentError("You must enqueue a dictionary in a Queue with names")
        else:
            listed = vals if isinstance(vals, list | tuple) else [vals]
        if len(listed) != len(self._dtypes):
            raise InvalidArgumentError(
                f"the queue {self.name!r} takes another number of components",
                expected=str(len(self._dtypes)),
                got=str(len(listed)),
            )
        pairs = zip(listed, self._dtypes, strict=True)
        return [_ops.convert_to_tensor(v, d, name=f"component_{i}") for i, (v, d) in enumerate(pairs)]

    def _answer(self, made: Any, whole: Callable[[Any], Any]) -> Any:
        tensors = list(made) if isinstance(made, list | tuple) else [made]
        for tensor, shape in zip(tensors, self._shapes, strict=True):
            tensor.set_shape(whole(shape))
        if self._names:
            return dict(zip(self._names, tensors, strict=True))
        return tensors[0] if len(tensors) == 1 else tensors


class _OneOf(QueueBase):
    """The queue of a list at a place that the step computes: each operation is a branch for each queue."""

    def __init__(self, index: Any, queues: Sequence[QueueBase]) -> None:
        first = queues[0]
        shapes = [functools.reduce(_in_common, column) for column in zip(*[q.shapes for q in queues], strict=True)]
        super().__init__(first.dtypes, shapes, first.names, first.queue_ref)
        # a place that there is not is gather's error
        self._index, self._queues = _tf.gather(_tf.range(len(queues)), index), queues

    def _run(self, op: str, name: str, **inputs: Any) -> Any:
        def of(place: int) -> Any:
            one = functools.partial(self._queues[place]._run, op, name.rstrip("/").rpartition("/")[2], **inputs)
            if place == len(self._queues) - 1:
                return one()
            return _tf.cond(_tf.equal(self._index, place), one, lambda: of(place + 1))

        return of(0)


def _in_common(one: Any, other: Any) -> Any:
    if one.ndims is None or one.ndims != other.ndims:
        return _tf.TensorShape(None)
    return _tf.TensorShape([a if a == b else None for a, b in zip(one.as_list(), other.as_list(), strict=True)])


def _make(op: str, dtypes: list[Any], shapes: Any, shared_name: str | None, name: str, **attrs: Any) -> Any:
    listed = [] if shapes is None else [s.as_list() for s in shapes]
    return _ops.apply_op(op, component_types=dtypes, shapes=listed, shared_name=shared_name or "", name=name, **attrs)


class RandomShuffleQueue(QueueBase):
    """A queue that gives any of its elements.

    Args:
      capacity: elements that it holds. min_after_dequeue: elements that stay until it is closed, to choose among.
      dtypes: of the components. shapes: theirs, all known; without them there are no batches. names: theirs.
      seed: of its order; without one it follows from the graph's and from ``shared_name``.
      shared_name: under which sessions of a container share it. name: of its operation.
    """

    def __init__(
        self,
        capacity: int,
        min_after_dequeue: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        seed: int | None = None,
        shared_name: str | None = None,
        name: str = "random_shuffle_queue",
    ) -> None:
        kinds = _dtypes(dtypes)
        known = _shapes(shapes, len(kinds))
        listed = _names(names, len(kinds))
        first, second = _tf.get_seed(seed)
        if seed is None and shared_name is not None and first is not None:
            # One that shares it has the same seeds, however many ops either graph had before.
            second = (
                int(hashlib.md5(f"{first}{shared_name}".encode(), usedforsecurity=False).hexdigest()[:8], 16)
                & 0x7FFFFFFF
            )
        ref = _make(
            "RandomShuffleQueueV2",
            kinds,
            known,
            shared_name,
            name,
            capacity=capacity,
            min_after_dequeue=min_after_dequeue,
            seed=first or 0,
            seed2=second or 0,
        )
        super().__init__(kinds, known, listed, ref)


class FIFOQueue(QueueBase):
    """A queue, first in first out.

    Args:
      capacity: elements that it holds. dtypes: of the components.
      shapes: theirs, all known; without them there are no batches. names: theirs.
      shared_name: under which sessions of a container share it. name: of its operation.
    """

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "fifo_queue",
    ) -> None:
        kinds = _dtypes(dtypes)
        known = _shapes(shapes, len(kinds))
        listed = _names(names, len(kinds))
        super().__init__(kinds, known, listed, _make("FIFOQueueV2", kinds, known, shared_name, name, capacity=capacity))


class PaddingFIFOQueue(QueueBase):
    """A queue, first in first out, whose batches are filled up with zeros or empty strings to the largest element.

    Args:
      shapes: of the components, of known ranks. The others as of :class:`FIFOQueue`.
    """

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "padding_fifo_queue",
    ) -> None:
        kinds = _dtypes(dtypes)
        known = _shapes(shapes, len(kinds), unknown_dims=True)
        listed = _names(names, len(kinds))
        ref = _make("PaddingFIFOQueueV2", kinds, known, shared_name, name, capacity=capacity)
        super().__init__(kinds, known, listed, ref)


class PriorityQueue(QueueBase):
    """A queue that gives the element of the lowest priority, an int64 that stands before the components.

    Args:
      types: of the components, without the priority. The others as of :class:`FIFOQueue`.
    """

    def __init__(
        self,
        capacity: int,
        types: DTypeLike | Sequence[DTypeLike],
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "priority_queue",
    ) -> None:
        kinds = _dtypes(types)
        known = _shapes(shapes, len(kinds))
        ref = _make("PriorityQueueV2", kinds, known, shared_name, name, capacity=capacity)
        whole = None if known is None else [_tf.TensorShape([]), *known]
        super().__init__([_tf.int64, *kinds], whole, names, ref)
