"""Diagonal operators: a diagonal, the identity, multiples of it, and zeros."""

from __future__ import annotations

from typing import Any

import graphdock as _tf

from graphdock_tf1.linear_operators.base import LinearOperator
from graphdock_tf1.static_value import constant_value


class LinearOperatorDiag(LinearOperator):
    """Operator of the diagonals ``diag [..., N]``. Args: see :class:`LinearOperator`.

    Raises:
      ValueError: a real diagonal is promised not to be self-adjoint, or the operator not to be square.
    """

    def __init__(
        self,
        diag: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorDiag",
    ) -> None:
        with _tf.name_scope(name):
            self._diag = _tf.convert_to_tensor(diag, name="diag")
        if not self._diag.dtype.is_complex:
            if is_self_adjoint is False:
                raise ValueError("A real diagonal operator is always self adjoint.")
            is_self_adjoint = True
        if is_square is False:
            raise ValueError("Only square diagonal operators currently supported.")
        parents = [self._diag]
        super().__init__(self._diag.dtype, parents, is_non_singular, is_self_adjoint, is_positive_definite, True, name)

    @property
    def diag(self) -> Any:
        """Diagonals ``[..., N]``."""
        return self._diag

    def _shape(self) -> _tf.TensorShape:
        return self._diag.shape.concatenate(self._diag.shape[-1:])

    def _shape_tensor(self) -> Any:
        shape = _tf.shape(self._diag)
        return _tf.concat([shape, shape[-1:]], 0)

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        return (_tf.conj(self._diag) if adjoint else self._diag)[..., None] * x

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        return rhs / (_tf.conj(self._diag) if adjoint else self._diag)[..., None]

    def _to_dense(self) -> Any:
        return _tf.matrix_diag(self._diag)

    def _diag_part(self) -> Any:
        return self._diag

    def _determinant(self) -> Any:
        return _tf.reduce_prod(self._diag, -1)

    def _log_abs_determinant(self) -> Any:
        return _tf.cast(_tf.reduce_sum(_tf.log(_tf.abs(self._diag)), -1), self.dtype)


class LinearOperatorScaledIdentity(LinearOperatorDiag):
    """Operator of ``multiplier [...]`` times the identity of ``num_rows``. Args: see :class:`LinearOperator`."""

    def __init__(
        self,
        num_rows: Any,
        multiplier: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorScaledIdentity",
    ) -> None:
        with _tf.name_scope(name):
            self.multiplier = _tf.convert_to_tensor(multiplier, name="multiplier")
            rows = rows_of(num_rows, assert_proper_shapes)
            batch = _tf.shape(self.multiplier)
            diag = _tf.broadcast_to(self.multiplier[..., None], _tf.concat([batch, [rows]], 0))
        diag.set_shape(self.multiplier.shape.concatenate([constant_value(rows)]))
        super().__init__(diag, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name)


class LinearOperatorIdentity(LinearOperatorDiag):
    """Identity of ``num_rows``, for each of a batch.

    Args:
      batch_shape: shape of the batch, known as the graph is built or a vector of integers; None for a single matrix.
      dtype: float32 where it is None. The others: see :class:`LinearOperator`.

    Raises:
      ValueError: it is promised not to be what an identity is.
    """

    def __init__(
        self,
        num_rows: Any,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: bool | None = True,
        is_self_adjoint: bool | None = True,
        is_positive_definite: bool | None = True,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorIdentity",
    ) -> None:
        if not is_self_adjoint:
            raise ValueError("An identity operator is always self adjoint.")
        if not is_non_singular:
            raise ValueError("An identity operator is always non-singular.")
        if not is_positive_definite:
            raise ValueError("An identity operator is always positive-definite.")
        with _tf.name_scope(name):
            rows = rows_of(num_rows, assert_proper_shapes)
            batch = _tf.convert_to_tensor([] if batch_shape is None else batch_shape, _tf.int32)
            diag = _tf.ones(_tf.concat([batch, [rows]], 0), _tf.as_dtype(dtype or _tf.float32))
        super().__init__(diag, True, True, True, is_square, name)

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        return x + _tf.zeros_like(self._diag)[..., None] if self.batch_shape.ndims != 0 else _tf.identity(x)

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        return self._matmul(rhs, adjoint)


class LinearOperatorZeros(LinearOperator):
    """Operator of zeros ``[..., num_rows, num_columns]``.

    Args:
      num_columns: as many as rows where it is None. batch_shape, dtype: see :class:`LinearOperatorIdentity`. The others: see
        :class:`LinearOperator`.

    Raises:
      ValueError: it is promised to be what zeros are not.
    """

    def __init__(
        self,
        num_rows: Any,
        num_columns: Any = None,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: bool | None = False,
        is_self_adjoint: bool | None = True,
        is_positive_definite: bool | None = False,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorZeros",
    ) -> None:
        if is_non_singular:
            raise ValueError("A zero operator is never non-singular.")
        if is_positive_definite:
            raise ValueError("A zero operator is never positive-definite.")
        with _tf.name_scope(name):
            rows = rows_of(num_rows, assert_proper_shapes)
            columns = rows if num_columns is None else rows_of(num_columns, assert_proper_shapes)
            batch = _tf.convert_to_tensor([] if batch_shape is None else batch_shape, _tf.int32)
            self._zeros = _tf.zeros(_tf.concat([batch, [rows, columns]], 0), _tf.as_dtype(dtype or _tf.float32))
        own = bool(is_self_adjoint) if is_square else False
        super().__init__(self._zeros.dtype, [], False, own, False, is_square, name)

    def _shape(self) -> _tf.TensorShape:
        return self._zeros.shape

    def _shape_tensor(self) -> Any:
        return _tf.shape(self._zeros)

    def _to_dense(self) -> Any:
        return self._zeros

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        shape = self._shape_tensor()
        batch = _tf.broadcast_dynamic_shape(shape[:-2], _tf.shape(x)[:-2])
        return _tf.zeros(_tf.concat([batch, [shape[-1 if adjoint else -2], _tf.shape(x)[-1]]], 0), self.dtype)

    def _diag_part(self) -> Any:
        return _tf.matrix_diag_part(self._zeros)

    def _determinant(self) -> Any:
        return _tf.zeros(self._shape_tensor()[:-2], self.dtype)


def rows_of(count: Any, checked: bool) -> Any:
    """A number of rows as an int32 scalar; one that a step knows is checked in it where ``checked``.

    Raises:
      TypeError: it is no integer. ValueError: it is known to be no scalar, or negative.
    """
    given = _tf.convert_to_tensor(count)
    if not given.dtype.is_integer:
        raise TypeError(f"Argument num_rows must be integer type.  Found: {count}")
    if given.shape.ndims not in (0, None):
        raise ValueError(f"Argument num_rows must be a 0-D Tensor.  Found: {count}")
    known = constant_value(given)
    if known is not None and known < 0:
        raise ValueError(f"Argument num_rows must be non-negative.  Found: {count}")
    if known is None and checked:
        with _tf.control_dependencies(
            [_tf.assert_non_negative(given, message="Argument num_rows must be non-negative")]
        ):
            given = _tf.identity(given)
    return _tf.cast(given, _tf.int32)
