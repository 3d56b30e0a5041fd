"""Barriers in the graph: TensorFlow's ``data_flow_ops.Barrier``."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError
from graphdock.typing import TensorLike

from graphdock_data.queues.queues import _shapes as _known_shapes


class Barrier:
    """A map from keys to elements of several components, each of which is taken once it is complete.

    Args:
      types, shapes: of the components; shapes are all known, or None.
      shared_name: under which sessions of a container share it. name: of its operation.

    Raises:
      InvalidArgumentError: not as many shapes as types, or a shape that is not known, or of no elements.
    """

    def __init__(self, types: Any, shapes: Any = None, shared_name: str | None = None, name: str = "barrier") -> None:
        self._types = [_tf.as_dtype(t) for t in (types if isinstance(types, list | tuple) else [types])]
        known = _known_shapes(shapes, len(self._types))
        for i, shape in enumerate(known or ()):
            if 0 in shape.as_list():
                raise InvalidArgumentError(f"Empty tensors are not supported, but received shape {shape} at index {i}")
        self._shapes = [_tf.TensorShape(None)] * len(self._types) if known is None else known
        self._barrier_ref = _ops.apply_op(
            "Barrier",
            component_types=self._types,
            shapes=[] if known is None else [s.as_list() for s in known],
            shared_name=shared_name or "",
            name=name,
        )

    @property
    def barrier_ref(self) -> Any:
        """The tensor that names the barrier."""
        return self._barrier_ref

    @property
    def name(self) -> str:
        return str(self._barrier_ref.op.name)

    def _run(self, op: str, name: str | None, what: str, **inputs: Any) -> Any:
        name = name or f"{self.name.rpartition('/')[2]}_{what}"
        return _ops.apply_op(op, handle=self._barrier_ref, name=name, **inputs)

    def insert_many(self, component_index: int, keys: TensorLike, values: TensorLike, name: str | None = None) -> Any:
        """An operation that inserts one component of several keys.

        Raises:
          in the step InvalidArgumentError: a key has it already. CancelledError: the barrier is closed.
        """
        kind = self._types[component_index] if 0 <= component_index < len(self._types) else None
        tensor = _ops.convert_to_tensor(values, kind)
        return self._run(
            "BarrierInsertMany", name, "BarrierInsertMany", component_index=component_index, keys=keys, values=tensor
        )

    def take_many(
        self,
        num_elements: TensorLike,
        allow_small_batch: bool = False,
        timeout: int | None = None,
        name: str | None = None,
    ) -> Any:
        """Complete elements: their numbers, keys, and a list of components; its step waits until there are as many. Keys that one
        step of an operation brought have one number; they count from the lowest int64 on.

        Args:
          allow_small_batch: a closed barrier gives what is complete. timeout: taken and without effect; a step has its own limit.

        Raises:
          in the step OutOfRangeError: the barrier is closed, and no more will be complete.
        """
        indices, keys, values = self._run(
            "BarrierTakeMany",
            name,
            "BarrierTakeMany",
            num_elements=num_elements,
            allow_small_batch=allow_small_batch,
            component_types=self._types,
        )
        for value, shape in zip(values, self._shapes, strict=True):
            value.set_shape(_tf.TensorShape([None]).concatenate(shape))
        return indices, keys, values

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Any:
        """An operation that closes it to new keys, or to new components too."""
        return self._run("BarrierClose", name, "BarrierClose", cancel_pending_enqueues=cancel_pending_enqueues)

    def ready_size(self, name: str | None = None) -> Any:
        """The number of complete elements, a scalar int32."""
        return self._run("BarrierReadySize", name, "BarrierReadySize")

    def incomplete_size(self, name: str | None = None) -> Any:
        """The number of elements that lack a component, a scalar int32."""
        return self._run("BarrierIncompleteSize", name, "BarrierIncompleteSize")
