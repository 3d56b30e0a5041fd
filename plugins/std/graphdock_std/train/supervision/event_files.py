"""What sessions that are watched over note in event files, beside the summaries of the model."""

from __future__ import annotations

from typing import Any

import graphdock as _tf

__all__ = ["note_checkpoint", "note_graph", "note_rate", "note_start", "note_stop", "writer_of"]


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


def note_graph(writer: Any, graph: Any) -> None:
    """What graph is trained."""
    writer.add_graph(graph)


def note_rate(writer: Any, tag: str, rate: float, step: int) -> None:
    """A number that is no summary of the graph's."""
    writer.add_summary(_tf.Summary(value=[_tf.Summary.Value(tag=tag, simple_value=rate)]), step)
