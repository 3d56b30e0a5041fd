"""tf.layers.dense: values, names, and what it refuses."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import DTypeError, InvalidArgumentError, NotFoundError, ShapeError


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


@pytest.mark.parametrize("lead", [(3,), (3, 2), (2, 3, 2)])
def test_values_over_the_last_dim(lead):
    x = tf.placeholder(tf.float32, [None, *lead[1:], 4])
    y = tf.layers.dense(x, 5, tf.nn.relu, bias_initializer="ones")
    assert y.shape.as_list() == [None, *lead[1:], 5] and y.op.name == "dense/Relu"
    given = np.random.default_rng(0).normal(size=(*lead, 4)).astype(np.float32)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        w, b, out = sess.run([*tf.global_variables(), y], {x: given})
    assert np.allclose(out, np.maximum(given @ w + b, 0), atol=1e-5) and b.tolist() == [1.0] * 5
    assert abs(w).max() <= np.sqrt(6 / 9)  # Glorot's uniform


def test_names_and_defaults_of_scopes():
    x = tf.ones([2, 4])
    with tf.variable_scope("s", initializer=tf.constant_initializer(0.5), regularizer=tf.nn.l2_loss):
        y = tf.layers.dense(x, 3, use_bias=False)
        tf.get_variable("free", [2], regularizer=tf.no_regularizer)
    assert y.op.name == "s/dense/MatMul" and [v.op.name for v in tf.global_variables()] == ["s/dense/kernel", "s/free"]
    assert [t.op.name for t in tf.get_collection("regularization_losses")] == ["s/dense/kernel/Regularizer/L2Loss"]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert (sess.run(y) == 2.0).all()


def test_constraints_reach_the_variables():
    layer = tf.layers.Dense(3, kernel_constraint=tf.nn.relu, bias_constraint=tf.abs, dtype=tf.float64)
    layer(tf.ones([2, 4], tf.float64))
    assert (layer.kernel.constraint, layer.bias.constraint) == (tf.nn.relu, tf.abs)
    assert layer.kernel.dtype == tf.float64 and layer.compute_output_shape([None, 7, 4]).as_list() == [None, 7, 3]


def test_names_of_activations_and_initializers():
    x = tf.ones([2, 4])
    assert tf.layers.dense(x, 3, "softmax", kernel_initializer="he_normal").op.name == "dense/Softmax"
    assert tf.layers.dense(x, 3, "linear").op.name == "dense_1/BiasAdd"
    with pytest.raises(NotFoundError, match="did you mean 'relu'"):
        tf.layers.dense(x, 3, "rleu")
    with pytest.raises(NotFoundError, match="did you mean 'glorot_normal'"):
        tf.layers.dense(x, 3, kernel_initializer="glorot_norml")


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: tf.layers.dense(tf.placeholder(tf.float32, [None, None]), 3), ShapeError, "must know the last dim"),
        (lambda: tf.layers.dense(tf.ones([3]), 3), ShapeError, "rank 2 or more"),
        (lambda: tf.layers.dense(tf.ones([3, 3], tf.int32), 3), DTypeError, "expected floating, got int32"),
        (lambda: tf.layers.dense(tf.ones([3, 3]), 0), InvalidArgumentError, "positive"),
    ],
)
def test_what_it_refuses(wrong, error, words):
    with pytest.raises(error, match=words):
        wrong()
