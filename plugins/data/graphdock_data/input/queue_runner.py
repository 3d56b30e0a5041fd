"""Queue runners: threads that fill queues by steps of their own."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import graphdock as _tf
from graphdock import errors as _errors
from graphdock.errors import ArgumentTypeError, InvalidArgumentError, OpError, OutOfRangeError

_log = logging.getLogger("graphdock")


class QueueRunner:
    """Fills a queue, one thread for each of its enqueue operations, until these say that there is no more.

    Args:
      queue: a queue. enqueue_ops: what the threads run, again and again; one operation several times is several threads.
      close_op: run when the last thread has no more; default: closes the queue.
      cancel_op: run when a Coordinator wants to stop; default: closes the queue and cancels what waits to get in.
      queue_closed_exception_types: errors that mean that there is no more; default: OutOfRangeError.
      queue_runner_def: a QueueRunnerDef of :meth:`to_proto`, or TensorFlow's, in place of all others. ``import_scope``: the name
        scope in which what it names stands in the default graph. Its ``queue`` is then the operation that names the queue.

    Raises:
      InvalidArgumentError: no queue or no operations, or a message beside them. ArgumentTypeError: no such errors, or message.
      NotFoundError: what a message names is not in the graph.
    """

    def __init__(
        self,
        queue: Any = None,
        enqueue_ops: Sequence[Any] | None = None,
        close_op: Any = None,
        cancel_op: Any = None,
        queue_closed_exception_types: tuple[type[BaseException], ...] | None = None,
        queue_runner_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        if queue_runner_def is not None:
            if queue is not None or enqueue_ops is not None:
                raise InvalidArgumentError("queue_runner_def and queue are mutually exclusive.")
            queue, enqueue_ops, close_op, cancel_op, queue_closed_exception_types = _read(
                queue_runner_def, import_scope
            )
        if not queue or not enqueue_ops:
            raise InvalidArgumentError("Must provide queue and enqueue_ops.")
        kinds = queue_closed_exception_types
        if kinds is not None and not (
            isinstance(kinds, tuple) and kinds and all(isinstance(k, type) and issubclass(k, OpError) for k in kinds)
        ):
            raise ArgumentTypeError(
                "queue_closed_exception_types, when provided, must be a non-empty tuple of tf.errors", got=repr(kinds)
            )
        self._queue = queue
        self._enqueue_ops = list(enqueue_ops)
        self._close_op = queue.close() if close_op is None else close_op
        self._cancel_op = queue.close(cancel_pending_enqueues=True) if cancel_op is None else cancel_op
        self._kinds = kinds or (OutOfRangeError,)
        self._lock = threading.Lock()
        #: Told when a thread ends.
        self._end = threading.Condition(self._lock)
        self._running: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._raised: list[Exception] = []

    @property
    def queue(self) -> Any:
        return self._queue

    @property
    def enqueue_ops(self) -> list[Any]:
        return self._enqueue_ops

    @property
    def close_op(self) -> Any:
        return self._close_op

    @property
    def cancel_op(self) -> Any:
        return self._cancel_op

    @property
    def queue_closed_exception_types(self) -> tuple[type[BaseException], ...]:
        return self._kinds

    @property
    def exceptions_raised(self) -> list[Exception]:
        """Errors of threads that have no Coordinator to report them to."""
        return self._raised

    @property
    def name(self) -> str:
        return str(self._queue.name)

    def to_proto(self, export_scope: str | None = None) -> Any:
        """The runner as a QueueRunnerDef; None where its queue is not in the scope that is given, which names lose.

        Raises:
          UnavailableError: the library protobuf is not installed.
        """
        from graphdock.messages import make

        prefix = f"{export_scope}/" if export_scope else ""
        if not self.name.startswith(prefix):
            return None
        names = [
            t.name.removeprefix(prefix) for t in (self._queue, self._close_op, self._cancel_op, *self._enqueue_ops)
        ]
        return make(
            "QueueRunnerDef",
            queue_name=names[0],
            close_op_name=names[1],
            cancel_op_name=names[2],
            enqueue_op_name=names[3:],
            queue_closed_exception_types=[kind.error_code for kind in self._kinds],
        )

    @staticmethod
    def from_proto(queue_runner_def: Any, import_scope: str | None = None) -> QueueRunner:
        """The runner of a QueueRunnerDef, whose operations are in the default graph, in a scope if one is given."""
        return QueueRunner(queue_runner_def=queue_runner_def, import_scope=import_scope)

    def create_threads(
        self, sess: Any, coord: Any = None, daemon: bool = False, start: bool = False
    ) -> list[threading.Thread]:
        """The threads that fill the queue, one for each operation and, with a Coordinator, one that waits for it to stop.

        Args:
          sess: the session in which they run. coord: the Coordinator to which they report and by which they stop.
          daemon: they do not keep the process alive. start: start them.

        Returns:
          the threads; none where those of this session still run.
        """
        with self._lock:
            if self._running.get(sess, 0) > 0:
                return []
            self._running[sess] = len(self._enqueue_ops)
            self._raised = []
        name = f"QueueRunnerThread-{self.name}"
        threads = [
            threading.Thread(target=self._fill, args=(sess, op, coord), name=f"{name}-{op.name}")
            for op in self._enqueue_ops
        ]
        if coord is not None:
            threads.append(
                threading.Thread(target=self._cancel_on_stop, args=(sess, coord), name=f"{name}-close_on_stop")
            )
        for thread in threads:
            if coord is not None:
                coord.register_thread(thread)
            thread.daemon = thread.daemon or daemon
            if start:
                thread.start()
        return threads

    def _fill(self, sess: Any, op: Any, coord: Any) -> None:
        counted = False
        try:
            enqueue = sess.make_callable(op)
            while coord is None or not coord.should_stop():
                try:
                    enqueue()
                except self._kinds:
                    counted = True
                    if self._ended(sess):
                        self._run_quietly(sess, self._close_op)
                    return
        except Exception as error:
            if coord is not None:
                coord.request_stop(error)
                return
            _log.error("a queue runner of %r failed: %s", self.name, error)
            with self._lock:
                self._raised.append(error)
            raise
        finally:
            if not counted:
                self._ended(sess)

    def _ended(self, sess: Any) -> bool:
        """One thread is done; whether it was the last."""
        with self._lock:
            self._running[sess] -= 1
            self._end.notify_all()
            return self._running[sess] == 0

    def _cancel_on_stop(self, sess: Any, coord: Any) -> None:
        """Wait until a Coordinator wants to stop, and end what waits then."""
        coord.wait_for_stop()
        self._run_quietly(sess, self._cancel_op)

    def _run_quietly(self, sess: Any, op: Any) -> None:
        try:
            sess.run(op)
        except OpError as error:  # the queue is closed, or the session
            _log.debug("a queue runner of %r: %s", self.name, error)


def _read(message: Any, scope: str | None) -> tuple[Any, list[Any], Any, Any, tuple[type[BaseException], ...] | None]:
    """Parts of a QueueRunnerDef: queue, what fills it, what closes and cancels it, and errors; one of before has none."""
    if not hasattr(message, "enqueue_op_name"):
        raise ArgumentTypeError("queue_runner_def must be a QueueRunnerDef", got=type(message).__name__)
    graph, prefix = _tf.get_default_graph(), f"{scope}/" if scope else ""
    fields = [message.queue_name, message.close_op_name, message.cancel_op_name, *message.enqueue_op_name]
    queue, close, cancel, *ops = [graph.as_graph_element(prefix + name) for name in fields]
    known = [k for k in vars(_errors).values() if isinstance(k, type) and "error_code" in vars(k)]
    kinds = {k.error_code: k for k in known}
    codes = list(message.queue_closed_exception_types)
    if not set(codes) <= set(kinds):
        raise InvalidArgumentError("the queue runner's message names errors that there are not", got=str(codes))
    return queue, ops, close, cancel, tuple(kinds[c] for c in codes) or None


def add_queue_runner(qr: QueueRunner, collection: str = _tf.GraphKeys.QUEUE_RUNNERS) -> None:
    """Let a queue runner be started with those of its graph."""
    _tf.add_to_collection(collection, qr)


def start_queue_runners(
    sess: Any = None,
    coord: Any = None,
    daemon: bool = True,
    start: bool = True,
    collection: str = _tf.GraphKeys.QUEUE_RUNNERS,
) -> list[threading.Thread]:
    """Start the threads of all queue runners of a session's graph.

    Args:
      sess: the session in which they run; default: the default session. coord: the Coordinator by which they stop.
      daemon: they do not keep the process alive. start: start them, not just make them.

    Returns:
      the threads; none of a MonitoredSession, which has started them itself.

    Raises:
      InvalidArgumentError: there is no session. ArgumentTypeError: it is none.
    """
    if sess is None:
        sess = _tf.get_default_session()
        if sess is None:
            raise InvalidArgumentError(
                "Cannot start queue runners: No default session is registered.",
                hint="with sess.as_default(), or tf.train.start_queue_runners(sess)",
            )
    if isinstance(sess, _tf.train.MonitoredSession):
        return []
    if not isinstance(sess, _tf.Session):
        raise ArgumentTypeError("sess must be a `tf.Session` object.", got=type(sess).__name__)
    runners = sess.graph.get_collection(collection)
    if not runners:
        _log.warning("tf.train.start_queue_runners() was called, and the graph has no queue runners")
    with sess.graph.as_default():
        return [
            thread
            for runner in runners
            for thread in runner.create_threads(sess, coord=coord, daemon=daemon, start=start)
        ]
