"""Loops that keep what their iterations compute, and their gradients, as one native call each: against the cpu's own kernels."""

from __future__ import annotations

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


def same(fetches, feeds, whole, near=1e-4, before=(), executor="straight_line"):
    """Steps with the plugin give what they give without it; so many loops are one node each, if ``whole`` says how many."""
    found = []
    for fields in ({**LLVM, "executor": executor}, {"backends": ("cpu",)}):
        with tf.Session(config=tf.SessionConfig(**fields)) as sess:
            sess.run(list(before))
            found.append([sess.run(fetches, feed) for feed in feeds])
            if len(found) == 1:
                explained = sess.explain(fetches, feeds[0])
                assert whole in (None, str(explained).count("Loop, whole")), str(explained)
    for step, other in zip(*found, strict=True):
        for got, want in zip(step, other, strict=True):
            assert np.asarray(got).dtype == np.asarray(want).dtype and np.shape(got) == np.shape(want)
            np.testing.assert_allclose(got, want, near, near * max(1.0, float(np.max(np.abs(want)))))
    return found[0]


@pytest.mark.parametrize("executor", ["straight_line", "dataflow"])
@pytest.mark.parametrize("size", [3, 10, 300])
def test_the_gradient_of_a_loop_of_any_number_of_iterations(size, executor):
    """Histories grow beyond the room that they begin with; long values are made where they are kept, short ones are copied."""
    n, x, w = tf.placeholder(tf.int32, []), *(tf.placeholder(tf.float32, [size]) for _ in range(2))

    def body(i, v, u):
        z = tf.tanh(v * w + u)
        return i + 1, z, u * 0.9 + z * v

    loop = tf.while_loop(lambda i, *_: i < n, body, [0, x, x * 0.5])
    loss = tf.reduce_sum(loop[1] * loop[2])
    feeds = [{n: count, x: numbers(size), w: numbers(size, seed=1)} for count in (0, 1, 7, 7, 500, 3, 65)]
    same([*loop, *tf.gradients(loss, [x, w])], feeds, 2, executor=executor)


def test_gradients_are_those_of_differences():
    n, x, w = tf.constant(6), tf.constant(numbers(2, 3)), tf.constant(numbers(3, 3) * 0.5)

    def body(i, v):
        return i + 1, tf.nn.softmax(tf.matmul(tf.tanh(v), w)) + tf.reduce_mean(v, 0)

    y = tf.while_loop(lambda i, *_: i < n, body, [0, x])[1]
    with tf.Session(config=tf.SessionConfig(**LLVM)) as sess:
        text = str(sess.explain(tf.gradients(tf.reduce_sum(y * y), [x, w])))
        assert text.count("Loop, whole") == 2, text
        for source in (x, w):
            assert tf.test.compute_gradient_error(source, source.shape.as_list(), y, [2, 3], delta=1e-2) < 5e-3


@pytest.mark.parametrize("executor", ["straight_line", "dataflow"])
def test_a_network_is_trained_whose_weights_are_variables(executor):
    """Variables are read by a loop where they lie: the optimizer has written them in the step before."""
    x, n = tf.placeholder(tf.float32, [4, 6]), tf.placeholder(tf.int32, [])
    w, b = tf.Variable(numbers(6, 6) * 0.3), tf.Variable(numbers(6))
    h = tf.while_loop(lambda i, _: i < n, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w) + b)), [0, x])[1]
    loss = tf.reduce_mean(tf.square(h - 0.5))
    step = tf.train.AdamOptimizer(0.05).minimize(loss)
    with tf.control_dependencies([step]):
        fetches = [tf.identity(loss), h]
    feeds = [{x: numbers(4, 6, seed=s), n: 5 + s % 3} for s in range(12)]
    losses = same(fetches, feeds, 2, 1e-3, [tf.global_variables_initializer()], executor)
    assert losses[-1][0] < losses[0][0]


def test_a_variable_that_a_step_writes_before_and_after_a_loop():
    v = tf.Variable(numbers(5))
    with tf.control_dependencies([tf.assign_add(v, tf.ones([5]))]):
        y = tf.while_loop(lambda i, _: i < 3, lambda i, t: (i + 1, t * v), [0, tf.ones([5])])[1]
    with tf.control_dependencies([y]):
        after = tf.assign_sub(v, tf.ones([5]) * 0.5)
    same([y, after], [{}] * 3, 1, before=[v.initializer])


def test_steps_of_several_threads_have_rows_of_their_own():
    """Memory of rows is used again by later steps of a session, not while another step reads it."""
    n, x, w = tf.placeholder(tf.int32, []), *(tf.placeholder(tf.float32, [400]) for _ in range(2))
    y = tf.while_loop(lambda i, _: i < n, lambda i, v: (i + 1, tf.tanh(v * w) + v * 0.5), [0, x])[1]
    gradients = tf.gradients(tf.reduce_sum(y), [x, w])
    feeds = [{n: 90 + 20 * k, x: numbers(400, seed=k), w: numbers(400, seed=9)} for k in range(3)]
    with tf.Session(config=tf.SessionConfig(**LLVM)) as sess:
        want = [sess.run(gradients, feed) for feed in feeds]
        wrong = []

        def work(k):
            for _ in range(12):
                wrong.extend(np.max(np.abs(a - b)) for a, b in zip(sess.run(gradients, feeds[k]), want[k], strict=True))

        threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(wrong) == 72 and max(wrong) == 0


def test_rows_that_are_read_and_rows_that_are_kept():
    x, first = tf.placeholder(tf.float32, [9, 2, 5]), tf.placeholder(tf.float32, [2, 5])
    y = tf.scan(lambda h, row: tf.sigmoid(h * 0.5 + row), x, first)
    back = tf.scan(lambda h, row: h * 0.7 + row, x, first, reverse=True)
    flat = tf.map_fn(lambda row: tf.reduce_sum(row * row, 1), x)
    gradients = tf.gradients(tf.reduce_sum(y * back) + tf.reduce_sum(flat), [x, first])
    same([y, back, flat, *gradients], [{x: numbers(9, 2, 5), first: numbers(2, 5)}], 6)


@pytest.mark.parametrize("lengths", [False, True])
@pytest.mark.parametrize("kind", ["BasicRNNCell", "BasicLSTMCell", "GRUCell"])
def test_recurrent_networks_are_trained(kind, lengths):
    """Gates are cut out of one product, inputs and states are joined: copies between parts of buffers, or read where they lie."""
    x, y = tf.placeholder(tf.float32, [3, 11, 5]), tf.placeholder(tf.float32, [3, 11, 7])
    count = tf.placeholder(tf.int32, [3]) if lengths else None
    outputs, _ = tf.nn.dynamic_rnn(getattr(tf.nn.rnn_cell, kind)(7), x, sequence_length=count, dtype=tf.float32)
    loss = tf.reduce_mean(tf.square(outputs - y))
    optimizer = tf.train.GradientDescentOptimizer(0.5)
    pairs = optimizer.compute_gradients(loss)
    before = [v.assign(numbers(*v.shape.as_list(), seed=4) * 0.3) for v in tf.trainable_variables()]
    with tf.control_dependencies([optimizer.apply_gradients(pairs)]):
        fetches = [tf.identity(loss), outputs]
    feeds = [{x: numbers(3, 11, 5, seed=s), y: numbers(3, 11, 7)} for s in range(4)]
    same(fetches, [{**f, count: [11, 1, 4]} if lengths else f for f in feeds], 2, 1e-3, before)


def test_parts_of_several_shapes_are_cut_turned_and_joined():
    x = tf.placeholder(tf.float32, [4, 6])

    def body(i, v):
        a, b = tf.split(v, [2, 4], axis=1)
        turned = tf.transpose(tf.reshape(b, [2, 2, 4]), [1, 2, 0])
        rows = tf.unstack(tf.reshape(turned, [4, 4]), axis=0)
        mixed = tf.stack(rows[::-1], axis=1)
        return i + 1, tf.concat([tf.tanh(mixed) + mixed[1:2, :], a * 0.5], axis=1)

    y = tf.while_loop(lambda i, v: tf.logical_and(i < 4, v[1, 2] < 1e3), body, [0, x])[1]
    same([y], [{x: numbers(4, 6)}], 1)


def test_single_elements_of_vectors_are_parts():
    x = tf.placeholder(tf.float32, [3])

    def body(i, v, w):
        a, b, c = tf.unstack(v)
        return i + 1, tf.stack([c * 0.5, a + w[1], tf.squeeze(tf.slice(w, [0], [1]), 0)]), tf.stack([b, a, w[-1]])

    loop = tf.while_loop(lambda i, v, w: tf.logical_and(i < 9, v[0] < 40.0), body, [0, x, x * 2.0])
    same(loop, [{x: numbers(3) * s} for s in (1.0, 100.0)], 1)


def test_a_limit_and_a_condition_of_what_is_computed():
    x = tf.placeholder(tf.float32, [40])
    loop = tf.while_loop(
        lambda i, v: tf.reduce_sum(v) < 500.0, lambda i, v: (i + 1, v * 1.2 + 0.1), [0, x], maximum_iterations=30
    )
    feeds = [{x: numbers(40) * scale} for scale in (1.0, 0.0, 100.0, -100.0)]
    same([*loop, *tf.gradients(tf.reduce_sum(loop[1] ** 2.0), [x])], feeds, 2, 1e-3)


def test_histories_of_other_dtypes_and_of_nothing():
    """The gradient of the second loop needs nothing of its iterations but how many there were."""
    x = tf.placeholder(tf.float64, [7])

    def body(i, v):
        return i + 1, tf.where(v > tf.cast(i, tf.float64) * 0.1, v * v, v * 0.5)

    y = tf.while_loop(lambda i, _: i < 4, body, [0, x])[1]
    z = tf.while_loop(lambda i, _: i < 4, lambda i, v: (i + 1, v * 0.5 + 1.0), [0, x])[1]
    same([y, z, *tf.gradients(y, [x]), *tf.gradients(z, [x])], [{x: numbers(7).astype(float)}], 4, 1e-9)


def test_gradients_of_gradients():
    x, n = tf.placeholder(tf.float32, [6]), tf.placeholder(tf.int32, [])
    y = tf.while_loop(lambda i, _: i < n, lambda i, v: (i + 1, tf.sin(v) * v), [0, x])[1]
    once = tf.gradients(tf.reduce_sum(y), [x])[0]
    twice = tf.gradients(tf.reduce_sum(once * once), [x])[0]
    same([y, once, twice], [{x: numbers(6), n: c} for c in (0, 3, 70)], 4, 1e-3)


@pytest.mark.parametrize("which", ["forward", "backward"])
def test_one_of_two_loops_alone_is_whole(which):
    """The other one makes a list of buffers, or takes elements of the rows."""
    x, w = tf.placeholder(tf.float32, [5]), tf.placeholder(tf.float32, [5])

    @tf.RegisterGradient(f"OneAlone{which}")
    def _(op, grad):
        return grad * (tf.tan(op.inputs[0] * 0.1) if which == "forward" else op.outputs[0])

    def f(v):
        with tf.get_default_graph().gradient_override_map({"Tanh": f"OneAlone{which}"}):
            return tf.tanh(v if which == "forward" else tf.stop_gradient(tf.tan(v * 0.1)) + v)

    y = tf.while_loop(lambda i, _: i < 80, lambda i, v: (i + 1, f(v * w) * 0.5 + 0.1), [0, x])[1]
    same([y, *tf.gradients(tf.reduce_sum(y), [x, w])], [{x: numbers(5), w: numbers(5, seed=1)}] * 2, 1)


def test_an_endless_loop_with_a_history_is_stopped():
    x = tf.placeholder(tf.float32, [2])
    y = tf.while_loop(lambda i, v: v[0] < 1e15, lambda i, v: (i + 1, v * v), [0, x])[1]
    gradient = tf.gradients(y, x)[0]
    with tf.Session(config=tf.SessionConfig(**LLVM)) as sess:
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(gradient, {x: [1.0, 1.0]}, options=tf.RunOptions(timeout_in_ms=50))
        np.testing.assert_allclose(sess.run(gradient, {x: [2.0, 1.0]}), [64 * 2.0**63, 64.0])


def test_what_does_not_fit_raises_and_the_next_step_runs(monkeypatch):
    x, n = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.int32, [])
    y = tf.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, v * v), [0, x])[1]
    gradient = tf.gradients(y, x)[0]
    empty = np.empty

    def no_room(shape, *args, **kwargs):
        if isinstance(shape, tuple) and shape[:1] > (64,):
            raise MemoryError("there is no room for that")
        return empty(shape, *args, **kwargs)

    with tf.Session(config=tf.SessionConfig(**LLVM)) as sess:
        want = sess.run(gradient, {x: [1.0, -1.0, 0.5], n: 3})
        with monkeypatch.context() as patched:
            patched.setattr(np, "empty", no_room)
            with pytest.raises((MemoryError, tf.errors.OpError), match="no room"):
                sess.run(gradient, {x: [1.0, -1.0, 0.5], n: 500})
        np.testing.assert_array_equal(sess.run(gradient, {x: [1.0, -1.0, 0.5], n: 3}), want)
        assert sess.run(gradient, {x: [1.0, 1.0, 1.0], n: 30})[0] == 2.0**30


def test_loops_on_devices_apart_stay_as_they_are():
    x = tf.placeholder(tf.float32, [4])
    with tf.device("cpu:1"):
        y = tf.while_loop(lambda i, _: i < 5, lambda i, v: (i + 1, tf.sin(v * v)), [0, x])[1]
    with tf.device("cpu:0"):
        gradient = tf.gradients(y, x)[0]
    config = {"device_count": {"CPU": 2}}
    found = []
    for fields in ({**LLVM, **config}, {"backends": ("cpu",), **config}):
        with tf.Session(config=tf.SessionConfig(**fields)) as sess:
            found.append(sess.run([y, gradient], {x: numbers(4)}))
    np.testing.assert_allclose(found[0], found[1], 1e-5)


def test_random_loops_and_their_gradients():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        shapes = [[], [7], [3, 40]]
        first = [tf.placeholder(tf.float32, s) for s in shapes]
        n = tf.placeholder(tf.int32, [])

        def body(i, *values, rng=rng):
            made = list(values)
            for _ in range(6):
                a, b = (made[k] for k in rng.integers(len(made), size=2))
                if a.shape.as_list() != b.shape.as_list():
                    b = tf.reduce_mean(b)
                made.append([tf.tanh(a + b), a * 0.5 - b * 0.3, tf.sigmoid(a) * b][rng.integers(3)])
            following = []
            for v in values:
                of = [m for m in made if m.shape.as_list() == v.shape.as_list()]
                following.append(of[rng.integers(len(of))])
            return (i + 1, *following)

        made = tf.while_loop(lambda i, *_, n=n: i < n, body, [0, *first])[1:]
        loss = tf.add_n([tf.reduce_sum(m * m) for m in made])
        gradients = [g for g in tf.gradients(loss, first) if g is not None]
        fed = {x: rng.normal(size=s).astype(np.float32) for x, s in zip(first, shapes, strict=True)}
        same([*made, *gradients], [{**fed, n: c} for c in (0, 4, 90)], None, 1e-3)


@pytest.mark.parametrize("cell", ["LSTMCell", "GRUCell", "BasicRNNCell"])
def test_a_recurrent_network_of_any_batch_is_trained_in_two_loops(cell):
    """A pad of the gradient of a part of unknown size pads nothing where the batch is known."""
    x = tf.placeholder(tf.float32, [None, 6, 4])
    out, _ = tf.nn.dynamic_rnn(getattr(tf.nn.rnn_cell, cell)(8), x, dtype=tf.float32)
    slopes = tf.gradients(tf.reduce_sum(tf.square(out)), tf.trainable_variables())
    seen = []
    for fields in (LLVM, {"backends": ("cpu",)}):
        with tf.Session(config=tf.SessionConfig(**fields)) as sess:
            tf.set_random_seed(1)
            sess.run(tf.global_variables_initializer())
            for number, variable in enumerate(tf.trainable_variables()):
                variable.load(numbers(*variable.shape.as_list(), seed=number) * 0.5, sess)
            feeds = [{x: numbers(rows, 6, 4, seed=rows)} for rows in (3, 1)]
            if fields is LLVM:
                assert all(str(sess.explain(slopes, feed)).count("Loop, whole") == 2 for feed in feeds)
            seen += [[sess.run(slopes, feed) for feed in feeds]]
    for ours, theirs in zip(*seen, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a, b, 1e-4, 1e-4)
