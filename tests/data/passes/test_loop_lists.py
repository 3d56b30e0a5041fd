"""Loops whose lists are histories: what they give, beside the same loops with lists and NumPy, and which stay as they are."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from list_programs import CPU, LISTS, Program, agree, array, numbers, outcome, plan_of, squares


@pytest.mark.parametrize("seed", range(36))
def test_random_loops(seed):
    """Results and errors are those of lists, in either executor and in debug mode; results are NumPy's."""
    program = Program(seed)
    fetches, fed = program.build()
    fields = {"executor": "dataflow" if seed % 2 else "straight_line", "debug": seed % 3 == 0}
    want = outcome(fetches, fed, **LISTS)
    agree(outcome(fetches, fed, **CPU, **fields), want)
    try:
        expected = program.numpy(fed)
    except LookupError:
        assert isinstance(want, tuple), want
        return
    for got, value in zip(want, expected, strict=False):
        np.testing.assert_allclose(got, value, 1e-4, 1e-5)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(36, 600))
def test_many_random_loops(seed):
    test_random_loops(seed)


def network(count, x, w):
    """A recurrent network written by hand."""
    rows, out = array(count).unstack(x), array(count)

    def body(i, h, out):
        h = tf.tanh(tf.matmul(tf.concat([rows.read(i), h], 1), w))
        return i + 1, h, out.write(i, h)

    return tf.while_loop(lambda i, *_: i < count, body, [0, tf.zeros([2, 4]), out])[2].stack()


@pytest.mark.parametrize("known", [True, False])
def test_a_network_and_its_gradient_have_no_lists(known):
    x = tf.placeholder(tf.float32, [5 if known else None, 2, 3])
    w = tf.placeholder(tf.float32, [7, 4])
    y = network(5 if known else tf.shape(x)[0], x, w)
    fetches = [y, *tf.gradients(tf.reduce_sum(y * y), [x, w])]
    fed = {x: numbers(5, 2, 3), w: numbers(7, 4, seed=1)}
    ops, said = plan_of(fetches, fed)
    assert not said and not [op for op in ops if "List" in op]
    agree(outcome(fetches, fed, **CPU), outcome(fetches, fed, **LISTS))


def test_gradients_are_those_of_differences():
    x, w = tf.constant(numbers(4, 2, 3)), tf.constant(numbers(7, 4, seed=1))
    y = network(4, x, w)
    with tf.Session(config=tf.SessionConfig(**CPU)):
        for source in (x, w):
            assert tf.test.compute_gradient_error(source, source.shape.as_list(), y, [4, 2, 4], delta=1e-2) < 5e-3


def test_gradients_of_gradients():
    x = tf.placeholder(tf.float32, [5, 3])
    rows, out = array(5).unstack(x), array(5)
    loop = tf.while_loop(
        lambda i, *_: i < 5,
        lambda i, v, o: (i + 1, v * tf.tanh(rows.read(i)), o.write(i, v * v)),
        [0, tf.ones([3]), out],
    )
    y = loop[2].stack()
    slope = tf.gradients(y * y, x)[0]
    fetches, fed = [y, slope, tf.gradients(slope * slope, x)[0]], {x: numbers(5, 3)}
    ops, said = plan_of(fetches, fed)
    assert not said and not [op for op in ops if "List" in op]
    agree(outcome(fetches, fed, **CPU), outcome(fetches, fed, **LISTS))


def test_loops_within_loops_have_no_lists():
    x, n = tf.placeholder(tf.float32, [4, 3]), tf.placeholder(tf.int32, [])

    def outer(k, v):
        rows = array(4).unstack(x * v)
        loop = tf.while_loop(
            lambda i, *_: i < 4, lambda i, v, o: (i + 1, tf.tanh(v + rows.read(i)), o.write(i, v)), [0, v, array(4)]
        )
        return k + 1, tf.reduce_mean(loop[2].stack(), 0) + loop[1]

    y = tf.while_loop(lambda k, _: k < n, outer, [0, tf.ones([3])])[1]
    fetches = [y, tf.gradients(y, x)[0]]
    for count in (2, 0, 3):
        fed = {x: numbers(4, 3), n: count}
        agree(outcome(fetches, fed, **CPU), outcome(fetches, fed, **LISTS))
    ops, said = plan_of(fetches, fed)
    assert not said and not [op for op in ops if "List" in op]


def test_inner_loops_of_as_many_iterations_as_the_outer_ones_counter_says_have_no_lists():
    x, n = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.int32, [])

    def outer(k, v):
        loop = tf.while_loop(
            lambda i, *_: i < k, lambda i, v, o: (i + 1, v * 0.9 + 1.0, o.write(i, v)), [0, v, array(k)]
        )
        return k + 1, tf.tanh(tf.reduce_sum(loop[2].stack(), 0) + loop[1])

    y = tf.while_loop(lambda k, _: k <= n, outer, [1, x])[1]
    fetches = [y, tf.gradients(y, x)[0]]
    for count in (3, 0, 1):
        agree(outcome(fetches, {x: numbers(3), n: count}, **CPU), outcome(fetches, {x: numbers(3), n: count}, **LISTS))
    assert not {"TensorListSetItem", "TensorListGetItem"} & plan_of(fetches, {x: numbers(3), n: 2})[0]


def test_the_size_of_what_a_loop_made_is_known():
    assert squares(lambda i, v, o: o.write(i, v))[0][0].shape.as_list() == [5, 3]
    assert squares(lambda i, v, o: o.write(i, v), dynamic_size=True)[0][0].shape.as_list() == [None, 3]
    pair = [array(5), array(5)]
    pair[1] = tf.TensorArray(tf.float32, flow=pair[1].flow, _facts=pair[0]._facts)  # another one in its place
    turned = tf.while_loop(lambda i, *_: i < 5, lambda i, a, b: (i + 1, b.write(i, [1.0]), a), [0, *pair])
    assert turned[1].stack().shape.as_list() == [None, 1]
