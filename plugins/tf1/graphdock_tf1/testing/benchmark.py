"""``tf.test.Benchmark``: times of a session's steps, and their report."""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np


class Benchmark:
    """Methods whose names begin with ``benchmark`` time something; a subclass has them, and calls them."""

    def report_benchmark(
        self,
        iters: int | None = None,
        cpu_time: float | None = None,
        wall_time: float | None = None,
        throughput: float | None = None,
        extras: Mapping[str, Any] | None = None,
        name: str | None = None,
        metrics: Any = None,
    ) -> None:
        """Print one line on stdout.

        Args:
          iters: how many repetitions. cpu_time, wall_time: seconds of one. throughput: MB per second.
          extras: further numbers and texts. name: default: the class and the method that calls. metrics: taken, without effect.
        """
        told = {
            "iters": iters,
            "wall_time": wall_time,
            "cpu_time": cpu_time,
            "throughput": throughput,
            **(extras or {}),
        }
        shown = " ".join(f"{key}: {value}" for key, value in told.items() if value is not None)
        sys.stdout.write(f"entry {{ name: {name or self._name()!r} {shown} }}\n")

    def _name(self) -> str:
        callers = [frame.function for frame in inspect.stack() if frame.function.startswith("benchmark")]
        return f"{type(self).__name__}.{callers[0] if callers else 'benchmark'}"


class TensorFlowBenchmark(Benchmark):
    """A Benchmark that times steps of a session: ``tf.test.Benchmark``."""

    def run_op_benchmark(
        self,
        sess: Any,
        op_or_tensor: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        burn_iters: int = 2,
        min_iters: int = 10,
        store_trace: bool = False,
        store_memory_usage: bool = True,
        name: str | None = None,
        extras: Mapping[str, Any] | None = None,
        mbs: float = 0,
    ) -> dict[str, Any]:
        """Run something ``burn_iters`` times and then ``min_iters`` times, and report the median of the latter.

        Args:
          store_trace, store_memory_usage: taken, without effect; ``graphdock profile`` shows both.
          mbs: megabytes that a step moves, for the throughput. The others are those of ``sess.run`` and of the report.

        Returns:
          ``{"iters", "wall_time", "extras", "name", "throughput"}``; times in seconds.
        """
        for _ in range(burn_iters):
            sess.run(op_or_tensor, feed_dict=feed_dict)
        times = []
        for _ in range(min_iters):
            begin = time.perf_counter()
            sess.run(op_or_tensor, feed_dict=feed_dict)
            times.append(time.perf_counter() - begin)
        wall = float(np.median(times)) if times else 0.0
        more = {**(extras or {}), "wall_time_mean": float(np.mean(times)), "wall_time_stdev": float(np.std(times))}
        report = {
            "iters": min_iters,
            "wall_time": wall,
            "extras": more,
            "name": name or self._name(),
            "throughput": mbs / wall if wall else 0.0,
        }
        self.report_benchmark(**report)
        return report
