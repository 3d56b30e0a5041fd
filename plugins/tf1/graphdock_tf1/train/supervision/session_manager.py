"""SessionManager: makes sessions whose variables have values, from a checkpoint or from their initializers."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import graphdock as _tf
from graphdock.errors import (
    AbortedError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    UnavailableError,
)

from graphdock_tf1.train.checkpoint_state import get_checkpoint_state

_log = logging.getLogger("graphdock")
#: Seconds between the first two looks of a session that waits for others; each later wait is twice as long as the one before.
_FIRST_WAIT = 0.05


class SessionManager:
    """Makes sessions that are ready to train.

    Args:
      local_init_op: run in every session that it makes. local_init_feed_dict, local_init_run_options: how.
      ready_op: a string vector, empty when the model is ready. ready_for_local_init_op: when ``local_init_op`` may be run.
      graph: of the sessions; default: the default graph.
      recovery_wait_secs: at most so many seconds between two looks, where something is waited for.

    Raises:
      InvalidArgumentError: a ``ready_for_local_init_op`` without a ``local_init_op``.
    """

    def __init__(
        self,
        local_init_op: Any = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        graph: _tf.Graph | None = None,
        recovery_wait_secs: float = 30,
        local_init_run_options: Any = None,
        local_init_feed_dict: Mapping[Any, Any] | None = None,
    ) -> None:
        if ready_for_local_init_op is not None and local_init_op is None:
            raise InvalidArgumentError(
                "If you pass a ready_for_local_init_op you must also pass a local_init_op",
                got=f"ready_for_local_init_op={_named(ready_for_local_init_op)}",
            )
        self._local_init_op = local_init_op
        self._ready_op = ready_op
        self._ready_for_local_init_op = ready_for_local_init_op
        self._graph = _tf.get_default_graph() if graph is None else graph
        self._wait = recovery_wait_secs
        self._local_init_run_options = local_init_run_options
        self._local_init_feed_dict = local_init_feed_dict

    def prepare_session(
        self,
        master: str,
        init_op: Any = None,
        saver: Any = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: Any = None,
        init_feed_dict: Mapping[Any, Any] | None = None,
        init_fn: Callable[[Any], Any] | None = None,
    ) -> Any:
        """A session that is ready: restored where there is a checkpoint, initialised otherwise.

        Args:
          master: target of the session. config: its configuration.
          init_op, init_feed_dict, init_fn: what initialises it.
          saver: what restores it. checkpoint_dir: the folder whose last checkpoint is restored; or
          checkpoint_filename_with_path: the checkpoint.
          wait_for_checkpoint: wait for the first checkpoint of the folder, at most ``max_wait_secs``.

        Raises:
          InvalidArgumentError: both a folder and a checkpoint.
          FailedPreconditionError: nothing to initialise it with, or variables have no value afterwards; names them.
          And what restoring raises.
        """
        session, restored = self._restored(
            master, saver, checkpoint_dir, checkpoint_filename_with_path, wait_for_checkpoint, max_wait_secs, config
        )
        try:
            if not restored:
                if init_op is None and init_fn is None and self._local_init_op is None:
                    raise FailedPreconditionError(
                        "Model is not initialized and no init_op or init_fn or local_init_op was given"
                    )
                if init_op is not None:
                    session.run(init_op, feed_dict=init_feed_dict)
                if init_fn is not None:
                    init_fn(session)
            given = f"Init op: {_named(init_op)}, init fn: {init_fn}"
            why = self._init_locals(session)
            if why is not None:
                raise FailedPreconditionError(
                    f"Init operations did not make model ready for local_init.  {given}, error: {why}"
                )
            why = _not_ready(self._ready_op, session)
            if why is not None:
                raise FailedPreconditionError(
                    f"Init operations did not make model ready.  {given}, local_init_op: {_named(self._local_init_op)}, "
                    f"error: {why}"
                )
        except BaseException:  # nobody else knows the session; Ctrl-C too goes on
            session.close()
            raise
        return session

    def recover_session(
        self,
        master: str,
        saver: Any = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: Any = None,
    ) -> tuple[Any, bool]:
        """A session, and whether it was restored and is ready. Arguments and errors as of :meth:`prepare_session`."""
        session, restored = self._restored(
            master, saver, checkpoint_dir, checkpoint_filename_with_path, wait_for_checkpoint, max_wait_secs, config
        )
        try:
            why = self._init_locals(session)
            if not restored:
                return session, False
            path = checkpoint_dir or checkpoint_filename_with_path
            if why is not None:
                _log.info("Restoring model from %s did not make model ready for local init: %s", path, why)
                return session, False
            why = _not_ready(self._ready_op, session)
        except BaseException:  # nobody else knows the session; Ctrl-C too goes on
            session.close()
            raise
        if why is not None:
            _log.info("Restoring model from %s did not make model ready: %s", path, why)
            return session, False
        _log.info("Restored model from %s", path)
        return session, True

    def wait_for_session(self, master: str, config: Any = None, max_wait_secs: float | None = math.inf) -> Any:
        """A session whose variables another process, or another session of their container, has given values.

        A task that is lost meanwhile, or has started anew, is waited for as well.

        Raises:
          DeadlineExceededError: they have none after ``max_wait_secs``; says what was waited for.
        """
        end = time.monotonic() + (math.inf if max_wait_secs is None else max_wait_secs)
        wait = min(_FIRST_WAIT, self._wait)
        while True:
            session = None
            try:
                session = _tf.Session(master, graph=self._graph, config=config)
                why = self._init_locals(session)
                if why is None:
                    why = _not_ready(self._ready_op, session)
                if why is None:
                    return session
            except (AbortedError, UnavailableError) as error:
                why = error.message
            except BaseException:  # nobody else knows the session; Ctrl-C too goes on
                if session is not None:
                    session.close()
                raise
            if session is not None:
                session.close()
            if time.monotonic() + wait > end:
                raise DeadlineExceededError(f"Session was not ready after waiting {max_wait_secs} secs.", got=why)
            _log.info("Waiting for model to be ready.  %s", why)
            time.sleep(wait)  # what is waited for is another process's work, which wakes nobody here
            wait = min(2 * wait, self._wait)

    def _restored(
        self,
        master: str,
        saver: Any,
        folder: str | None,
        path: str | None,
        waits: bool,
        max_wait_secs: float,
        config: Any,
    ) -> tuple[Any, bool]:
        """A new session, and whether a checkpoint was restored into it."""
        if folder and path:
            raise InvalidArgumentError("Can not provide both checkpoint_dir and checkpoint_filename_with_path.")
        session = _tf.Session(master, graph=self._graph, config=config)
        try:
            if saver is None or not (folder or path):
                return session, False
            if path:
                saver.restore(session, path)
                return session, True
            assert folder is not None
            state, waited = get_checkpoint_state(folder), 0.0
            while state is None:
                if not waits or waited >= max_wait_secs:
                    return session, False
                _log.info("Waiting for checkpoint to be available.")
                time.sleep(self._wait)
                waited += self._wait
                state = get_checkpoint_state(folder)
            saver.restore(session, state.model_checkpoint_path)
            saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
            return session, True
        except BaseException:  # nobody else knows the session; Ctrl-C too goes on
            session.close()
            raise

    def _init_locals(self, session: Any) -> str | None:
        """Run the local initializer; returns what keeps it from being run."""
        if self._local_init_op is None:
            return None
        why = _not_ready(self._ready_for_local_init_op, session)
        if why is None:
            _log.info("Running local_init_op.")
            session.run(self._local_init_op, feed_dict=self._local_init_feed_dict, options=self._local_init_run_options)
            _log.info("Done running local_init_op.")
        return why


def _not_ready(op: Any, session: Any) -> str | None:
    """Return which variables have no value; None where all have."""
    if op is None:
        return None
    try:
        found = session.run(op)
    except FailedPreconditionError as error:
        if "uninitialized" not in str(error) and not isinstance(error, _tf.errors.UninitializedError):
            raise
        return error.message
    if found is None or found.dtype == "int32" or found.size == 0:
        return None
    return "Variables not initialized: " + ", ".join(name.decode() for name in found)


def _named(item: Any) -> str:
    return "None" if item is None else str(getattr(item, "name", repr(item)))
