"""Linear operator: a batch of matrices that are multiplied, solved and summed without being written out.

A subclass gives its shape and its product; what it does not give is computed from the dense matrix.
"""

from __future__ import annotations

import functools
from typing import Any

import graphdock as _tf

#: Dims of the matrix itself, behind those of the batch.
_MATRIX = 2


class LinearOperator:
    """Batch of matrices ``[..., M, N]`` that acts on vectors and matrices.

    Args:
      dtype: of its entries.
      graph_parents: tensors that it stands on; kept for whoever asks.
      is_non_singular: a promise that it can be inverted; None where nothing is known, as with those that follow.
      is_self_adjoint: a promise that it equals its conjugate transpose.
      is_positive_definite: a promise that ``x^H A x`` has a positive real part for each ``x`` but 0.
      is_square: a promise that M is N.
      name: a scope for its ops.

    Raises:
      ValueError: promises contradict each other.

    Source: TensorFlow's ``tf.linalg.LinearOperator``. Threads: as the graph that it writes to.
    """

    def __init__(
        self,
        dtype: Any,
        graph_parents: Any = None,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        if is_positive_definite:
            if is_non_singular is False:
                raise ValueError("A positive definite matrix is always non-singular.")
            is_non_singular = True
        for given, word in ((is_non_singular, "non-singular"), (is_self_adjoint, "self-adjoint")):
            if given and is_square is False:
                raise ValueError(f"A {word} matrix is always square.")
        self._square = True if is_non_singular or is_self_adjoint else is_square
        self._parents = list(graph_parents or ())
        self.dtype = _tf.as_dtype(dtype).base_dtype
        self.is_non_singular = is_non_singular
        self.is_self_adjoint = is_self_adjoint
        self.is_positive_definite = is_positive_definite
        self.name = name or type(self).__name__

    # what subclasses give

    def _shape(self) -> _tf.TensorShape:
        """Return the static shape ``[..., M, N]``."""
        raise NotImplementedError("Shape is not implemented by default.")

    def _shape_tensor(self) -> Any:
        """Return the shape of a step, int32; here that of an operator whose static shape is known."""
        return _tf.constant(self.shape.as_list(), _tf.int32)

    def _matmul(self, x: Any, adjoint: bool) -> Any:
        """Return the product with ``x [..., N, R]``, by the conjugate transpose where ``adjoint``."""
        raise NotImplementedError("_matmul is not implemented.")

    def _solve(self, rhs: Any, adjoint: bool) -> Any:
        """Return ``X`` of ``A X = rhs [..., M, R]``, of the conjugate transpose where ``adjoint``."""
        dense, rhs = matched(self.to_dense(), rhs)
        if self.is_positive_definite and self.is_self_adjoint:
            return _tf.cholesky_solve(_tf.cholesky(dense), rhs)
        return _tf.matrix_solve(dense, rhs, adjoint=adjoint)

    def _to_dense(self) -> Any:
        shape = self.shape_tensor()
        unit = _tf.eye(shape[-1], batch_shape=shape[:-_MATRIX], dtype=self.dtype)
        return self._matmul(unit, adjoint=False)

    def _diag_part(self) -> Any:
        return _tf.matrix_diag_part(self.to_dense())

    def _determinant(self) -> Any:
        return _tf.matrix_determinant(self.to_dense())

    def _log_abs_determinant(self) -> Any:
        return _tf.linalg.slogdet(self.to_dense())[1]

    def _add_to_tensor(self, x: Any) -> Any:
        return x + self.to_dense()

    # shapes

    @property
    def graph_parents(self) -> list[Any]:
        """Tensors that the operator stands on."""
        return self._parents

    @property
    def shape(self) -> _tf.TensorShape:
        """Static shape ``[..., M, N]``."""
        return self._shape()

    @property
    def batch_shape(self) -> _tf.TensorShape:
        """Static shape of the batch."""
        return self.shape[:-_MATRIX]

    @property
    def tensor_rank(self) -> int | None:
        """Rank of the dense tensor; None where it is unknown."""
        return self.shape.ndims

    @property
    def domain_dimension(self) -> Any:
        """Dimension N of the vectors that it takes."""
        return _tf.Dimension(None) if self.shape.ndims is None else self.shape.dims[-1]

    @property
    def range_dimension(self) -> Any:
        """Dimension M of the vectors that it gives."""
        return _tf.Dimension(None) if self.shape.ndims is None else self.shape.dims[-2]

    @property
    def is_square(self) -> bool | None:
        """Truth of M = N; None where that is not known.

        Raises:
          ValueError: it was promised not to be, and is.
        """
        ours, theirs = self.domain_dimension.value, self.range_dimension.value
        found = None if ours is None or theirs is None else ours == theirs
        if self._square is False and found:
            raise ValueError("User set is_square hint to False, but the operator was square.")
        return found if self._square is None else self._square

    def shape_tensor(self, name: str = "shape_tensor") -> Any:
        """Shape ``[..., M, N]`` of a step, int32."""
        with self._scope(name):
            return self._shape_tensor()

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Any:
        """Shape of a step's batch, int32."""
        with self._scope(name):
            return self._shape_tensor()[:-_MATRIX]

    def tensor_rank_tensor(self, name: str = "tensor_rank_tensor") -> Any:
        """Rank of the dense tensor, int32."""
        with self._scope(name):
            return _tf.size(self._shape_tensor())

    def domain_dimension_tensor(self, name: str = "domain_dimension_tensor") -> Any:
        """Dimension N of a step, int32."""
        with self._scope(name):
            return self._shape_tensor()[-1]

    def range_dimension_tensor(self, name: str = "range_dimension_tensor") -> Any:
        """Dimension M of a step, int32."""
        with self._scope(name):
            return self._shape_tensor()[-2]

    # what it does

    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul") -> Any:
        """Return ``A X`` for a matrix ``x [..., N, R]``, or the composition with another operator.

        Args:
          adjoint: whether the conjugate transpose of this operator is taken. adjoint_arg: whether that of ``x`` is.

        Raises:
          ValueError: the dims do not fit.
        """
        if isinstance(x, LinearOperator):
            from graphdock_tf1.linear_operators.composed import LinearOperatorComposition

            left, right = (self.adjoint() if adjoint else self), (x.adjoint() if adjoint_arg else x)
            self._fits(left.domain_dimension, right.range_dimension)
            return LinearOperatorComposition([left, right])
        with self._scope(name):
            x = self._argument(x)
            self._fits(self._side(-2 if adjoint else -1), dim_of(x, -1 if adjoint_arg else -2))
            return self._matmul(_tf.linalg.adjoint(x) if adjoint_arg else x, adjoint)

    def __matmul__(self, other: Any) -> Any:
        return self.matmul(other)

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Any:
        """Return ``A x`` for a vector ``x [..., N]``."""
        with self._scope(name):
            x = self._argument(x)
            self._fits(self._side(-2 if adjoint else -1), dim_of(x, -1))
            return _tf.squeeze(self._matmul(x[..., None], adjoint), -1)

    def solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve") -> Any:
        """Return ``X`` of ``A X = rhs`` for a matrix ``rhs [..., M, R]``, or the inverse composed with another operator.

        Raises:
          NotImplementedError: the operator is promised to be singular, or not to be square.
          ValueError: the dims do not fit.
        """
        for fact, word in ((self.is_non_singular, "be singular"), (self.is_square, "not be square")):
            if fact is False:
                raise NotImplementedError(f"Exact solve not implemented for an operator that is expected to {word}.")
        if isinstance(rhs, LinearOperator):
            return self.inverse().matmul(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)
        with self._scope(name):
            rhs = self._argument(rhs)
            self._fits(self._side(-1 if adjoint else -2), dim_of(rhs, -1 if adjoint_arg else -2))
            return self._solve(_tf.linalg.adjoint(rhs) if adjoint_arg else rhs, adjoint)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Any:
        """Return ``x`` of ``A x = rhs`` for a vector ``rhs [..., M]``; see :meth:`solve`."""
        with self._scope(name):
            return _tf.squeeze(self.solve(self._argument(rhs)[..., None], adjoint), -1)

    def adjoint(self, name: str = "adjoint") -> LinearOperator:
        """Return the conjugate transpose as an operator; itself where that is promised."""
        if self.is_self_adjoint:
            return self
        from graphdock_tf1.linear_operators.composed import LinearOperatorAdjoint

        with self._scope(name):
            return LinearOperatorAdjoint(self)

    H = property(adjoint, doc="Conjugate transpose as an operator.")

    def inverse(self, name: str = "inverse") -> LinearOperator:
        """Return the inverse as an operator.

        Raises:
          ValueError: the operator is promised to be singular, or not to be square.
        """
        if self.is_square is False:
            raise ValueError("Cannot take the Inverse: This operator represents a non square matrix.")
        if self.is_non_singular is False:
            raise ValueError("Cannot take the Inverse: This operator represents a singular matrix.")
        from graphdock_tf1.linear_operators.composed import LinearOperatorInversion

        with self._scope(name):
            return LinearOperatorInversion(self)

    def cholesky(self, name: str = "cholesky") -> LinearOperator:
        """Return the Cholesky factor as a lower triangular operator.

        Raises:
          ValueError: the operator is not promised to be positive definite and self-adjoint.
        """
        if not (self.is_positive_definite and self.is_self_adjoint):
            raise ValueError("Cannot take the Cholesky decomposition: Not a positive definite self adjoint matrix.")
        from graphdock_tf1.linear_operators.dense import LinearOperatorLowerTriangular

        with self._scope(name):
            return LinearOperatorLowerTriangular(_tf.cholesky(self.to_dense()), is_non_singular=True)

    def to_dense(self, name: str = "to_dense") -> Any:
        """Return the matrices ``[..., M, N]``."""
        with self._scope(name):
            return self._to_dense()

    def diag_part(self, name: str = "diag_part") -> Any:
        """Return the diagonals ``[..., min(M, N)]``."""
        with self._scope(name):
            return self._diag_part()

    def trace(self, name: str = "trace") -> Any:
        """Return the sums of the diagonals."""
        with self._scope(name):
            return _tf.reduce_sum(self._diag_part(), -1)

    def determinant(self, name: str = "det") -> Any:
        """Return the determinants. Raises NotImplementedError where the operator is promised not to be square."""
        self._square_for("Determinant")
        with self._scope(name):
            return self._determinant()

    def log_abs_determinant(self, name: str = "log_abs_det") -> Any:
        """Return logarithms of the determinants' absolute values; see :meth:`determinant`."""
        self._square_for("Determinant")
        with self._scope(name):
            return self._log_abs_determinant()

    def add_to_tensor(self, x: Any, name: str = "add_to_tensor") -> Any:
        """Return ``A + x`` for matrices ``x [..., M, N]``."""
        with self._scope(name):
            return self._add_to_tensor(self._argument(x))

    def assert_non_singular(self, name: str = "assert_non_singular") -> Any:
        """Return an op that fails where a matrix is singular to the dtype's precision."""
        with self._scope(name):
            values = _tf.svd(self.to_dense(), compute_uv=False)
            least = _tf.reduce_min(values, -1) / _tf.reduce_max(values, -1)
            floor = epsilon(self.dtype)
            return _tf.assert_greater(least, floor, message="Singular matrix up to precision epsilon.")

    def assert_positive_definite(self, name: str = "assert_positive_definite") -> Any:
        """Return an op that fails where a matrix is not positive definite."""
        with self._scope(name):
            dense = self.to_dense()
            values = _tf.linalg.eigvalsh((dense + _tf.linalg.adjoint(dense)) / 2)
            return _tf.assert_positive(_tf.real(values), message="Operator was not positive definite.")

    def assert_self_adjoint(self, name: str = "assert_self_adjoint") -> Any:
        """Return an op that fails where a matrix is not its conjugate transpose."""
        with self._scope(name):
            dense = self.to_dense()
            return _tf.assert_equal(dense, _tf.linalg.adjoint(dense), message="Matrix was not equal to its adjoint.")

    # helpers

    def _scope(self, name: str) -> Any:
        return _tf.name_scope(f"{self.name}/{name}")

    def _argument(self, x: Any) -> Any:
        return _tf.convert_to_tensor(x, dtype=self.dtype)

    def _side(self, axis: int) -> int | None:
        return (self.range_dimension if axis == -_MATRIX else self.domain_dimension).value

    def _square_for(self, word: str) -> None:
        if self.is_square is False:
            raise NotImplementedError(f"{word} not implemented for an operator that is expected to not be square.")

    @staticmethod
    def _fits(ours: Any, theirs: Any) -> None:
        _tf.Dimension(ours).assert_is_compatible_with(_tf.Dimension(theirs))


def epsilon(dtype: Any) -> Any:
    """Distance from 1 to the next number of a dtype."""
    import numpy as np

    return np.finfo(dtype.as_numpy_dtype).eps


def dim_of(x: Any, axis: int) -> int | None:
    """A tensor's static dim; None where it, or the rank, is unknown."""
    return None if x.shape.ndims is None else x.shape.as_list()[axis]


def matched(*tensors: Any) -> list[Any]:
    """Matrices ``[..., M, N]`` broadcast to one batch."""
    batches = [t.shape[:-_MATRIX] for t in tensors]
    if all(b.is_fully_defined() and b.as_list() == batches[0].as_list() for b in batches):
        return list(tensors)
    batch = functools.reduce(_tf.broadcast_dynamic_shape, [_tf.shape(t)[:-_MATRIX] for t in tensors])
    static = functools.reduce(_tf.broadcast_static_shape, batches)
    wide = [_tf.broadcast_to(t, _tf.concat([batch, _tf.shape(t)[-_MATRIX:]], 0)) for t in tensors]
    for t, w in zip(tensors, wide, strict=True):
        w.set_shape(static.concatenate(t.shape[-_MATRIX:]))
    return wide


def agreed(facts: Any) -> bool | None:
    """True where all facts are; None where one is not known or does not hold."""
    return True if all(facts) else None
