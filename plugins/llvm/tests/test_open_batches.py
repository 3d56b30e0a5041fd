"""Batches and sums of products whose shapes only a step knows: one native function for all of them, beside NumPy in float64."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops as tf_ops
from graphdock.contracts import errors

GENERIC = {"backends": ("llvm", "cpu"), "shape_policy": "generic"}
#: Rows, places and columns of matrices: few, none, primes, and such as take two parts of the axis that is summed over.
SIZES = (
    *((7, 5, 9), (1, 64, 300), (300, 64, 1), (1, 1, 1), (16, 16, 16)),
    *((40, 521, 33), (13, 1031, 20), (65, 600, 70), (3, 0, 4), (0, 5, 3), (3, 5, 0)),
)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def side(rows, columns, turned):
    return (columns, rows) if turned else (rows, columns)


@pytest.mark.parametrize("turns", [(False, False), (True, False), (False, True), (True, True)])
def test_batches_of_any_shapes_agree_with_numpy_on_any_number_of_threads(turns):
    a, b = tf.placeholder(tf.float32, [None, None, None, None]), tf.placeholder(tf.float32, [None, None, None])
    y = tf.matmul(a, b, transpose_a=turns[0], transpose_b=turns[1])
    sessions = [tf.Session(config=tf.SessionConfig(**GENERIC, intra_op_threads=n)) for n in (1, 2, 3)]
    assert sessions[0].explain(y).kernels() == {"llvm.mat_mul": 1}
    for m, k, n in SIZES:
        for batch, other in (((2, 3), (3,)), ((2, 1), (3,)), ((1, 4), (1,)), ((0, 2), (2,))):
            left, right = numbers(*batch, *side(m, k, turns[0])), numbers(*other, *side(k, n, turns[1]), seed=1)
            sides = [np.swapaxes(x, -1, -2) if t else x for x, t in zip((left, right), turns, strict=True)]
            made = [session.run(y, {a: left, b: right}) for session in sessions]
            wanted = sides[0].astype(np.float64) @ sides[1]
            np.testing.assert_allclose(made[0], wanted, 1e-3, 1e-5 * max(k, 1) ** 0.5 * 4, err_msg=f"{m} {k} {n}")
            for other_bits in made[1:]:
                np.testing.assert_array_equal(made[0], other_bits)


@pytest.mark.parametrize("turns", [(True, False), (False, True)])
def test_sums_of_products_of_any_batch_agree_with_numpy(turns):
    """As plans make them of the gradients by a weight that is used in each step of a recurrent network."""
    count = 5
    shape = [[None, 24], [None, 40]] if turns[0] else [[24, None], [40, None]]
    given = [[tf.placeholder(tf.float32, s) for _ in range(count)] for s in shape]
    y = tf_ops.apply_op("MatMulSum", a=given[0], b=given[1], transpose_a=turns[0], transpose_b=turns[1])
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as session:
        assert session.explain(y).kernels() == {"llvm.mat_mul_sum": 1}
        for rows in (1, 2, 16, 61, 521, 0, 1033):
            shapes = (rows, 24), (rows, 40)
            sides = [[numbers(*s, seed=i) for i in range(count)] for s in shapes]
            fed = [[m if turns[0] else np.ascontiguousarray(m.T) for m in one] for one in sides]
            made = session.run(y, dict(zip([*given[0], *given[1]], [*fed[0], *fed[1]], strict=True)))
            wanted = sum(p.T.astype(np.float64) @ q for p, q in zip(*sides, strict=True))
            np.testing.assert_allclose(made, wanted, 1e-3, 1e-5 * max(rows, 1) ** 0.5 * 8)


def test_an_axis_that_no_small_number_divides_is_summed_in_two_parts_of_known_shapes_too():
    a, b = tf.placeholder(tf.float32, [2, 40, 1031]), tf.placeholder(tf.float32, [2, 1031, 50])
    y = tf.nn.relu(tf.matmul(a, b))
    with tf.Session(config=tf.SessionConfig(backends=("llvm", "cpu"))) as session:
        assert session.explain(y).kernels()["llvm.mat_mul"] == 1
        left, right = numbers(2, 40, 1031), numbers(2, 1031, 50, seed=1)
        for _ in range(2):
            wanted = np.maximum(left.astype(np.float64) @ right, 0)
            np.testing.assert_allclose(session.run(y, {a: left, b: right}), wanted, 1e-3, 1e-3)


def attention():
    q, k, v = (tf.placeholder(tf.float32, [None, 2, None, 16], name=name) for name in "qkv")
    weights = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * 0.25)
    return q, k, v, tf.matmul(weights, v)


def test_attention_of_unknown_lengths_and_its_gradient_are_native_runs():
    q, k, v, made = attention()
    gradients = tf.gradients(tf.reduce_sum(made * made), [q, k, v])
    config = tf.SessionConfig(**GENERIC)
    reference = tf.SessionConfig(backends=("cpu",), shape_policy="generic")
    with tf.Session(config=config) as session, tf.Session(config=reference) as plain:
        kernels = session.explain([made, *gradients]).kernels()
        assert kernels["llvm.mat_mul"] == 6 and "cpu.mat_mul" not in kernels
        for batch, m, n in ((2, 7, 9), (1, 1, 40), (3, 65, 33), (2, 7, 9), (1, 600, 1), (1, 5, 523)):
            fed = {
                q: numbers(batch, 2, m, 16),
                k: numbers(batch, 2, n, 16, seed=1),
                v: numbers(batch, 2, n, 16, seed=2),
            }
            for got, want in zip(session.run([made, *gradients], fed), plain.run([made, *gradients], fed), strict=True):
                np.testing.assert_allclose(got, want, 1e-3, 1e-4, err_msg=f"{batch} {m} {n}")


def test_matrices_that_do_not_fit_are_refused_by_name_also_behind_what_fits():
    q, k, v, made = attention()
    with tf.Session(config=tf.SessionConfig(**GENERIC)) as session:
        good = {q: numbers(2, 2, 7, 16), k: numbers(2, 2, 9, 16), v: numbers(2, 2, 9, 16)}
        for _ in range(3):
            assert session.run(made, good).shape == (2, 2, 7, 16)
            with pytest.raises(errors.ShapeError, match=r"inner sizes differ: 9 .* and 8") as refused:
                session.run(made, good | {v: numbers(2, 2, 8, 16)})
            assert refused.value.op is made.op
            with pytest.raises(errors.ShapeError, match=r"\[2,2\] and \[3,2\]"):
                session.run(made, good | {k: numbers(3, 2, 9, 16)})
            # and shapes that are NumPy's, in between
            few = {q: numbers(2, 2, 1, 16), k: numbers(2, 2, 2000, 16), v: numbers(2, 2, 2000, 16)}
            assert session.run(made, few).shape == (2, 2, 1, 16)
