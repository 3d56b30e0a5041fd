"""Monitored sessions: they make themselves ready, call hooks around each step, and go on after a failure that may pass."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

import graphdock as _tf
from graphdock.errors import (
    AbortedError,
    DeviceLostError,
    DeviceUnavailable,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
    UnavailableError,
)

from graphdock_tf1.train.hooks.run_hook import SessionRunHook
from graphdock_tf1.train.supervision.hooked_session import HookedSession
from graphdock_tf1.train.supervision.scaffold import Scaffold
from graphdock_tf1.train.supervision.session_creators import ChiefSessionCreator, SessionCreator

_log = logging.getLogger("graphdock")

#: How often in a row a session is made again without a step that works.
_TRIES = 10


def _may_pass(error: BaseException) -> bool:
    """Return whether a new session may do what this one could not. A device that is lost is lost for the process."""
    passing = isinstance(error, AbortedError | UnavailableError)
    return passing and not isinstance(error, DeviceLostError | DeviceUnavailable)


class StepContext:
    """Argument of a function that ``run_step_fn`` runs.

    Attributes:
      session: the session itself, whose steps call no hook.
    """

    def __init__(self, session: Any, run_with_hooks: Callable[..., Any]) -> None:
        self.session = session
        self._run = run_with_hooks

    def run_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        """A step, with the hooks: as ``MonitoredSession.run``."""
        return self._run(*args, **kwargs)

    def request_stop(self) -> None:
        """End the loop; raises StopIteration."""
        raise StopIteration("step_fn has requested the iterations to stop.")


class MonitoredSession:
    """A session that is made ready, calls hooks, and is made again when a step fails with AbortedError or UnavailableError.

        with tf.train.MonitoredSession(hooks=[tf.train.StopAtStepHook(last_step=1000)]) as sess:
            while not sess.should_stop():
                sess.run(train_op)

    Making one calls ``begin`` of the hooks, finalizes the default graph, and makes the session. At the end of the block ``end`` of
    the hooks is called; not after an error. OutOfRangeError and StopIteration end the loop without being raised further.

    A new session takes the last checkpoint, if ``session_creator`` knows a folder. After ten failures in a row without a step that
    works the error is raised. One thread at a time may use it.

    Args:
      session_creator: makes the sessions; default: a ChiefSessionCreator.
      hooks: SessionRunHooks, called in this order. stop_grace_period_secs: how long the end waits for threads.
    """

    StepContext = StepContext

    def __init__(
        self,
        session_creator: SessionCreator | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        stop_grace_period_secs: float = 120,
    ) -> None:
        self._begin(session_creator, hooks, stop_grace_period_secs, recovers=True)

    def _begin(
        self, creator: SessionCreator | None, hooks: Sequence[SessionRunHook] | None, grace: float, recovers: bool
    ) -> None:
        self._default = _tf.get_default_graph()
        self._was_finalized = self._default.finalized
        self._hooks = list(hooks or ())
        self._recovers = recovers
        self._failures = 0
        self._closed = False
        for hook in self._hooks:
            hook.begin()
        creator = ChiefSessionCreator() if creator is None else creator
        self._make = lambda: HookedSession(creator.create_session(), self._hooks, grace)
        self._session: HookedSession | None = None
        self._opened()

    @property
    def graph(self) -> Any:
        """The session's graph; None once it is closed."""
        return None if self._session is None else self._session.session.graph

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Run a step with the hooks. Arguments and result are those of ``Session.run``.

        Raises:
          FailedPreconditionError: the session is closed, or the loop was to end.
          InvalidArgumentError: one tensor is fed twice. And what the step, a hook or a thread raises.
        """
        return self._recovering(lambda session: session.run(fetches, feed_dict, options, run_metadata))

    def run_step_fn(self, step_fn: Callable[..., Any]) -> Any:
        """Run a function of a :class:`StepContext`, which may run several steps, with hooks and without; returns its result.

        After a failure that may pass the whole function is run again.

        Raises:
          InvalidArgumentError: it takes other arguments. And as :meth:`run`.
        """
        names = list(inspect.signature(step_fn).parameters)
        if names not in (["step_context"], ["self", "step_context"]):
            raise InvalidArgumentError(
                "`step_fn` may either have one `step_context` argument, or `self` and `step_context` arguments if it's an "
                "instance method.",
                got=", ".join(names) or "no arguments",
            )
        return self._recovering(lambda session: step_fn(StepContext(session.session, session.run)))

    def should_stop(self) -> bool:
        """Return whether the loop is to end: a hook or a thread wants it, or the session is closed."""
        if self._session is None:
            return self._closed
        try:
            return self._session.should_stop()
        except Exception as error:  # noqa: BLE001 - it is raised at the end of the block, where the threads are joined
            if self._recovers and _may_pass(error):
                self._failed(error)
                return False
            return True

    def close(self) -> None:
        """Call ``end`` of the hooks, stop the threads and close the session.

        Raises:
          FailedPreconditionError: it is closed. And what a hook or a thread raises.
        """
        self._close(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if isinstance(error, OutOfRangeError | StopIteration):
            error = None
        self._close(error)
        return error is None

    def _close(self, error: BaseException | None) -> None:
        if self._closed:
            raise FailedPreconditionError("Session is already closed.")
        try:
            if error is None:
                session = self._opened().session
                for hook in self._hooks:
                    hook.end(session)
        finally:
            self._closed = True
            last, self._session = self._session, None
            if not self._was_finalized:
                self._default._unsafe_unfinalize()
            if last is not None:
                last.close()

    def _opened(self) -> HookedSession:
        """The session; a new one after a failure."""
        while self._session is None:
            if self._closed:
                raise FailedPreconditionError("Session is already closed.")
            try:
                with self._default.as_default():
                    self._session = self._make()
            except Exception as error:
                if not self._recovers or not _may_pass(error):
                    raise
                self._failed(error)
        return self._session

    def _recovering(self, work: Callable[[HookedSession], Any]) -> Any:
        while True:
            session = self._opened()
            try:
                result = work(session)
            except Exception as error:
                cause = session.cause_of(error)
                if not self._recovers or not _may_pass(cause):
                    raise
                self._failed(cause)
            else:
                self._failures = 0
                return result

    def _failed(self, error: Exception) -> None:
        """Give up the session; the next use makes another one."""
        last, self._session = self._session, None
        self._failures += 1
        _log.info("An error was raised. The session is closed and a new one will be created. Error: %s", error)
        try:
            if last is not None:
                last.close(is_followed=self._failures <= _TRIES)
        except Exception as late:
            if not _may_pass(late):
                raise
            _log.error("the session that failed could not be closed: %s", late)
        if self._failures > _TRIES:
            raise error


class SingularMonitoredSession(MonitoredSession):
    """A monitored session that is made once: whatever fails ends it. It may be given its parts without a SessionCreator.

    Args:
      hooks, stop_grace_period_secs: as of :class:`MonitoredSession`.
      scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path: as of :class:`ChiefSessionCreator`.
    """

    def __init__(
        self,
        hooks: Sequence[SessionRunHook] | None = None,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: str | None = None,
        stop_grace_period_secs: float = 120,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path)
        self._begin(creator, hooks, stop_grace_period_secs, recovers=False)

    def raw_session(self) -> Any:
        """The session itself, whose steps call no hook."""
        return None if self._session is None else self._session.session
