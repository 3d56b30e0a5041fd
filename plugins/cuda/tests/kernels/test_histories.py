"""Histories on the GPU: loops over rows stay there, and a few launches join what their iterations kept."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import ml_dtypes
import numpy as np
import pytest
from graphdock import ops


@pytest.fixture(autouse=True)
def loops_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is written out: histories are lists."""
    monkeypatch.setattr("graphdock_fusion.unroll.LIMIT", 0)


def _running(x: Any, **more: Any) -> Any:
    """Running sums of the rows of a tensor, by a loop over them."""

    def body(variables: list[Any], rows: list[Any]) -> Any:
        total = variables[0] + rows[0]
        return [total], [total]

    return ops.scan_loop(body, [tf.zeros(tf.shape(x)[1:], x.dtype)], [x], **more)[1][0]


@pytest.mark.parametrize(("shape", "dtype"), [((5, 3), np.float32), ((3, 2, 4), np.complex128), ((40,), np.int8)])
def test_rows_are_taken_and_kept_on_the_gpu(on_cuda: Any, shape: tuple[int, ...], dtype: Any) -> None:
    x = np.random.default_rng(0).integers(0, 3, shape).astype(dtype)
    (got,) = on_cuda(_running, x)
    np.testing.assert_array_equal(got, np.cumsum(x, 0, dtype=dtype))


@pytest.mark.parametrize("count", [0, 3, 5])
def test_the_first_rows_alone(on_cuda: Any, count: int) -> None:
    x = np.random.default_rng(0).normal(size=(5, 3))
    (got,) = on_cuda(lambda t: _running(t, count=tf.constant(count)), x)
    np.testing.assert_allclose(got, np.concatenate([np.cumsum(x[:count], 0), np.zeros((5 - count, 3))]))


def test_debug_mode_looks_at_the_elements(kit: Any) -> None:
    with tf.Graph(host=kit.host).as_default():
        x = tf.placeholder(tf.float32, [4, 3])
        states = _running(x)
        config = tf.SessionConfig(backends=("cuda", "cpu"), fallback="forbid", debug=True)
        with tf.Session(config=config, host=kit.host) as session:
            got = session.run([states, *tf.gradients(states, x)], {x: np.ones((4, 3), np.float32)})
    np.testing.assert_array_equal(got[0][:, 0], [1, 2, 3, 4])
    np.testing.assert_array_equal(got[1][:, 0], [4, 3, 2, 1])


def test_more_rows_than_one_launch_takes(on_cuda: Any) -> None:
    x = np.ones((1000, 2), np.int32)
    (got,) = on_cuda(_running, x)
    np.testing.assert_array_equal(got[:, 1], np.arange(1, 1001))


def test_shapes_that_the_step_alone_knows(kit: Any) -> None:
    with tf.Graph(host=kit.host).as_default():
        x = tf.placeholder(tf.float32, [None, None])
        states = _running(x, shape_invariants=[[None]], element_shapes=lambda _: [[tf.shape(x)[1]]])
        (grad,) = tf.gradients(tf.reduce_sum(states**2), x)
        config = tf.SessionConfig(backends=("cuda", "cpu"), fallback="forbid")
        with tf.Session(config=config, host=kit.host) as session:
            for rows in (4, 1, 0):
                data = np.random.default_rng(rows).standard_normal((rows, 3)).astype(np.float32)
                got, back = session.run([states, grad], {x: data})
                sums = np.cumsum(data, 0)
                np.testing.assert_allclose(got, sums, rtol=1e-5)
                np.testing.assert_allclose(back, np.cumsum(2 * sums[::-1], 0)[::-1], rtol=1e-5)


@pytest.mark.parametrize("turned", [False, True])
def test_iterations_of_other_numbers_of_rows(kit: Any, turned: bool) -> None:
    """The factors of the products of 2, 0, 1 and 3 rows are stacked with zeros past their ends."""
    random = np.random.default_rng(0)
    values, weights = (random.standard_normal(s).astype(np.float32) for s in ((6, 9), (9, 9)))
    with tf.Graph(host=kit.host).as_default():
        x, w = tf.placeholder(tf.float32, [None, 9]), tf.placeholder(tf.float32, [9, 9])
        ends = tf.constant([0, 2, 2, 3, 6])

        def body(i: Any, total: Any) -> Any:
            rows = x[ends[i] : ends[i + 1]]
            rows = tf.transpose(rows) if turned else rows
            return i + 1, total + tf.reduce_sum(tf.matmul(rows, w, transpose_a=turned) ** 2)

        _, total = tf.while_loop(lambda i, _: i < 4, body, [0, tf.constant(0.0)])
        (grad,) = tf.gradients(total, w)
        config = tf.SessionConfig(backends=("cuda", "cpu"))
        with tf.Session(config=config, host=kit.host) as session:
            got = session.run(grad, {x: values, w: weights})
            placed = {row.op: row.device for row in session.explain(grad, {x: values, w: weights}).rows}
    assert placed["HistoryStack"].startswith("cuda")
    np.testing.assert_allclose(got, 2 * values.T @ values @ weights, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("count", [2, 33, 500])
@pytest.mark.parametrize(("shape", "axis"), [((3,), 0), ((2, 5), 1), ((2, 4, 8), 1), ((1, 3, 2), 2)])
def test_many_pieces_are_joined(on_cuda: Any, count: int, shape: tuple[int, ...], axis: int) -> None:
    """Both lengths of tables, aligned pieces and others."""
    whole = np.arange(count * np.prod(shape)).astype(ml_dtypes.bfloat16).reshape(count, *shape)
    (got,) = on_cuda(lambda x: tf.concat(tf.unstack(x), axis), whole)
    np.testing.assert_array_equal(got, np.concatenate(list(whole), axis))


@pytest.mark.parametrize("transposed", [False, True])
def test_a_sum_of_many_products(on_cuda: Any, transposed: bool) -> None:
    random = np.random.default_rng(1)
    a, b = (
        random.standard_normal(s).astype(np.float32) for s in ((40, 2, 5), (40, 7, 2) if transposed else (40, 2, 7))
    )

    def sum_of(x: Any, y: Any) -> Any:
        return tf.add_n([tf.matmul(p, q, True, transposed) for p, q in zip(*map(tf.unstack, (x, y)), strict=True)])

    (got,) = on_cuda(sum_of, a, b)
    want = sum(p.T @ (q.T if transposed else q) for p, q in zip(a.astype(float), b, strict=True))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
