"""EstimatorSpec, RunConfig and input functions: what they hold and refuse."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest

from tests.tf1.estimator.conftest import X, Y

Spec, Keys, Config = tf.estimator.EstimatorSpec, tf.estimator.ModeKeys, tf.estimator.RunConfig


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"mode": Keys.TRAIN, "loss": 1.0}, ValueError, "Missing train_op"),
        ({"mode": Keys.TRAIN, "train_op": 1}, ValueError, "Missing loss"),
        ({"mode": Keys.EVAL}, ValueError, "Missing loss"),
        ({"mode": Keys.PREDICT}, ValueError, "Missing predictions"),
        ({"mode": Keys.EVAL, "loss": [1.0, 2.0]}, ValueError, "Loss must be scalar"),
        ({"mode": Keys.EVAL, "loss": 1.0, "eval_metric_ops": [1]}, TypeError, "must be a dict"),
        ({"mode": Keys.EVAL, "loss": 1.0, "eval_metric_ops": {"a": 1}}, TypeError, "tuples, given: 1 for key: a"),
        ({"mode": Keys.EVAL, "loss": 1.0, "evaluation_hooks": [1]}, TypeError, "All hooks must be SessionRunHook"),
    ],
)
def test_what_a_mode_needs_is_asked_for(arguments, error, words) -> None:
    with tf.Graph().as_default(), pytest.raises(error, match=words):
        Spec(**arguments)


def test_a_loss_of_one_element_is_a_scalar() -> None:
    with tf.Graph().as_default():
        made = Spec(Keys.EVAL, loss=tf.constant([2.0]))
        assert made.loss.shape.rank == 0 and made.eval_metric_ops == {} and made._replace(loss=None).loss is None


def test_a_configuration_saves_by_steps_or_seconds() -> None:
    made = Config()
    assert (made.save_checkpoints_steps, made.save_checkpoints_secs, made.tf_random_seed) == (None, 600, 1)
    by_steps = made.replace(save_checkpoints_steps=5, model_dir="m")
    assert (by_steps.save_checkpoints_steps, by_steps.save_checkpoints_secs, by_steps.model_dir) == (5, None, "m")
    assert made.model_dir is None and made.is_chief and made.num_worker_replicas == 1
    never = Config(save_checkpoints_steps=None, save_checkpoints_secs=None)
    assert never.save_checkpoints_steps is never.save_checkpoints_secs is None
    with pytest.raises(ValueError, match="cannot be both set"):
        Config(save_checkpoints_steps=1, save_checkpoints_secs=1)
    with pytest.raises(ValueError, match="Replacing other is not supported"):
        made.replace(other=1)
    with pytest.raises(tf.errors.UnimplementedError, match="no strategies"):
        Config(train_distribute=object())


def values(input_fn, steps: int = 9) -> list:
    found = []
    with tf.Graph().as_default():
        fetched = input_fn()
        with tf.train.MonitoredSession() as session:
            while not session.should_stop() and len(found) < steps:
                found.append(session.run(fetched))
    return found


def test_arrays_come_in_batches_over_the_ends_of_epochs() -> None:
    inputs = tf.estimator.inputs
    got = values(inputs.numpy_input_fn({"x": X}, Y, batch_size=4, num_epochs=2, shuffle=False))
    assert [len(y) for _, y in got] == [4, 4, 4]
    np.testing.assert_array_equal(np.concatenate([f["x"] for f, _ in got]), np.concatenate([X, X]))
    assert [len(x) for x in values(inputs.numpy_input_fn(X, batch_size=4, shuffle=False))] == [4, 2]
    endless = values(inputs.numpy_input_fn(X, {"a": Y, "b": Y[:, 0]}, batch_size=4, num_epochs=None, shuffle=True))
    assert len(endless) == 9 and set(endless[0][1]) == {"a", "b"}
    once = np.concatenate(values(inputs.numpy_input_fn(X, batch_size=6, shuffle=True)))
    assert sorted(map(tuple, once)) == sorted(map(tuple, X)) and not np.array_equal(once, X)


def test_columns_of_a_frame_are_features() -> None:
    frame = {"a": [1.0, 2.0], "b": [3, 4]}  # iterates and indexes as a DataFrame does
    ((features, labels),) = values(tf.estimator.inputs.pandas_input_fn(frame, [0, 1], shuffle=False))
    assert features["b"].tolist() == [3, 4] and labels.tolist() == [0, 1]


def test_wrong_arrays_are_told() -> None:
    numpy_input_fn = tf.estimator.inputs.numpy_input_fn
    with pytest.raises(ValueError, match="shuffle must be provided and explicitly set as boolean"):
        numpy_input_fn(X)
    for x, y, error, words in (
        ({"x": X}, Y[:3], ValueError, "Length of tensors in x and y is mismatched"),
        ({}, None, ValueError, "x cannot be an empty dict"),
        ({"x": [1]}, None, TypeError, "x must be an array or a dict of arrays"),
    ):
        with tf.Graph().as_default(), pytest.raises(error, match=words):
            numpy_input_fn(x, y, shuffle=False)()
