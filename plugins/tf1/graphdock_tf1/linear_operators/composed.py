"""Operators made of others: products, adjoints and inverses."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import graphdock as _tf

from graphdock_tf1.linear_operators.base import LinearOperator, agreed


class OfOperators(LinearOperator):
    """Operator over several of one dtype.

    Raises:
      ValueError: there are none, or their dtypes differ.
    """

    def __init__(self, operators: Sequence[LinearOperator], name: str, **promises: bool | None) -> None:
        self.operators = list(operators)
        if not self.operators:
            raise ValueError("Expected a non-empty list of operators.")
        types = sorted({op.dtype.name for op in self.operators})
        if len(types) > 1:
            raise ValueError(f"Expected all operators to have the same dtype.  Found {', '.join(types)}")
        parents = [tensor for op in self.operators for tensor in op.graph_parents]
        super().__init__(self.operators[0].dtype, parents, name=name, **promises)

    def _batch(self) -> _tf.TensorShape:
        return functools.reduce(_tf.broadcast_static_shape, [op.batch_shape for op in self.operators])

    def _batch_tensor(self) -> Any:
        return functools.reduce(_tf.broadcast_dynamic_shape, [op.batch_shape_tensor() for op in self.operators])


class LinearOperatorComposition(OfOperators):
    """Product of operators, the last one first. Args: operators: factors, in order. The others: see :class:`LinearOperator`.

    Raises:
      ValueError: there are none, their dtypes differ, or their dims do not fit.
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
        if is_non_singular is None:
            is_non_singular = agreed(op.is_non_singular for op in operators)
        super().__init__(
            operators,
            name or "_o_".join(op.name for op in operators),
            is_non_singular=is_non_singular,
            is_self_adjoint=is_self_adjoint,
            is_positive_definite=is_positive_definite,
            is_square=is_square,
        )
        for left, right in zip(self.operators, self.operators[1:], strict=False):
            self._fits(left.domain_dimension, right.range_dimension)

    def _shape(self) -> _tf.TensorShape:
        return self._batch().concatenate([self.operators[0].range_dimension, self.operators[-1].domain_dimension])

    def _shape_tensor(self) -> Any:
        sides = [self.operators[0].range_dimension_tensor(), self.operators[-1].domain_dimension_tensor()]
        return _tf.concat([self._batch_tensor(), sides], 0)

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        for op in self.operators if adjoint else reversed(self.operators):
            x = op.matmul(x, adjoint=adjoint)
        return x

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        if not all(op.is_square for op in self.operators):
            return super()._solve(rhs, adjoint)
        for op in reversed(self.operators) if adjoint else self.operators:
            rhs = op.solve(rhs, adjoint=adjoint)
        return rhs

    def _determinant(self) -> Any:
        if not all(op.is_square for op in self.operators):
            return super()._determinant()
        return functools.reduce(lambda a, b: a * b, [op.determinant() for op in self.operators])

    def _log_abs_determinant(self) -> Any:
        if not all(op.is_square for op in self.operators):
            return super()._log_abs_determinant()
        return functools.reduce(lambda a, b: a + b, [op.log_abs_determinant() for op in self.operators])


class _OfOne(OfOperators):
    """Operator that turns another one: its facts are that one's."""

    def __init__(
        self,
        operator: LinearOperator,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        given = {
            "is_non_singular": is_non_singular,
            "is_self_adjoint": is_self_adjoint,
            "is_positive_definite": is_positive_definite,
            "is_square": is_square,
        }
        promises: dict[str, bool | None] = {}
        for word, ours in given.items():
            theirs = getattr(operator, word)
            if None not in (ours, theirs) and ours != theirs:
                raise ValueError(f"{word} is {ours}, and {theirs} of the operator {operator.name!r}")
            promises[word] = theirs if ours is None else ours
        super().__init__([operator], name or f"{operator.name}_{self._word}", **promises)

    _word = "operator"

    @property
    def operator(self) -> LinearOperator:
        """Operator that is turned."""
        return self.operators[0]

    def _shape(self) -> _tf.TensorShape:
        shape = self.operator.shape
        return shape if shape.ndims is None else shape[:-2].concatenate([shape[-1], shape[-2]])

    def _shape_tensor(self) -> Any:
        shape = self.operator.shape_tensor()
        return _tf.concat([shape[:-2], [shape[-1], shape[-2]]], 0)


class LinearOperatorAdjoint(_OfOne):
    """Conjugate transpose of an operator. Args: see :class:`LinearOperator`; promises are the operator's where they are None."""

    _word = "adjoint"

    def adjoint(self, name: str = "adjoint") -> LinearOperator:
        """Return the operator itself."""
        return self.operator

    H = property(adjoint, doc="Operator itself.")

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        return self.operator.matmul(x, adjoint=not adjoint)

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        return self.operator.solve(rhs, adjoint=not adjoint)

    def _to_dense(self) -> Any:
        return _tf.linalg.adjoint(self.operator.to_dense())

    def _diag_part(self) -> Any:
        return _tf.conj(self.operator.diag_part())

    def _determinant(self) -> Any:
        return _tf.conj(self.operator.determinant())

    def _log_abs_determinant(self) -> Any:
        return self.operator.log_abs_determinant()


class LinearOperatorInversion(_OfOne):
    """Inverse of an operator: its product solves. Args: see :class:`LinearOperatorAdjoint`.

    Raises:
      ValueError: the operator is promised to be singular.
    """

    _word = "inv"

    def __init__(
        self,
        operator: LinearOperator,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        if operator.is_non_singular is False or is_non_singular is False:
            raise ValueError("operator and supplied hints must have is_non_singular=True or None")
        super().__init__(operator, True, is_self_adjoint, is_positive_definite, is_square, name)

    def inverse(self, name: str = "inverse") -> LinearOperator:
        """Return the operator itself."""
        return self.operator

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        return self.operator.solve(x, adjoint=adjoint)

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        return self.operator.matmul(rhs, adjoint=adjoint)

    def _determinant(self) -> Any:
        return 1 / self.operator.determinant()

    def _log_abs_determinant(self) -> Any:
        return -self.operator.log_abs_determinant()
