"""Linear operators beside NumPy on the dense matrices: all that they do, batched, broadcast and of unknown shapes."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError

L = tf.linalg
RNG = np.random.default_rng(0)


def matrices(*shape, dtype=np.float64):
    """Matrices that are well conditioned where they are square."""
    made = RNG.normal(size=shape)
    if np.issubdtype(dtype, np.complexfloating):
        made = made + 1j * RNG.normal(size=shape)
    if shape[-1] == shape[-2]:
        made = made + 3 * np.eye(shape[-1])
    return made.astype(dtype)


def positive(*shape):
    a = RNG.normal(size=shape)
    return a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1])


def blocks(*parts):
    side = sum(p.shape[-1] for p in parts)
    batch = np.broadcast_shapes(*(p.shape[:-2] for p in parts))
    out, at = np.zeros((*batch, side, side), parts[0].dtype), 0
    for p in parts:
        end = at + p.shape[-1]
        out[..., at:end, at:end] = p
        at = end
    return out


def updated(base, u, d, v):
    return base + (u * d[..., None, :]) @ np.swapaxes(v.conj(), -1, -2)


A, B, C = matrices(3, 3), matrices(2, 1, 3, 3), matrices(2, 2, dtype=np.complex128)
TALL, WIDE, SPD, D = matrices(4, 3), matrices(2, 3, 4), positive(2, 3, 3), RNG.normal(size=(2, 3)) + 3
U, V, K = RNG.normal(size=(3, 2)), RNG.normal(size=(3, 2)), np.array([0.5, 2.0])
Z = RNG.normal(size=(2, 3)) + 1j * RNG.normal(size=(2, 3))
UNIT = D / np.linalg.norm(D, axis=-1, keepdims=True)
CASES = {
    "full": (lambda: L.LinearOperatorFullMatrix(A), A),
    "full, batch": (lambda: L.LinearOperatorFullMatrix(B), B),
    "full, complex": (lambda: L.LinearOperatorFullMatrix(C), C),
    "full, tall": (lambda: L.LinearOperatorFullMatrix(TALL), TALL),
    "full, wide": (lambda: L.LinearOperatorFullMatrix(WIDE), WIDE),
    "full, positive": (
        lambda: L.LinearOperatorFullMatrix(SPD, is_self_adjoint=True, is_positive_definite=True),
        SPD,
    ),
    "triangle": (lambda: L.LinearOperatorLowerTriangular(B), np.tril(B)),
    "triangle, complex": (lambda: L.LinearOperatorLowerTriangular(C), np.tril(C)),
    "diag": (lambda: L.LinearOperatorDiag(D), D[..., None] * np.eye(3)),
    "diag, complex": (lambda: L.LinearOperatorDiag(Z), Z[..., None] * np.eye(3)),
    "identity": (lambda: L.LinearOperatorIdentity(3, dtype=tf.float64), np.eye(3)),
    "identity, batch": (
        lambda: L.LinearOperatorIdentity(3, batch_shape=[2], dtype=tf.float64),
        np.broadcast_to(np.eye(3), (2, 3, 3)),
    ),
    "scaled": (lambda: L.LinearOperatorScaledIdentity(3, D[:, 0]), D[:, :1, None] * np.eye(3)),
    "zeros": (
        lambda: L.LinearOperatorZeros(3, 4, batch_shape=[2], dtype=tf.float64, is_square=False, is_self_adjoint=False),
        np.zeros((2, 3, 4)),
    ),
    "composition": (
        lambda: L.LinearOperatorComposition([L.LinearOperatorFullMatrix(A), L.LinearOperatorDiag(D)]),
        A @ (D[..., None] * np.eye(3)),
    ),
    "composition, not square": (
        lambda: L.LinearOperatorComposition([L.LinearOperatorFullMatrix(WIDE), L.LinearOperatorFullMatrix(TALL)]),
        WIDE @ TALL,
    ),
    "adjoint": (lambda: L.LinearOperatorFullMatrix(C).adjoint(), C.conj().T),
    "adjoint, wide": (lambda: L.LinearOperatorFullMatrix(WIDE).H, np.swapaxes(WIDE, -1, -2)),
    "inverse": (lambda: L.LinearOperatorFullMatrix(C).inverse(), np.linalg.inv(C)),
    "blocks": (
        lambda: L.LinearOperatorBlockDiag([L.LinearOperatorFullMatrix(A), L.LinearOperatorDiag(D)]),
        blocks(A, D[..., None] * np.eye(3)),
    ),
    "kronecker": (
        lambda: L.LinearOperatorKronecker([L.LinearOperatorFullMatrix(A), L.LinearOperatorFullMatrix(positive(2, 2))]),
        None,
    ),
    "kronecker, complex": (
        lambda: L.LinearOperatorKronecker([L.LinearOperatorFullMatrix(C), L.LinearOperatorFullMatrix(C + 1)]),
        np.kron(C, C + 1),
    ),
    "kronecker, not square": (
        lambda: L.LinearOperatorKronecker([L.LinearOperatorFullMatrix(TALL), L.LinearOperatorFullMatrix(WIDE)]),
        np.stack([np.kron(TALL, w) for w in WIDE]),
    ),
    "low rank": (
        lambda: L.LinearOperatorLowRankUpdate(L.LinearOperatorFullMatrix(A, is_non_singular=True), U, K, V),
        updated(A, U, K, V),
    ),
    "low rank, of what may be singular": (
        lambda: L.LinearOperatorLowRankUpdate(L.LinearOperatorFullMatrix(B), U, K, V),
        updated(B, U, K, V),
    ),
    "low rank, positive": (
        lambda: L.LinearOperatorLowRankUpdate(L.LinearOperatorDiag(D, is_positive_definite=True), U),
        updated(D[..., None] * np.eye(3), U, np.ones(2), U),
    ),
    "householder": (
        lambda: L.LinearOperatorHouseholder(D),
        np.eye(3) - 2 * UNIT[..., :, None] * UNIT[..., None, :],
    ),
}
SMALL = positive(2, 2)
CASES["kronecker"] = (
    lambda: L.LinearOperatorKronecker([L.LinearOperatorFullMatrix(A), L.LinearOperatorFullMatrix(SMALL)]),
    np.kron(A, SMALL),
)


def adjoint(a):
    return np.swapaxes(np.conj(a), -1, -2)


@pytest.mark.parametrize("case", CASES)
def test_beside_the_dense_matrix(case):
    make, dense = CASES[case]
    op = make()
    rows, columns = dense.shape[-2:]
    x, y = matrices(columns, 5, dtype=dense.dtype), matrices(rows, 5, dtype=dense.dtype)
    many = matrices(2, 2, columns, 5, dtype=dense.dtype)
    want = {
        "dense": (op.to_dense(), dense),
        "matmul": (op.matmul(x), dense @ x),
        "operator": (op @ x, dense @ x),
        "adjoint": (op.matmul(y, adjoint=True), adjoint(dense) @ y),
        "adjoint_arg": (op.matmul(adjoint(x), adjoint_arg=True), dense @ x),
        "batched": (op.matmul(many), dense @ many),
        "matvec": (op.matvec(x[:, 0]), dense @ x[:, 0]),
        "matvec, adjoint": (op.matvec(y[:, 0], adjoint=True), adjoint(dense) @ y[:, 0]),
        "diag": (op.diag_part(), np.diagonal(dense, axis1=-2, axis2=-1)),
        "trace": (op.trace(), np.trace(dense, axis1=-2, axis2=-1)),
        "added": (op.add_to_tensor(dense + 1), 2 * dense + 1),
        "shape": (op.shape_tensor(), np.array(dense.shape)),
        "batch": (op.batch_shape_tensor(), np.array(dense.shape[:-2])),
        "rank": (op.tensor_rank_tensor(), np.array(dense.ndim)),
        "sides": ([op.range_dimension_tensor(), op.domain_dimension_tensor()], [rows, columns]),
        "H": (op.H.to_dense(), adjoint(dense)),
    }
    if rows == columns and np.all(np.linalg.matrix_rank(dense) == rows):
        want |= {
            "solve": (op.solve(y), np.linalg.solve(dense, y)),
            "solve, adjoint": (op.solve(y, adjoint=True), np.linalg.solve(adjoint(dense), y)),
            "solve, adjoint_arg": (op.solve(adjoint(y), adjoint_arg=True), np.linalg.solve(dense, y)),
            "solvevec": (
                op.solvevec(y[:, 0]),
                np.linalg.solve(dense, y[:, 0, None].astype(dense.dtype) + 0 * dense[..., :1])[..., 0],
            ),
            "det": (op.determinant(), np.linalg.det(dense)),
            "log": (op.log_abs_determinant(), np.linalg.slogdet(dense)[1]),
            "inverse": (op.inverse().matmul(y), np.linalg.solve(dense, y)),
        }
    assert op.shape.as_list() == list(dense.shape) and op.batch_shape.as_list() == list(dense.shape[:-2])
    assert (op.tensor_rank, op.is_square) == (dense.ndim, rows == columns)
    with tf.Session() as sess:
        got = sess.run({name: tensor for name, (tensor, _) in want.items()})
    for name, (tensor, expected) in want.items():
        np.testing.assert_allclose(got[name], expected, rtol=1e-8, atol=1e-9, err_msg=name)
        if not isinstance(tensor, list):
            assert tensor.shape.is_compatible_with(np.shape(expected)), name


def test_shapes_that_a_step_tells():
    full, diag = tf.placeholder(tf.float64, None), tf.placeholder(tf.float64, [None, None])
    x, rows = tf.placeholder(tf.float64, None), tf.placeholder(tf.int32, [])
    one, two = L.LinearOperatorFullMatrix(full), L.LinearOperatorDiag(diag)
    assert one.is_square is None and one.tensor_rank is None and two.shape.as_list() == [None, None, None]
    both = L.LinearOperatorComposition([one, two])
    blocked = L.LinearOperatorBlockDiag([two, L.LinearOperatorIdentity(rows, dtype=tf.float64)])
    feeds = {full: A, diag: D, x: V, rows: 2}
    with tf.Session() as sess:
        got = sess.run([both.matmul(x), both.solve(x), one.H.to_dense(), blocked.to_dense()], feeds)
        want = A @ (D[..., None] * np.eye(3))
        np.testing.assert_allclose(got[0], want @ V)
        np.testing.assert_allclose(got[1], np.linalg.solve(want, V))
        np.testing.assert_allclose(got[2], A.T)
        np.testing.assert_allclose(got[3], blocks(D[..., None] * np.eye(3), np.eye(2)))


def test_a_cholesky_factor_and_compositions():
    op = L.LinearOperatorFullMatrix(SPD, is_self_adjoint=True, is_positive_definite=True)
    factor = op.cholesky()
    assert isinstance(factor, L.LinearOperatorLowerTriangular)
    both = op.matmul(L.LinearOperatorDiag(D), adjoint_arg=True)
    assert isinstance(both, L.LinearOperatorComposition)
    with tf.Session() as sess:
        np.testing.assert_allclose(sess.run(factor.to_dense()), np.linalg.cholesky(SPD))
        np.testing.assert_allclose(sess.run(both.to_dense()), SPD @ (D[..., None] * np.eye(3)))
        solved = op.solve(L.LinearOperatorDiag(D))
        np.testing.assert_allclose(sess.run(solved.to_dense()), np.linalg.solve(SPD, D[..., None] * np.eye(3)))
    assert op.adjoint() is op and op.inverse().inverse() is op


def test_gradients_flow_through_products_and_solutions():
    given = tf.constant(B[0, 0])
    op = L.LinearOperatorLowerTriangular(given)
    loss = tf.reduce_sum(op.solve(V) ** 2) + op.log_abs_determinant()
    with tf.Session():
        assert tf.test.compute_gradient_error(given, [3, 3], loss, [], np.tril(B[0, 0]) + 0.1) < 1e-5


def test_promises_that_contradict():
    for build, words in (
        (lambda: L.LinearOperatorFullMatrix(A, is_non_singular=False, is_positive_definite=True), "positive definite"),
        (lambda: L.LinearOperatorFullMatrix(TALL, is_self_adjoint=True, is_square=False), "self-adjoint"),
        (lambda: L.LinearOperatorFullMatrix(A, is_square=False).is_square, "is_square"),
        (lambda: L.LinearOperatorLowerTriangular(A, is_square=False), "lower triangular"),
        (lambda: L.LinearOperatorDiag(D, is_self_adjoint=False), "self adjoint"),
        (lambda: L.LinearOperatorIdentity(2, is_non_singular=False), "non-singular"),
        (lambda: L.LinearOperatorZeros(2, is_non_singular=True), "zero operator"),
        (lambda: L.LinearOperatorHouseholder(D, is_positive_definite=True), "Householder"),
        (lambda: L.LinearOperatorComposition([]), "non-empty"),
        (lambda: L.LinearOperatorIdentity(-1), "non-negative"),
        (lambda: L.LinearOperatorFullMatrix([1.0]), "LinearOperatorFullMatrix"),
        (lambda: L.LinearOperatorComposition([L.LinearOperatorFullMatrix(TALL)] * 2), "3 and 4|4 and 3"),
        (
            lambda: L.LinearOperatorComposition([L.LinearOperatorFullMatrix(A), L.LinearOperatorFullMatrix(C)]),
            "complex128, float64",
        ),
        (lambda: L.LinearOperatorFullMatrix(A).cholesky(), "Cholesky"),
        (lambda: L.LinearOperatorFullMatrix(TALL).inverse(), "non square"),
        (lambda: L.LinearOperatorFullMatrix(A).matmul(TALL), "3 and 4|4 and 3"),
    ):
        with pytest.raises(ValueError, match=words):
            build()
    with pytest.raises(TypeError, match="integer"):
        L.LinearOperatorIdentity(1.5)
    for refused, words in (
        (lambda: L.LinearOperatorFullMatrix(A, is_non_singular=False).solve(V), "be singular"),
        (lambda: L.LinearOperatorFullMatrix(TALL).solve(TALL), "not be square"),
        (lambda: L.LinearOperatorFullMatrix(TALL).determinant(), "Determinant"),
    ):
        with pytest.raises(NotImplementedError, match=words):
            refused()


def test_assertions_of_a_step():
    singular = L.LinearOperatorFullMatrix(np.ones((2, 2)))
    for check, words in (
        (singular.assert_non_singular(), "Singular"),
        (L.LinearOperatorFullMatrix(-SPD).assert_positive_definite(), "positive definite"),
        (L.LinearOperatorFullMatrix(A).assert_self_adjoint(), "adjoint"),
    ):
        with tf.Session() as sess, pytest.raises(InvalidArgumentError, match=words):
            sess.run(check)
    fine = L.LinearOperatorFullMatrix(SPD)
    with tf.Session() as sess:
        sess.run([fine.assert_non_singular(), fine.assert_positive_definite(), fine.assert_self_adjoint()])


def test_an_operator_of_ones_own():
    class Shift(L.LinearOperator):
        """Moves entries one place down, and brings the last one up."""

        def _shape(self):
            return tf.TensorShape([4, 4])

        def _matmul(self, x, adjoint=False, adjoint_arg=False):
            return tf.roll(x, -1 if adjoint else 1, axis=-2)

    op = Shift(tf.float64)
    dense = np.roll(np.eye(4), 1, axis=0)
    with tf.Session() as sess:
        np.testing.assert_array_equal(sess.run(op.to_dense()), dense)
        np.testing.assert_allclose(sess.run(op.solvevec(np.arange(4.0))), np.roll(np.arange(4.0), -1), atol=1e-12)
        np.testing.assert_allclose(sess.run(op.determinant()), np.linalg.det(dense))
