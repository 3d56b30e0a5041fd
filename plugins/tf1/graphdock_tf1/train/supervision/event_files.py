"""Notes of sessions that are watched over in event files, beside the summaries of the model."""

from __future__ import annotations

import logging
from typing import Any

import graphdock as _tf
from graphdock.errors import UnavailableError

_log = logging.getLogger("graphdock")


def writer_of(folder: str) -> Any:
    """The FileWriter of a folder, which all who write there share."""
    return _tf.summary.FileWriterCache.get(folder)


def note_start(writer: Any, step: int) -> None:
    """Training begins at this step: of a run before, viewers leave out what came after it."""
    writer.add_session_log(_tf.SessionLog(status=_tf.SessionLog.START), step)


def note_stop(writer: Any) -> None:
    """Training has ended."""
    writer.add_session_log(_tf.SessionLog(status=_tf.SessionLog.STOP))


def note_checkpoint(writer: Any, path: str, step: int) -> None:
    """A checkpoint was saved."""
    writer.add_session_log(_tf.SessionLog(status=_tf.SessionLog.CHECKPOINT, checkpoint_path=path), step)


def note_graph(graph: Any, saver: Any, writer: Any, folder: str | None) -> None:
    """Note which graph is trained, with its Saver: to the event file, and as ``graph.pbtxt`` to a folder. Each may be None.

    Without the library protobuf only the event file is told, and only of the graph.
    """
    if writer is not None:
        writer.add_graph(graph)
    try:
        message = graph.as_graph_def(add_shapes=True)
    except UnavailableError as error:
        _log.warning("the graph is not written as graph.pbtxt: %s", error.message)
        return
    if folder is not None:
        _tf.train.write_graph(message, folder, "graph.pbtxt")
    if writer is not None:
        saver_def = getattr(saver, "saver_def", None)
        writer.add_meta_graph(_tf.train.export_meta_graph(graph_def=message, graph=graph, saver_def=saver_def))


def note_rate(writer: Any, tag: str, rate: float, step: int) -> None:
    """A number that is no summary of the graph's."""
    writer.add_summary(_tf.Summary(value=[_tf.Summary.Value(tag=tag, simple_value=rate)]), step)
