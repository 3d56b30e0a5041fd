"""Staging areas: queues between the parts of a pipeline."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import ArgumentTypeError
from graphdock.typing import TensorLike

from graphdock_data.queues.queues import QueueBase


class StagingArea:
    """A queue of elements of several components, bounded by their number and by bytes.

    Args:
      dtypes, shapes, names: of the components; shapes and names may be None.
      shared_name: under which sessions of a container share it.
      capacity: elements that it holds. memory_limit: bytes that it holds. 0: any number.
    """

    def __init__(
        self,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        capacity: int = 0,
        memory_limit: int = 0,
    ) -> None:
        if shared_name is not None and not isinstance(shared_name, str):
            raise ArgumentTypeError("shared_name must be a string", got=repr(shared_name))
        kinds = [_tf.as_dtype(d) for d in dtypes]
        known = [_tf.TensorShape(s).as_list() for s in shapes] if shapes is not None else []
        self._capacity, self._memory_limit = capacity, memory_limit
        ref = _ops.apply_op(
            "GraphdockStagingArea",
            component_types=kinds,
            shapes=known if all(s is not None for s in known) else [],
            shared_name=shared_name or "",
            capacity=capacity,
            memory_limit=memory_limit,
            name="StagingArea",
        )
        self._queue = QueueBase(kinds, shapes, names, ref)

    @property
    def name(self) -> str:
        return self._queue.name

    @property
    def dtypes(self) -> list[Any]:
        return self._queue.dtypes

    @property
    def shapes(self) -> list[Any]:
        return self._queue.shapes

    @property
    def names(self) -> list[str] | None:
        return self._queue.names

    @property
    def capacity(self) -> int:
        return self._capacity

    @property
    def memory_limit(self) -> int:
        return self._memory_limit

    def put(self, values: Any, name: str | None = None) -> Any:
        """An operation that adds an element; its step waits while the area is full."""
        return self._queue.enqueue(values, name=name or f"{self.name}_put")

    def get(self, name: str | None = None) -> Any:
        """An element, a list of its components or a dict by their names; its step waits while there is none."""
        return self._listed(self._queue.dequeue(name=name or f"{self.name}_get"))

    def peek(self, index: TensorLike, name: str | None = None) -> Any:
        """The element at a place, which stays; its step waits until there are as many."""
        queue = self._queue
        made = _ops.apply_op(
            "GraphdockStagePeek",
            handle=queue.queue_ref,
            index=index,
            component_types=queue.dtypes,
            name=name or f"{self.name}_peek",
        )
        return self._listed(queue._answer(made, lambda shape: shape))

    def size(self, name: str | None = None) -> Any:
        """The number of elements, a scalar int32."""
        return self._queue.size(name=name or f"{self.name}_size")

    def clear(self, name: str | None = None) -> Any:
        """An operation that drops all elements."""
        return _ops.apply_op("GraphdockStageClear", handle=self._queue.queue_ref, name=name or f"{self.name}_clear")

    def _listed(self, value: Any) -> Any:
        return value if isinstance(value, dict | list) else [value]
