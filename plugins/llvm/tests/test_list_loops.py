"""Loops over TensorArrays as native calls: against the same loops with lists, which Python drives, and NumPy."""

from __future__ import annotations

import importlib.util
import threading
from pathlib import Path

import graphdock as tf
import numpy as np
import pytest

_FILE = Path(__file__).parents[3] / "tests" / "data" / "passes" / "list_programs.py"
_SPEC = importlib.util.spec_from_file_location("list_programs", _FILE)
programs = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(programs)

LLVM = {"backends": ("llvm", "cpu")}
LISTS = {"backends": ("cpu",), "passes": {"lists": False}}


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def whole(fetches, fed, count):
    with tf.Session(config=tf.SessionConfig(**LLVM)) as sess:
        text = str(sess.explain(fetches, fed))
    assert text.count("Loop, whole") == count and "  While " not in text, text


@pytest.mark.parametrize("seed", range(24))
def test_random_loops(seed):
    program = programs.Program(seed, likely=4)
    fetches, fed = program.build()
    want = programs.outcome(fetches, fed, **LISTS)
    fields = {"executor": "dataflow" if seed % 2 else "straight_line", "debug": seed % 3 == 0}
    programs.agree(programs.outcome(fetches, fed, **LLVM, **fields), want)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(24, 300))
def test_many_random_loops(seed):
    test_random_loops(seed)


def lstm(steps, lines, inputs, units, x, w):
    rows, out = tf.TensorArray(tf.float32, size=steps).unstack(x), tf.TensorArray(tf.float32, size=steps)

    def body(i, c, h, out):
        parts = tf.split(tf.matmul(tf.concat([rows.read(i), h], 1), w), 4, 1)
        c = tf.sigmoid(parts[1] + 1.0) * c + tf.sigmoid(parts[0]) * tf.tanh(parts[2])
        h = tf.sigmoid(parts[3]) * tf.tanh(c)
        return i + 1, c, h, out.write(i, h)

    return tf.while_loop(lambda i, *_: i < steps, body, [0, tf.zeros([lines, units]), tf.zeros([lines, units]), out])


def lstm_numpy(x, w, units):
    c = h = np.zeros((x.shape[1], units))
    found = []
    for row in x:
        a, b, d, e = np.split(np.concatenate([row, h], 1) @ w, 4, 1)
        sigmoid = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
        c = sigmoid(b + 1) * c + sigmoid(a) * np.tanh(d)
        h = sigmoid(e) * np.tanh(c)
        found.append(h)
    return np.stack(found), c


@pytest.mark.parametrize("steps", [1, 7, 50])
def test_a_network_by_hand_and_its_gradient_are_two_calls(steps):
    x, w = tf.placeholder(tf.float32, [steps, 2, 3]), tf.placeholder(tf.float32, [7, 16])
    _, c, _, out = lstm(steps, 2, 3, 4, x, w)
    y = out.stack()
    fetches = [y, c, *tf.gradients(tf.reduce_sum(y * y), [x, w])]
    fed = {x: programs.numbers(steps, 2, 3), w: programs.numbers(7, 16, seed=1)}
    whole(fetches, fed, 2)
    got = programs.outcome(fetches, fed, **LLVM)
    programs.agree(got, programs.outcome(fetches, fed, **LISTS))
    for one, other in zip(got, lstm_numpy(*fed.values(), 4), strict=False):
        np.testing.assert_allclose(one, other, 1e-4, 1e-5)


def test_a_network_is_trained_whose_weights_are_variables():
    x = tf.placeholder(tf.float32, [6, 2, 3])
    w = tf.Variable(programs.numbers(7, 16, seed=1) * 0.5)
    loss = tf.reduce_mean(tf.square(lstm(6, 2, 3, 4, x, w)[3].stack() - 0.2))
    step = tf.train.AdamOptimizer(0.05).minimize(loss)
    found = []
    for fields in (LLVM, LISTS):
        with tf.Session(config=tf.SessionConfig(**fields)) as sess:
            sess.run(tf.global_variables_initializer())
            found.append([sess.run([loss, step], {x: programs.numbers(6, 2, 3)})[0] for _ in range(20)])
            if fields is LLVM:
                assert str(sess.explain([loss, step], {x: programs.numbers(6, 2, 3)})).count("Loop, whole") == 2
    np.testing.assert_allclose(*found, 1e-3)
    assert found[0][-1] < found[0][0] * 0.9


def test_loops_within_a_loop_are_one_call_each_way():
    x, n = tf.placeholder(tf.float32, [4, 3]), tf.placeholder(tf.int32, [])

    def outer(k, v):
        rows = tf.TensorArray(tf.float32, size=4).unstack(x * v)
        loop = tf.while_loop(
            lambda i, *_: i < 4,
            lambda i, v, o: (i + 1, tf.tanh(v + rows.read(i)), o.write(i, v)),
            [0, v, tf.TensorArray(tf.float32, size=4)],
        )
        return k + 1, tf.reduce_mean(loop[2].stack(), 0) + loop[1]

    y = tf.while_loop(lambda k, _: k < n, outer, [0, tf.ones([3])])[1]
    fetches = [y, tf.gradients(y, x)[0]]
    for count in (3, 0, 1):
        fed = {x: programs.numbers(4, 3), n: count}
        whole(fetches, fed, 2)
        programs.agree(programs.outcome(fetches, fed, **LLVM), programs.outcome(fetches, fed, **LISTS))


def test_gradients_are_those_of_differences():
    x, w = tf.constant(programs.numbers(4, 2, 3)), tf.constant(programs.numbers(7, 16, seed=1))
    y = lstm(4, 2, 3, 4, x, w)[3].stack()
    with tf.Session(config=tf.SessionConfig(**LLVM)):
        for source in (x, w):
            assert tf.test.compute_gradient_error(source, source.shape.as_list(), y, [4, 2, 4], delta=1e-2) < 5e-3


def test_lengths_that_are_fed():
    """Of none, one and many iterations, of a part of the rows, and of more than there are, which is the error that it was."""
    n, x, v = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [9, 5]), tf.placeholder(tf.float32, [5])
    rows = tf.TensorArray(tf.float32, size=9).unstack(x)
    loop = tf.while_loop(
        lambda i, *_: i < n,
        lambda i, v, o: (i + 1, tf.tanh(v + rows.read(i)), o.write(i, v)),
        [0, v, tf.TensorArray(tf.float32, size=9)],
    )
    y = loop[2].stack()
    fetches = [y, loop[1], *tf.gradients(tf.reduce_sum(y * y) + tf.reduce_sum(loop[1]), [x, v])]
    for count in (3, 0, 1, 9, 10, -2):
        fed = {n: count, x: programs.numbers(9, 5), v: programs.numbers(5, seed=1)}
        whole(fetches, fed, 2)
        want = programs.outcome(fetches, fed, **LISTS)
        assert isinstance(want, tuple) is (count > 9)
        programs.agree(programs.outcome(fetches, fed, **LLVM), want)


def test_steps_at_once():
    x, w = tf.placeholder(tf.float32, [7, 2, 3]), tf.placeholder(tf.float32, [7, 16])
    y = lstm(7, 2, 3, 4, x, w)[3].stack()
    fetches = [y, *tf.gradients(tf.reduce_sum(y * y), [x, w])]
    feeds = [{x: programs.numbers(7, 2, 3, seed=k), w: programs.numbers(7, 16, seed=9)} for k in range(4)]
    want = [programs.outcome(fetches, fed, **LISTS) for fed in feeds]
    wrong = []
    with tf.Session(config=tf.SessionConfig(**LLVM)) as sess:

        def steps(k):
            for _ in range(20):
                try:
                    programs.agree(sess.run(fetches, feeds[k]), want[k])
                except AssertionError as error:
                    wrong.append(error)

        threads = [threading.Thread(target=steps, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_a_write_copies_a_row_and_not_the_array():
    """What a step takes of memory grows by the rows themselves, however many there are."""
    import tracemalloc

    taken = []
    for count in (200, 800):
        x = tf.placeholder(tf.float32, [1000])
        loop = tf.while_loop(
            lambda i, *_, count=count: i < count,
            lambda i, v, o: (i + 1, v * 0.5 + 1.0, o.write(i, v)),
            [0, x, tf.TensorArray(tf.float32, size=count)],
        )
        y = loop[2].stack()
        with tf.Session(config=tf.SessionConfig(**LLVM)) as sess:
            sess.run(y, {x: np.zeros(1000)})
            tracemalloc.start()
            sess.run(y, {x: np.zeros(1000)})
            taken.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert taken[1] < 4 * 800 * 1000 * 4 and taken[1] < 6 * taken[0]
