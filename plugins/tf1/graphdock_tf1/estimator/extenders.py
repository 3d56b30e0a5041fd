"""``tf.estimator.add_metrics``: a model with more metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from graphdock_tf1.estimator.estimator import Estimator
from graphdock_tf1.estimator.model import taken
from graphdock_tf1.estimator.spec import EstimatorSpec, ModeKeys

#: Arguments that a metric function may take.
_ARGUMENTS = {"predictions", "features", "labels", "config", "self"}


def add_metrics(estimator: Estimator, metric_fn: Callable[..., Mapping[str, Any]]) -> Estimator:
    """An Estimator of the same model, folder and configuration whose evaluations have more metrics.

    Args:
      metric_fn: takes any of ``predictions``, ``features``, ``labels`` and ``config``; returns name -> ``(value, update_op)``,
        which take the place of the model's of the same name.

    Raises:
      ValueError: it has other arguments.
    """
    names = taken(metric_fn)
    unknown = sorted(names - _ARGUMENTS)
    if unknown:
        raise ValueError(f"metric_fn ({metric_fn}) has following not expected args: {unknown}")

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        spec = estimator.model_fn(features, labels, mode, config)
        if mode != ModeKeys.EVAL:
            return spec
        may = {"predictions": spec.predictions, "features": features, "labels": labels, "config": config}
        more = metric_fn(**{name: value for name, value in may.items() if name in names})
        return spec._replace(eval_metric_ops={**spec.eval_metric_ops, **more})

    return Estimator(model_fn, estimator.model_dir, estimator.config, warm_start_from=estimator._warm_start_from)
