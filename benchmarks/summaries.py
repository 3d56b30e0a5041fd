"""Cost of summaries to the thread that trains: steps with scalar summaries, merged and written, beside the same steps without.

Bursts of both kinds go in turns, and what is printed per scalar is their difference over the number of scalars: by the clock, by
what the thread that trains had of the processor, of ``add_summary`` alone, and what other threads had of the processor: the
writer's. The bar is 5 us per scalar by the clock.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.environments import REPOSITORY, interpreter_of
from benchmarks.machine import load_average

__all__ = ["main", "measure"]

COUNTS = (1, 20, 100)
BAR = 5e-6


def measure(tf: Any, count: int, bursts: int, steps: int) -> dict[str, float]:
    """Seconds of a step without summaries, and per scalar: in all, of the processor, of ``add_summary``, of other threads."""
    with tf.Graph().as_default(), tempfile.TemporaryDirectory() as folder:
        x = tf.placeholder(tf.float32, [count])
        values = [x[i] * 2.0 for i in range(count)]
        for i, value in enumerate(values):
            tf.summary.scalar(f"metrics/value_{i}", value)
        merged = tf.summary.merge_all()
        feed = {x: [1.0] * count}
        with tf.Session() as sess, tf.summary.FileWriter(folder) as writer:
            adding: list[float] = []

            def step() -> None:
                *_, summary = sess.run([*values, merged], feed)
                start = time.perf_counter()
                writer.add_summary(summary, len(adding))
                adding.append(time.perf_counter() - start)

            found: list[tuple[float, ...]] = []
            for _ in range(bursts + 1):
                plain, plain_cpu = _burst(steps, lambda: sess.run(values, feed))
                adding.clear()
                before = time.process_time() - time.thread_time()
                whole, whole_cpu = _burst(steps, step)
                writer.flush()
                others = (time.process_time() - time.thread_time() - before) / steps
                costs = whole - plain, whole_cpu - plain_cpu, statistics.median(adding), others
                found.append((plain, *(cost / count for cost in costs)))
    names = ("step", "in all", "processor", "add_summary", "other threads")
    # the first burst has planned
    return dict(zip(names, map(_quarter, zip(*found[1:], strict=True)), strict=True))


def _burst(steps: int, call: Any) -> tuple[float, float]:
    """Seconds of a step: the median by the clock, and the mean of what this thread had of the processor."""
    taken = []
    before = time.thread_time()
    for _ in range(steps):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken), (time.thread_time() - before) / steps


def _quarter(seconds: Sequence[float]) -> float:
    return sorted(seconds)[len(seconds) // 4]


def _worker(framework: str, bursts: int, steps: int) -> dict[str, dict[str, float]]:
    if framework == "graphdock":
        tf = importlib.import_module("graphdock")
    else:
        tf = importlib.import_module("tensorflow.compat.v1")
        tf.disable_v2_behavior()
    return {str(count): measure(tf, count, bursts, steps) for count in COUNTS}


def main(arguments: list[str] | None = None) -> int:
    """Measure each framework in a process of its own; 1 with ``--strict`` where the bar is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.summaries", description=__doc__.partition("\n")[0])
    parser.add_argument("--bursts", type=int, default=20)
    parser.add_argument("--steps", type=int, default=300, help="in a burst")
    parser.add_argument("--strict", action="store_true", help="exit 1 where the bar is missed")
    parser.add_argument("--json", help="a file for the figures")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    # what `python -m benchmarks` gives to all; there is nothing here that they choose
    options, _ = parser.parse_known_args(arguments)
    if options.worker:
        print(json.dumps(_worker(options.worker, options.bursts, options.steps)))
        return 0
    figures: dict[str, Any] = {}
    print(f"load average {load_average()}")
    columns = ("step", "in all", "processor", "add_summary", "other threads")
    print(f"{'':12}{'scalars':>8}" + "".join(f"{name:>15}" for name in columns))
    for framework in ("graphdock", "tensorflow"):
        python = interpreter_of(framework)
        if python is None:
            print(f"{framework:12} is not installed: python -m benchmarks.setup {framework}")
            continue
        command = [str(python), "-m", "benchmarks.summaries", "--worker", framework]
        command += ["--bursts", str(options.bursts), "--steps", str(options.steps)]
        ended = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
        if ended.returncode:
            print(f"{framework:12} failed: {ended.stderr.strip().splitlines()[-1:]}")
            continue
        figures[framework] = json.loads(ended.stdout)
        for count, row in figures[framework].items():
            print(f"{framework:12}{count:>8}" + "".join(f"{row[name] * 1e6:>15.2f}" for name in columns))
    print("microseconds of the quicker quarter of bursts: of a step without summaries, then per scalar")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)
    ours = figures.get("graphdock", {})
    missed = not ours or any(row["in all"] > BAR for row in ours.values())
    print("the bar of 5 us per scalar is " + ("missed" if missed else "met"))
    return int(options.strict and missed)


if __name__ == "__main__":
    sys.exit(main())
