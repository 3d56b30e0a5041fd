"""``tf.estimator.experimental.InMemoryEvaluatorHook``: evaluations during a training, without checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import graphdock as _tf

from graphdock_tf1.estimator.estimator import Estimator
from graphdock_tf1.estimator.stopping import StopAfterEvaluations
from graphdock_tf1.train.hooks.run_hook import SessionRunContext, SessionRunHook, SessionRunValues


class InMemoryEvaluatorHook(SessionRunHook):
    """Evaluates with the values that the variables have in the training: at its begin, every so many steps, and at its end.

    Args:
      estimator: whose training it is. input_fn, steps, hooks, name: as of ``Estimator.evaluate``.
      every_n_iter: steps from one evaluation to the next.

    Raises:
      ValueError: ``every_n_iter`` below 1, or a trainer on several machines. NotFoundError: the evaluation has a variable that the
        training lacks.
    """

    def __init__(
        self,
        estimator: Estimator,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: Sequence[Any] | None = None,
        name: str | None = None,
        every_n_iter: int = 100,
    ) -> None:
        if every_n_iter is None or every_n_iter <= 0:
            raise ValueError(f"invalid every_n_iter={every_n_iter}.")
        if estimator.config.num_ps_replicas > 0 or estimator.config.num_worker_replicas > 1:
            raise ValueError(
                "InMemoryEvaluator supports only single machine (aka Local) setting for now. Given: "
                f"{estimator.config.num_worker_replicas} workers, {estimator.config.num_ps_replicas} parameter servers."
            )
        self._estimator, self._input_fn, self._steps = estimator, input_fn, steps
        self._hooks, self._name = list(hooks or ()), name
        self._timer = _tf.train.SecondOrStepTimer(every_steps=every_n_iter)

    def begin(self) -> None:
        trained = {v.op.name: v for v in _tf.global_variables()}
        with self._estimator._graph() as step:
            self._graph = _tf.get_default_graph()
            self._evaluation = self._estimator._evaluation(self._input_fn, step)
            variables = {v.op.name: v for v in _tf.global_variables()}
            missing = sorted(variables.keys() - trained.keys())
            if missing:
                raise _tf.errors.NotFoundError(
                    None, None, f"InMemoryEvaluatorHook: the training has no variables {missing}"
                )
            self._fed = {name: _tf.placeholder(v.dtype, v.shape) for name, v in variables.items()}
            self._load = _tf.group(*(v.assign(self._fed[name], read_value=False) for name, v in variables.items()))
        self._trained = {name: trained[name] for name in self._fed}

    def after_create_session(self, session: Any, coord: Any) -> None:
        self._timer.reset()
        self._done = 0
        self._evaluate(session)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        self._done += 1
        if self._timer.should_trigger_for_step(self._done):
            self._evaluate(run_context.session)

    def end(self, session: Any) -> None:
        self._evaluate(session)

    def _evaluate(self, session: Any) -> None:
        self._timer.update_last_triggered_step(self._done)
        feeds = {self._fed[name]: value for name, value in session.run(self._trained).items()}
        evaluation, estimator = self._evaluation, self._estimator
        hooks = [*self._hooks, *evaluation.spec.evaluation_hooks]
        if self._steps is not None:
            hooks.append(StopAfterEvaluations(self._steps))
        with self._graph.as_default():
            scaffold = _tf.train.Scaffold(
                self._load, feeds, init_fn=lambda *_: None, copy_from_scaffold=evaluation.spec.scaffold
            )
            creator = _tf.train.ChiefSessionCreator(scaffold, config=estimator.config.session_config)
            opened = _tf.train.MonitoredSession(creator, [*hooks, evaluation.final])
            estimator._evaluated(evaluation, opened, self._name)
