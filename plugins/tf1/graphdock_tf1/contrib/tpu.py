"""``tf.contrib.tpu``, as programs use it where there is no TPU: estimators whose functions are told the size of a batch."""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import graphdock as _tf
from graphdock.errors import InvalidArgumentError, UnimplementedError

from graphdock_tf1.estimator.estimator import Estimator
from graphdock_tf1.estimator.model import call_input_fn, call_model_fn
from graphdock_tf1.estimator.run_config import RunConfig as _RunConfig
from graphdock_tf1.estimator.spec import EstimatorSpec, ModeKeys
from graphdock_tf1.train.optimizer import Optimizer


class InputPipelineConfig:
    """Names of ways to feed a TPU; without effect."""

    PER_SHARD_V1, PER_HOST_V1, PER_HOST_V2, BROADCAST, SLICED = 1, 2, 3, 4, 5


TPUConfig = namedtuple(
    "TPUConfig",
    [
        "iterations_per_loop",
        "num_shards",
        "num_cores_per_replica",
        "per_host_input_for_training",
        "tpu_job_name",
        "initial_infeed_sleep_secs",
        "input_partition_dims",
        "eval_training_input_configuration",
        "experimental_host_call_every_n_steps",
    ],
    defaults=[2, None, None, True, None, None, None, InputPipelineConfig.PER_HOST_V1, 1],
)
TPUConfig.__doc__ = "Settings of a TPU; without effect."


class RunConfig(_RunConfig):
    """``tf.estimator.RunConfig`` with settings of a TPU, ``tpu_config``, which are kept and without effect.

    Raises:
      UnimplementedError: ``cluster`` is given: it is that of a TPU. The others as of ``tf.estimator.RunConfig``.
    """

    def __init__(
        self,
        tpu_config: Any = None,
        evaluation_master: str | None = None,
        master: str | None = None,
        cluster: Any = None,
        **kwargs: Any,
    ) -> None:
        if cluster is not None or master or evaluation_master:
            raise UnimplementedError(
                "tf.contrib.tpu.RunConfig: there is no TPU here", hint="leave cluster and master out"
            )
        super().__init__(**kwargs)
        self.tpu_config = TPUConfig() if tpu_config is None else tpu_config


class TPUEstimatorSpec(
    namedtuple(
        "TPUEstimatorSpec",
        [
            "mode",
            "predictions",
            "loss",
            "train_op",
            "eval_metrics",
            "export_outputs",
            "scaffold_fn",
            "host_call",
            "training_hooks",
            "evaluation_hooks",
            "prediction_hooks",
        ],
        defaults=[None] * 10,
    )
):
    """Answer of a model function to a TPUEstimator.

    Args:
      eval_metrics: a function that makes metrics of tensors, and these, in a list or a dict. host_call: such a pair, of an
        operation that runs in each step of the training.
      scaffold_fn: makes a Scaffold. The others as of ``tf.estimator.EstimatorSpec``.
    """

    def as_estimator_spec(self) -> EstimatorSpec:
        """The same for an Estimator."""
        train_op = self.train_op
        if self.host_call is not None and train_op is not None:
            train_op = _tf.group(train_op, _called(self.host_call))
        return EstimatorSpec(
            self.mode,
            self.predictions,
            self.loss,
            train_op,
            None if self.eval_metrics is None else _called(self.eval_metrics),
            self.export_outputs,
            scaffold=None if self.scaffold_fn is None else self.scaffold_fn(),
            training_hooks=self.training_hooks,
            evaluation_hooks=self.evaluation_hooks,
            prediction_hooks=self.prediction_hooks,
        )


def _called(pair: Any) -> Any:
    function, tensors = pair
    return function(**tensors) if isinstance(tensors, dict) else function(*tensors)


class TPUEstimator(Estimator):
    """An Estimator whose functions find the size of a batch in ``params["batch_size"]``.

    Args:
      use_tpu: has to be False. train_batch_size, eval_batch_size, predict_batch_size: of the three modes.
      batch_axis, eval_on_tpu, export_to_tpu, export_to_cpu: without effect. The others as of Estimator.

    Raises:
      UnimplementedError: ``use_tpu``. InvalidArgumentError: ``params`` has ``batch_size`` itself.
    """

    def __init__(
        self,
        model_fn: Callable[..., Any],
        model_dir: str | None = None,
        config: Any = None,
        params: Any = None,
        use_tpu: bool = True,
        train_batch_size: int | None = None,
        eval_batch_size: int | None = None,
        predict_batch_size: int | None = None,
        batch_axis: Any = None,
        eval_on_tpu: bool = True,
        export_to_tpu: bool = True,
        export_to_cpu: bool = True,
        warm_start_from: Any = None,
    ) -> None:
        if use_tpu:
            raise UnimplementedError("TPUEstimator: there is no TPU here", hint="use_tpu=False")
        if "batch_size" in (params or {}):
            raise InvalidArgumentError("params has batch_size, which TPUEstimator sets", hint="train_batch_size=...")
        self._sizes = {
            ModeKeys.TRAIN: train_batch_size,
            ModeKeys.EVAL: eval_batch_size,
            ModeKeys.PREDICT: predict_batch_size,
        }

        @functools.wraps(model_fn)
        def of_estimator(*args: Any, **kwargs: Any) -> Any:
            spec = model_fn(*args, **kwargs)
            return spec.as_estimator_spec() if isinstance(spec, TPUEstimatorSpec) else spec

        super().__init__(of_estimator, model_dir, config, params or {}, warm_start_from)

    def _spec(self, input_fn: Callable[..., Any], mode: str) -> EstimatorSpec:
        params = {**self.params, "batch_size": self._sizes[mode]}
        features, labels = call_input_fn(input_fn, mode, params, self.config)
        labels = None if mode == ModeKeys.PREDICT else labels
        return call_model_fn(self._model_fn, features, labels, mode, params, self.config)


class CrossShardOptimizer(Optimizer):
    """The optimizer that it is given: there is one shard.

    Args:
      opt: the optimizer. reduction, group_assignment: without effect.
    """

    def __init__(
        self, opt: Any, reduction: Any = None, name: str = "CrossShardOptimizer", group_assignment: Any = None
    ) -> None:
        super().__init__(False, name)
        self._opt = opt

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        return self._opt.compute_gradients(loss, *args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        return self._opt.apply_gradients(grads_and_vars, global_step, name)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> Any:
        return self._opt.variables()


class TPUClusterResolver:
    """Finds TPUs, of which there are none.

    Raises:
      UnimplementedError: always.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise UnimplementedError("TPUClusterResolver: there is no TPU here", hint="leave it out, with use_tpu=False")
