"""Random nested conds and loops against Python's own; deep and long programs, whose source is cut into several functions."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.passes.pipeline import simplifications

OFF = dict.fromkeys(simplifications(), False)
pytestmark = pytest.mark.modes  # every program runs in debug mode, too
VARIANTS = [
    {},
    {"debug": True},
    {"debug": True, "passes": OFF},
    {"shape_policy": "generic"},
    {"shape_policy": "generic", "passes": OFF, "debug": True},
]


def compare(random_loops, seed, size, depth, variants):
    program = random_loops.Loops(seed)
    program.grow(size, depth)
    sets = [program.feeds() for _ in range(3)]
    expected = [program.interpret(f) for f in sets]
    with tf.Graph().as_default() as graph:
        fed, values = program.build(sets[0])
        everything = [(k, i) for k in random_loops.KINDS for i in range(len(values[k]))]
        some = [everything[int(i)] for i in program.rng.integers(0, len(everything), 4)]
        for fields in variants:
            with tf.Session(graph=graph, config=tf.SessionConfig(**fields)) as sess:
                for fetched in (everything, some):
                    for feeds, found in zip([*sets, sets[0]], [*expected, expected[0]], strict=True):
                        feed_dict = {fed[k][i]: v for k, vs in feeds.items() for i, v in enumerate(vs)}
                        got = sess.run([values[k][i] for k, i in fetched], feed_dict)
                        for (k, i), value in zip(fetched, got, strict=True):
                            check(value, np.asarray(found[k][i]), f"{fields}: {k}{i}")
                        for value in got:
                            if isinstance(value, np.ndarray):
                                value.fill(7)


def check(got, expected, what):
    got = np.asarray(got)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape), what
    if expected.dtype.kind == "f":  # NumPy's sine differs in the last bit between a strided and a contiguous array
        np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-8, err_msg=what)
    else:
        np.testing.assert_array_equal(got, expected, err_msg=what)


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.sampled(4)
def test_a_random_program_does_what_python_does(random_loops, seed):
    compare(random_loops, seed, 6, 3, VARIANTS)


@pytest.mark.parametrize("seed", [4, 8])
@pytest.mark.sampled(2)
def test_a_long_program_is_cut_into_functions(random_loops, seed):
    compare(random_loops, seed, 14, 3, [{}, {"debug": True, "passes": OFF}])


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("depth", [3, 9, 24])
@pytest.mark.sampled(2)
def test_loops_and_conds_in_one_another(depth, debug):
    """Each level is a loop of two rounds around a cond around the next level, and adds what the outer levels hold."""

    def level(n, x, outer):
        if n == 0:
            return x * 3 + outer

        def body(i, y):
            deeper = tf.cond(tf.equal(i % 2, 0), lambda: level(n - 1, y + i, outer + y), lambda: y - outer + n)
            return i + 1, deeper

        return tf.while_loop(lambda i, y: i < 2, body, [tf.constant(0), x])[1]

    def plain(n, x, outer):
        if n == 0:
            return x * np.int32(3) + outer
        for i in range(2):
            x = plain(n - 1, x + np.int32(i), outer + x) if i % 2 == 0 else x - outer + np.int32(n)
        return x

    with tf.Graph().as_default(), np.errstate(all="ignore"):
        x = tf.placeholder(tf.int32, [])
        vector = tf.placeholder(tf.int32, [2])
        results = [level(depth, x, tf.constant(1)), level(depth, vector, tf.constant([1, 2]))]
        with tf.Session(config=tf.SessionConfig(debug=debug)) as sess:
            for start in (np.int32(2), np.int32(-70000)):
                got = sess.run(results, {x: start, vector: [start, 5]})
                assert got[0] == plain(depth, start, np.int32(1))
                expected = plain(depth, np.array([start, 5], np.int32), np.array([1, 2], np.int32))
                np.testing.assert_array_equal(got[1], expected)


@pytest.mark.parametrize("fields", [{}, {"debug": True}, {"passes": OFF}])
@pytest.mark.exhaustive
def test_four_thousand_nodes_with_loops_among_them(fields):
    rng = np.random.default_rng(3)
    with tf.Graph().as_default() as graph:
        v = tf.Variable(np.zeros(3))
        x = tf.placeholder(tf.float64, [3])
        tensors, arrays = [x], [np.array([0.5, -1.0, 2.0])]
        for n in range(2000):
            i, j = (int(k) for k in rng.integers(max(0, len(tensors) - 30), len(tensors), 2))
            a, b, p, q = tensors[i], tensors[j], arrays[i], arrays[j]
            if n % 97 == 0:
                tensors.append(tf.while_loop(lambda t, c: t < 3, lambda t, c, b=b: (t + 1, c[::-1] - b), [0, a])[1])
                arrays.append(((p[::-1] - q)[::-1] - q)[::-1] - q)
            elif n % 101 == 0:
                tensors.append(tf.cond(a[0] > 0, lambda a=a, b=b: a + b, lambda a=a: a * 0.5))
                arrays.append(p + q if p[0] > 0 else p * 0.5)
            else:
                tensors.append(tf.clip_by_value(a - b * 0.5, -3.0, 3.0))
                arrays.append(np.clip(p - q * 0.5, -3.0, 3.0))
        update = v.assign_add(tensors[-1])
        picked = [int(i) for i in rng.integers(0, len(tensors), 20)]
        with tf.Session(graph=graph, config=tf.SessionConfig(**fields)) as sess:
            sess.run(v.initializer)
            for step in range(1, 3):
                got = sess.run([*[tensors[i] for i in picked], update], {x: arrays[0]})
                for i, value in zip(picked, got, strict=False):
                    np.testing.assert_allclose(value, arrays[i], rtol=1e-12)
                np.testing.assert_allclose(got[-1], arrays[-1] * step, rtol=1e-12)
            fetches = [*[tensors[i] for i in picked], update]
            assert sess.plan(fetches).source.count("def part") > 1
