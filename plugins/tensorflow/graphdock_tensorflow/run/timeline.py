"""``tensorflow.python.client.timeline``: a traced step as a file for Chrome's tracing page."""

from __future__ import annotations

import json
from typing import Any

import graphdock as tf

__all__ = ["Timeline"]


class Timeline:
    """A traced step. ``step_stats``: ``run_metadata.step_stats`` of a step that ran with a trace."""

    def __init__(self, step_stats: Any, graph: Any = None) -> None:
        self._stats = step_stats

    def generate_chrome_trace_format(
        self, show_dataflow: bool = True, show_memory: bool = False, op_time: str = "schedule"
    ) -> str:
        """JSON with an event per kernel, times in microseconds. The arguments are TensorFlow's and change nothing."""
        events: list[dict[str, Any]] = []
        for process, device in enumerate(self._stats.dev_stats):
            events.append(
                {"name": "process_name", "ph": "M", "pid": process, "args": {"name": f"{device.device} Compute"}}
            )
            events += [
                {
                    "ph": "X", "cat": "Op", "name": tf.compat.as_str(node.node_name), "pid": process, "tid": 0,
                    "ts": node.all_start_micros, "dur": node.all_end_rel_micros, "args": {"name": node.node_name},
                }
                for node in device.node_stats
            ]  # fmt: skip
        return json.dumps({"traceEvents": events}, indent=4)
