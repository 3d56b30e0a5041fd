"""BestExporter writes a model when an evaluation is better than all before, and knows those of a training that goes on."""

from __future__ import annotations

from types import SimpleNamespace

import graphdock as tf
import pytest


class Model(SimpleNamespace):
    """Stands for an estimator: an export is a folder."""

    def export_saved_model(self, base, *args, checkpoint_path):
        made = f"{base}/{len(self.made) + 1}"
        tf.gfile.MakeDirs(made)
        self.made.append(checkpoint_path)
        return made


def test_only_the_better_ones_are_written(tmp_path) -> None:
    model = Model(model_dir=str(tmp_path), made=[])
    best = tf.estimator.BestExporter(exports_to_keep=2)
    for step, loss in enumerate((3.0, 4.0, 2.0, 2.0, 1.0)):
        best.export(model, str(tmp_path / "export"), f"at {step}", {"loss": loss, "global_step": step}, False)
    assert model.made == ["at 0", "at 2", "at 4"]
    assert sorted(tf.gfile.ListDirectory(str(tmp_path / "export"))) == ["2", "3"]


def test_evaluations_of_before_count(tmp_path) -> None:
    writer = tf.summary.FileWriter(str(tmp_path / "eval"))
    for step, loss in ((1, 5.0), (2, 2.0)):
        writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=loss)]), step)
    writer.close()
    model = Model(model_dir=str(tmp_path), made=[])
    best = tf.estimator.BestExporter()
    for step, loss in ((3, 3.0), (4, 1.0)):
        best.export(model, str(tmp_path / "export"), f"at {step}", {"loss": loss, "global_step": step}, False)
    assert model.made == ["at 4"]


def test_a_function_of_ones_own_compares(tmp_path) -> None:
    model = Model(model_dir=str(tmp_path), made=[])
    more = lambda best_eval_result, current_eval_result: current_eval_result["f1"] > best_eval_result["f1"]  # noqa: E731
    best = tf.estimator.BestExporter("b", None, None, more)
    for step, f1 in enumerate((0.5, 0.4, 0.6)):
        best.export(model, str(tmp_path / "export"), f"at {step}", {"f1": f1, "global_step": step}, False)
    assert model.made == ["at 0", "at 2"]
    with pytest.raises(ValueError, match="must include best_eval_result"):
        tf.estimator.BestExporter(compare_fn=lambda a, b: True)
    with pytest.raises(ValueError, match="no loss is found"):
        tf.estimator.BestExporter(event_file_pattern=None)._better({}, {"loss": 1.0})
