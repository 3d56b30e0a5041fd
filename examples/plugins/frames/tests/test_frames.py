"""The package as a user meets it. The conformance suite covers each op: ``pytest --graphdock-backend frames``."""

import graphdock as tf
import graphdock_frames as frames
import numpy as np
import pytest


def run(fetches, feed=None):
    with tf.Session() as s:
        return s.run(fetches, feed)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def test_windows_of_a_signal_add_up_to_it():
    x = tf.placeholder(tf.float32, [8], name="x")
    windows = frames.frame(x, length=4, step=4)
    whole = frames.frame_grad(x, windows, length=4, step=4)
    fed = np.arange(8, dtype=np.float32)
    a, b = run([windows, whole], {x: fed})
    assert a.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]] and b.tolist() == fed.tolist()


def test_the_shape_is_known_when_the_graph_is_made():
    x = tf.placeholder(tf.float32, [None, 100])
    y = frames.frame(x, length=10, step=5)
    assert y.shape.as_list() == [None, 19, 10]
    assert frames.energy(y).shape.as_list() == [None, 19]
    assert frames.energy(y, keep_dims=True).shape.as_list() == [None, 19, 1]
    with pytest.raises(tf.errors.InvalidArgumentError, match="a window of 10 does not fit into 9 elements"):
        frames.frame(tf.zeros([9]), length=10)


def test_a_check_that_no_shape_could_answer_is_made_in_the_step():
    x = tf.placeholder(tf.float32, [None])
    y = frames.frame(x, length=3)
    assert run(y, {x: [1.0, 2.0, 3.0]}).tolist() == [[1, 2, 3]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="a window of 3 does not fit into 2 elements"):
        run(y, {x: [1.0, 2.0]})


def test_a_window_is_one_of_three():
    with pytest.raises(tf.errors.InvalidArgumentError, match="hann"):
        frames.taper(tf.zeros([3]), window="hat")


def test_a_list_of_tracks_and_its_gradient():
    tracks = [tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])]
    weights = tf.constant([10.0, 1.0])
    y = frames.mix(tracks, weights)
    made = run([y, *tf.gradients(y, [*tracks, weights])])
    assert [m.tolist() for m in made] == [[13, 24], [10, 10], [1, 1], [3, 7]]


def test_second_order_goes_through_the_gradient_op():
    x = tf.placeholder(tf.float64, [6])
    loss = tf.reduce_sum(frames.energy(frames.taper(frames.frame(x, length=3, step=1), window="hamming")))
    (first,) = tf.gradients(loss, x)
    (second,) = tf.gradients(tf.reduce_sum(first), x)
    weight = np.hamming(3) ** 2
    want = sum(np.pad(2 * weight, (s, 3 - s)) for s in range(4))
    np.testing.assert_allclose(run(second, {x: np.ones(6)}), want)
