"""Operators over matrices that are there: full ones and lower triangular ones."""

from __future__ import annotations

from typing import Any

import graphdock as _tf

from graphdock_tf1.linear_operators.base import LinearOperator, matched


class _OfTensor(LinearOperator):
    """Operator over a tensor ``[..., M, N]``."""

    def __init__(self, tensor: Any, name: str, **promises: bool | None) -> None:
        self._tensor = tensor
        if tensor.shape.ndims is not None and tensor.shape.ndims < 2:
            raise ValueError(f"{name} wants a matrix [..., M, N], not the shape {tensor.shape}")
        super().__init__(tensor.dtype, [tensor], name=name, **promises)

    def _shape(self) -> _tf.TensorShape:
        return self._tensor.shape

    def _shape_tensor(self) -> Any:
        return _tf.shape(self._tensor)

    def _to_dense(self) -> Any:
        return self._tensor

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        tensor, x = matched(self._tensor, x)
        return _tf.matmul(tensor, x, adjoint_a=adjoint)


class LinearOperatorFullMatrix(_OfTensor):
    """Operator over a matrix ``[..., M, N]``, without structure.

    Args: see :class:`LinearOperator`; a promise of positive definiteness and self-adjointness is solved by Cholesky.
    """

    def __init__(
        self,
        matrix: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorFullMatrix",
    ) -> None:
        with _tf.name_scope(name):
            tensor = _tf.convert_to_tensor(matrix, name="matrix")
        super().__init__(
            tensor,
            name,
            is_non_singular=is_non_singular,
            is_self_adjoint=is_self_adjoint,
            is_positive_definite=is_positive_definite,
            is_square=is_square,
        )


class LinearOperatorLowerTriangular(_OfTensor):
    """Operator over the lower triangle of a matrix ``[..., N, N]``; what stands above its diagonal is not read.

    Args: see :class:`LinearOperator`.

    Raises:
      ValueError: it is promised not to be square.
    """

    def __init__(
        self,
        tril: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorLowerTriangular",
    ) -> None:
        if is_square is False:
            raise ValueError("Only square lower triangular operators supported at this time.")
        with _tf.name_scope(name):
            given = _tf.convert_to_tensor(tril, name="tril")
            tensor = _tf.matrix_band_part(given, -1, 0)
        super().__init__(
            tensor,
            name,
            is_non_singular=is_non_singular,
            is_self_adjoint=is_self_adjoint,
            is_positive_definite=is_positive_definite,
            is_square=True,
        )

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        tensor, rhs = matched(self._tensor, rhs)
        return _tf.matrix_triangular_solve(tensor, rhs, lower=True, adjoint=adjoint)

    def _determinant(self) -> Any:
        return _tf.reduce_prod(self._diag_part(), -1)

    def _log_abs_determinant(self) -> Any:
        return _tf.reduce_sum(_tf.log(_tf.abs(self._diag_part())), -1)
