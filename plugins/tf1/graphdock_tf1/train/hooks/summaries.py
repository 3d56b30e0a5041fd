"""Hooks that write event files: summaries of the model, and how fast it is trained."""

from __future__ import annotations

import logging
from typing import Any

from graphdock.errors import InvalidArgumentError

from graphdock_tf1.train.global_step import get_global_step
from graphdock_tf1.train.hooks.run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from graphdock_tf1.train.hooks.step_read import step_read
from graphdock_tf1.train.hooks.timer import SecondOrStepTimer
from graphdock_tf1.train.supervision.event_files import note_rate, note_start, writer_of

_log = logging.getLogger("graphdock")

#: How often a log says that the global step stands still.
_WARNINGS = 5


class SummarySaverHook(SessionRunHook):
    """Writes summaries, at the first step and then every so many steps or seconds.

    Args:
      save_steps: steps from one time to the next. save_secs: seconds. One of them is given.
      output_dir: folder of the event file. summary_writer: a FileWriter in its place.
      scaffold: one whose ``summary_op`` is run. summary_op: a string tensor, or a list of them, in its place.

    Raises:
      InvalidArgumentError: both a scaffold and a summary_op, or none; both of the times, or none.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str | None = None,
        summary_writer: Any = None,
        scaffold: Any = None,
        summary_op: Any = None,
    ) -> None:
        if (scaffold is None) == (summary_op is None):
            raise InvalidArgumentError("Exactly one of scaffold or summary_op must be provided.")
        self._summary_op = summary_op
        self._scaffold = scaffold
        self._writer = summary_writer
        self._folder = output_dir
        self._timer = SecondOrStepTimer(save_secs, save_steps)

    def begin(self) -> None:
        if self._writer is None and self._folder:
            self._writer = writer_of(self._folder)
        self._next: int | None = None
        self._step = step_read(type(self).__name__)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        self._is_due = self._next is None or self._timer.should_trigger_for_step(self._next)
        return SessionRunArgs([self._step, self._summaries() if self._is_due else []])

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if self._writer is None:
            return
        step, summaries = int(run_values.results[0]), run_values.results[1]
        if self._next is None:
            note_start(self._writer, step)
        if self._is_due:
            self._timer.update_last_triggered_step(step)
            for summary in summaries:
                self._writer.add_summary(summary, step)
        self._next = step + 1

    def end(self, session: Any) -> None:
        if self._writer is not None:
            self._writer.flush()

    def _summaries(self) -> list[Any]:
        found = self._scaffold.summary_op if self._summary_op is None else self._summary_op
        return [] if found is None else list(found) if isinstance(found, list | tuple) else [found]


class StepCounterHook(SessionRunHook):
    """Logs global steps per second with level INFO, and writes them to an event file if one is given.

    Args:
      every_n_steps: steps from one time to the next. every_n_secs: seconds. One of them is given.
      output_dir: folder of the event file. summary_writer: a FileWriter in its place.

    Raises:
      InvalidArgumentError: both of the times are given, or none.
    """

    def __init__(
        self,
        every_n_steps: int | None = 100,
        every_n_secs: float | None = None,
        output_dir: str | None = None,
        summary_writer: Any = None,
    ) -> None:
        if (every_n_steps is None) == (every_n_secs is None):
            raise InvalidArgumentError("exactly one of every_n_steps and every_n_secs should be provided.")
        self._timer = SecondOrStepTimer(every_n_secs, every_n_steps)
        self._writer = summary_writer
        self._folder = output_dir
        self._last: int | None = None
        self._warned = 0

    def begin(self) -> None:
        if self._writer is None and self._folder:
            self._writer = writer_of(self._folder)
        self._step = step_read(type(self).__name__)
        counted: Any = get_global_step()
        self._tag = counted.op.name + "/sec"

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        step = int(run_values.results)
        if self._timer.should_trigger_for_step(step):
            seconds, steps = self._timer.update_last_triggered_step(step)
            if seconds is not None:
                assert steps is not None
                rate = steps / seconds if seconds else float("inf")
                _log.info("%s: %g", self._tag, rate)
                if self._writer is not None:
                    note_rate(self._writer, self._tag, rate, step)
        if step == self._last and self._warned < _WARNINGS:
            self._warned += 1
            _log.warning(
                "the global step stands still at %d: pass tf.train.get_global_step() to minimize or apply_gradients",
                step,
            )
        self._last = step
