"""Receivers and outputs of served models: signatures, and what is refused."""

from __future__ import annotations

import graphdock as tf
import pytest
from graphdock_tf1.estimator.serving import signatures

export = tf.estimator.export


def test_outputs_are_signatures_one_of_them_the_default() -> None:
    with tf.Graph().as_default():
        fed = {"examples": tf.placeholder(tf.string, [None])}
        scores = tf.zeros([2, 3])

        def of(outputs):
            return signatures(tf.estimator.EstimatorSpec("infer", scores, export_outputs=outputs), fed)

        assert of(None)["serving_default"].method_name == "tensorflow/serving/predict"
        found = of({"classes": export.ClassificationOutput(scores=scores)})
        assert set(found) == {"classes", "serving_default"}
        assert found["classes"].method_name == "tensorflow/serving/classify"
        found = of({"serving_default": export.RegressionOutput(scores), "all": export.PredictOutput({"s": scores})})
        assert found["serving_default"].method_name == "tensorflow/serving/regress"
        with pytest.raises(ValueError, match="none of them is specified as the default"):
            of({"a": export.PredictOutput(scores), "b": export.PredictOutput(scores)})
        with pytest.raises(TypeError, match="must be ExportOutput objects"):
            of({"a": scores})
        with pytest.raises(ValueError, match="At least one of scores and classes"):
            export.ClassificationOutput()
        with pytest.raises(ValueError, match="must be a float32 Tensor"):
            export.RegressionOutput(tf.constant([1]))


def test_receivers_name_single_tensors() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 2])
        made = export.ServingInputReceiver(x, x)
        assert made.features == {"feature": x} and made.receiver_tensors == {"input": x}
        assert export.TensorServingInputReceiver(x, {"x": x}).features is x
        with pytest.raises(ValueError, match="must be a Tensor"):
            export.ServingInputReceiver({"a": 1}, x)
        with pytest.raises(ValueError, match="feature must be defined"):
            export.ServingInputReceiver(None, x)
