"""A hook: called by a monitored session before and after its steps, with what it asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import graphdock as _tf


class SessionRunArgs(NamedTuple):
    """Additions of a hook to a step.

    Attributes:
      fetches: any structure that ``Session.run`` takes; None for nothing.
      feed_dict: tensor -> value. No two hooks, and no hook and the caller, may feed one tensor.
      options: RunOptions; the step gets the longest time limit and the highest trace level of all hooks' and the caller's.
    """

    fetches: Any
    feed_dict: Mapping[Any, Any] | None = None
    options: _tf.RunOptions | None = None


class SessionRunValues(NamedTuple):
    """Results of a step, for one hook.

    Attributes:
      results: the values of the hook's own fetches, in their structure; None where it asked for nothing.
      options: the RunOptions of the step. run_metadata: its RunMetadata.
    """

    results: Any
    options: _tf.RunOptions
    run_metadata: _tf.RunMetadata


class SessionRunContext:
    """The step that hooks are called for.

    Args:
      original_args: the caller's fetches and feeds.
      session: the session itself, without hooks.
    """

    def __init__(self, original_args: SessionRunArgs, session: Any) -> None:
        self._original_args = original_args
        self._session = session
        self._stop_requested = False

    @property
    def original_args(self) -> SessionRunArgs:
        """The caller's fetches and feeds."""
        return self._original_args

    @property
    def session(self) -> Any:
        """The session itself: what is run in it calls no hook."""
        return self._session

    @property
    def stop_requested(self) -> bool:
        """Return whether some hook has asked for the end of the loop."""
        return self._stop_requested

    def request_stop(self) -> None:
        """Ask for the end of the loop: ``should_stop()`` of the monitored session is true after this step."""
        self._stop_requested = True


class SessionRunHook:
    """Base of hooks; each method does nothing.

    A monitored session calls them in the order in which it was given the hooks, on the thread that runs the step: ``begin`` once,
    then for each session that it makes ``after_create_session``, around each step ``before_run`` and ``after_run``, and ``end``
    once. What one of them raises ends the loop, as an error of the step does.
    """

    def begin(self) -> None:
        """Called once, before the session is made. The graph may be changed here, and only here."""

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Called when a session was made: at the beginning, and again after a recovery.

        Args:
          session: the session itself, initialised or restored. The graph is finalized.
          coord: the Coordinator of the threads that feed the session.
        """

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Called before each step; returns what the hook wants of it, or None."""
        return None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Called after each step that did not fail."""

    def end(self, session: Any) -> None:
        """Called when the loop ended without an error, or with OutOfRangeError or StopIteration, while the session is open."""
