"""What the way back keeps in every iteration gives the sum that it would carry, and costs less."""

from __future__ import annotations

from collections import Counter

import graphdock as tf
import numpy as np
import pytest
from graphdock.ops import scan_loop


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def test_rows_of_what_a_loop_captures_stay_rows():
    """A gather in a loop costs its rows on the way back, not the whole tensor; of a variable the gradient is IndexedSlices."""
    table = tf.get_variable("table", [50, 2], tf.float64, tf.constant_initializer(np.arange(100.0).reshape(50, 2)))
    ids = tf.placeholder(tf.int32, [None, 3])

    def body(i, total):
        return i + 1, total + tf.reduce_sum(tf.gather(table, ids[i]) ** 2)

    _, total = tf.while_loop(lambda i, _: i < tf.shape(ids)[0], body, [0, tf.constant(0.0, tf.float64)])
    (grad,) = tf.gradients(total, table)
    assert isinstance(grad, tf.IndexedSlices) and grad.shape.as_list() == [50, 2]
    again = tf.convert_to_tensor(tf.gradients(tf.reduce_sum(tf.convert_to_tensor(grad) ** 3), table)[0])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for given in ([[1, 2, 2], [7, 1, 0]], np.zeros((0, 3))):
            want = np.zeros((50, 2))
            np.add.at(want, np.asarray(given, int).reshape(-1), 1)
            value = np.arange(100.0).reshape(50, 2)
            found, dense, second = sess.run([grad, tf.convert_to_tensor(grad), again], {ids: given})
            assert found.values.shape == (len(given) * 3, 2)
            np.testing.assert_allclose(dense, 2 * value * want)
            np.testing.assert_allclose(second, 3 * (2 * value * want) ** 2 * 2 * want)


@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)])
def test_gradients_by_a_weight_are_one_product(turned):
    """Of every way to multiply by a weight, against the same steps unrolled."""
    x = tf.placeholder(tf.float64, [None, 2, 9])
    w = tf.placeholder(tf.float64, [9, 9])

    def step(h, row):
        a = tf.transpose(row + h) if turned[0] else row + h
        return tf.tanh(tf.matmul(a, w, *turned))

    def body(i, h):
        return i + 1, step(h, x[i])

    _, h = tf.while_loop(lambda i, _: i < tf.shape(x)[0], body, [0, tf.zeros([2, 9], tf.float64)])
    data = np.random.RandomState(0).randn(4, 2, 9), np.random.RandomState(1).randn(9, 9)
    unrolled = tf.zeros([2, 9], tf.float64)
    for i in range(4):
        unrolled = step(unrolled, tf.constant(data[0][i]))
    (grad,), (want,) = (tf.gradients(tf.reduce_sum(y**2), w) for y in (h, unrolled))
    feed = {x: data[0], w: data[1]}
    with tf.Session() as sess:
        a, b = sess.run([grad, want], feed)
        np.testing.assert_allclose(a, b, rtol=1e-10)
        assert (sess.run(grad, {**feed, x: data[0][:0]}) == 0).all()
        assert Counter(r.op for r in sess.explain(grad, feed).rows)["MatMul"] == 3, "one of them after the loop"


def test_a_small_weight_is_summed_as_it_was():
    x, w = tf.placeholder(tf.float64, [3, 50, 2]), tf.placeholder(tf.float64, [2, 2])
    _, h = tf.while_loop(
        lambda i, _: i < 3, lambda i, h: (i + 1, tf.matmul(x[i] + h, w)), [0, tf.zeros([50, 2], tf.float64)]
    )
    (grad,) = tf.gradients(h, w)
    with tf.Session() as sess:
        rows = sess.explain(grad, {x: np.zeros((3, 50, 2)), w: np.ones((2, 2))}).rows
    assert "HistoryStack" not in {r.op for r in rows}


def _of_levels(x, w, ends, unrolled=False):
    """A loop whose iterations have another number of rows each; the same, unrolled."""

    def step(i, states):
        rows = tf.gather(states, ids[ends[i] : ends[i + 1]])
        return i + 1, tf.concat([states, tf.tanh(tf.matmul(rows, w))], 0)

    ids = tf.constant([3, 1, 0, 1, 2, 2, 4, 5, 0])
    if unrolled:
        states = x
        for i in range(4):
            states = step(i, states)[1]
        return states
    invariants = [tf.TensorShape([]), tf.TensorShape([None, 9])]
    return tf.while_loop(lambda i, _: i < 4, step, [0, x], shape_invariants=invariants)[1]


def test_iterations_of_other_numbers_of_rows():
    """Factors of 5, 0, 1 and 3 rows each; gradients of both orders, against the same steps unrolled.

    Each product was kept with those of the other iterations in one stack, as if they were of one shape.
    """
    x, w = tf.placeholder(tf.float64, [None, 9]), tf.placeholder(tf.float64, [9, 9])
    found = []
    for unrolled in (False, True):
        ends = [0, 5, 5, 6, 9] if unrolled else tf.constant([0, 5, 5, 6, 9])
        states = _of_levels(x, w, ends, unrolled)
        first = tf.gradients(tf.reduce_sum(states**2), [x, w])
        first = [tf.convert_to_tensor(g) for g in first]
        second = tf.gradients([tf.reduce_sum(g**2) for g in first], [x, w])
        found.append([*first, *map(tf.convert_to_tensor, second)])
    random = np.random.RandomState(0)
    with tf.Session() as sess:
        got, want = sess.run(found, {x: random.randn(4, 9), w: random.randn(9, 9) / 3})
    for mine, plain in zip(got, want, strict=True):
        np.testing.assert_allclose(mine, plain, rtol=1e-9, atol=1e-12)


def test_a_row_that_no_iteration_read_is_not_named():
    """Iterations read 2, 0 and 1 rows of a table."""
    table = tf.Variable(np.arange(10.0).reshape(5, 2))
    ids, ends = tf.constant([3, 3, 4]), tf.constant([0, 2, 2, 3])

    def body(i, total):
        return i + 1, total + tf.reduce_sum(tf.gather(table, ids[ends[i] : ends[i + 1]]) ** 3)

    _, total = tf.while_loop(lambda i, _: i < 3, body, [0, tf.constant(0.0, tf.float64)])
    (grad,) = tf.gradients(total, table)
    again = tf.convert_to_tensor(tf.gradients(tf.reduce_sum(grad.values**2), table)[0])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        rows, second = sess.run([grad, again])
    value = np.arange(10.0).reshape(5, 2)
    assert sorted(rows.indices.tolist()) == [3, 3, 4]
    np.testing.assert_allclose(rows.values, 3 * value[rows.indices] ** 2)
    want = np.zeros((5, 2))
    np.add.at(want, [3, 3, 4], 2 * 3 * value[[3, 3, 4]] ** 2 * 6 * value[[3, 3, 4]])
    np.testing.assert_allclose(second, want)


def test_rows_of_other_shapes_are_no_tensor():
    """What a loop keeps of one row and of three is not spread over three."""
    x = tf.placeholder(tf.float64, [None, 2])
    _, (kept,) = scan_loop(
        lambda variables, _: ([variables[0] + 2], [x[: variables[0]]]),
        [tf.constant(1)],
        cond=lambda n: n < 4,
        element_shapes=lambda _: [[None, 2]],
    )
    with tf.Session() as sess:
        assert sess.run(kept, {x: np.ones((1, 2))}).shape == (2, 1, 2)
        with pytest.raises(tf.errors.InvalidArgumentError, match="differ in shape"):
            sess.run(kept, {x: np.ones((3, 2))})


def _of_a_weight(h, row, w):
    return tf.tanh(tf.matmul(h + row, w))


def _of_a_turned_weight(h, row, w):
    return tf.tanh(tf.matmul(h + row, w, transpose_b=True))


def _of_rows(h, row, w):
    return h + tf.gather(w, tf.cast(tf.reduce_sum(row) > 0, tf.int32) * tf.constant([1, 2]))[:, :3]


def _of_any_number_of_rows(h, row, w):
    return h + tf.reduce_sum(tf.gather(w, tf.where(row[0] > 0)[:, 0]), 0)[:3]


@pytest.mark.parametrize("step", [_of_a_weight, _of_a_turned_weight, _of_rows, _of_any_number_of_rows])
@pytest.mark.parametrize(
    ("known", "width"), [([3, 3], 3), ([None, 3], 3), ([3, None], 3), ([None, None], 3), ([None, None], 0)]
)
@pytest.mark.sampled(2)
def test_the_gradients_of_no_iteration_are_zeros(step, known, width):
    """A loop of unknown dims that runs no time says nothing of them; what it captures does, for both orders of gradients."""
    rows = 3 if step in (_of_rows, _of_any_number_of_rows) else width
    x, first = tf.placeholder(tf.float64, [None, None, None]), tf.placeholder(tf.float64, [None, None])
    w = tf.placeholder(tf.float64, known)

    def body(i, h):
        return i + 1, step(h, x[i], w)

    _, h = tf.while_loop(
        lambda i, _: i < tf.shape(x)[0], body, [0, first], [tf.TensorShape([]), tf.TensorShape([None, None])]
    )
    by_w, by_h = tf.gradients(tf.reduce_sum(tf.sin(h)), [w, first])
    second = tf.gradients(tf.reduce_sum(tf.convert_to_tensor(by_w) ** 2) + tf.reduce_sum(by_h**2), [w, first])
    fetches = [tf.convert_to_tensor(g) for g in (by_w, by_h, *second)]
    given, start = np.full((rows, width), 0.25), np.full((2, width), 0.5)
    with tf.Session() as sess:
        for count in (0, 2, 0):
            if count and width == 0:
                continue
            got = sess.run(fetches, {x: np.full((count, 2, width), 0.75), w: given, first: start})
            assert [g.shape for g in got] == [given.shape, start.shape] * 2
            if count == 0:
                np.testing.assert_allclose(got[0], 0)
                np.testing.assert_allclose(got[1], np.cos(start))
                np.testing.assert_allclose(got[2], 0)
                np.testing.assert_allclose(got[3], -2 * np.cos(start) * np.sin(start))
