"""A linear model and its data, small enough to count every step."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(6, 2)
Y = (X @ np.array([[2.0], [-1.0]]) + 0.5).astype(np.float32)


def linear_model(features, labels, mode, params):
    x = features["x"] if isinstance(features, dict) else features
    w = tf.get_variable("w", [2, 1], initializer=tf.zeros_initializer())
    b = tf.get_variable("b", [1], initializer=tf.zeros_initializer())
    y = tf.matmul(x, w) + b
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"y": y, "twice": 2 * y})
    loss = tf.losses.mean_squared_error(labels, y)
    metrics = {"error": tf.metrics.mean_absolute_error(labels, y)}
    train = tf.train.MomentumOptimizer(params["rate"], 0.5).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, y, loss, train, metrics)


def batches(num_epochs=None):
    return tf.estimator.inputs.numpy_input_fn({"x": X}, Y, batch_size=4, num_epochs=num_epochs, shuffle=False)


@pytest.fixture
def estimator(tmp_path):
    return tf.estimator.Estimator(linear_model, str(tmp_path / "model"), params={"rate": 0.1})
