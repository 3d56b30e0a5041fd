"""Traces in Chrome's trace event format, which ui.perfetto.dev and chrome://tracing open.

Source of the format: "Trace Event Format", Chromium project. Times are microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from graphdock.contracts.step import TraceEvent

__all__ = ["chrome_trace"]


def chrome_trace(steps: Iterable[tuple[float, float, Sequence[TraceEvent]]]) -> dict[str, Any]:
    """A trace of steps: a track for the steps, and one per device.

    Args:
      steps: of each step, when it began, how long it took (seconds), and what it reported.

    Returns:
      The file's content, for ``json.dumps``. An event has the name of its node, the op or kind of work as category, and kernel and
      bytes as arguments.
    """
    steps = list(steps)
    zero = min((at for start, _, events in steps for at in (start, *(e.start for e in events))), default=0.0)
    devices = dict.fromkeys(e.device for _, _, events in steps for e in events)
    tracks = {name: number for number, name in enumerate(["step", *devices])}
    made: list[dict[str, Any]] = [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "graphdock"}}]
    for name, track in tracks.items():
        made.append({"ph": "M", "name": "thread_name", "pid": 1, "tid": track, "args": {"name": name}})
        made.append({"ph": "M", "name": "thread_sort_index", "pid": 1, "tid": track, "args": {"sort_index": track}})
    for number, (start, seconds, events) in enumerate(steps):
        made.append(_slice(f"step {number}", "step", start - zero, seconds, 0, {}))
        for event in events:
            facts = {"kind": event.kind, "kernel": event.kernel, "bytes": event.nbytes}
            given = {key: value for key, value in facts.items() if value}
            made.append(_slice(event.name, event.what, event.start - zero, event.seconds, tracks[event.device], given))
    return {"traceEvents": made, "displayTimeUnit": "ns"}


def _slice(name: str, category: str, start: float, seconds: float, track: int, args: dict[str, Any]) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": name,
        "cat": category,
        "ts": round(start * 1e6, 3),
        "dur": round(seconds * 1e6, 3),
        "pid": 1,
        "tid": track,
        "args": args,
    }
