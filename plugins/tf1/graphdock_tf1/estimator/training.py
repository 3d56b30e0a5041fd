"""``tf.estimator.train_and_evaluate``: training that stops at checkpoints to evaluate them."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import graphdock as _tf
from graphdock.errors import UnimplementedError

from graphdock_tf1.estimator.estimator import Estimator
from graphdock_tf1.estimator.exporters import Exporter
from graphdock_tf1.train.hooks.checkpoint_saver import CheckpointSaverListener

_log = logging.getLogger("graphdock")


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
      start_delay_secs: taken, without effect: that is for several machines. throttle_secs: at least so long from one to the next.

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
        estimator, spec = self._estimator, self._spec
        path = estimator.latest_checkpoint()
        self.result = estimator.evaluate(spec.input_fn, spec.steps, spec.hooks, path, spec.name)
        final = self._max_steps is not None and step >= self._max_steps
        self.exports = [
            each.export(estimator, os.path.join(estimator.model_dir, "export", each.name), path, self.result, final)
            for each in spec.exporters
        ]


def train_and_evaluate(estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec) -> tuple[Any, list[Any]]:
    """Train up to a step, and evaluate checkpoints on the way and at the end, on this machine.

    Returns:
      ``(metrics, exports)`` of the last evaluation; ``(None, [])`` where the step is reached already.

    Raises:
      TypeError: an argument is of another class. ValueError: the configuration saves no checkpoints.
      UnimplementedError: ``TF_CONFIG`` says that this is one of several tasks.
    """
    for name, given, kind in (
        ("estimator", estimator, Estimator),
        ("train_spec", train_spec, TrainSpec),
        ("eval_spec", eval_spec, EvalSpec),
    ):
        if not isinstance(given, kind):
            raise TypeError(f"`{name}` must have type `tf.estimator.{kind.__name__}`, given {type(given)}")
    config = estimator.config
    if config.cluster_spec or config.task_type != "worker":
        raise UnimplementedError(
            f"train_and_evaluate: TF_CONFIG says that this is task {config.task_id} of {config.task_type!r}, one of several",
            hint="start a tf.train.Server, and call Estimator.train in the workers and Estimator.evaluate where it is evaluated",
        )
    listener = _Evaluations(estimator, eval_spec, train_spec.max_steps)
    estimator.train(train_spec.input_fn, train_spec.hooks, max_steps=train_spec.max_steps, saving_listeners=[listener])
    return listener.result, listener.exports
