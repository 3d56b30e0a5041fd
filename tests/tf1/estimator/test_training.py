"""``tf.estimator.train_and_evaluate``: checkpoints that are evaluated, and what is exported after them."""

from __future__ import annotations

import os

import graphdock as tf
import pytest

from tests.tf1.estimator.conftest import X, batches, linear_model


def receiver():
    return tf.estimator.export.build_raw_serving_input_receiver_fn({"x": tf.constant(X)})()


def test_checkpoints_are_evaluated_and_the_last_one_exported(tmp_path) -> None:
    seen = []

    class Latest(tf.estimator.LatestExporter):
        def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
            seen.append((int(eval_result["global_step"]), is_the_final_export))
            return super().export(estimator, export_path, checkpoint_path, eval_result, is_the_final_export)

    config = tf.estimator.RunConfig(save_checkpoints_steps=4)
    estimator = tf.estimator.Estimator(linear_model, str(tmp_path / "m"), config, {"rate": 0.1})
    exporters = [Latest("latest", receiver, exports_to_keep=2), tf.estimator.FinalExporter("final", receiver)]
    specs = (
        tf.estimator.TrainSpec(batches(), max_steps=10),
        tf.estimator.EvalSpec(batches(1), steps=None, exporters=exporters, throttle_secs=0),
    )
    metrics, exports = tf.estimator.train_and_evaluate(estimator, *specs)
    # the first checkpoint is that of the beginning; each later one is evaluated once
    assert [step for step, _ in seen] == sorted({step for step, _ in seen}) and seen[-1] == (10, True)
    assert len(seen) == 3 and not any(final for _, final in seen[:-1])
    assert metrics["global_step"] == 10 and len(exports) == 2
    assert {len(os.listdir(tmp_path / "m" / "export" / name)) for name in ("latest",)} == {2}
    assert len(os.listdir(tmp_path / "m" / "export" / "final")) == 1
    assert tf.estimator.train_and_evaluate(estimator, *specs) == (None, [])


def test_wrong_specifications_are_told(estimator) -> None:
    train, evaluate = tf.estimator.TrainSpec, tf.estimator.EvalSpec
    for made, error, words in (
        (lambda: train(1), TypeError, "`input_fn` must be callable"),
        (lambda: train(batches(), max_steps=0), ValueError, "Must specify max_steps > 0"),
        (lambda: evaluate(batches(), steps=0), ValueError, "Must specify steps > 0"),
        (lambda: evaluate(batches(), throttle_secs=-1), ValueError, "Must specify throttle_secs >= 0"),
        (lambda: evaluate(batches(), exporters=[1]), TypeError, "must be an Exporter"),
        (
            lambda: evaluate(batches(), exporters=[tf.estimator.FinalExporter("a", receiver)] * 2),
            ValueError,
            "unique names",
        ),
        (lambda: tf.estimator.train_and_evaluate(estimator, 1, 2), TypeError, "`train_spec` must have type"),
    ):
        with pytest.raises(error, match=words):
            made()
