"""Hooks of ``tf.estimator.experimental`` that end a training when its evaluations, or a function of the program's, say so."""

from __future__ import annotations

import logging
import operator
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import graphdock as _tf

from graphdock_tf1.estimator.estimator import Estimator
from graphdock_tf1.train.hooks.run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues

_log = logging.getLogger("graphdock")


def make_early_stopping_hook(
    estimator: Estimator,
    should_stop_fn: Callable[[], bool],
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """A hook that asks a function, now and then, whether the training is to stop. Of several tasks the chief asks, and tells all.

    Args:
      should_stop_fn: takes nothing, returns a bool.
      run_every_secs, run_every_steps: how often it is asked; one of them.

    Raises:
      TypeError: no Estimator. ValueError: both times are given, or none.
    """
    if not isinstance(estimator, Estimator):
        raise TypeError(f"`estimator` must have type `tf.estimator.Estimator`. Got: {type(estimator)}")
    if run_every_secs is not None and run_every_steps is not None:
        raise ValueError("Only one of `run_every_secs` and `run_every_steps` must be set.")
    if estimator.config.is_chief:
        return _AsksToStop(should_stop_fn, _tf.train.SecondOrStepTimer(run_every_secs, run_every_steps))
    return _StopsWhenTold()


def stop_if_higher_hook(
    estimator: Estimator,
    metric_name: str,
    threshold: float,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """A hook that stops where an evaluation gave more than a threshold.

    Args:
      metric_name: of the model's metrics. threshold: a number.
      eval_dir: folder of the evaluations' events; default: the Estimator's. min_steps: earlier evaluations do not count.
      run_every_secs, run_every_steps: how often is looked; one of them.
    """
    reason = _crosses(metric_name, threshold, operator.gt)
    return _watching(estimator, metric_name, reason, eval_dir, min_steps, run_every_secs, run_every_steps)


def stop_if_lower_hook(
    estimator: Estimator,
    metric_name: str,
    threshold: float,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """A hook that stops where an evaluation gave less than a threshold. Arguments as of :func:`stop_if_higher_hook`."""
    reason = _crosses(metric_name, threshold, operator.lt)
    return _watching(estimator, metric_name, reason, eval_dir, min_steps, run_every_secs, run_every_steps)


def stop_if_no_increase_hook(
    estimator: Estimator,
    metric_name: str,
    max_steps_without_increase: int,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """A hook that stops where evaluations gave no new maximum for so many steps. Else as :func:`stop_if_higher_hook`."""
    reason = _lasts(metric_name, max_steps_without_increase, operator.gt)
    return _watching(estimator, metric_name, reason, eval_dir, min_steps, run_every_secs, run_every_steps)


def stop_if_no_decrease_hook(
    estimator: Estimator,
    metric_name: str,
    max_steps_without_decrease: int,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """A hook that stops where evaluations gave no new minimum for so many steps. Else as :func:`stop_if_higher_hook`."""
    reason = _lasts(metric_name, max_steps_without_decrease, operator.lt)
    return _watching(estimator, metric_name, reason, eval_dir, min_steps, run_every_secs, run_every_steps)


def make_stop_at_checkpoint_step_hook(
    estimator: Estimator, last_step: int, wait_after_file_check_secs: float = 30
) -> SessionRunHook:
    """A hook that stops at a step; a task that is not the chief waits there until a checkpoint of that step is written.

    Args:
      last_step: the global step. wait_after_file_check_secs: from one look for the checkpoint to the next.
    """
    if estimator.config.is_chief:
        return _tf.train.StopAtStepHook(last_step=last_step)
    return _WaitsForCheckpoint(estimator.model_dir, last_step, wait_after_file_check_secs)


def read_eval_metrics(eval_dir: str) -> OrderedDict[int, dict[str, float]]:
    """Global step -> metrics of its evaluation, in the order of steps; of a folder that is not there, nothing."""
    found: dict[int, dict[str, float]] = {}
    names = sorted(_tf.gfile.ListDirectory(eval_dir)) if _tf.gfile.Exists(eval_dir) else []
    for name in names:
        if ".tfevents" in name:
            for event in _tf.train.summary_iterator(os.path.join(eval_dir, name)):
                told = {v.tag: v.simple_value for v in event.summary.value if v.HasField("simple_value")}
                if told:
                    found.setdefault(event.step, {}).update(told)
    return OrderedDict(sorted(found.items()))


#: Gives the reason to stop, of the metric's values by global step; None: go on.
_Reason: TypeAlias = "Callable[[Mapping[int, float]], str | None]"


def _crosses(metric: str, threshold: float, is_better: Callable[[float, float], bool]) -> _Reason:
    def reason(seen: Mapping[int, float]) -> str | None:
        found = next(((step, value) for step, value in seen.items() if is_better(value, threshold)), None)
        return found and f"Metric {metric!r} is {found[1]} at step {found[0]}, beyond the threshold {threshold}."

    return reason


def _lasts(metric: str, most: int, is_better: Callable[[float, float], bool]) -> _Reason:
    def reason(seen: Mapping[int, float]) -> str | None:
        best: tuple[int, float] | None = None
        for step, value in seen.items():
            if best is None or is_better(value, best[1]):
                best = step, value
            if step - best[0] >= most:
                return (
                    f"Metric {metric!r} was not better than {best[1]}, of step {best[0]}, for {step - best[0]} steps."
                )
        return None

    return reason


def _watching(
    estimator: Estimator,
    metric: str,
    reason: _Reason,
    eval_dir: str | None,
    min_steps: int,
    secs: float | None,
    steps: int | None,
) -> SessionRunHook:
    """A hook that stops for a reason. Its training raises KeyError where an evaluation lacks the metric."""
    folder = eval_dir if eval_dir is not None else estimator.eval_dir()

    def should_stop() -> bool:
        seen = {step: found[metric] for step, found in read_eval_metrics(folder).items() if step >= min_steps}
        found = reason(seen)
        if found is not None:
            _log.info(found)
        return found is not None

    return make_early_stopping_hook(estimator, should_stop, secs, steps)


def _stop_variable() -> Any:
    """The bool by which the chief tells the others, the same of all hooks of a graph."""
    with _tf.variable_scope("signal_early_stopping", reuse=_tf.AUTO_REUSE):
        return _tf.get_variable(
            "STOP",
            [],
            _tf.bool,
            _tf.constant_initializer(False),
            trainable=False,
            collections=[_tf.GraphKeys.GLOBAL_VARIABLES],
        )


class _AsksToStop(SessionRunHook):
    """The chief's: asks when it is due."""

    def __init__(self, should_stop: Callable[[], bool], timer: Any) -> None:
        self._should_stop, self._timer = should_stop, timer

    def begin(self) -> None:
        self._step = _tf.train.get_or_create_global_step()
        self._tell = _stop_variable().assign(True, read_value=False)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        step = int(run_values.results)
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            if self._should_stop():
                _log.info("Requesting early stopping at global step %d", step)
                run_context.session.run(self._tell)
                run_context.request_stop()


class _StopsWhenTold(SessionRunHook):
    """A worker's: looks for what the chief told."""

    def begin(self) -> None:
        self._told = _stop_variable()

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._told)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if run_values.results:
            _log.info("Early stopping requested, suspending run.")
            run_context.request_stop()


class _WaitsForCheckpoint(SessionRunHook):
    """A worker's, at the last step: waits for the chief's checkpoint."""

    def __init__(self, folder: str, last_step: int, seconds: float) -> None:
        self._folder, self._last_step, self._seconds = folder, last_step, seconds

    def begin(self) -> None:
        self._step = _tf.train.get_or_create_global_step()

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if run_values.results < self._last_step:
            return
        run_context.request_stop()
        while self._saved() < self._last_step:
            time.sleep(self._seconds)

    def _saved(self) -> int:
        path = _tf.train.latest_checkpoint(self._folder)
        return -1 if path is None else int(_tf.train.load_variable(path, _tf.GraphKeys.GLOBAL_STEP))
