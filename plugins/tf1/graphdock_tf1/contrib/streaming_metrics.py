"""``tf.contrib.metrics``: metrics of ``tf.metrics`` under older names, which take predictions before labels."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from graphdock_tf1.metrics import counts, means, thresholds


def _of(function: Callable[..., Any]) -> Callable[..., Any]:
    def streaming(predictions: Any, labels: Any, *args: Any, **kwargs: Any) -> Any:
        return function(labels, predictions, *args, **kwargs)

    functools.update_wrapper(streaming, function, ("__doc__",), ())
    streaming.__name__ = streaming.__qualname__ = f"streaming_{function.__name__}"
    return streaming


streaming_accuracy = _of(means.accuracy)
streaming_auc = _of(thresholds.auc)
streaming_mean_absolute_error = _of(means.mean_absolute_error)
streaming_mean_iou = _of(means.mean_iou)
streaming_mean_squared_error = _of(means.mean_squared_error)
streaming_precision = _of(counts.precision)
streaming_recall = _of(counts.recall)
streaming_root_mean_squared_error = _of(means.root_mean_squared_error)
