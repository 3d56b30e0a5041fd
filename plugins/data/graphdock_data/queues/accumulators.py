"""Conditional accumulators: gradients of workers, taken as one once enough have come."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.typing import DTypeLike, TensorLike


class ConditionalAccumulatorBase:
    """An accumulator in the graph; what makes one are its subclasses.

    Args:
      dtype, shape: of a gradient. accumulator_ref: the tensor that names the accumulator.
    """

    def __init__(self, dtype: DTypeLike, shape: Any, accumulator_ref: Any) -> None:
        self._dtype = _tf.as_dtype(dtype)
        self._shape = _tf.TensorShape(shape)
        self._accumulator_ref = accumulator_ref

    @property
    def accumulator_ref(self) -> Any:
        """The tensor that names the accumulator."""
        return self._accumulator_ref

    @property
    def name(self) -> str:
        return str(self._accumulator_ref.op.name).rpartition("/")[2]

    @property
    def dtype(self) -> Any:
        return self._dtype

    def num_accumulated(self, name: str | None = None) -> Any:
        """The number of gradients that have come, a scalar int32."""
        name = name or f"{self.name}_NumAccumulated"
        return _ops.apply_op("ResourceAccumulatorNumAccumulated", handle=self._accumulator_ref, name=name)

    def set_global_step(self, new_global_step: TensorLike, name: str | None = None) -> Any:
        """An operation that sets the step before which gradients count for nothing; it never goes back."""
        step = _tf.cast(_ops.convert_to_tensor(new_global_step), _tf.int64)
        return _ops.apply_op(
            "ResourceAccumulatorSetGlobalStep", handle=self._accumulator_ref, new_global_step=step, name=name
        )

    def reset(self, global_step: TensorLike, name: str | None = None, *, once: bool = False) -> Any:
        """An operation that begins anew at a step, which may be an earlier one; steps that wait to take end with a CancelledError.

        What has come is dropped, but at the first reset to a later step. With ``once`` a replica's gradient counts once, from now
        on, until some are taken, and one of a later step not at all. It gives a bool: whether gradients may be lost by it for which
        their replicas wait. TensorFlow has no such operation.
        """
        step = _tf.cast(_ops.convert_to_tensor(global_step), _tf.int64)
        return _ops.apply_op(
            "ResourceAccumulatorReset", handle=self._accumulator_ref, global_step=step, once=once, name=name
        )


def _make(op: str, dtype: Any, shape: Any, shared_name: str | None, name: str, reduction_type: str) -> Any:
    dims = None if shape is None else _tf.TensorShape(shape).as_list()
    return _ops.apply_op(
        op, dtype=dtype, shape=dims, shared_name=shared_name or "", reduction_type=reduction_type, name=name
    )


class ConditionalAccumulator(ConditionalAccumulatorBase):
    """An accumulator of gradients of one shape.

    Args:
      dtype, shape: of a gradient. shared_name: under which sessions of a container share it. name: of its operation.
      reduction_type: ``"MEAN"`` or ``"SUM"``, of what is taken.
    """

    def __init__(
        self,
        dtype: DTypeLike,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        ref = _make("ResourceConditionalAccumulator", dtype, shape, shared_name, name, reduction_type)
        super().__init__(dtype, shape, ref)

    def apply_grad(
        self, grad: TensorLike, local_step: TensorLike = 0, name: str | None = None, *, replica: int = -1
    ) -> Any:
        """An operation that adds a gradient; one of a step before the global one counts for nothing.

        ``replica``: number of the replica that it is of: a session that is ``deterministic`` adds gradients in that order. Not in
        TensorFlow.
        """
        gradient = _ops.convert_to_tensor(grad, self._dtype)
        gradient.shape.assert_is_compatible_with(self._shape)
        return _ops.apply_op(
            "ResourceAccumulatorApplyGradient",
            handle=self._accumulator_ref,
            local_step=_tf.cast(_ops.convert_to_tensor(local_step), _tf.int64),
            gradient=gradient,
            replica=replica,
            name=name,
        )

    def take_grad(self, num_required: TensorLike, name: str | None = None) -> Any:
        """The mean or sum of the gradients; its step waits until ``num_required`` have come. The global step goes on by one."""
        made = _ops.apply_op(
            "ResourceAccumulatorTakeGradient",
            handle=self._accumulator_ref,
            num_required=num_required,
            dtype=self._dtype,
            name=name,
        )
        made.set_shape(self._shape)
        return made


class SparseConditionalAccumulator(ConditionalAccumulatorBase):
    """An accumulator of rows of gradients; arguments as of :class:`ConditionalAccumulator`."""

    def __init__(
        self,
        dtype: DTypeLike,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "sparse_conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        ref = _make("SparseConditionalAccumulator", dtype, shape, shared_name, name, reduction_type)
        super().__init__(dtype, shape, ref)

    def apply_indexed_slices_grad(
        self, grad: Any, local_step: TensorLike = 0, name: str | None = None, *, replica: int = -1
    ) -> Any:
        """As :meth:`apply_grad`, of IndexedSlices."""
        return self.apply_grad(grad.indices, grad.values, grad.dense_shape, local_step, name, replica=replica)

    def apply_grad(
        self,
        grad_indices: TensorLike,
        grad_values: TensorLike,
        grad_shape: TensorLike | None = None,
        local_step: TensorLike = 0,
        name: str | None = None,
        *,
        replica: int = -1,
    ) -> Any:
        """An operation that adds rows of a gradient, as :meth:`ConditionalAccumulator.apply_grad` adds a gradient."""
        shape = _tf.constant([], _tf.int64) if grad_shape is None else grad_shape
        return _ops.apply_op(
            "SparseAccumulatorApplyGradient",
            handle=self._accumulator_ref,
            local_step=_tf.cast(_ops.convert_to_tensor(local_step), _tf.int64),
            gradient_indices=_tf.cast(_ops.convert_to_tensor(grad_indices), _tf.int64),
            gradient_values=_ops.convert_to_tensor(grad_values, self._dtype),
            gradient_shape=_tf.cast(_ops.convert_to_tensor(shape), _tf.int64),
            has_known_shape=grad_shape is not None,
            replica=replica,
            name=name,
        )

    def take_grad(self, num_required: TensorLike, name: str | None = None) -> Any:
        """Indices, rows and shape of the mean or sum; otherwise as :meth:`ConditionalAccumulator.take_grad`."""
        return _ops.apply_op(
            "SparseAccumulatorTakeGradient",
            handle=self._accumulator_ref,
            num_required=num_required,
            dtype=self._dtype,
            name=name,
        )

    def take_indexed_slices_grad(self, num_required: TensorLike, name: str | None = None) -> Any:
        """As :meth:`take_grad`, as IndexedSlices."""
        indices, values, shape = self.take_grad(num_required, name)
        return _tf.IndexedSlices(values, indices, shape)
