"""Integers that are known before a step runs are those that a step would compute."""

import graphdock as tf
import lab
import numpy as np
import pytest


def fed(function, *arrays):
    """The op's result over constants, whose values are known before, and over feeds, whose values are not."""
    feeds = [tf.placeholder(a.dtype, a.shape) for a in arrays]
    constants = [tf.constant(a) for a in arrays]
    with tf.Session() as sess:
        return sess.run(function(*constants)), sess.run(function(*feeds), dict(zip(feeds, arrays, strict=True)))


@pytest.mark.parametrize(
    ("value", "through", "back"),
    [
        (300, tf.int8, tf.int32),
        (-1, tf.uint8, tf.int32),
        (2**31 + 5, tf.int32, tf.int64),
        (70_000, tf.uint16, tf.int64),
    ],
)
def test_a_cast_of_a_known_integer_wraps_around(value, through, back):
    known, computed = fed(lambda x: tf.cast(tf.cast(x, through), back), np.array([value]))
    assert known == computed == np.array([value]).astype(through.np).astype(back.np)


@pytest.mark.parametrize("value", [2**32 + 3, -(2**40), 2**63 - 1])
def test_a_cast_of_a_known_integer_to_a_narrower_type_wraps_around(value):
    known, computed = fed(lambda x: tf.cast(x, tf.int32), np.array(value))
    assert known == computed == np.array(value).astype(np.int32)


def test_unsigned_arithmetic_of_known_integers_wraps_around():
    known, computed = fed(lambda a, b: tf.cast(a - b, tf.int32), np.uint8([3, 9]), np.uint8([5, 2]))
    assert known.tolist() == computed.tolist() == [254, 7]


def test_a_product_over_no_axes_is_its_input():
    x = tf.placeholder(tf.float32, [2, 3])
    y = tf.reduce_prod(tf.shape(x), axis=[]) + [10, 20]
    with tf.Session() as sess:
        assert sess.run(y, {x: np.zeros((2, 3))}).tolist() == [12, 23]


@pytest.mark.plain  # where the whole of it would be read
def test_the_shape_of_a_tensor_with_a_huge_dim_is_refused_or_told_by_int64():
    x = tf.placeholder(tf.uint8, [None], name="huge")
    big = np.zeros(3 << 30, np.uint8)  # never touched, so that it costs no memory
    with tf.Session() as sess:
        assert sess.run(tf.shape(x, out_type=tf.int64), {x: big}).tolist() == [3 << 30]
        with pytest.raises(tf.errors.GraphdockError) as info:
            sess.run(tf.shape(x, name="dims"), {x: big})
        assert info.value.op.name == "dims"


def halved(x, times):
    """A tensor that only ``times`` steps over a known integer tell, each of which uses the one before twice."""
    h = tf.shape(x)[1]
    for _ in range(times):
        h = (h + h % 2) // 2
    return tf.reshape(x, tf.stack([-1, h]))


def test_evaluating_known_integers_is_linear_in_the_number_of_operations():
    def build(times):
        with tf.Graph().as_default():
            return halved(tf.placeholder(tf.float32, [4, 2]), times)

    build(2)
    few = lab.calls(lambda: build(5), 200_000)
    assert lab.calls(lambda: build(10), 1_000_000) < 4 * few


def test_planning_known_integers_is_linear_in_the_number_of_operations():
    def plan(times):
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float32, [None, None])
            y = halved(x, times)
            with tf.Session() as sess:
                return lab.calls(lambda: sess.run(y, {x: np.zeros((4, 2), np.float32)}), 400_000)

    plan(2)
    assert plan(10) < 4 * plan(5)


def test_importing_a_small_graph_def_of_known_integers_is_quick():
    def data(times):
        """``s = shape(x); s = s + s; ...; fill(s, 0)``"""
        nodes = [
            {"name": "x", "op": "Placeholder", "attrs": {"dtype": {"type": "float32"}, "shape": {"shape": [0]}}},
            {"name": "s0", "op": "Shape", "inputs": ["x"]},
        ]
        for i in range(times):
            nodes.append({"name": f"s{i + 1}", "op": "Add", "inputs": [f"s{i}", f"s{i}"]})
        nodes.append({"name": "c", "op": "ZerosLike", "inputs": ["x"]})
        nodes.append({"name": "y", "op": "Reshape", "inputs": ["c", f"s{times}"]})
        return {"graphdock_graph": 1, "nodes": nodes}

    def load(times):
        with tf.Graph().as_default():
            tf.import_graph_def(data(times), name="")

    load(2)
    few = lab.calls(lambda: load(6), 600_000)
    assert lab.calls(lambda: load(24), 600_000) < 8 * few
