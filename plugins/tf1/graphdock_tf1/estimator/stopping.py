"""The end of an evaluation: a hook that counts batches."""

from __future__ import annotations

import logging
from typing import Any

from graphdock_tf1.train.hooks.run_hook import SessionRunContext, SessionRunHook, SessionRunValues

_log = logging.getLogger("graphdock")


class StopAfterEvaluations(SessionRunHook):
    """Asks for the end after a number of steps. ``steps``: how many."""

    def __init__(self, steps: int) -> None:
        self._steps, self._done = steps, 0

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> Any:
        self._done += 1
        _log.info("Evaluation [%d/%d]", self._done, self._steps)
        if self._done >= self._steps:
            run_context.request_stop()
