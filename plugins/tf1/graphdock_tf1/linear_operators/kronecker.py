"""Kronecker products of operators."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import graphdock as _tf

from graphdock_tf1.linear_operators.base import LinearOperator, agreed
from graphdock_tf1.linear_operators.composed import OfOperators


class LinearOperatorKronecker(OfOperators):
    """Kronecker product of operators. Args: operators: factors, in order. The others: see :class:`LinearOperator`.

    Raises:
      ValueError: there are none, or their dtypes differ.
    """

    def __init__(
        self,
        operators: Sequence[LinearOperator],
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            operators,
            name or "_x_".join(op.name for op in operators),
            is_non_singular=agreed(op.is_non_singular for op in operators)
            if is_non_singular is None
            else is_non_singular,
            is_self_adjoint=agreed(op.is_self_adjoint for op in operators)
            if is_self_adjoint is None
            else is_self_adjoint,
            is_positive_definite=is_positive_definite,
            is_square=is_square,
        )

    def _shape(self) -> _tf.TensorShape:
        sides = [[op.range_dimension for op in self.operators], [op.domain_dimension for op in self.operators]]
        return self._batch().concatenate([functools.reduce(lambda a, b: a * b, side) for side in sides])

    def _shape_tensor(self) -> Any:
        rows = [op.range_dimension_tensor() for op in self.operators]
        columns = [op.domain_dimension_tensor() for op in self.operators]
        sides = [functools.reduce(lambda a, b: a * b, side) for side in (rows, columns)]
        return _tf.concat([self._batch_tensor(), sides], 0)

    def _by_factor(self, x: Any, sides: list[Any], act: Any) -> Any:
        """Act on one factor's axis of ``x [..., side 1, side 2, ..., R]`` after the other; each comes last in its turn."""
        batch = _tf.broadcast_dynamic_shape(self._batch_tensor(), _tf.shape(x)[:-2])
        x = _tf.broadcast_to(x, _tf.concat([batch, _tf.shape(x)[-2:]], 0))
        columns = _tf.shape(x)[-1]
        # the factor's axis stands in front of all others, which are one axis: [..., side, rest]
        for op, side in zip(self.operators, sides, strict=True):
            rest = _tf.size(x) // _tf.maximum(_tf.reduce_prod(batch) * side, 1)
            done = act(op, _tf.reshape(x, _tf.concat([batch, [side, rest]], 0)))
            # the axis that is done goes behind what is left to do and before the columns
            made, left = _tf.shape(done)[-2], rest // _tf.maximum(columns, 1)
            turned = _tf.transpose(_tf.reshape(done, [_tf.reduce_prod(batch), made, left, columns]), [0, 2, 1, 3])
            x = _tf.reshape(turned, _tf.concat([batch, [left * made, columns]], 0))
        return x

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        sides = [op.range_dimension_tensor() if adjoint else op.domain_dimension_tensor() for op in self.operators]
        out = self._by_factor(x, sides, lambda op, part: op.matmul(part, adjoint=adjoint))
        out.set_shape([*[None] * (out.shape.ndims - 2), self._side(-1 if adjoint else -2), x.shape.dims[-1]])
        return out

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        if not all(op.is_square for op in self.operators):
            return super()._solve(rhs, adjoint)
        sides = [op.range_dimension_tensor() for op in self.operators]
        out = self._by_factor(rhs, sides, lambda op, part: op.solve(part, adjoint=adjoint))
        out.set_shape([*[None] * (out.shape.ndims - 2), self._side(-2), rhs.shape.dims[-1]])
        return out

    def _diag_part(self) -> Any:
        if not all(op.is_square for op in self.operators):
            return super()._diag_part()
        found = self.operators[0].diag_part()
        for op in self.operators[1:]:
            outer = found[..., :, None] * op.diag_part()[..., None, :]
            found = _tf.reshape(outer, _tf.concat([_tf.shape(outer)[:-2], [-1]], 0))
        return found

    def _powers(self, values: list[Any]) -> list[Any]:
        """Each factor's value with the number of times that it counts: the whole side over the factor's own."""
        whole = self.domain_dimension_tensor()
        return [
            (value, _tf.cast(whole // op.domain_dimension_tensor(), self.dtype))
            for op, value in zip(self.operators, values, strict=True)
        ]

    def _determinant(self) -> Any:
        if not all(op.is_square for op in self.operators):
            return super()._determinant()
        powers = self._powers([op.determinant() for op in self.operators])
        return functools.reduce(lambda a, b: a * b, [_tf.pow(value, times) for value, times in powers])

    def _log_abs_determinant(self) -> Any:
        if not all(op.is_square for op in self.operators):
            return super()._log_abs_determinant()
        powers = self._powers([op.log_abs_determinant() for op in self.operators])
        return functools.reduce(lambda a, b: a + b, [value * times for value, times in powers])
