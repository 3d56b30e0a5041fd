"""The hook that traces steps."""

from __future__ import annotations

import json
import logging
import os
from typing import Any

import graphdock as _tf

from graphdock_tf1.train.hooks.run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from graphdock_tf1.train.hooks.step_read import step_read
from graphdock_tf1.train.hooks.timer import SecondOrStepTimer
from graphdock_tf1.train.supervision.event_files import writer_of

_log = logging.getLogger("graphdock")


class ProfilerHook(SessionRunHook):
    """Traces a step every so many steps or seconds, and writes ``timeline-100.json`` for ui.perfetto.dev and chrome://tracing.

    Args:
      save_steps: steps from one trace to the next. save_secs: seconds. One of them is given.
      output_dir: the folder of the files, and of an event file that gets the traced steps' metadata.
      show_dataflow, show_memory: taken for TensorFlow's sake; the file has what a trace of graphdock's has.

    Raises:
      InvalidArgumentError: both ``save_steps`` and ``save_secs`` are given, or none.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str = "",
        show_dataflow: bool = True,
        show_memory: bool = False,
    ) -> None:
        self._folder = os.fspath(output_dir)
        self._timer = SecondOrStepTimer(save_secs, save_steps)

    def begin(self) -> None:
        self._writer = writer_of(self._folder or os.curdir)
        self._noted: set[int] = set()
        self._next: int | None = None
        self._step = step_read(type(self).__name__)

    def after_create_session(self, session: Any, coord: Any) -> None:
        if self._next is None:
            step = int(session.run(self._step))
            self._timer.update_last_triggered_step(step)
            self._next = step + 1

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        assert self._next is not None
        self._is_due = self._timer.should_trigger_for_step(self._next)
        options = _tf.RunOptions(trace_level=_tf.RunOptions.FULL_TRACE) if self._is_due else None
        return SessionRunArgs(self._step, options=options)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        step = int(run_values.results)
        if self._is_due:
            self._timer.update_last_triggered_step(step)
            self._save(step, run_values.run_metadata)
        self._next = step + 1

    def _save(self, step: int, metadata: Any) -> None:
        path = os.path.join(self._folder, f"timeline-{step}.json")
        _log.info("Saving timeline for %d into '%s'.", step, path)
        os.makedirs(self._folder or os.curdir, exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(_tf.profiler.chrome_trace([(metadata.start, metadata.seconds, metadata.events)]), file)
        if step not in self._noted:  # after a recovery steps come again, and a file has one of each
            self._noted.add(step)
            self._writer.add_run_metadata(metadata, f"step_{step}")
