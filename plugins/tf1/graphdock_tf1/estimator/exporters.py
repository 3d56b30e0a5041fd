"""``tf.estimator``'s exporters: which evaluations a SavedModel is written after."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from typing import Any

from graphdock.errors import UnimplementedError


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
