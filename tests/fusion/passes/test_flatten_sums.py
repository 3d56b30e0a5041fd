"""Sums of products become one product of longer factors: the same terms, where that moves fewer elements."""

from __future__ import annotations

from collections import Counter

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops as tf_ops
from graphdock.contracts.opdef import resolve


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def ops(fetches, feed=None, **passes):
    """How often each op runs in a step."""
    with tf.Session(config=tf.SessionConfig(passes=passes)) as sess:
        return Counter(r.op for r in sess.explain(fetches, feed).rows)


def both(fetches, feed):
    """The values with the pass and without it."""
    found = []
    for on in (True, False):
        with tf.Session(config=tf.SessionConfig(passes={"sums": on})) as sess:
            sess.run(tf.global_variables_initializer())
            found.append(sess.run(fetches, feed))
    return found


def factors(n, *, turned=False, dtype=tf.float32):
    a = [tf.placeholder(dtype, [2, 9] if turned else [9, 2]) for _ in range(n)]
    b = [tf.placeholder(dtype, [9, 2] if turned else [2, 9]) for _ in range(n)]
    data = np.random.RandomState(0).randint(-9, 9, size=(2 * n, 2, 9))
    feed = {t: (d if t.shape.as_list() == [2, 9] else d.T) for t, d in zip([*a, *b], data, strict=True)}
    return a, b, feed


@pytest.mark.parametrize("dtype", [tf.float32, tf.float16, tf.int32, tf.complex64])
@pytest.mark.parametrize("turned", [False, True])
def test_a_sum_of_products_is_one_product(dtype, turned):
    a, b, feed = factors(4, turned=turned, dtype=dtype)
    y = tf.add_n([tf.matmul(p, q, turned, turned) for p, q in zip(a, b, strict=True)])
    assert ops(y, feed) == {"MatMulSum": 1} and ops(y, feed, sums=False)["MatMul"] == 4
    for got, want in [both(y, feed)]:
        np.testing.assert_array_equal(got, want)


def test_the_gradient_by_a_weight_of_every_step():
    x = tf.placeholder(tf.float32, [2, 5, 3])
    h, _ = tf.nn.static_rnn(tf.nn.rnn_cell.BasicRNNCell(7), tf.unstack(x, 5, 1), dtype=tf.float32)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(tf.stack(h) ** 2))
    feed = {x: np.random.RandomState(0).randn(2, 5, 3)}
    with tf.control_dependencies([train]):
        after = [tf.identity(v.read_value()) for v in tf.trainable_variables()]
    for on in (True, False):
        counts = ops(after, feed, sums=on)
        assert (counts["MatMulSum"], counts["MatMul"]) == ((1, 9) if on else (0, 14))
    initial = [tf.assign(v, np.random.RandomState(1).randn(*v.shape.as_list())) for v in tf.trainable_variables()]
    found = []
    for on in (True, False):
        with tf.Session(config=tf.SessionConfig(passes={"sums": on})) as sess:
            sess.run(initial)
            found.append(sess.run(after, feed))
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_other_addends_stay():
    a, b, feed = factors(3)
    w = tf.placeholder(tf.float32, [9, 9])
    y = tf.add_n([w, *(tf.matmul(p, q) for p, q in zip(a, b, strict=True)), w * 2.0])
    feed[w] = np.ones((9, 9))
    counts = ops(y, feed)
    assert counts["MatMulSum"] == counts["AddN"] == 1 and "MatMul" not in counts
    np.testing.assert_array_equal(*both(y, feed))


def test_what_must_not_be_joined():
    a, b, feed = factors(3)
    products = [tf.matmul(p, q) for p, q in zip(a, b, strict=True)]
    assert ops([tf.add_n(products), products[0]], feed) == {"MatMul": 1, "MatMulSum": 1, "AddN": 1}, "one is fetched"
    with tf.control_dependencies([tf.Print(a[0], []).op]):
        waiting = tf.matmul(a[0], b[0])
    assert ops(tf.add_n([waiting, products[1]]), feed)["MatMul"] == 2
    large = tf.placeholder(tf.float32, [3, 50])
    feed[large] = np.ones((3, 50))
    long = tf.add_n([tf.matmul(large, large, transpose_b=True), tf.matmul(large * 2.0, large, transpose_b=True)])
    assert ops(long, feed)["MatMul"] == 2, "the factors are longer than the products"
    unlike = tf.add_n([tf.matmul(a[0], b[0]), tf.matmul(b[1], a[1], True, True)])
    assert ops(unlike, feed)["MatMul"] == 2


def test_gradients_of_the_sum_itself():
    a, b, feed = factors(2, dtype=tf.float64)
    feed = {t: np.asarray(v, np.float64) for t, v in feed.items()}
    y = tf_ops.apply_op("MatMulSum", a=a, b=b, transpose_a=False, transpose_b=False)
    plain = tf.add_n([tf.matmul(p, q) for p, q in zip(a, b, strict=True)])
    mine, want = (tf.gradients(tf.reduce_sum(tf.sin(v)), [*a, *b]) for v in (y, plain))
    with tf.Session() as sess:
        for p, q in zip(sess.run(mine, feed), sess.run(want, feed), strict=True):
            np.testing.assert_allclose(p, q, rtol=1e-12)


def test_an_op_that_has_a_sum_fits_it():
    host = tf.default_host()
    host.backend("cpu")
    host.backend("std")
    with_sum = [d for d in map(host.ops.get, host.ops.names()) if d.sum is not None]
    assert {d.name for d in with_sum} == {"L2Loss", "MatMul"}
    for one in with_sum:
        total = host.ops.get(one.sum)
        assert [a.name for a in total.inputs] == [a.name for a in one.inputs]
        count = total.inputs[0].count
        assert all(a.arity == "many" and a.count == count for a in total.inputs)
        assert {a.name for a in total.attrs} == {count, *(a.name for a in one.attrs)}


@pytest.mark.parametrize("turns", [(a, b) for a in (False, True) for b in (False, True)])
def test_what_a_backend_without_it_computes(turns):
    """The decomposition: both lists joined along the dim that is summed over, and one product."""
    host = tf.default_host()
    host.backend("std")
    rng = np.random.RandomState(0)
    a = rng.randn(3, *((4, 2) if turns[0] else (2, 4)))
    b = rng.randn(3, *((5, 4) if turns[1] else (4, 5)))
    build = resolve(host.ops.get("MatMulSum").decomposition)
    given = {"a": [tf.constant(x) for x in a], "b": [tf.constant(x) for x in b]}
    (y,) = build(**given, N=3, transpose_a=turns[0], transpose_b=turns[1], T=tf.float64)
    want = sum((p.T if turns[0] else p) @ (q.T if turns[1] else q) for p, q in zip(a, b, strict=True))
    with tf.Session() as sess:
        np.testing.assert_allclose(sess.run(y), want)


def test_squares_of_tensors_of_any_shapes_are_summed_by_one():
    """Norms of gradients, and losses by weights; what else is added stays an addend."""
    given = [tf.placeholder(tf.float32, shape) for shape in ([3], [], [2, None], [4, 1])]
    feed = {x: np.random.RandomState(i).randn(*(d or 5 for d in x.shape.as_list())) for i, x in enumerate(given)}
    norm = tf.global_norm(given)
    counts = ops(norm, feed)
    assert (
        counts["L2LossSum"] == 1
        and {"L2Loss", "AddN"}.isdisjoint(counts)
        and ops(norm, feed, sums=False)["L2Loss"] == 4
    )
    np.testing.assert_allclose(*both(norm, feed), rtol=1e-6)
    losses = [tf.nn.l2_loss(x) for x in given]
    mixed = tf.add_n([*losses, tf.reduce_sum(given[0])])
    assert ops(mixed, feed)["AddN"] == ops(mixed, feed)["L2LossSum"] == 1
    for got, want in zip(*both([mixed, *tf.gradients(mixed, given)], feed), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_squares_where_nothing_sums_them_at_once_are_not_joined_again():
    """What a decomposition made a pass would make back."""
    host = tf.default_host()
    host.backend("std")
    build = resolve(host.ops.get("L2LossSum").decomposition)
    given = [tf.placeholder(tf.float64, [n]) for n in (2, 3)]
    (y,) = build(t=given, N=2, T=tf.float64)
    feed = {given[0]: [1.0, 2.0], given[1]: [3.0, 0.0, 4.0]}
    assert "L2LossSum" not in ops(y, feed)
    with tf.Session() as sess:
        assert sess.run(y, feed) == 15.0


def test_gradients_of_squares_of_several():
    given = [tf.placeholder(tf.float64, [n]) for n in (2, 3)]
    slopes = tf.gradients(tf.square(tf_ops.apply_op("L2LossSum", t=given)), given)
    with tf.Session() as sess:
        first, second = sess.run(slopes, {given[0]: [1.0, 2.0], given[1]: [3.0, 0.0, 4.0]})
    np.testing.assert_array_equal(first, [30.0, 60.0])
    np.testing.assert_array_equal(second, [90.0, 0.0, 120.0])


def test_an_addend_that_is_given_twice_is_added_twice():
    a, b, feed = factors(2)
    w = tf.placeholder(tf.float32, [9, 9])
    feed[w] = np.full((9, 9), 100.0)
    products = [tf.matmul(p, q) for p, q in zip(a, b, strict=True)]
    y = tf.add_n([w, w, *products, w])
    assert ops(y, feed) == {"MatMulSum": 1, "AddN": 1}
    want = 300 + sum(np.asarray(feed[p], np.float32) @ feed[q] for p, q in zip(a, b, strict=True))
    for got in both(y, feed):
        np.testing.assert_array_equal(got, want)
    twice = tf.add_n([products[0], products[0], products[1]])
    np.testing.assert_array_equal(*both(twice, feed))


def test_a_weight_that_is_added_to_itself_and_multiplied():
    """Its gradient has the same addend twice, beside those of the products."""
    x = [tf.placeholder(tf.float64, [1, 3]) for _ in range(2)]
    v = tf.placeholder(tf.float64, [3, 3])
    loss = tf.reduce_sum(v + v) + sum(tf.reduce_sum(tf.matmul(t, v)) for t in x)
    feed = {x[0]: np.full((1, 3), 1.0), x[1]: np.full((1, 3), 2.0), v: np.zeros((3, 3))}
    assert ops(tf.gradients(loss, v)[0], feed)["MatMulSum"] == 1
    for got in both(tf.gradients(loss, v)[0], feed):
        np.testing.assert_array_equal(got, np.full((3, 3), 5.0))


def test_a_norm_of_tensors_of_which_one_is_given_twice():
    given = [tf.placeholder(tf.float64, [n]) for n in (2, 3)]
    feed = {given[0]: [3.0, 0.0], given[1]: [0.0, 4.0, 0.0]}
    one, other = (tf.nn.l2_loss(x) for x in given)
    shared = tf.reduce_sum(given[0])
    for got in both(tf.add_n([shared, one, other, shared]), feed):
        assert got == 3 + 4.5 + 8 + 3
    for got in both(tf.global_norm([given[0], given[0], given[1]]), feed):
        assert got == np.sqrt(9 + 9 + 16)


def test_products_that_sum_over_a_batch_of_any_size_are_one():
    """Their batches are one symbol: those of a network's steps. What is of another one, or small, stays by itself."""
    x, other = tf.placeholder(tf.float64, [None, 5, 40]), tf.placeholder(tf.float64, [None, 40])
    w, u = tf.placeholder(tf.float64, [40, 70]), tf.placeholder(tf.float64, [40, 3])
    rows = tf.unstack(x, 5, 1)
    slopes = [
        tf.gradients(tf.reduce_sum(tf.add_n([tf.square(tf.matmul(tf.sin(t), v)) for t in rows])), v)[0] for v in (w, u)
    ]
    unlike = tf.add_n([tf.matmul(tf.sin(p), tf.matmul(p, w), True) for p in (rows[0], other)])
    config = {"shape_policy": "generic"}
    with (
        tf.Session(config=tf.SessionConfig(**config)) as sess,
        tf.Session(config=tf.SessionConfig(**config, passes={"sums": False})) as plain,
    ):
        assert [Counter(r.op for r in sess.explain(s).rows)["MatMulSum"] for s in (*slopes, unlike)] == [1, 0, 0]
        for batch in (3, 1, 0, 50):
            rng = np.random.RandomState(batch)
            feed = {
                x: rng.randn(batch, 5, 40),
                w: rng.randn(40, 70),
                u: rng.randn(40, 3),
                other: rng.randn(batch + 1, 40),
            }
            for got, want in zip(sess.run([*slopes, unlike], feed), plain.run([*slopes, unlike], feed), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


def test_batches_that_are_assumed_to_be_one_symbol_are_the_same_in_every_step():
    a, b = tf.placeholder(tf.float32, [None, 40]), tf.placeholder(tf.float32, [None, 40])
    w = [tf.placeholder(tf.float32, [None, 70]) for _ in range(2)]
    # of as many rows, or one of them has one
    fetches = [tf.add_n([tf.matmul(a, w[0], True), tf.matmul(b, w[1], True)]), a * b]
    with tf.Session(config=tf.SessionConfig(shape_policy="generic")) as sess:
        assert Counter(r.op for r in sess.explain(fetches).rows)["MatMulSum"] == 1
        assert sess.explain(fetches).plan.graph.conditions.relied
        for rows, others in ((4, 4), (4, 1), (1, 3), (5, 5)):
            rng = np.random.RandomState(rows)
            sizes = ((rows, 40), (others, 40), (rows, 70), (others, 70))
            fed = [rng.randn(*size).astype(np.float32) for size in sizes]
            made = sess.run(fetches, dict(zip([a, b, *w], fed, strict=True)))
            np.testing.assert_allclose(made[0], fed[0].T @ fed[2] + fed[1].T @ fed[3], 1e-4, 1e-4)
            np.testing.assert_allclose(made[1], fed[0] * fed[1], 1e-5)
