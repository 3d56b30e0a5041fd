"""The hook that saves a model while it is trained."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Any

import graphdock as _tf
from graphdock.errors import FailedPreconditionError, InvalidArgumentError
from graphdock_storage.stores import system

from graphdock_tf1.train.hooks.run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from graphdock_tf1.train.hooks.step_read import step_read
from graphdock_tf1.train.hooks.timer import SecondOrStepTimer
from graphdock_tf1.train.supervision.event_files import note_checkpoint, note_graph, writer_of

_log = logging.getLogger("graphdock")


class CheckpointSaverListener:
    """Told when a CheckpointSaverHook saves. A subclass says what it does; each method does nothing."""

    def begin(self) -> None:
        """Called once, when the hook begins; the graph may be changed."""

    def before_save(self, session: Any, global_step_value: int) -> None:
        """Called before each save."""

    def after_save(self, session: Any, global_step_value: int) -> Any:
        """Called after each save. Anything true ends the loop, unless it is the first or the last save."""

    def end(self, session: Any, global_step_value: int) -> None:
        """Called once, after the last save."""


class CheckpointSaverHook(SessionRunHook):
    """Saves when the session was made, every so many steps or seconds, and at the end.

    Args:
      checkpoint_dir: the folder. checkpoint_basename: beginning of the files' names.
      save_secs: seconds from one save to the next. save_steps: steps. One of them is given.
      saver: what saves; default: the scaffold's, else the only one in the collection ``SAVERS``. scaffold: one whose saver saves.
      listeners: CheckpointSaverListeners, told of each save in this order.
      save_graph_def: write the graph too: as ``graph.pbtxt`` when the session was made, and beside each checkpoint.

    Raises:
      InvalidArgumentError: both a saver and a scaffold; both ``save_secs`` and ``save_steps``, or none.
    """

    def __init__(
        self,
        checkpoint_dir: str,
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Any = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Any = None,
        listeners: Sequence[CheckpointSaverListener] | None = None,
        save_graph_def: bool = True,
    ) -> None:
        _log.info("Create CheckpointSaverHook.")
        if saver is not None and scaffold is not None:
            raise InvalidArgumentError("You cannot provide both saver and scaffold.")
        self._saver = saver
        self._scaffold = scaffold
        self._folder = os.fspath(checkpoint_dir)
        self._path = os.path.join(self._folder, checkpoint_basename)
        self._timer = SecondOrStepTimer(save_secs, save_steps)
        self._listeners = list(listeners or ())
        self._with_graph = save_graph_def

    def add_listeners(self, listeners: Sequence[CheckpointSaverListener]) -> None:
        """Tell further listeners of each save, behind those that there are. Call before the hook begins."""
        self._listeners += listeners

    def begin(self) -> None:
        self._writer = writer_of(self._folder)
        self._step = step_read(type(self).__name__)
        for listener in self._listeners:
            listener.begin()

    def after_create_session(self, session: Any, coord: Any) -> None:
        step = int(session.run(self._step))
        system(self._folder).makedirs(self._folder)
        note_graph(session.graph, self._the_saver(), self._writer, self._folder if self._with_graph else None)
        self._save(session, step)
        self._timer.update_last_triggered_step(step)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        step = int(run_values.results)
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            if self._save(run_context.session, step):
                run_context.request_stop()

    def end(self, session: Any) -> None:
        step = int(session.run(self._step))
        if step != self._timer.last_triggered_step():
            self._save(session, step)
        for listener in self._listeners:
            listener.end(session, step)

    def _save(self, session: Any, step: int) -> bool:
        """Save; returns whether a listener wants the loop to end."""
        _log.info("Calling checkpoint listeners before saving checkpoint %d...", step)
        for listener in self._listeners:
            listener.before_save(session, step)
        _log.info("Saving checkpoints for %d into %s.", step, self._path)
        self._the_saver().save(session, self._path, global_step=step, write_meta_graph=self._with_graph)
        note_checkpoint(self._writer, self._path, step)
        _log.info("Calling checkpoint listeners after saving checkpoint %d...", step)
        stops = [listener for listener in self._listeners if listener.after_save(session, step)]
        for listener in stops:
            _log.info("A CheckpointSaverListener requested that training be stopped. listener: %r", listener)
        return bool(stops)

    def _the_saver(self) -> Any:
        if self._saver is not None:
            return self._saver
        if self._scaffold is not None:
            return self._scaffold.saver
        found = _tf.get_collection(_tf.GraphKeys.SAVERS)
        if len(found) != 1:
            raise FailedPreconditionError(
                "CheckpointSaverHook needs a saver",
                expected=f"one in the collection {_tf.GraphKeys.SAVERS!r}",
                got=str(len(found)),
                hint="pass saver= or scaffold=",
            )
        self._saver = found[0]
        return found[0]
