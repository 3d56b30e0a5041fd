"""The threads of a Supervisor: each does its work every so many seconds."""

from __future__ import annotations

import logging
import time
from typing import Any

from graphdock_tf1.train.global_step import global_step as value_of_step
from graphdock_tf1.train.supervision.coordinator import LooperThread
from graphdock_tf1.train.supervision.event_files import note_checkpoint, note_rate

_log = logging.getLogger("graphdock")


class SummaryThread(LooperThread):
    """Writes the summaries of a Supervisor."""

    def __init__(self, supervisor: Any, session: Any) -> None:
        super().__init__(supervisor.coord, supervisor.save_summaries_secs)
        self._sv, self._session = supervisor, session

    def run_loop(self) -> None:
        step = None
        if self._sv.global_step is None:
            summary = self._session.run(self._sv.summary_op)
        else:
            summary, step = self._session.run([self._sv.summary_op, self._sv.global_step])
        _log.info("Recording summary at step %s.", step)
        self._sv.summary_writer.add_summary(summary, step)


class StepCounterThread(LooperThread):
    """Writes how many global steps per second there are."""

    def __init__(self, supervisor: Any, session: Any) -> None:
        super().__init__(supervisor.coord, supervisor.save_summaries_secs)
        self._sv, self._session = supervisor, session

    def start_loop(self) -> None:
        self._time, self._last = time.monotonic(), value_of_step(self._session, self._sv.global_step)

    def run_loop(self) -> None:
        now, step = time.monotonic(), value_of_step(self._session, self._sv.global_step)
        rate = (step - self._last) / (now - self._time) if now > self._time else float("inf")
        self._time, self._last = now, step
        tag = f"{self._sv.global_step.op.name}/sec"
        note_rate(self._sv.summary_writer, tag, rate, step)
        _log.info("%s: %g", tag, rate)


class CheckpointThread(LooperThread):
    """Saves the model of a Supervisor."""

    def __init__(self, supervisor: Any, session: Any) -> None:
        super().__init__(supervisor.coord, supervisor.save_model_secs)
        self._sv, self._session = supervisor, session

    def run_loop(self) -> None:
        _log.info("Saving checkpoint to path %s", self._sv.save_path)
        self._sv.saver.save(self._session, self._sv.save_path, global_step=self._sv.global_step)
        if self._sv.summary_writer is not None and self._sv.global_step is not None:
            note_checkpoint(
                self._sv.summary_writer, self._sv.save_path, value_of_step(self._session, self._sv.global_step)
            )
