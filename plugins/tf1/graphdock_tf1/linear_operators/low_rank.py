"""Updates of low rank of an operator."""

from __future__ import annotations

from typing import Any

import graphdock as _tf

from graphdock_tf1.linear_operators.base import LinearOperator, matched
from graphdock_tf1.linear_operators.composed import OfOperators
from graphdock_tf1.linear_operators.dense import LinearOperatorFullMatrix
from graphdock_tf1.linear_operators.diagonal import LinearOperatorDiag


class LinearOperatorLowRankUpdate(OfOperators):
    """Operator ``L + U D V^H`` of a base ``L [..., M, N]`` and ``U [..., M, K]``, ``D [..., K]``, ``V [..., N, K]``.

    Args:
      base_operator: L. u: U. diag_update: D, of ones where it is None. v: V, that of ``u`` where it is None.
      is_diag_update_positive: a promise that D is positive; then the sum is positive definite if the base is and ``v`` is None.
      The others: see :class:`LinearOperator`.

    It is solved by Woodbury's identity where the base is promised to be non-singular.
    """

    def __init__(
        self,
        base_operator: LinearOperator,
        u: Any,
        diag_update: Any = None,
        v: Any = None,
        is_diag_update_positive: bool | None = None,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorLowRankUpdate",
    ) -> None:
        dtype = base_operator.dtype
        with _tf.name_scope(name):
            self.u = _tf.convert_to_tensor(u, dtype, name="u")
            self.v = self.u if v is None else _tf.convert_to_tensor(v, dtype, name="v")
            self._fits(self.u.shape.dims[-1], self.v.shape.dims[-1])
            self._fits(base_operator.range_dimension, self.u.shape.dims[-2])
            self._fits(base_operator.domain_dimension, self.v.shape.dims[-2])
            given = _tf.ones_like(self.u[..., 0, :]) if diag_update is None else diag_update
            self.diag_update = _tf.convert_to_tensor(given, dtype, name="diag_update")
        self.is_diag_update_positive = True if diag_update is None else is_diag_update_positive
        if v is None and base_operator.is_self_adjoint and not dtype.is_complex and is_self_adjoint is None:
            is_self_adjoint = True
        if v is None and base_operator.is_positive_definite and self.is_diag_update_positive:
            if is_positive_definite is False or is_non_singular is False:
                raise ValueError("an update of positive rank of a positive definite operator is positive definite")
            is_positive_definite = True
        super().__init__(
            [base_operator],
            name,
            is_non_singular=is_non_singular,
            is_self_adjoint=is_self_adjoint,
            is_positive_definite=is_positive_definite,
            is_square=is_square,
        )

    @property
    def base_operator(self) -> LinearOperator:
        """Operator that is updated."""
        return self.operators[0]

    @property
    def diag_operator(self) -> LinearOperator:
        """Operator of D."""
        return LinearOperatorDiag(self.diag_update, is_positive_definite=self.is_diag_update_positive)

    def _shape(self) -> _tf.TensorShape:
        shape = self.base_operator.shape
        return _tf.broadcast_static_shape(shape[:-2], self.u.shape[:-2]).concatenate(shape[-2:])

    def _shape_tensor(self) -> Any:
        shape = self.base_operator.shape_tensor()
        return _tf.concat([_tf.broadcast_dynamic_shape(shape[:-2], _tf.shape(self.u)[:-2]), shape[-2:]], 0)

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        left, right = (self.v, self.u) if adjoint else (self.u, self.v)
        inner = LinearOperatorFullMatrix(right).matmul(x, adjoint=True)
        update = LinearOperatorFullMatrix(left).matmul(self.diag_operator.matmul(inner, adjoint=adjoint))
        return self.base_operator.matmul(x, adjoint=adjoint) + update

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        if not self.base_operator.is_non_singular:
            return super()._solve(rhs, adjoint)
        left, right = (self.v, self.u) if adjoint else (self.u, self.v)
        solved = self.base_operator.solve(rhs, adjoint=adjoint)
        through = self.base_operator.solve(left, adjoint=adjoint)
        capacitance = self._capacitance(_tf.linalg.adjoint(right), through, adjoint)
        inner = LinearOperatorFullMatrix(right).matmul(solved, adjoint=True)
        correction = LinearOperatorFullMatrix(capacitance).solve(inner)
        return solved - LinearOperatorFullMatrix(through).matmul(correction)

    def _capacitance(self, right: Any, through: Any, adjoint: bool) -> Any:
        """``D^-1 + V^H L^-1 U``."""
        diag = _tf.conj(self.diag_update) if adjoint else self.diag_update
        a, b = matched(right, through)
        return _tf.matrix_diag(1 / diag) + _tf.matmul(a, b)

    def _log_abs_determinant(self) -> Any:
        if not self.base_operator.is_non_singular:
            return super()._log_abs_determinant()
        inner = self._capacitance(_tf.linalg.adjoint(self.v), self.base_operator.solve(self.u), adjoint=False)
        parts = LinearOperatorFullMatrix(inner).log_abs_determinant() + self.diag_operator.log_abs_determinant()
        return self.base_operator.log_abs_determinant() + parts

    def _determinant(self) -> Any:
        if not self.base_operator.is_non_singular:
            return super()._determinant()
        inner = self._capacitance(_tf.linalg.adjoint(self.v), self.base_operator.solve(self.u), adjoint=False)
        return _tf.matrix_determinant(inner) * self.diag_operator.determinant() * self.base_operator.determinant()
