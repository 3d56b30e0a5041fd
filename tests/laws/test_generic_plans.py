"""A plan for any shape refuses what a plan for one shape refuses, and a fed shape is the result's."""

import graphdock as tf
import numpy as np
import pytest


def refuses(fetch, feeds, good, bad, **config):
    """Whether a session that has run ``good`` feeds refuses the ``bad`` ones."""
    with tf.Session(config=tf.SessionConfig(**config)) as sess:
        for arrays in good:
            sess.run(fetch, dict(zip(feeds, arrays, strict=True)))
        with pytest.raises(tf.errors.ShapeError):
            sess.run(fetch, dict(zip(feeds, bad, strict=True)))
    return True


def loss():
    logits, labels = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.int32, [None])
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits), [logits, labels]


def dense_loss():
    logits, labels = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 3])
    return tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits), [logits, labels]


def added():
    a, b = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    return tf.add_n([a, b]), [a, b]


def biased():
    x, b = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None])
    return tf.nn.bias_add(x, b), [x, b]


def zeros(*shapes):
    return [np.zeros(s, np.float32) for s in shapes]


BAD = {
    "loss": (loss, zeros((20, 3), (1,))),
    "dense loss": (dense_loss, zeros((20, 3), (1, 3))),
    "add_n": (added, zeros((5,), (1,))),
    "bias_add": (biased, zeros((20, 3), (1,))),
}


@pytest.mark.parametrize("name", BAD)
def test_an_exact_plan_refuses_shapes_that_do_not_agree(name):
    program, bad = BAD[name]
    fetch, feeds = program()
    bad = [a.astype(f.dtype.np) for a, f in zip(bad, feeds, strict=True)]
    assert refuses(fetch, feeds, [], bad, shape_policy="exact")


@pytest.mark.parametrize("name", BAD)
def test_a_generic_plan_refuses_shapes_that_do_not_agree(name):
    program, bad = BAD[name]
    fetch, feeds = program()
    bad = [a.astype(f.dtype.np) for a, f in zip(bad, feeds, strict=True)]
    assert refuses(fetch, feeds, [], bad, shape_policy="generic")


@pytest.mark.parametrize("program", [loss, added])
def test_the_ninth_shape_is_checked_as_the_first_one_was(program):
    fetch, feeds = program()
    rank2 = feeds[0].shape.ndims == 2
    good = [[np.zeros((n, 3) if rank2 else n, np.float32), np.zeros(n, feeds[1].dtype.np)] for n in range(2, 10)]
    bad = [np.zeros((20, 3) if rank2 else 5, np.float32), np.zeros(1, feeds[1].dtype.np)]
    assert refuses(fetch, feeds, good, bad)


def test_reshape_to_a_fed_shape_that_does_not_fit_is_refused():
    x, shape = tf.placeholder(tf.float32, [6]), tf.placeholder(tf.int32, [1])
    with tf.Session() as sess:
        with pytest.raises(tf.errors.InvalidArgumentError):
            sess.run(tf.reshape(x, shape), {x: np.zeros(6), shape: [4]})
        assert sess.run(tf.reshape(x, shape), {x: np.zeros(6), shape: [6]}).shape == (6,)


def test_broadcast_to_a_fed_shape_that_does_not_fit_is_refused():
    x, shape = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.int32, [1])
    with tf.Session() as sess:
        with pytest.raises(tf.errors.InvalidArgumentError):
            sess.run(tf.broadcast_to(x, shape), {x: np.zeros(3), shape: [2]})
        assert sess.run(tf.broadcast_to(x, shape), {x: np.zeros(3), shape: [3]}).shape == (3,)
