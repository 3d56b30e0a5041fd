"""Estimators of ``tf.contrib.tpu`` train, evaluate and predict without a TPU, and tell their functions the size of a batch."""

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError, UnimplementedError

tpu = tf.contrib.tpu
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(12, 1)


def model_fn(features, labels, mode, params):
    w = tf.get_variable("w", [1, 1], initializer=tf.zeros_initializer())
    y = tf.matmul(features, w)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tpu.TPUEstimatorSpec(mode, predictions={"y": y})
    loss = tf.losses.mean_squared_error(labels, y)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = lambda labels, y: {"error": tf.metrics.mean_absolute_error(labels, y)}  # noqa: E731
        return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metrics, [labels, y]))
    optimizer = tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(params["rate"]))
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(loss, tf.train.get_global_step()))


def test_it_trains_evaluates_and_predicts(tmp_path):
    sizes = []

    def input_fn(params):
        sizes.append(params["batch_size"])
        return tf.data.Dataset.from_tensor_slices((X, 2 * X)).repeat(4).batch(params["batch_size"])

    config = tpu.RunConfig(model_dir=str(tmp_path), tpu_config=tpu.TPUConfig(8, per_host_input_for_training=3))
    model = tpu.TPUEstimator(
        model_fn,
        config=config,
        params={"rate": 0.9},
        use_tpu=False,
        train_batch_size=4,
        eval_batch_size=6,
        predict_batch_size=3,
    )
    assert model.config.tpu_config.iterations_per_loop == 8
    model.train(input_fn, max_steps=10)
    found = model.evaluate(input_fn)
    assert found["error"] < 0.5 and found["global_step"] == 10
    predicted = next(model.predict(input_fn))["y"]
    np.testing.assert_allclose(predicted, 2 * X[0], atol=0.5)
    assert sizes == [4, 6, 3]


def test_what_needs_a_tpu_is_refused():
    with pytest.raises(UnimplementedError, match="no TPU here"):
        tpu.TPUEstimator(model_fn)
    with pytest.raises(UnimplementedError, match="no TPU here"):
        tf.contrib.cluster_resolver.TPUClusterResolver("name")
    with pytest.raises(UnimplementedError, match="no TPU here"):
        tpu.RunConfig(master="grpc://there:1")
    with pytest.raises(InvalidArgumentError, match="batch_size"):
        tpu.TPUEstimator(model_fn, params={"batch_size": 3}, use_tpu=False)
