"""Metrics that are added to a model's, and evaluations with the values of a training that goes on."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest

from tests.tf1.estimator.conftest import X, Y, batches, linear_model


def test_metrics_are_added_and_take_the_place_of_those_of_their_name(estimator) -> None:
    estimator.train(batches(), steps=3)

    def more(features, labels, predictions):
        return {
            "error": tf.metrics.mean_squared_error(labels, predictions),
            "width": tf.metrics.mean(tf.reduce_max(features["x"])),
        }

    plain = estimator.evaluate(batches(1))
    found = tf.estimator.add_metrics(estimator, more).evaluate(batches(1))
    w, b = estimator.get_variable_value("w"), estimator.get_variable_value("b")
    np.testing.assert_allclose(found["error"], np.mean((X @ w + b - Y) ** 2), rtol=1e-5)
    assert plain["error"] != found["error"] and plain["loss"] == found["loss"] and found["global_step"] == 3
    np.testing.assert_allclose(found["width"], (X[:4].max() + X[4:].max()) / 2)


def test_a_metric_function_of_other_arguments_is_refused(estimator) -> None:
    with pytest.raises(ValueError, match=r"not expected args: \['weights'\]"):
        tf.estimator.add_metrics(estimator, lambda labels, weights: {})


def test_evaluations_in_memory_see_each_step_of_the_training(estimator) -> None:
    seen = []

    class Kept(tf.train.SessionRunHook):
        def end(self, session):
            values = {v.op.name: v for v in tf.global_variables()}
            seen.append(session.run([values["global_step"], values["w"]]))

    hook = tf.estimator.experimental.InMemoryEvaluatorHook(
        estimator, batches(1), hooks=[Kept()], name="now", every_n_iter=2
    )
    estimator.train(batches(), [hook], steps=4)
    assert [int(step) for step, _ in seen] == [0, 2, 4, 4]
    assert not seen[0][1].any()
    np.testing.assert_array_equal(seen[-1][1], estimator.get_variable_value("w"))
    from graphdock_tf1.estimator.early_stopping import read_eval_metrics

    written = read_eval_metrics(estimator.eval_dir("now"))
    assert list(written) == [0, 2, 4]
    np.testing.assert_allclose(written[4]["error"], estimator.evaluate(batches(1))["error"], rtol=1e-6)


def test_evaluations_in_memory_refuse_what_they_cannot_do(estimator, monkeypatch) -> None:
    hook = tf.estimator.experimental.InMemoryEvaluatorHook
    with pytest.raises(ValueError, match="invalid every_n_iter=0"):
        hook(estimator, batches(1), every_n_iter=0)
    monkeypatch.setenv(
        "TF_CONFIG", '{"cluster": {"chief": ["a:1"], "ps": ["b:2"]}, "task": {"type": "chief", "index": 0}}'
    )
    spread = tf.estimator.Estimator(linear_model, config=tf.estimator.RunConfig(), params={"rate": 0.1})
    with pytest.raises(ValueError, match="single machine"):
        hook(spread, batches(1))
