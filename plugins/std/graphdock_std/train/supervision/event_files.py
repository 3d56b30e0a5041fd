"""What sessions that are watched over note in event files, beside the summaries of the model."""

from __future__ import annotations

from typing import Any

import graphdock as _tf

__all__ = [
    "new_writer",
    "note_checkpoint",
    "note_graph",
    "note_metadata",
    "note_rate",
    "note_start",
    "note_stop",
    "writer_of",
]


class _Nowhere:
    """Takes what a FileWriter does."""

    def _take(self, *args: Any, **kwargs: Any) -> None: ...

    add_summary = add_session_log = add_graph = add_run_metadata = flush = close = reopen = _take


def writer_of(folder: str) -> Any:
    """The FileWriter of a folder, which all who write there share."""
    return _tf.summary.FileWriterCache.get(folder) if hasattr(_tf, "summary") else _Nowhere()


def new_writer(folder: str) -> Any:
    """A FileWriter of a folder, of one's own."""
    return _tf.summary.FileWriter(folder) if hasattr(_tf, "summary") else _Nowhere()


def note_start(writer: Any, step: int) -> None:
    """Training begins at this step: of a run before, viewers leave out what came after it."""
    _log(writer, "START", step)


def note_stop(writer: Any) -> None:
    """Training has ended."""
    _log(writer, "STOP")


def note_checkpoint(writer: Any, path: str, step: int) -> None:
    """A checkpoint was saved."""
    _log(writer, "CHECKPOINT", step, checkpoint_path=path)


def _log(writer: Any, status: str, step: int | None = None, **fields: Any) -> None:
    if hasattr(_tf, "SessionLog"):
        kind = _tf.SessionLog
        writer.add_session_log(kind(status=getattr(kind, status), **fields), step)


def note_graph(writer: Any, graph: Any) -> None:
    """What graph is trained."""
    writer.add_graph(graph)


def note_rate(writer: Any, tag: str, rate: float, step: int) -> None:
    """A number that is no summary of the graph's."""
    if not isinstance(writer, _Nowhere):
        writer.add_summary(_tf.Summary(value=[_tf.Summary.Value(tag=tag, simple_value=rate)]), step)


def note_metadata(writer: Any, metadata: Any, step: int) -> None:
    """What a traced step reported."""
    writer.add_run_metadata(metadata, f"step_{step}")
