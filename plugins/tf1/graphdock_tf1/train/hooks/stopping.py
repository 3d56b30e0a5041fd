"""Hooks that say when a loop ends, or begins."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.errors import GraphdockError, InvalidArgumentError

from graphdock_tf1.train.hooks.run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from graphdock_tf1.train.hooks.step_read import step_read

_log = logging.getLogger("graphdock")

#: Seconds between two looks at the global step of another worker.
_POLL = 0.5
#: Steps of the others after which a worker that waits says so again.
_REPORTED = 1000


class StopAtStepHook(SessionRunHook):
    """Asks for the end of the loop at a global step.

    Args:
      num_steps: how many steps from the one that the first session begins with. last_step: the global step itself.

    Raises:
      InvalidArgumentError: both are given, or none.
    """

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        if num_steps is None and last_step is None:
            raise InvalidArgumentError("One of num_steps or last_step must be specified.")
        if num_steps is not None and last_step is not None:
            raise InvalidArgumentError("Only one of num_steps or last_step can be specified.")
        self._num_steps = num_steps
        self._last_step = last_step

    def begin(self) -> None:
        self._step = step_read(type(self).__name__)

    def after_create_session(self, session: Any, coord: Any) -> None:
        if self._last_step is None:
            assert self._num_steps is not None
            self._last_step = int(session.run(self._step)) + self._num_steps

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        assert self._last_step is not None
        if run_values.results >= self._last_step:
            run_context.request_stop()


class GlobalStepWaiterHook(SessionRunHook):
    """Lets the first step wait until the global step has come so far: workers of one model may begin one after the other. A session
    that is to stop waits no longer.

    Args:
      wait_until_step: the global step; 0 for no wait.
    """

    def __init__(self, wait_until_step: int) -> None:
        self._wait_until_step = wait_until_step
        self._stopped: Callable[[float], bool] = threading.Event().wait

    def begin(self) -> None:
        self._started = self._wait_until_step <= 0
        self._step = step_read(type(self).__name__)

    def after_create_session(self, session: Any, coord: Any) -> None:
        self._stopped = coord.wait_for_stop

    def before_run(self, run_context: SessionRunContext) -> None:
        if self._started:
            return
        _log.info("Waiting for global step %d before starting training.", self._wait_until_step)
        reported = 0
        while (now := int(run_context.session.run(self._step))) < self._wait_until_step:
            if now - reported > _REPORTED:
                reported = now
                _log.info(
                    "Waiting for global step %d before starting training. Current step is %d.",
                    self._wait_until_step,
                    now,
                )
            if self._stopped(_POLL):
                return
        self._started = True


class NanLossDuringTrainingError(GraphdockError, RuntimeError):
    """The loss is NaN."""

    def __init__(self, message: str = "NaN loss during training.", **parts: Any) -> None:
        super().__init__(message, **parts)


class NanTensorHook(SessionRunHook):
    """Ends the loop when a loss is NaN.

    Args:
      loss_tensor: a scalar. fail_on_nan_loss: raise NanLossDuringTrainingError; otherwise warn and ask for the end.
    """

    def __init__(self, loss_tensor: Any, fail_on_nan_loss: bool = True) -> None:
        self._loss = loss_tensor
        self._fails = fail_on_nan_loss

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._loss)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if not np.isnan(run_values.results):
            return
        message = "Model diverged with loss = NaN."
        if self._fails:
            _log.error(message)
            raise NanLossDuringTrainingError(hint="a smaller learning rate, or tf.train's clipping of gradients")
        _log.warning(message)
        run_context.request_stop()
