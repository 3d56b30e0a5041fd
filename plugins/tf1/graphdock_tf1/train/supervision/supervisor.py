"""Supervisor: the older way to train with checkpoints and summaries, which threads write."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

import graphdock as _tf
from graphdock.errors import AbortedError, DTypeError, FailedPreconditionError

from graphdock_tf1.train.global_step import get_global_step
from graphdock_tf1.train.global_step import global_step as value_of_step
from graphdock_tf1.train.saver import Saver
from graphdock_tf1.train.supervision.coordinator import Coordinator, LooperThread
from graphdock_tf1.train.supervision.event_files import note_graph, note_start, note_stop
from graphdock_tf1.train.supervision.scaffold import initialize_locals
from graphdock_tf1.train.supervision.session_manager import SessionManager
from graphdock_tf1.train.supervision.supervisor_threads import CheckpointThread, StepCounterThread, SummaryThread

_log = logging.getLogger("graphdock")

#: Stands for what is found in the graph or made: TensorFlow's value.
_USE_DEFAULT: Any = 0


class Supervisor:
    """Makes a session ready, and lets threads save and summarise while it trains. Finalizes the graph.

        sv = tf.train.Supervisor(logdir="logs")
        with sv.managed_session() as sess:
            while not sv.should_stop():
                sess.run(train_op)

    What is left at ``USE_DEFAULT`` is the first item of its collection in the graph, or is made; None is nothing.

    Args:
      graph: default: the default graph.
      ready_op, ready_for_local_init_op, init_op, init_feed_dict, local_init_op, local_init_run_options, summary_op, saver: as of
        :class:`SessionManager` and Scaffold; None is nothing. init_fn: called with the session after ``init_op``.
      is_chief: False for one that waits until another has given the variables values, and writes nothing.
      logdir: folder of checkpoints and event files; None for none.
      global_step: a Variable or Tensor that counts steps.
      save_summaries_secs, save_model_secs: how often threads write; 0 for never.
      recovery_wait_secs: seconds between two looks while waiting. stop_grace_secs: how long the end waits for threads.
      checkpoint_basename: beginning of the files' names. session_manager: what makes sessions, in the place of its own.
      summary_writer: a FileWriter in the place of that of ``logdir``; None for none.
    """

    USE_DEFAULT: ClassVar[int] = 0

    def __init__(
        self,
        graph: _tf.Graph | None = None,
        ready_op: Any = _USE_DEFAULT,
        ready_for_local_init_op: Any = _USE_DEFAULT,
        is_chief: bool = True,
        init_op: Any = _USE_DEFAULT,
        init_feed_dict: Mapping[Any, Any] | None = None,
        local_init_op: Any = _USE_DEFAULT,
        logdir: str | None = None,
        summary_op: Any = _USE_DEFAULT,
        saver: Any = _USE_DEFAULT,
        global_step: Any = _USE_DEFAULT,
        save_summaries_secs: float = 120,
        save_model_secs: float = 600,
        recovery_wait_secs: float = 30,
        stop_grace_secs: float = 120,
        checkpoint_basename: str = "model.ckpt",
        session_manager: SessionManager | None = None,
        summary_writer: Any = _USE_DEFAULT,
        init_fn: Callable[[Any], Any] | None = None,
        local_init_run_options: Any = None,
    ) -> None:
        self._graph = _tf.get_default_graph() if graph is None else graph
        keys = _tf.GraphKeys
        with self._graph.as_default():
            self.ready_op = _part(ready_op, keys.READY_OP, _tf.report_uninitialized_variables)
            self.ready_for_local_init_op = _part(ready_for_local_init_op, keys.READY_FOR_LOCAL_INIT_OP, _nothing)
            self.init_op = _part(init_op, keys.INIT_OP, _tf.global_variables_initializer)
            local_init_op = _part(local_init_op, keys.LOCAL_INIT_OP, initialize_locals)
            self.saver = _part(saver, keys.SAVERS, _default_saver)
            self.summary_op = _part(summary_op, keys.SUMMARY_OP, _tf.summary.merge_all)
            self.global_step = _part(global_step, keys.GLOBAL_STEP, _default_global_step)
        self.init_feed_dict = init_feed_dict
        self.is_chief = is_chief
        self.coord = Coordinator()
        self._init_fn = init_fn
        self._grace = stop_grace_secs
        logdir = os.fspath(logdir) if logdir and is_chief else None
        self._logdir = logdir
        self.save_path = None if logdir is None else os.path.join(logdir, checkpoint_basename)
        self.save_summaries_secs = save_summaries_secs if is_chief else None
        self.save_model_secs = save_model_secs if is_chief else None
        self.summary_writer: Any = summary_writer if is_chief else None
        if is_chief and summary_writer is _USE_DEFAULT:
            self.summary_writer = None if logdir is None else _tf.summary.FileWriter(logdir)
        self._has_graph = False
        self.session_manager = session_manager or SessionManager(
            local_init_op,
            self.ready_op,
            self.ready_for_local_init_op,
            self._graph,
            recovery_wait_secs,
            local_init_run_options,
        )
        self._graph.finalize()

    # -- sessions ---------------------------------------------------------------------------------------------------

    def prepare_or_wait_for_session(
        self,
        master: str = "",
        config: Any = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        start_standard_services: bool = True,
    ) -> Any:
        """A session that is ready: the chief's is restored or initialised, another's waits for that. Starts the threads.

        Raises:
          as :meth:`SessionManager.prepare_session` and :meth:`SessionManager.wait_for_session`.
        """
        self.coord.clear_stop()
        if self.summary_writer is not None:
            self.summary_writer.reopen()
        if not self.is_chief:
            session = self.session_manager.wait_for_session(master, config=config, max_wait_secs=max_wait_secs)
        else:
            session = self.session_manager.prepare_session(
                master,
                init_op=self.init_op,
                saver=self.saver,
                checkpoint_dir=self._logdir,
                wait_for_checkpoint=wait_for_checkpoint,
                max_wait_secs=max_wait_secs,
                config=config,
                init_feed_dict=self.init_feed_dict,
                init_fn=self._init_fn,
            )
            note_graph(self._graph, self.saver, None if self._has_graph else self.summary_writer, self._logdir)
            self._has_graph = True
            if start_standard_services:
                _log.info("Starting standard services.")
                self.start_standard_services(session)
        if start_standard_services:
            _log.info("Starting queue runners.")
            self.start_queue_runners(session)
        return session

    def start_standard_services(self, sess: Any) -> list[threading.Thread] | None:
        """Start the threads that save, summarise and count steps; returns them, and None where there is no ``logdir``.

        Raises:
          FailedPreconditionError: this is not the chief.
        """
        if not self.is_chief:
            raise FailedPreconditionError(
                "Only chief supervisor can start standard services. Because only chief supervisors can write events."
            )
        if self._logdir is None:
            _log.warning("Standard services need a 'logdir' passed to the SessionManager")
            return None
        threads: list[threading.Thread] = []
        if self.summary_writer is not None:
            if self.global_step is not None:
                note_start(self.summary_writer, value_of_step(sess, self.global_step))
            if self.save_summaries_secs and self.summary_op is not None:
                threads.append(SummaryThread(self, sess))
            if self.save_summaries_secs and self.global_step is not None:
                threads.append(StepCounterThread(self, sess))
        if self.saver is not None and self.save_model_secs:
            threads.append(CheckpointThread(self, sess))
        for thread in threads:
            thread.start()
        return threads

    def start_queue_runners(self, sess: Any, queue_runners: Iterable[Any] | None = None) -> list[threading.Thread]:
        """Start the threads of queue runners, default: those in the graph's collection ``QUEUE_RUNNERS``; returns them."""
        if queue_runners is None:
            queue_runners = self._graph.get_collection(_tf.GraphKeys.QUEUE_RUNNERS)
        return [
            thread
            for runner in queue_runners
            for thread in runner.create_threads(sess, coord=self.coord, daemon=True, start=True)
        ]

    def loop(
        self,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: Iterable[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> LooperThread:
        """Start a thread that calls a function every so many seconds until all stops; returns it."""
        return LooperThread.loop(self.coord, timer_interval_secs, target, args, kwargs)

    def summary_computed(self, sess: Any, summary: Any, global_step: int | None = None) -> None:
        """Write a summary.

        Raises:
          FailedPreconditionError: there is no ``logdir`` and no writer.
        """
        if self.summary_writer is None:
            raise FailedPreconditionError("Writing a summary requires a summary writer.", hint="pass logdir=")
        if global_step is None and self.global_step is not None:
            global_step = value_of_step(sess, self.global_step)
        self.summary_writer.add_summary(summary, global_step)

    @contextlib.contextmanager
    def managed_session(
        self,
        master: str = "",
        config: Any = None,
        start_standard_services: bool = True,
        close_summary_writer: bool = True,
    ) -> Iterator[Any]:
        """A block with a session. An error in it stops all threads and is raised at its end; OutOfRangeError ends it quietly.

        Raises:
          whatever the block or a thread raised first.
        """
        session = self.prepare_or_wait_for_session(
            master, config=config, start_standard_services=start_standard_services
        )
        try:
            try:
                yield session
            except Exception as error:  # noqa: BLE001 - stop() raises it, once the threads have ended
                self.request_stop(error)
            finally:
                self.stop(close_summary_writer=close_summary_writer)
        finally:
            session.close()

    # -- the end ----------------------------------------------------------------------------------------------------

    def stop(
        self,
        threads: Iterable[threading.Thread] | None = None,
        close_summary_writer: bool = True,
        ignore_live_threads: bool = False,
    ) -> None:
        """Stop the threads, wait for them, and close the event file.

        Raises:
          FailedPreconditionError: threads have not ended in time. And whatever one of them raised first.
        """
        self.coord.request_stop()
        try:
            self.coord.join(threads, stop_grace_period_secs=self._grace, ignore_live_threads=ignore_live_threads)
        finally:
            if close_summary_writer and self.summary_writer is not None:
                note_stop(self.summary_writer)
                self.summary_writer.close()
                self._has_graph = False

    def request_stop(self, ex: Any = None) -> None:
        """Ask all threads to stop; see :meth:`Coordinator.request_stop`."""
        self.coord.request_stop(ex)

    def should_stop(self) -> bool:
        """Return whether the loop is to end."""
        return self.coord.should_stop()

    def stop_on_exception(self) -> contextlib.AbstractContextManager[None]:
        """A block whose exceptions stop all threads."""
        return self.coord.stop_on_exception()

    def wait_for_stop(self) -> None:
        """Wait until the loop is to end."""
        self.coord.wait_for_stop()

    PrepareSession = prepare_or_wait_for_session
    StartQueueRunners = start_queue_runners
    StartStandardServices = start_standard_services
    Stop = stop
    RequestStop = request_stop
    Loop = loop
    ShouldStop = should_stop
    StopOnException = stop_on_exception
    WaitForStop = wait_for_stop
    SummaryComputed = summary_computed


def _nothing() -> None:
    return None


def _default_saver() -> Saver | None:
    return Saver() if _tf.global_variables() else None


def _default_global_step() -> Any:
    try:
        return get_global_step()
    except DTypeError as error:
        _log.warning("%s", error.message)
        return None


def _part(given: Any, key: str, make: Callable[[], Any]) -> Any:
    """Return what was given; else the first item of a collection, or a new one, which joins it."""
    if given is not _USE_DEFAULT:
        return given
    found = _tf.get_collection(key)
    if len(found) > 1:
        _log.info("Found %d %s operations. Returning the first one.", len(found), key)
    if found:
        return found[0]
    made = make()
    if made is not None:
        _tf.add_to_collection(key, made)
    return made


def basic_train_loop(
    supervisor: Supervisor,
    train_step_fn: Callable[..., Any],
    args: Iterable[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    master: str = "",
) -> None:
    """Call a function of the session again and again until the supervisor stops; after AbortedError in a new session.

    Args:
      train_step_fn: called with the session and ``args``, ``kwargs``.
    """
    arguments, keywords = tuple(args or ()), dict(kwargs or {})
    while True:
        try:
            with supervisor.managed_session(master) as session:
                while not supervisor.should_stop():
                    train_step_fn(session, *arguments, **keywords)
            return
        except AbortedError as error:
            _log.info("An error was raised. The session is closed and a new one will be created. Error: %s", error)
