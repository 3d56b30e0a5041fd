"""Loops over rows: what they keep becomes the rows of a tensor, and both ways have gradients of any order."""

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops
from graphdock.errors import InvalidArgumentError, ShapeError
from graphdock_testing import queued

X = np.random.RandomState(0).randn(3, 2, 4)
W = np.random.RandomState(1).randn(4, 4)


def recurrent(x, w, start, **more):
    def body(variables, rows):
        h = tf.tanh(tf.matmul(rows[0], w) + variables[0])
        return [h], [h]

    return ops.scan_loop(body, [start], [x], **more)


def by_hand(x, w):
    """Every state, and the gradient of the sum of their squares by x and w."""
    h = np.zeros(x.shape[1:])
    states = [h := np.tanh(row @ w + h) for row in x]
    down, dx, dw = np.zeros_like(h), np.zeros_like(x), np.zeros_like(w)
    for i in reversed(range(len(x))):
        down = (down + 2 * states[i]) * (1 - states[i] ** 2)
        dx[i], dw = down @ w.T, dw + x[i].T @ down
    return np.array(states).reshape(x.shape), dx, dw


@pytest.mark.parametrize("dims", [[3, 2, 4], [None, None, 4], [None, 2, 4]])
@pytest.mark.parametrize("debug", [False, True])
def test_states_and_gradients_are_those_by_hand(dims, debug):
    x = tf.placeholder(tf.float64, dims)
    w = tf.constant(W)
    start = tf.zeros([tf.shape(x)[1], 4], tf.float64)
    start.set_shape([dims[1], 4])
    _, (states,) = recurrent(x, w, start, element_shapes=lambda _: [[tf.shape(x)[1], 4]])
    assert states.shape.as_list() == dims
    grads = tf.gradients(tf.reduce_sum(states**2), [x, w])
    with tf.Session(config=tf.SessionConfig(debug=debug)) as sess:
        for data in (X, X[:0] if dims[0] is None else X):
            for got, want in zip(sess.run([states, *grads], {x: data}), by_hand(data, W), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_second_derivatives():
    x, w = tf.constant(X), tf.placeholder(tf.float64, [4, 4])
    _, (states,) = recurrent(x, w, tf.zeros([2, 4], tf.float64))
    (first,) = tf.gradients(tf.reduce_sum(states**2), w)
    (second,) = tf.gradients(tf.reduce_sum(first**2), w)
    nudge = np.zeros_like(W)
    nudge[1, 2] = 1e-6
    with tf.Session() as sess:
        ahead, behind = (np.sum(sess.run(first, {w: W + s * nudge}) ** 2) for s in (1, -1))
        assert sess.run(second, {w: W})[1, 2] == pytest.approx((ahead - behind) / 2e-6, rel=1e-6)


def test_rows_come_first_to_last_and_any_dtype_is_kept():
    x = tf.constant([5, 6, 7])
    text = tf.constant([b"a", b"b", b"c"])

    def body(variables, rows):
        return [variables[0] + rows[0]], [variables[0], rows[0] > 5, rows[1]]

    (total,), kept = ops.scan_loop(body, [0], [x, text])
    with tf.Session() as sess:
        got = sess.run([total, *kept])
    assert got[0] == 18
    assert [k.tolist() for k in got[1:]] == [[0, 5, 11], [False, True, True], [b"a", b"b", b"c"]]


def test_a_condition_ends_it_before_the_rows_do():
    x = tf.placeholder(tf.float32, [None, 2])
    limit = tf.placeholder(tf.int32, [])
    (i,), (rows,) = ops.scan_loop(lambda v, r: ([v[0] + 1], [r[0] * 2.0]), [0], [x], cond=lambda i: i < limit)
    with tf.Session() as sess:
        for n in (0, 2, 9):
            number, got = sess.run([i, rows], {x: np.ones((5, 2)), limit: n})
            assert (number, got.shape) == (min(n, 5), (min(n, 5), 2))


def test_a_loop_without_rows_counts_its_iterations():
    _, (kept,) = ops.scan_loop(
        lambda v, _: ([v[0] * 2.0], [v[0]]), [tf.ones([2])], cond=lambda v: tf.reduce_sum(v) < 20
    )
    with tf.Session() as sess:
        assert sess.run(kept).tolist() == [[1, 1], [2, 2], [4, 4], [8, 8]]


def test_inside_of_another_loop():
    x = tf.placeholder(tf.float64, [3, 2, 4])
    w = tf.constant(W)

    def body(i, y):
        return i + 1, recurrent(y, w, tf.zeros([2, 4], tf.float64))[1][0]

    _, y = tf.while_loop(lambda i, _: i < 2, body, [0, x])
    (grad,) = tf.gradients(tf.reduce_sum(y), x)
    direct = recurrent(recurrent(x, w, tf.zeros([2, 4], tf.float64))[1][0], w, tf.zeros([2, 4], tf.float64))[1][0]
    (want,) = tf.gradients(tf.reduce_sum(direct), x)
    with tf.Session() as sess:
        a, b, c, d = sess.run([y, direct, grad, want], {x: X})
    np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(c, d, rtol=1e-12)


def test_an_iteration_costs_the_same_however_many_there_are():
    """No loop of the step computes a tensor of all rows, forwards or backwards."""
    x, w = tf.placeholder(tf.float64, [50, 2, 4]), tf.constant(W)
    _, (states,) = recurrent(x, w, tf.zeros([2, 4], tf.float64))
    grads = tf.gradients(tf.reduce_sum(states**2), x)
    metadata = tf.RunMetadata()
    with tf.Session() as sess:
        sess.run(grads, {x: np.zeros((50, 2, 4))}, run_metadata=metadata)
    bodies = [level for level in metadata.plan.graph.all_graphs() if level is not metadata.plan.graph]
    assert len(bodies) == 4
    assert all(50 not in (v.shape or ()) for level in bodies for node in level.nodes for v in node.outputs)


def test_elements_on_a_device_of_its_own_memory():
    host = tf.Host()
    device = queued.install(host, seed=3)
    with tf.Graph(host=host).as_default():
        x = tf.placeholder(tf.float64, [3, 2, 4])
        w = tf.constant(W)
        _, (states,) = recurrent(x, w, tf.zeros([2, 4], tf.float64))
        grads = tf.gradients(tf.reduce_sum(states**2), [x, w])
        with tf.Session(config=tf.SessionConfig(backends=("queued", "cpu"))) as sess:
            for _ in range(3):
                for got, want in zip(sess.run([states, *grads], {x: X}), by_hand(X, W), strict=True):
                    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    assert device


@pytest.mark.parametrize(
    "make, error, says",
    [
        (lambda: ops.scan_loop(lambda v, r: (v, []), [0]), InvalidArgumentError, "needs rows or a condition"),
        (lambda: ops.scan_loop(lambda v, r: (v, []), [0], [tf.constant(1)]), ShapeError, "is a scalar"),
        (lambda: ops.scan_loop(lambda v, r: (v, []), [0], [tf.ones([2]), tf.ones([3])]), ShapeError, r"rows\[1\]"),
        (lambda: ops.scan_loop(lambda v, r: ([], []), [0], [tf.ones([2])]), InvalidArgumentError, "another number"),
        (
            lambda: ops.scan_loop(lambda v, r: ([tf.ones([2])], []), [1.0], [tf.ones([2])]),
            ShapeError,
            "change its shape",
        ),
    ],
)
def test_what_is_refused(make, error, says):
    with pytest.raises(error, match=says):
        make()


def test_rows_of_other_numbers_are_refused_when_they_are_fed():
    x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    _, (kept,) = ops.scan_loop(lambda v, r: (v, [r[0] + r[1]]), [0], [x, y])
    with tf.Session() as sess:
        assert sess.run(kept, {x: [1, 2], y: [3, 4]}).tolist() == [4, 6]
        with pytest.raises(tf.errors.InvalidArgumentError, match="rows"):
            sess.run(kept, {x: [1, 2], y: [3, 4, 5]})


@pytest.mark.parametrize("known", [[4, 2], [None, 2], [None, None]], ids=str)
@pytest.mark.parametrize("by", ["count", "cond"])
@pytest.mark.sampled(2)
def test_a_loop_that_ends_before_its_rows(known, by):
    """Values, first and second derivatives of the rows that were read; the others have none, whatever is in them."""
    x, n = tf.placeholder(tf.float64, known), tf.placeholder(tf.int32, [])
    start = tf.ones_like(x[0])

    def body(variables, rows):
        h = tf.sin(variables[1] * rows[0])
        return [variables[0] + 1, h], [h]

    more = {"count": n} if by == "count" else {"cond": lambda i, _: i < n}
    shapes = [tf.TensorShape([]), start.shape]
    (_, last), (kept,) = ops.scan_loop(
        body, [tf.constant(0), start], [x], element_shapes=lambda _: [[tf.shape(x)[1]]], shape_invariants=shapes, **more
    )
    first = tf.gradients(tf.reduce_sum(kept**2) + tf.reduce_sum(last), x)[0]
    second = tf.gradients(tf.reduce_sum(first**2), x)[0]
    unrolled = tf.placeholder(tf.float64, [None, 2])
    with tf.Session() as sess, tf.Session(config=tf.SessionConfig(debug=True)) as debug:
        for count in (0, 1, 3, 4):
            data = np.concatenate([np.random.RandomState(count).randn(count, 2), np.full((4 - count, 2), np.nan)])
            h, states = tf.ones([2], tf.float64), [tf.zeros([2], tf.float64)]
            for i in range(count):
                states.append(h := tf.sin(h * unrolled[i]))
            loss = tf.reduce_sum(tf.stack(states) ** 2) + tf.reduce_sum(h) + 0 * tf.reduce_sum(unrolled)
            (wanted,) = tf.gradients(loss, unrolled)
            (again,) = tf.gradients(tf.reduce_sum(wanted**2) + 0 * tf.reduce_sum(unrolled), unrolled)
            want = sess.run([h, tf.stack(states)[1:], wanted, again], {unrolled: data[:count]})
            rows = 4 if by == "count" else count
            for session in (sess, debug):
                got = session.run([last, kept, first, second], {x: data, n: count})
                np.testing.assert_allclose(got[0], want[0])
                assert got[1].shape == (rows, 2)
                for mine, theirs in zip(got[1:], want[1:], strict=True):
                    np.testing.assert_allclose(mine[:count], theirs, rtol=1e-9)
                    assert (mine[count:] == 0).all()
