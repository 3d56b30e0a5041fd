"""One session and the hooks around its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import graphdock as _tf
from graphdock.errors import FailedPreconditionError, InvalidArgumentError

from graphdock_tf1.train.hooks.run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from graphdock_tf1.train.supervision.coordinator import Coordinator


class HookedSession:
    """A session with its hooks, and the threads that feed it. Making one starts the queue runners and tells the hooks.

    Args:
      session: the session itself. stop_grace_period_secs: how long :meth:`close` waits for the threads.

    Attributes:
      session: the session itself. coord: the Coordinator of the threads.
    """

    def __init__(self, session: Any, hooks: Sequence[SessionRunHook], stop_grace_period_secs: float) -> None:
        self.session = session
        self.coord = Coordinator(clean_stop_exception_types=())
        self.coord.is_followed = None  # known when it is closed
        self._hooks = hooks
        self._grace = stop_grace_period_secs
        self._stops = False
        try:
            for runner in _tf.get_collection(_tf.GraphKeys.QUEUE_RUNNERS):
                runner.create_threads(session, coord=self.coord, daemon=True, start=True)
            for hook in hooks:
                hook.after_create_session(session, self.coord)
        except BaseException:  # nobody else knows the session and its threads; Ctrl-C too goes on
            self.close()
            raise

    def should_stop(self) -> bool:
        """Return whether a hook or a thread wants the loop to end.

        Raises:
          whatever a thread reported.
        """
        if self._stops:
            return True
        self.coord.raise_requested_exception()
        return self.coord.should_stop()

    def cause_of(self, error: Exception) -> Exception:
        """Return why a step failed: what a thread reported, where one did, for then the step lacked what that thread was to
        bring.
        """
        try:
            self.coord.raise_requested_exception()
        except Exception as reported:  # noqa: BLE001 - it is the answer
            return reported
        return error

    def close(self, is_followed: bool = False) -> None:
        """Stop the threads and close the session. ``is_followed``: it failed, and another one is made.

        Raises:
          whatever a thread reported; the session is closed all the same.
        """
        self.coord.is_followed = is_followed
        self.coord.request_stop()
        try:
            self.coord.join(stop_grace_period_secs=self._grace, ignore_live_threads=True)
        finally:
            self.session.close()

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """One step, with what the hooks add to it.

        Raises:
          FailedPreconditionError: the loop was to end. InvalidArgumentError: one tensor is fed twice. And what the step, a hook or
          a thread raises.
        """
        if self._stops:
            raise FailedPreconditionError("Run called even after should_stop requested.")
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict), self.session)
        asked = [(hook, hook.before_run(context)) for hook in self._hooks]
        wanted = [fetches, *(args.fetches for _, args in asked if args is not None and args.fetches is not None)]
        options = _merged_options(options, [args.options for _, args in asked if args is not None])
        metadata = _tf.RunMetadata() if run_metadata is None else run_metadata
        feeds = _merged_feeds(feed_dict, [args.feed_dict for _, args in asked if args is not None])
        mine, *theirs = self.session.run(wanted, feeds, options, metadata)
        for hook, args in asked:
            has = args is not None and args.fetches is not None
            hook.after_run(context, SessionRunValues(theirs.pop(0) if has else None, options, metadata))
        self._stops = self._stops or context.stop_requested
        return mine


def _merged_options(own: Any, others: Sequence[Any]) -> Any:
    """The longest time limit, and the most detailed trace."""
    given = [options for options in (own, *others) if options is not None]
    if not given:
        return _NO_OPTIONS
    if len(given) == 1:
        return given[0]
    return _tf.RunOptions(max(o.timeout_in_ms for o in given), max(o.trace_level for o in given))


_NO_OPTIONS = _tf.RunOptions()


def _merged_feeds(own: Mapping[Any, Any] | None, others: Sequence[Mapping[Any, Any] | None]) -> Any:
    """Return what the hooks feed, and the caller."""
    made: dict[Any, Any] = {}
    for feeds in others:
        for key in feeds or ():
            if key in made:
                raise InvalidArgumentError("Same tensor is fed by two hooks.", got=_named(key))
        made.update(feeds or {})
    if not made:
        return own
    for key in own or ():
        if key in made:
            raise InvalidArgumentError("Same tensor is fed by a SessionRunHook and user.", got=_named(key))
    return {**made, **(own or {})}


def _named(key: Any) -> str:
    return str(getattr(key, "name", key))
