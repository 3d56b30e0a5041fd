"""Programs that mix features on purpose, each against NumPy in every variant of the configuration."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.passes.pipeline import simplifications

OFF = dict.fromkeys(simplifications(), False)


pytestmark = pytest.mark.modes  # every program runs in debug mode, too
VARIANTS = {
    "plain": {},
    "debug": {"debug": True},
    "no passes": {"passes": OFF, "debug": True},
    "another order": {"debug": True},
}


@pytest.fixture(params=VARIANTS)
def session(request, shuffled_order, monkeypatch):
    if request.param == "another order":
        shuffled_order.Shuffle().install(monkeypatch)
    with tf.Graph().as_default():
        yield lambda **more: tf.Session(config=tf.SessionConfig(**VARIANTS[request.param], **more))


@pytest.mark.parametrize("fed", [[b"x", b"y"], ["u", "vv"], np.array(["u", "vv"]), np.array([b"1", b"22"], object)])
def test_strings_through_views_branches_and_loops(session, fed):
    x, p = tf.placeholder(tf.string, [None]), tf.placeholder(tf.bool, [])
    y = tf.constant([b"a", b"bb"])
    joined = tf.concat([x, y], 0)
    chosen = tf.cond(p, lambda: x, lambda: tf.identity(y))
    grown = tf.while_loop(
        lambda i, s: i < 3,
        lambda i, s: (i + 1, tf.concat([s, y], 0)),
        [tf.constant(0), x],
        shape_invariants=[[], [None]],
    )[1]
    swapped = tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s[::-1]), [tf.constant(0), y])[1]
    v = tf.Variable([b"p", b"q"])
    sess = session()
    sess.run(v.initializer)
    expected = [e.encode() if isinstance(e, str) else e for e in (fed if isinstance(fed, list) else fed.tolist())]
    fetches = [
        joined,
        tf.reshape(joined, [-1, 1])[::2],
        tf.gather(joined, [0, 1, 0]),
        chosen,
        grown,
        swapped,
        v.assign(y),
    ]
    for flag in (True, False):
        got = [g.tolist() for g in sess.run(fetches, {x: fed, p: flag})]
        whole = [*expected, b"a", b"bb"]
        assert got[:3] == [whole, [[e] for e in whole[::2]], [whole[0], whole[1], whole[0]]]
        assert got[3:] == [
            expected if flag else [b"a", b"bb"],
            [*expected, *[b"a", b"bb"] * 3],
            [b"bb", b"a"],
            [b"a", b"bb"],
        ]


def test_a_graph_that_grows_between_steps(session):
    v = tf.Variable(0)
    one, read = v.assign_add(1), tf.identity(v.read_value())
    sess = session()
    sess.run(v.initializer)
    assert [sess.run(read), sess.run([one]), sess.run(read)] == [0, [1], 1]
    ten = v.assign_add(10)
    assert [sess.run(ten), sess.run(read)] == [11, 11]
    read.op._add_control_input(one.op)
    sess.run(read)
    assert sess.run(v) == 12
    for k in range(20):
        assert sess.run(tf.constant(k) + v) == 12 + k


def test_more_signatures_and_shapes_than_are_kept(session):
    x = tf.placeholder(tf.float32, [None])
    sums = [x + float(i) for i in range(10)]
    sess = session(plan_cache_size=1)
    for k in range(60):
        size, i = k % 11, k * 7 % 10
        assert sess.run(sums[i], {x: np.zeros(size)}).tolist() == [float(i)] * size


def test_the_ninth_shape_takes_a_plan_for_any_shape(session):
    x = tf.placeholder(tf.float64, [None, None])
    y = tf.matmul(x, x, transpose_b=True)
    turned = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.transpose(a)), [tf.constant(0), y])[1]
    slope = tf.gradients(tf.reduce_sum(y * y), x)[0]
    fetches = [y, tf.reduce_sum(tf.transpose(y)[::-1], 0), tf.reshape(x, [-1]), tf.split(tf.concat([x, x], 0), 2)[1],
               turned, tf.zeros_like(x) + tf.ones(tf.shape(x), tf.float64), slope]  # fmt: skip
    sess, rng = session(), np.random.default_rng(0)
    for _ in range(30):
        a = rng.normal(size=(int(rng.integers(0, 6)), int(rng.integers(0, 6))))
        b = a @ a.T
        expected = [b, b.T[::-1].sum(0), a.ravel(), a, b.T, np.ones_like(a), 4 * b @ a]
        for got, wanted in zip(sess.run(fetches, {x: a}), expected, strict=True):
            assert got.shape == wanted.shape
            np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-10)


def test_initial_values_that_read_other_variables_in_any_order(session):
    a = tf.Variable(tf.random_uniform([3], seed=1))
    b = tf.Variable(a * 2.0)
    c = tf.Variable(b.initialized_value() + a.initialized_value())
    d = tf.Variable(tf.cond(tf.constant(True), lambda: c.initialized_value() * 1.0, lambda: c.initialized_value()))
    for order in ([a, b, c, d], [d, c, b, a]):
        sess = session()
        sess.run([v.initializer for v in order])
        values = sess.run([a, b, c, d])
        for value, factor in zip(values, (1, 2, 3, 3), strict=True):
            np.testing.assert_allclose(value, values[0] * factor, rtol=1e-6)
    alone = session()
    alone.run(c.initializer)
    assert [bool(alone.run(tf.is_variable_initialized(v))) for v in (a, b, c, d)] == [False, False, True, False]


def test_python_functions_and_assertions_inside_a_loop(session):
    seen = []
    x = tf.placeholder(tf.int32, [])

    def note(i):
        seen.append(int(i))
        return np.int32(i * 2)

    def body(i, total):
        with tf.control_dependencies([tf.Assert(i < 100, ["too big", i])]):
            return i + 1, total + tf.reshape(tf.py_func(note, [i], tf.int32), [])

    i, total = tf.while_loop(lambda i, t: i < x, body, [tf.constant(0), tf.constant(0)])
    sess = session()
    for n in (0, 3, 5):
        seen.clear()
        assert sess.run([i, total], {x: n}) == [n, n * (n - 1)]
        assert seen == list(range(n))
    with pytest.raises(tf.errors.InvalidArgumentError, match="too big"):
        sess.run(total, {x: 200})
    assert sess.run(total, {x: 3}) == 6


def test_updates_by_views_of_the_variable_itself(session):
    v, w = tf.Variable(np.arange(6.0).reshape(2, 3)), tf.Variable(np.arange(4.0).reshape(2, 2))
    table = [
        (v.assign(v[:, ::-1]), lambda v, w: (v[:, ::-1], w)),
        (v.assign(v[::-1]), lambda v, w: (v[::-1], w)),
        (v.assign_add(v[::-1]), lambda v, w: (v + v[::-1], w)),
        (v.assign(tf.concat([v[1:], v[:1]], 0)), lambda v, w: (v[::-1], w)),
        (tf.scatter_add(v, [0, 1], v[::-1]), lambda v, w: (v + v[::-1], w)),
        (tf.scatter_update(v, [1, 0], v), lambda v, w: (v[::-1], w)),
        (w.assign(tf.transpose(w)), lambda v, w: (v, w.T)),
        (w.assign_add(tf.transpose(w)), lambda v, w: (v, w + w.T)),
        (
            w.assign_sub(tf.reshape(tf.reshape(w, [4])[::-1], [2, 2])),
            lambda v, w: (v, w - w.ravel()[::-1].reshape(2, 2)),
        ),
        (w.assign(tf.matmul(w, w) % 7.0), lambda v, w: (v, w @ w % 7)),
    ]
    sess, rng = session(), np.random.default_rng(1)
    sess.run([v.initializer, w.initializer])
    a, b = np.arange(6.0).reshape(2, 3), np.arange(4.0).reshape(2, 2)
    for k in rng.integers(0, len(table), 40):
        update, plain = table[k]
        got = sess.run(update)
        a, b = plain(a, b)
        np.testing.assert_array_equal(got, a if k < 6 else b)
        np.testing.assert_array_equal(sess.run(v), a)
        np.testing.assert_array_equal(sess.run(w), b)


def test_a_container_shared_by_two_sessions(session):
    with tf.container("differential"):
        v = tf.Variable(np.zeros(3))
    more = v.assign_add(np.ones(3))
    one, other = session(), session()
    try:
        one.run(v.initializer)
        one.run(more)
        other.run(more)
        assert one.run(v).tolist() == [2, 2, 2]
        tf.Session.reset("", ["differential"])
        for sess in (one, other):
            for fetch in (v, more):
                with pytest.raises(tf.errors.UninitializedError):
                    sess.run(fetch)
        one.close()
        other.run(v.initializer)
        assert other.run(v).tolist() == [0, 0, 0]
    finally:
        tf.Session.reset("", ["differential"])


@pytest.mark.sampled(2)
def test_draws_do_not_depend_on_the_plan(session):
    def draws(sess_of):
        with tf.Graph().as_default() as graph:
            x = tf.placeholder(tf.float32, [None, 3])
            p = tf.placeholder(tf.bool, [])
            a, b = tf.random_uniform([2, 3], seed=1), tf.random_normal(tf.shape(x), seed=3)
            inner = tf.while_loop(
                lambda i, q: i < 4,
                lambda i, q: (
                    i + 1,
                    tf.cond(tf.equal(i % 2, 0), lambda: q + tf.random_uniform([3], seed=11), lambda: q),
                ),
                [tf.constant(0), tf.zeros([3])],
            )[1]
            either = tf.cond(p, lambda: tf.random_uniform([3], seed=9), lambda: tf.random_uniform([3], seed=10) * 2)
            found, sess = [], sess_of(graph)
            for k in range(3):
                feeds = {x: np.ones((2 + k, 3)), p: k % 2 == 0}
                found += sess.run([a, b, inner, either], feeds)
                found += [sess.run(tf.shape(b), feeds), sess.run(b, feeds), sess.run(a)]
            return [np.asarray(f).tobytes() for f in found]

    plain = draws(lambda graph: tf.Session(graph=graph, config=tf.SessionConfig()))
    for policy in ("exact", "generic"):
        assert (
            draws(lambda graph, policy=policy: tf.Session(graph=graph, config=session(shape_policy=policy).config))
            == plain
        )
