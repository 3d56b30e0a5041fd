"""Cost of compiled code before the first step: a region without and with its object on disk, a network's first step, ragged shapes.

Each sample is a fresh process with a cache folder of its own. Of a training step of the transformer of `networks`: `region`
is the median of its regions, from text to address; `first_step` is the call that plans, compiles and runs, unfused beside compiled
with nothing and with all objects on disk, in the process's CPU time: what it waits for is its own. Last, the objects that one graph
makes for thirty ragged shapes, which is a count.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.cli import parse, publish
from benchmarks.environments import KEEP_BYTE_CODE, REPOSITORY
from benchmarks.harness import Outcome, Timing
from benchmarks.machine import load_average
from benchmarks.process import WorkerFailure
from benchmarks.program import Bar, Program
from benchmarks.report import as_table

__all__ = ["main", "ragged_objects", "transformer"]

COLD, KEPT, UNFUSED = "graphdock/llvm/cold", "graphdock/llvm/kept", "graphdock"
#: What no region may take, as subjects that are always on time.
LIMITS = {"50 ms": 0.050, "2 ms": 0.002}
SIZES = {"batch": 16, "length": 128, "vocabulary": 5000, "width": 256, "heads": 4, "layers": 4}
SHAPES = 30

REGION = Program(
    "region",
    "median region of a transformer's training step, from its text to its address",
    {},
    (Bar("F2", ("50 ms",), 1.0, subject=COLD), Bar("F2", ("2 ms",), 1.0, subject=KEPT)),
    unit="region",
)
FIRST = Program(
    "first_step",
    "first training step of a transformer, planned, compiled and run",
    {},
    (Bar("F2", (UNFUSED,), 1.1, subject=KEPT, note="all objects on disk"),),
    unit="step",
)


def transformer(backends: Sequence[str]) -> dict[str, Any]:
    """CPU seconds of the first step, and of each region's code, in this process."""
    import graphdock as tf

    from benchmarks.network_sessions import build

    regions: list[float] = []
    graph = build(tf, "transformer", SIZES)
    train = tf.train.AdamOptimizer(1e-3).minimize(graph.losses[0])
    with tf.Session(config=tf.SessionConfig(backends=tuple(backends))) as session, _timed(regions, backends):
        session.run(tf.global_variables_initializer())
        regions.clear()
        start = time.process_time()
        session.run(train, graph.feed)
        return {"step": time.process_time() - start, "regions": regions}


def _timed(seconds: list[float], backends: Sequence[str]) -> Any:
    """A context in which the CPU seconds of each text that gets an address are noted."""
    if "llvm" not in backends:
        return contextlib.nullcontext()
    import graphdock_llvm.target as target

    make: Callable[..., Any] = target._compile

    def made(*args: Any, **more: Any) -> Any:
        start = time.process_time()
        found = make(*args, **more)
        seconds.append(time.process_time() - start)
        return found

    return mock.patch.object(target, "_compile", made)


def ragged_objects() -> dict[str, int]:
    """Objects on disk after the first and after the last of thirty shapes of a layer norm, a GELU and a softmax, compared with
    the same session without llvm."""
    import graphdock as tf
    import numpy as np

    x = tf.placeholder(tf.float32, [None, None])
    centred = x - tf.reduce_mean(x, 1, keepdims=True)
    normed = centred * tf.rsqrt(tf.reduce_mean(tf.square(centred), 1, keepdims=True) + 1e-5)
    result = tf.nn.softmax(0.5 * normed * (1.0 + tf.erf(normed * 0.7071067811865476)))
    random, counts = np.random.default_rng(0), []
    config = tf.SessionConfig(backends=("llvm", "cpu"), shape_policy="generic")
    with tf.Session(config=config) as session, tf.Session() as plain:
        for rows, columns in random.integers(1, 200, (SHAPES, 2)).tolist():
            fed = random.standard_normal((rows, columns)).astype(np.float32)
            np.testing.assert_allclose(session.run(result, {x: fed}), plain.run(result, {x: fed}), 1e-4, 1e-6)
            counts.append(len(list(Path(os.environ["GRAPHDOCK_CACHE_DIR"], "llvm").glob("*.o"))))
    return {"first": counts[0], "last": counts[-1]}


def _fresh(call: str, cache: str) -> Any:
    code = f"import json; from benchmarks import compilation as c; print(json.dumps(c.{call}))"
    variables = {**os.environ, **KEEP_BYTE_CODE, "PYTHONPATH": str(REPOSITORY), "GRAPHDOCK_CACHE_DIR": cache}
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=variables)
    return json.loads(found.stdout.splitlines()[-1])


def _round(samples: dict[str, list[Any]]) -> None:
    """Add one sample of each subject; the second compiled one finds what the first has left on disk."""
    with tempfile.TemporaryDirectory() as cache:
        for subject, backends in ((COLD, ("llvm", "cpu")), (UNFUSED, ("cpu",)), (KEPT, ("llvm", "cpu"))):
            samples[subject].append(_fresh(f"transformer({backends!r})", cache))


def _timing(seconds: Sequence[float]) -> Timing:
    return Timing(tuple(seconds), tuple(seconds))


def main(arguments: list[str] | None = None) -> int:
    """Print the ratios; exit 1 where a process fails, or where ragged shapes make more than their structure's objects."""
    options = parse("compilation", [REGION.name, FIRST.name], arguments, rounds=5, seconds=None)
    before, outcomes = load_average(), [Outcome(REGION), Outcome(FIRST)]
    samples: dict[str, list[Any]] = {COLD: [], UNFUSED: [], KEPT: []}
    ragged = {"first": 0, "last": 0}
    try:
        with tempfile.TemporaryDirectory() as cache:
            ragged = _fresh("ragged_objects()", cache)
        for _ in range(options.rounds):
            _round(samples)
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines() or ["no output"]
        outcomes[0].failed["graphdock/llvm"] = WorkerFailure("graphdock/llvm", lines[-1], error.stderr)
    else:
        for subject in (COLD, KEPT):
            medians = [statistics.median(each["regions"]) for each in samples[subject]]
            outcomes[0].timings[subject] = _timing(medians)
            dearest = [max(each["regions"]) for each in samples[subject]]
            outcomes[0].parts[subject] = {"the dearest": min(dearest)}
        outcomes[0].timings |= {name: _timing([limit] * options.rounds) for name, limit in LIMITS.items()}
        outcomes[1].timings |= {
            subject: _timing([each["step"] for each in found]) for subject, found in samples.items()
        }
    outcomes = [outcome for outcome in outcomes if outcome.program.name in options.programs]
    for outcome in outcomes:
        print(as_table(outcome), end="\n\n", flush=True)
    print(f"ragged: {SHAPES} shapes, {ragged['first']} objects after the first, {ragged['last']} after the last")
    status = publish("compilation", outcomes, options, (before, load_average()))
    return 1 if ragged["last"] > ragged["first"] else status


if __name__ == "__main__":
    sys.exit(main())
