"""``tf.estimator.EstimatorSpec``: a mode's part of a model, as a model function returns it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import graphdock as _tf


class ModeKeys:
    """Names of the modes that a model function is called with."""

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "infer"


class _Fields(NamedTuple):
    mode: str
    predictions: Any
    loss: Any
    train_op: Any
    eval_metric_ops: Mapping[str, Any]
    export_outputs: Mapping[str, Any] | None
    training_chief_hooks: Sequence[Any]
    training_hooks: Sequence[Any]
    scaffold: Any
    evaluation_hooks: Sequence[Any]
    prediction_hooks: Sequence[Any]


class EstimatorSpec(_Fields):
    """Operations and hooks of a mode.

    Args:
      mode: one of :class:`ModeKeys`.
      predictions: a tensor, or name -> tensor; needed to predict.
      loss: a scalar; needed to train and to evaluate. train_op: an operation that does a step; needed to train.
      eval_metric_ops: name -> ``(value, update_op)``, as ``tf.metrics`` makes them.
      export_outputs: key of a signature -> PredictOutput, ClassificationOutput or RegressionOutput; default: the predictions.
      training_chief_hooks, training_hooks, evaluation_hooks, prediction_hooks: SessionRunHooks of a mode.
      scaffold: a ``tf.train.Scaffold``.

    Raises:
      ValueError: something that the mode needs is missing, or the loss is no scalar. TypeError: metrics are no pairs in a dict, or
        a hook is none.
    """

    __slots__ = ()

    def __new__(
        cls,
        mode: str,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metric_ops: Mapping[str, Any] | None = None,
        export_outputs: Mapping[str, Any] | None = None,
        training_chief_hooks: Sequence[Any] | None = None,
        training_hooks: Sequence[Any] | None = None,
        scaffold: Any = None,
        evaluation_hooks: Sequence[Any] | None = None,
        prediction_hooks: Sequence[Any] | None = None,
    ) -> EstimatorSpec:
        if train_op is None and mode == ModeKeys.TRAIN:
            raise ValueError("Missing train_op.")
        if loss is None and mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
            raise ValueError("Missing loss.")
        if predictions is None and mode == ModeKeys.PREDICT:
            raise ValueError("Missing predictions.")
        metrics = {} if eval_metric_ops is None else eval_metric_ops
        if not isinstance(metrics, Mapping):
            raise TypeError(f"eval_metric_ops must be a dict, given: {metrics}")
        for name, pair in metrics.items():
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise TypeError(
                    f"Values of eval_metric_ops must be (metric_value, update_op) tuples, given: {pair} for key: {name}"
                )
        hooks = [tuple(h or ()) for h in (training_chief_hooks, training_hooks, evaluation_hooks, prediction_hooks)]
        for hook in (h for each in hooks for h in each):
            if not isinstance(hook, _tf.train.SessionRunHook):
                raise TypeError(f"All hooks must be SessionRunHook instances, given: {hook}")
        return super().__new__(
            cls,
            mode,
            {} if predictions is None else predictions,
            None if loss is None else _scalar(loss),
            train_op,
            metrics,
            export_outputs,
            hooks[0],
            hooks[1],
            scaffold or _tf.train.Scaffold(),
            hooks[2],
            hooks[3],
        )


def _scalar(loss: Any) -> Any:
    """A loss as a scalar tensor; ``[1]`` is reshaped. Raises ValueError: it has more elements."""
    made = _tf.convert_to_tensor(loss)
    if made.shape.rank not in (None, 0):
        if made.shape.num_elements() != 1:
            raise ValueError(f"Loss must be scalar, given: {loss}")
        made = _tf.reshape(made, [])
    return made
