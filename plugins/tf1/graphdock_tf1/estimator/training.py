"""``tf.estimator.train_and_evaluate``: training and evaluation of checkpoints, one after the other, or by several tasks at once."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import graphdock as _tf

from graphdock_tf1.estimator.estimator import Estimator
from graphdock_tf1.estimator.exporters import Exporter
from graphdock_tf1.train.hooks.checkpoint_saver import CheckpointSaverListener

_log = logging.getLogger("graphdock")
#: Seconds at least between two looks for a checkpoint.
_LOOK = 0.1


class _TrainFields(NamedTuple):
    input_fn: Callable[..., Any]
    max_steps: int | None
    hooks: tuple[Any, ...]


class TrainSpec(_TrainFields):
    """The training: its input, its last step and its hooks.

    Raises:
      ValueError: ``max_steps`` below 1. TypeError: ``input_fn`` is no function.
    """

    __slots__ = ()

    def __new__(
        cls, input_fn: Callable[..., Any], max_steps: int | None = None, hooks: Sequence[Any] | None = None
    ) -> TrainSpec:
        _check_input("input_fn", input_fn)
        if max_steps is not None and max_steps <= 0:
            raise ValueError(f"Must specify max_steps > 0, given: {max_steps}")
        return super().__new__(cls, input_fn, max_steps, tuple(hooks or ()))


class _EvalFields(NamedTuple):
    input_fn: Callable[..., Any]
    steps: int | None
    name: str | None
    hooks: tuple[Any, ...]
    exporters: tuple[Exporter, ...]
    start_delay_secs: float
    throttle_secs: float


class EvalSpec(_EvalFields):
    """The evaluations: their input, the batches of each, and what is exported after them.

    Args:
      input_fn, steps, name, hooks: as of ``Estimator.evaluate``. exporters: one Exporter, or some.
      start_delay_secs: how long a task that only evaluates waits before its first. throttle_secs: at least so long from one to
        the next.

    Raises:
      ValueError: ``steps`` below 1, seconds below 0, or two exporters of one name. TypeError: no function, or no exporter.
    """

    __slots__ = ()

    def __new__(
        cls,
        input_fn: Callable[..., Any],
        steps: int | None = 100,
        name: str | None = None,
        hooks: Sequence[Any] | None = None,
        exporters: Any = None,
        start_delay_secs: float = 120,
        throttle_secs: float = 600,
    ) -> EvalSpec:
        _check_input("input_fn", input_fn)
        if steps is not None and steps <= 0:
            raise ValueError(f"Must specify steps > 0, given: {steps}")
        for what, seconds in (("start_delay_secs", start_delay_secs), ("throttle_secs", throttle_secs)):
            if seconds < 0:
                raise ValueError(f"Must specify {what} >= 0, given: {seconds}")
        found = (exporters,) if isinstance(exporters, Exporter) else tuple(exporters or ())
        for each in found:
            if not isinstance(each, Exporter):
                raise TypeError(f"`exporters` must be an Exporter, an iterable of Exporter, or `None`, found {each}.")
        names = [each.name for each in found]
        if len(set(names)) < len(names):
            raise ValueError(f"`exporters` must have unique names. Got {names}.")
        return super().__new__(cls, input_fn, steps, name, tuple(hooks or ()), found, start_delay_secs, throttle_secs)


def _check_input(name: str, given: Any) -> None:
    if not callable(given):
        raise TypeError(f"`{name}` must be callable, given: {given}")


class _Evaluations(CheckpointSaverListener):
    """Evaluates each checkpoint but the first, not oftener than the specification says, and the last one in any case."""

    def __init__(self, estimator: Estimator, spec: EvalSpec, max_steps: int | None) -> None:
        self._estimator, self._spec, self._max_steps = estimator, spec, max_steps
        self._timer = _tf.train.SecondOrStepTimer(every_secs=spec.throttle_secs)
        self._first = True
        self.result: dict[str, Any] | None = None
        self.exports: list[Any] = []

    def after_save(self, session: Any, global_step_value: int) -> Any:
        if self._first:
            self._first = False
        elif self._timer.should_trigger_for_step(global_step_value):
            self._evaluate(global_step_value)
        else:
            _log.info("Skip the current checkpoint eval due to throttle secs (%s secs).", self._spec.throttle_secs)

    def end(self, session: Any, global_step_value: int) -> None:
        if global_step_value != self._timer.last_triggered_step():
            self._evaluate(global_step_value)

    def _evaluate(self, step: int) -> None:
        self._timer.update_last_triggered_step(step)
        path = self._estimator.latest_checkpoint()
        assert path is not None
        self.result, self.exports = _evaluated(self._estimator, self._spec, path, self._max_steps)


def _evaluated(estimator: Estimator, spec: EvalSpec, path: str, max_steps: int | None) -> tuple[Any, list[Any]]:
    """Metrics of a checkpoint, and what was exported after them."""
    result = estimator.evaluate(spec.input_fn, spec.steps, spec.hooks, path, spec.name)
    final = max_steps is not None and int(result["global_step"]) >= max_steps
    folder = os.path.join(estimator.model_dir, "export")
    exports = [each.export(estimator, os.path.join(folder, each.name), path, result, final) for each in spec.exporters]
    return result, exports


def train_and_evaluate(estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec) -> tuple[Any, list[Any]]:
    """Train up to a step, and evaluate checkpoints on the way and at the end.

    Where ``TF_CONFIG`` says that this process is one task of several, it does that task's part. A server starts its
    ``tf.train.Server`` and never returns. The chief and the workers start theirs, train, and stop it again. The evaluator evaluates
    each new checkpoint until it has seen one of ``max_steps``; without ``max_steps`` it never returns. A chief that is called
    ``master`` evaluates too, as on one machine.

    Returns:
      ``(metrics, exports)`` of the last evaluation; ``(None, [])`` where this task evaluated nothing.

    Raises:
      TypeError: an argument is of another class. ValueError: the configuration saves no checkpoints.
      UnavailableError: the task's address is taken.
    """
    for name, given, kind in (
        ("estimator", estimator, Estimator),
        ("train_spec", train_spec, TrainSpec),
        ("eval_spec", eval_spec, EvalSpec),
    ):
        if not isinstance(given, kind):
            raise TypeError(f"`{name}` must have type `tf.estimator.{kind.__name__}`, given {type(given)}")
    config = estimator.config
    if config.task_type == "evaluator":
        return _evaluate_continuously(estimator, eval_spec, train_spec.max_steps)
    server = _server(config)
    if config.task_type == "ps":
        server.join()
        return None, []
    listener = _Evaluations(estimator, eval_spec, train_spec.max_steps)
    alone = not config.cluster_spec or config.task_type == "master"
    try:
        estimator.train(
            train_spec.input_fn,
            train_spec.hooks,
            max_steps=train_spec.max_steps,
            saving_listeners=[listener] if alone else None,
        )
    finally:
        if server is not None:
            server.stop()
    return listener.result, listener.exports


def _server(config: Any) -> Any:
    """The server of this task, started; None where its sessions have another target, or none."""
    if not config.cluster_spec:
        return None
    address = config.cluster_spec.task_address(config.task_type, config.task_id)
    if config.task_type != "ps" and config.master != f"grpc://{address}":
        return None
    return _tf.train.Server(config.cluster_spec, config.task_type, config.task_id, host=_tf.get_default_graph().host)


def _evaluate_continuously(estimator: Estimator, spec: EvalSpec, max_steps: int | None) -> tuple[Any, list[Any]]:
    """Evaluate each checkpoint that another task has written since the last look, up to that of the last step."""
    time.sleep(spec.start_delay_secs)
    seen, is_told = "", False
    while True:
        began = time.monotonic()
        path = estimator.latest_checkpoint()
        if path is None and not is_told:
            is_told = True
            _log.warning("Estimator is not trained yet. Will start an evaluation when a checkpoint is ready.")
        if path is not None and path != seen:
            seen = path
            result, exports = _evaluated(estimator, spec, path, max_steps)
            if max_steps is not None and int(result["global_step"]) >= max_steps:
                return result, exports
        time.sleep(max(_LOOK, began + spec.throttle_secs - time.monotonic()))
