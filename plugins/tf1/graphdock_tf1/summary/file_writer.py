"""``tf.summary.FileWriter``: writes summaries, graphs and what steps reported to an event file, which TensorBoard reads."""

from __future__ import annotations

import os
import re
import time
import warnings
import weakref
from typing import Any

import graphdock as _tf
from graphdock import messages
from graphdock import ops as _ops
from graphdock.errors import AlreadyExistsError, ArgumentTypeError, InvalidArgumentError, UnimplementedError
from graphdock.locks import new_lock
from graphdock_storage.events.summaries import EVENT_KEYS, check
from graphdock_storage.events.writer import EventWriter

#: What the metadata of a value begins with; where it is not found there is none.
_METADATA = re.compile(rb"\x4a(?s:.){1,2}[\x0a\x12\x1a\x20]")


class FileWriter:
    """An event file in a folder, which a thread of its own writes: what is added waits in a list for it.

    ``with tf.summary.FileWriter(logdir) as writer:`` closes it at the end. Any thread may call it. Nothing is lost: what waits is
    written when the program ends, also by an exception, and when nobody holds the writer any more. Only a process that is killed
    loses what was not flushed. Where the disk is full, or the file can't be written, the next call raises; what waits is kept,
    and :meth:`flush` or the thread tries again.

    Args:
      logdir: the folder, which is made where it is not there.
      graph: written at once; ``graph_def`` is its older name.
      max_queue: how many events may wait before they are written. ``flush_secs``: how many seconds an event waits at most.
      filename_suffix: what the file's name ends with.
      session: TensorFlow's summaries within the graph, which graphdock does not have; only None.

    Raises:
      GraphdockError: of the class that fits, PermissionDeniedError for example: the file can't be made.
      UnimplementedError: a session is given.
    """

    def __init__(
        self,
        logdir: str,
        graph: Any = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        graph_def: Any = None,
        filename_suffix: str | None = None,
        session: Any = None,
    ) -> None:
        if session is not None:
            raise UnimplementedError(
                "a FileWriter has no session: summaries come out of session.run", hint="leave it out"
            )
        for name, value in (("max_queue", max_queue), ("flush_secs", flush_secs)):
            if not isinstance(value, (int, float)) or not value >= 0:
                raise InvalidArgumentError(f"FileWriter: {name} is wrong", expected="0 or more", got=repr(value))
        self._logdir = os.fsdecode(logdir)
        self._events = EventWriter(self._logdir, int(max_queue), float(flush_secs), filename_suffix or "")
        self._last = weakref.finalize(self, self._events.close_at_last)
        self._lock = new_lock()
        self._tagged: set[str] = set()
        self._described: set[str] = set()
        if graph is not None or graph_def is not None:
            self.add_graph(graph, graph_def=graph_def)

    def get_logdir(self) -> str:
        """The folder."""
        return self._logdir

    def add_summary(self, summary: Any, global_step: Any = None) -> None:
        """Write a summary.

        Args:
          summary: what a summary op gave, or a ``tf.Summary``.
          global_step: an integer, which is the place on TensorBoard's axis.

        Raises:
          DataLossError: the bytes are no summary. ArgumentTypeError: it is neither of the two.
          GraphdockError: of the class that fits: events before it could not be written. This one is not added then.
        """
        if isinstance(summary, bytes):
            data = summary
            check(data)
        elif isinstance(summary, messages.Summary):
            data = summary.SerializeToString()
        else:
            raise ArgumentTypeError(
                "add_summary takes a summary",
                expected="what a summary op gave, or a tf.Summary",
                got=repr(summary)[:80],
            )
        if _METADATA.search(data):
            data = self._without_known_metadata(data)
        self._add("summary", data, global_step)

    def _without_known_metadata(self, data: bytes) -> bytes:
        """A summary with the metadata of the tags only that no summary before had: TensorBoard wants it once."""
        summary = messages.from_bytes("Summary", data, "what a summary op gave")
        with self._lock:
            for value in summary.value:
                if value.HasField("metadata"):
                    if value.tag in self._described:
                        value.ClearField("metadata")
                    self._described.add(value.tag)
        return summary.SerializeToString()

    def add_graph(self, graph: Any, global_step: Any = None, graph_def: Any = None) -> None:
        """Write a graph, which TensorBoard draws: with devices and scopes, and with what bodies of conds and loops hold.

        Args:
          graph: a ``tf.Graph``, or a GraphDef that serializes itself; ``graph_def`` is its older name.

        Raises:
          InvalidArgumentError: both are given. ArgumentTypeError: it is no graph.
        """
        if graph is not None and graph_def is not None:
            raise InvalidArgumentError("add_graph: graph and graph_def are one argument", got="both")
        given = graph_def if graph is None else graph
        if isinstance(given, _tf.Graph):
            data = _ops.draw(given).SerializeToString(deterministic=True)
        else:
            data = _serialized(given, "add_graph", "a tf.Graph, such as session.graph")
        self._add("graph_def", data, global_step)

    def add_meta_graph(self, meta_graph_def: Any, global_step: Any = None) -> None:
        """Write a meta graph, which serializes itself. Raises ArgumentTypeError: it does not."""
        self._add("meta_graph_def", _serialized(meta_graph_def, "add_meta_graph", "a MetaGraphDef"), global_step)

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: Any = None) -> None:
        """Write what a traced step reported: TensorBoard's graph page shows the times and memory of its nodes under the tag.

        Args:
          run_metadata: a ``tf.RunMetadata`` that a session has filled in.

        Raises:
          AlreadyExistsError: the tag was used before. ArgumentTypeError: it is no RunMetadata.
        """
        data = _serialized(run_metadata, "add_run_metadata", "a tf.RunMetadata")
        with self._lock:
            if tag in self._tagged:
                raise AlreadyExistsError(
                    f"add_run_metadata: the tag {tag!r} was used before", hint="put the step into it"
                )
            self._tagged.add(tag)
        tagged = messages.TaggedRunMetadata(tag=tag, run_metadata=data)
        self._add("tagged_run_metadata", tagged.SerializeToString(), global_step)

    def add_session_log(self, session_log: Any, global_step: Any = None) -> None:
        """Write that a session began, ended or saved a checkpoint. Raises ArgumentTypeError: it is no ``tf.SessionLog``."""
        if not isinstance(session_log, messages.SessionLog):
            raise ArgumentTypeError("add_session_log takes a tf.SessionLog", got=repr(session_log)[:80])
        self._add("session_log", session_log.SerializeToString(), global_step)

    def add_event(self, event: Any) -> None:
        """Write an event as it is. Raises ArgumentTypeError: it is no ``tf.Event``."""
        if not isinstance(event, messages.Event):
            raise ArgumentTypeError("add_event takes a tf.Event", got=repr(event)[:80])
        self._add("", event.SerializeToString(), None)

    def _add(self, field: str, payload: bytes, step: Any) -> None:
        if self._warned():
            return
        self._events.add(time.time(), None if step is None else int(step), EVENT_KEYS[field], payload)

    def _warned(self) -> bool:
        """Return whether it is closed, which is told; TensorFlow does nothing then either."""
        if self._events.closed:
            warnings.warn(
                "Attempting to use a closed FileWriter. The operation will be a noop unless the FileWriter is explicitly reopened.",
                stacklevel=4,
            )
        return self._events.closed

    def flush(self) -> None:
        """Write what waits, so that others can read it. Raises GraphdockError: it can't be written, and is kept."""
        if not self._warned():
            self._events.flush()

    def close(self) -> None:
        """Write what waits and close the file. Raises GraphdockError: it can't be written. The writer stays open."""
        self._events.close()

    def reopen(self) -> None:
        """Take events again after :meth:`close`, for a new file in the folder. Nothing happens where it is open."""
        self._events.reopen()

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _serialized(given: Any, what: str, expected: str) -> bytes:
    serialize = getattr(given, "SerializeToString", None)
    if serialize is None or isinstance(given, type):
        raise ArgumentTypeError(f"{what} takes {expected}", got=repr(given)[:80])
    data: bytes = serialize()
    return data
