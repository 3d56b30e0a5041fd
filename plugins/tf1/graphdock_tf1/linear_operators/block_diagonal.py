"""Operators along the diagonal of a larger one."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import graphdock as _tf

from graphdock_tf1.linear_operators.base import LinearOperator, agreed, matched
from graphdock_tf1.linear_operators.composed import OfOperators


class LinearOperatorBlockDiag(OfOperators):
    """Operator with others along its diagonal, and zeros elsewhere. Args: operators: square ones. The others: see
    :class:`LinearOperator`.

    Raises:
      ValueError: there are none, their dtypes differ, or one is not square.
    """

    def __init__(
        self,
        operators: Sequence[LinearOperator],
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        name: str | None = None,
    ) -> None:
        for op in operators:
            if op.is_square is False:
                raise ValueError(f"BlockDiag operators must be square; {op.name!r} is not")
        super().__init__(
            operators,
            name or "_ds_".join(op.name for op in operators),
            is_non_singular=agreed(op.is_non_singular for op in operators)
            if is_non_singular is None
            else is_non_singular,
            is_self_adjoint=agreed(op.is_self_adjoint for op in operators)
            if is_self_adjoint is None
            else is_self_adjoint,
            is_positive_definite=agreed(op.is_positive_definite for op in operators)
            if is_positive_definite is None
            else is_positive_definite,
            is_square=is_square,
        )

    def _shape(self) -> _tf.TensorShape:
        side = functools.reduce(lambda a, b: a + b, [op.domain_dimension for op in self.operators])
        return self._batch().concatenate([side, side])

    def _sides(self) -> list[Any]:
        return [op.domain_dimension_tensor() for op in self.operators]

    def _shape_tensor(self) -> Any:
        side = _tf.add_n(self._sides())
        return _tf.concat([self._batch_tensor(), [side, side]], 0)

    def _by_block(self, x: Any, act: Any) -> Any:
        static = [op.domain_dimension.value for op in self.operators]
        parts = _tf.split(x, static if None not in static else _tf.stack(self._sides()), axis=-2)
        return _tf.concat(matched(*[act(op, part) for op, part in zip(self.operators, parts, strict=True)]), -2)

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        return self._by_block(x, lambda op, part: op.matmul(part, adjoint=adjoint))

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        return self._by_block(rhs, lambda op, part: op.solve(part, adjoint=adjoint))

    def _determinant(self) -> Any:
        return functools.reduce(lambda a, b: a * b, [op.determinant() for op in self.operators])

    def _log_abs_determinant(self) -> Any:
        return functools.reduce(lambda a, b: a + b, [op.log_abs_determinant() for op in self.operators])
