"""``tf.estimator``'s exporters: which evaluations a SavedModel is written after."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from typing import Any

import graphdock as _tf
from graphdock.errors import UnimplementedError

from graphdock_tf1.estimator.model import taken


class Exporter:
    """Writes a model after an evaluation; a subclass says how."""

    @property
    def name(self) -> str:
        """The name of the folder below ``export`` in the model's."""
        raise UnimplementedError(f"{type(self).__name__} has no name")

    def export(
        self, estimator: Any, export_path: str, checkpoint_path: str, eval_result: Any, is_the_final_export: bool
    ) -> Any:
        """Write the model of a checkpoint below ``export_path``; the new folder, or None where nothing is written."""
        raise UnimplementedError(f"{type(self).__name__} does not define export")


class _Saving(Exporter):
    """Writes SavedModels, and keeps the last ones."""

    def __init__(
        self, name: str, receiver_fn: Any, assets_extra: Mapping[str, str] | None, as_text: bool, keep: int | None
    ) -> None:
        if keep is not None and keep <= 0:
            raise ValueError("`exports_to_keep`, if provided, must be a positive number.")
        self._name, self._receiver_fn, self._extra, self._as_text, self._keep = (
            name,
            receiver_fn,
            assets_extra,
            as_text,
            keep,
        )

    @property
    def name(self) -> str:
        return self._name

    def _save(self, estimator: Any, export_path: str, checkpoint_path: str) -> Any:
        made = estimator.export_saved_model(
            export_path, self._receiver_fn, self._extra, self._as_text, checkpoint_path=checkpoint_path
        )
        stamps = sorted((each for each in os.listdir(export_path) if each.isdigit()), key=int)
        for stamp in stamps[: -self._keep] if self._keep else ():
            shutil.rmtree(os.path.join(export_path, stamp))
        return made


class LatestExporter(_Saving):
    """Writes a SavedModel after each evaluation, and keeps the last ``exports_to_keep``; None: all.

    Raises:
      ValueError: ``exports_to_keep`` below 1.
    """

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text, exports_to_keep)

    def export(
        self, estimator: Any, export_path: str, checkpoint_path: str, eval_result: Any, is_the_final_export: bool
    ) -> Any:
        return self._save(estimator, export_path, checkpoint_path)


class FinalExporter(_Saving):
    """Writes one SavedModel, at the end of the training."""

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text, None)

    def export(
        self, estimator: Any, export_path: str, checkpoint_path: str, eval_result: Any, is_the_final_export: bool
    ) -> Any:
        return self._save(estimator, export_path, checkpoint_path) if is_the_final_export else None


def _less_loss(best_eval_result: Any, current_eval_result: Any) -> bool:
    """Return whether the loss of the current evaluation is below that of the best one.

    Raises:
      ValueError: one of them has no loss.
    """
    for name, found in (("best_eval_result", best_eval_result), ("current_eval_result", current_eval_result)):
        if not found or found.get("loss") is None:
            raise ValueError(f"{name} cannot be empty or no loss is found in it.")
    return bool(best_eval_result["loss"] > current_eval_result["loss"])


class BestExporter(_Saving):
    """Writes a SavedModel after each evaluation that is better than all before, and keeps the last ``exports_to_keep``.

    Args:
      name: of the folder below ``export``. serving_input_receiver_fn, assets_extra, as_text: as of ``export_saved_model``.
      event_file_pattern: the event files, below the model's folder, of the evaluations that a training that goes on had; None: it
        begins anew.
      compare_fn: says of ``best_eval_result`` and ``current_eval_result`` whether the second is better; default: by ``loss``.
      exports_to_keep: None: all.

    Raises:
      ValueError: ``exports_to_keep`` below 1, or ``compare_fn`` has other arguments.
    """

    def __init__(
        self,
        name: str = "best_exporter",
        serving_input_receiver_fn: Callable[[], Any] | None = None,
        event_file_pattern: str | None = "eval/*.tfevents.*",
        compare_fn: Callable[..., bool] = _less_loss,
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text, exports_to_keep)
        if {"best_eval_result", "current_eval_result"} - taken(compare_fn):
            raise ValueError("compare_fn must include best_eval_result and current_eval_result as arguments.")
        self._pattern, self._better = event_file_pattern, compare_fn
        self._best: Any = None

    def export(
        self, estimator: Any, export_path: str, checkpoint_path: str, eval_result: Any, is_the_final_export: bool
    ) -> Any:
        if self._best is None and self._pattern is not None:
            self._best = self._before(os.path.join(estimator.model_dir, self._pattern), eval_result["global_step"])
        if self._best is not None and not self._better(best_eval_result=self._best, current_eval_result=eval_result):
            return None
        self._best = eval_result
        return self._save(estimator, export_path, checkpoint_path)

    def _before(self, pattern: str, now: int) -> Any:
        """The best of the evaluations that event files have, but for that of the step which is evaluated now."""
        best = None
        for path in sorted(_tf.gfile.Glob(pattern)):
            for event in _tf.train.summary_iterator(path):
                found = {
                    value.tag: value.simple_value for value in event.summary.value if value.HasField("simple_value")
                }
                if not found or event.step == now:
                    continue
                if best is None or self._better(best_eval_result=best, current_eval_result=found):
                    best = found
        return best
