"""Loops that are one native call: the same results as loops that Python drives, and steps that can be stopped."""

from __future__ import annotations

import signal
import threading

import graphdock as tf
import numpy as np
import pytest

LLVM = {"backends": ("llvm", "cpu")}


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def whole(fetches, feed=None, near=1e-5):
    """Results of the cpu alone, which those with the plugin equal; every loop is one node there."""
    found = []
    for fields in (LLVM, {"backends": ("cpu",)}):
        with tf.Session(config=tf.SessionConfig(**fields)) as sess:
            found.append([sess.run(fetches, feed) for _ in range(2)])
            if fields is LLVM:
                explained = sess.explain(fetches, feed)
                levels = list(explained.plan.graph.all_graphs())
                assert len(levels) == 1 and "Loop, whole" in str(explained), str(explained)
    for got, want in zip(found[0], found[1], strict=True):
        for g, w in zip(got, want, strict=True):
            assert np.asarray(g).dtype == np.asarray(w).dtype and np.shape(g) == np.shape(w)
            np.testing.assert_allclose(g, w, near, near)
    return found[1][0]


@pytest.mark.parametrize("count", [0, 1, 7])
def test_a_counter_and_a_vector(count):
    n, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [10])
    i, y = tf.while_loop(lambda i, _: i < n, lambda i, v: (i + 1, v * 0.5 + 1.0), [tf.constant(0), x])
    got = whole([i, y], {n: count, x: numbers(10)})
    assert got[0] == count


@pytest.mark.parametrize("size", [3, 100])
def test_variables_change_places_all_at_once(size):
    """Long ones change places with what a step makes, short ones are copied; one stays, one becomes what is captured."""
    a, b, c = (tf.placeholder(tf.float32, [size]) for _ in range(3))

    def body(i, x, y, z, w, kept):
        return i + 1, y, x, z * 0.5 + x, c, kept

    made = tf.while_loop(lambda i, *_: i < 5, body, [0, a, b, c, a, tf.constant(numbers(size, seed=9))])
    whole(made, {a: numbers(size), b: numbers(size, seed=1), c: numbers(size, seed=2)})


def test_products_reductions_and_reshapes_in_a_loop():
    x, w = tf.placeholder(tf.float32, [4, 6]), tf.constant(numbers(6, 6) * 0.3)

    def body(i, h, total):
        h = tf.nn.softmax(tf.matmul(h, w) + tf.reshape(tf.range(6.0), [6]))
        return i + 1, tf.reshape(tf.reshape(h, [24]) * 2.0, [4, 6]), total + tf.reduce_sum(h * h)

    whole(tf.while_loop(lambda i, h, t: tf.logical_and(i < 9, t < 40.0), body, [0, x, 0.0]), {x: numbers(4, 6)})


def test_a_loop_within_a_loop_and_a_limit():
    n, m = tf.placeholder(tf.int64, []), tf.placeholder(tf.int64, [])

    def outer(i, total, v):
        _, total, v = tf.while_loop(
            lambda j, *_: j < m, lambda j, t, v: (j + 1, t + i * j, v * 0.9 + 0.1), [tf.constant(0, tf.int64), total, v]
        )
        return i + 1, total, v

    zero = tf.constant(0, tf.int64)
    made = tf.while_loop(lambda i, *_: i < n, outer, [zero, zero, tf.zeros([5])], maximum_iterations=6)
    for i, j in ((3, 4), (9, 2), (0, 3), (3, 0)):
        got = whole(made, {n: i, m: j})
        assert got[1] == sum(a * b for a in range(min(i, 6)) for b in range(j))


def test_other_dtypes_and_what_stands_around():
    x = tf.placeholder(tf.float64, [3, 5])
    made = tf.while_loop(
        lambda k, *_: tf.reduce_any(k < 4),
        lambda k, h, b, d: (k + tf.constant([1, 2], tf.int16), tf.tanh(h + h), tf.logical_not(b), d * 0.5 + 1.0),
        [tf.constant([0, 1], tf.int16), tf.cast(x, tf.float16), tf.constant([True, False, True]), x * 2.0],
    )
    y = tf.reduce_sum(made[3] * 3.0, 0)
    whole([*made, y], {x: numbers(3, 5)}, 1e-2)


def test_random_loops():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        shapes = [[], [7], [3, 40]]
        first = [tf.constant(rng.normal(size=s).astype(np.float32)) for s in shapes]

        def body(i, *values, rng=rng):
            made = list(values)
            for _ in range(6):
                a, b = (made[k] for k in rng.integers(len(made), size=2))
                if a.shape.as_list() != b.shape.as_list():
                    b = tf.reduce_max(b)
                made.append([tf.tanh(a + b), a * 0.5 - b, tf.where(a > b + a * 0.0, a, a * 0.25)][rng.integers(3)])
            following = []
            for v in values:
                of = [m for m in made if m.shape.as_list() == v.shape.as_list()]
                following.append(of[rng.integers(len(of))])
            return (i + 1, *following)

        whole(tf.while_loop(lambda i, *_: i < 4, body, [0, *first]), near=1e-4)


def endless():
    return tf.while_loop(lambda i, v: v < 1e30, lambda i, v: (i + 1, v * 1.0), [0, 1.0])[1]


def test_a_loop_that_never_ends_is_stopped_by_the_time_limit_and_by_an_interrupt():
    outer = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, endless() + v), [0, 0.0])[1]
    with tf.Session(config=tf.SessionConfig(**LLVM)) as sess:
        for fetch in (endless(), outer):
            with pytest.raises(tf.errors.DeadlineExceededError):
                sess.run(fetch, options=tf.RunOptions(timeout_in_ms=50))
        timer = threading.Timer(0.05, lambda: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            timer.start()  # on a busy machine it may come before this returns
            sess.run(endless())
        timer.join()
        x = tf.placeholder(tf.float32, [])
        y = tf.while_loop(lambda v: v < 100.0, lambda v: (v * 2.0,), [x])
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(y, {x: 0.0}, options=tf.RunOptions(timeout_in_ms=50))
        assert sess.run(y, {x: 3.0}) == 192.0


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (lambda v: tf.tan(v), "there is no tan of float32"),
        (lambda v: v + tf.random_uniform([4]), "draws random numbers"),
        (lambda v: tf.gather(v, [3, 2, 1, 0]), "Gather"),
        (
            lambda v: tf.reshape(tf.py_func(np.sin, [v], tf.float32), [4]),
            "(PyFunc) in it is run for more than its result",
        ),
    ],
)
def test_a_loop_that_is_not_taken_says_why_and_its_parts_are(body, reason):
    x = tf.placeholder(tf.float32, [4])
    y = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, body(v) * 0.5 + 1.0), [0, x])[1]
    with tf.Session(config=tf.SessionConfig(**LLVM)) as sess:
        explained = sess.explain(y, {x: numbers(4)})
        assert reason in str(explained) and "loop while" in str(explained), str(explained)
        sess.run(y, {x: numbers(4)})


def test_a_loop_that_writes_every_other_element_of_an_array_and_its_gradient_are_driven_from_outside_and_say_so():
    x, w = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.float32, [3])

    def body(i, v, rows):
        v = tf.sin(v * w)
        return i + 1, v, rows.write(2 * i, v)

    rows = tf.while_loop(lambda i, *_: i < 4, body, [0, x, tf.TensorArray(tf.float32, size=7)])[2].stack()
    gradient = tf.gradients(tf.reduce_sum(rows * rows), w)[0]
    found = []
    for fields in (LLVM, {"backends": ("cpu",)}):
        with tf.Session(config=tf.SessionConfig(**fields)) as sess:
            found.append(sess.run([rows, gradient], {x: numbers(3), w: numbers(3, seed=1)}))
            if fields is LLVM:
                text = str(sess.explain([rows, gradient]))
                assert text.count("a list or a history, is a loop variable") == 2, text
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, 1e-5)


def test_buffers_of_megabytes_lie_in_the_memory_of_the_step_and_larger_ones_stay_with_python():
    x = tf.placeholder(tf.float32, [300, 300])
    y = tf.while_loop(lambda i, *_: i < 3, lambda i, v, w: (i + 1, v * 0.5 + w, tf.sin(v)), [0, x, x + 1.0])
    whole(y, {x: numbers(300, 300)})
    large = tf.placeholder(tf.float32, [2000, 2000])
    z = tf.while_loop(lambda i, v: i < 1, lambda i, v: (i + 1, v * 0.5 + 1.0), [0, large])[1]
    with tf.Session(config=tf.SessionConfig(**LLVM)) as sess:
        assert "which a step drives from outside" in str(sess.explain(z, {large: np.zeros((2000, 2000))}))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rows", [3, 8, 16, 300])
def test_large_products_by_matrices_that_stay_and_by_such_that_change(rows, threads):
    """Those that stay are packed once, before the loop; transposed ones too, and a constant."""
    x, w, u = (tf.placeholder(tf.float32, s) for s in ([rows, 128], [128, 128], [128, 128]))
    c = tf.constant(numbers(128, 128, seed=5) * 0.05)

    def body(i, h, m):
        h = tf.tanh(tf.matmul(h, w)) + tf.matmul(h, u, transpose_b=True)
        return i + 1, tf.tanh(tf.matmul(h, m) + tf.matmul(h, c)), m * 0.9

    feed = {x: numbers(rows, 128), w: numbers(128, 128, seed=1) * 0.1, u: numbers(128, 128, seed=2) * 0.1}
    made = tf.while_loop(lambda i, *_: i < 4, body, [0, x, w * 0.5])
    want = None
    for fields in ({**LLVM, "intra_op_threads": threads}, {"backends": ("cpu",)}):
        with tf.Session(config=tf.SessionConfig(**fields)) as sess:
            got = [sess.run(made, feed) for _ in range(2)]
            if want is None:
                want = got
                assert "Loop, whole" in str(sess.explain(made, feed))
    for g, w_ in zip(want, got, strict=True):
        for a, b in zip(g, w_, strict=True):
            np.testing.assert_allclose(a, b, 1e-3, 1e-3)


def test_reductions_over_axes_in_the_middle():
    x = tf.placeholder(tf.float32, [6, 50, 30])

    def body(i, a, total):
        most = tf.reduce_max(a * 2.0, 1, keepdims=True)
        return i + 1, tf.tanh(a + most), total * 0.5 + tf.reduce_mean(tf.nn.relu(a), 1)

    made = tf.while_loop(lambda i, *_: i < 5, body, [0, x, tf.zeros([6, 30])])
    whole(made, {x: numbers(6, 50, 30)})
