"""Householder reflections."""

from __future__ import annotations

from typing import Any

import graphdock as _tf

from graphdock_tf1.linear_operators.base import LinearOperator


class LinearOperatorHouseholder(LinearOperator):
    """Reflection ``I - 2 v v^H`` on the hyperplane that stands upright on ``reflection_axis [..., N]``, of any length but 0.

    Args: see :class:`LinearOperator`.

    Raises:
      ValueError: it is promised not to be self-adjoint, or to be positive definite.
    """

    def __init__(
        self,
        reflection_axis: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorHouseholder",
    ) -> None:
        if is_self_adjoint is False:
            raise ValueError("A Householder operator is always self adjoint.")
        if is_positive_definite:
            raise ValueError("A Householder operator is never positive definite.")
        if is_non_singular is False or is_square is False:
            raise ValueError("A Householder operator is always square and non-singular.")
        with _tf.name_scope(name):
            self.reflection_axis = _tf.convert_to_tensor(reflection_axis, name="reflection_axis")
        super().__init__(self.reflection_axis.dtype, [self.reflection_axis], True, True, False, True, name)

    def _shape(self) -> _tf.TensorShape:
        return self.reflection_axis.shape.concatenate(self.reflection_axis.shape[-1:])

    def _shape_tensor(self) -> Any:
        shape = _tf.shape(self.reflection_axis)
        return _tf.concat([shape, shape[-1:]], 0)

    def _unit(self) -> Any:
        return _tf.math.l2_normalize(self.reflection_axis, axis=-1)[..., None]

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        unit = self._unit()
        return x - 2 * unit * _tf.reduce_sum(_tf.conj(unit) * x, -2, keepdims=True)

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        return self._matmul(rhs, adjoint)

    def _diag_part(self) -> Any:
        unit = self._unit()[..., 0]
        return 1 - 2 * unit * _tf.conj(unit)

    def _determinant(self) -> Any:
        return -_tf.ones(self._shape_tensor()[:-2], self.dtype)

    def _log_abs_determinant(self) -> Any:
        return _tf.zeros(self._shape_tensor()[:-2], self.dtype)
