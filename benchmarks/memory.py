"""Memory of steps: a network that keeps to 0.6 of its buffers beside itself without a budget; planned bytes beside measured ones.

    python -m benchmarks.memory                    # the time that a budget costs, then the networks' bytes
    python -m benchmarks.memory --programs budget  # the time alone

Planned bytes are those of a step's buffers, without variables and slots, as ``explain`` says them. Measured are those of NumPy's
memory (``tracemalloc``): what a session keeps once a first step has run, and the most that the second takes beside it.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from benchmarks.cli import benchmark_main
from benchmarks.frameworks import graphdock
from benchmarks.networks import OPTIMIZERS
from benchmarks.networks import PROGRAMS as NETWORKS
from benchmarks.program import Bar, Case, Program

__all__ = ["PROGRAMS", "Peak", "budget", "main", "peak"]

LAYERS, BATCH, SIZE = 24, 256, 128
#: Part of its buffers that the network may keep.
PART = 0.6


class Peak(NamedTuple):
    """Bytes of a step's buffers: planned, and measured."""

    planned: int
    measured: int

    @property
    def error(self) -> float:
        """Error of the plan; below 0 where it says too little."""
        return self.planned / self.measured - 1.0


def _layers(tf: ModuleType) -> tuple[list[Any], dict[Any, Any]]:
    """Loss and training operation of the network, and its feed."""
    import numpy as np

    x = h = tf.placeholder(tf.float32, [BATCH, SIZE])
    for layer in range(LAYERS):
        w, v = (tf.Variable(tf.random_normal(s, seed=layer) * 0.1) for s in ([SIZE, 2 * SIZE], [2 * SIZE, SIZE]))
        made = tf.matmul(h, w)
        h = h + tf.matmul(tf.tanh(made) * tf.sigmoid(made + 1.0), v)
    loss = tf.reduce_mean(tf.square(h))
    data = np.random.RandomState(0).normal(size=(BATCH, SIZE)).astype(np.float32)
    return [loss, tf.train.AdamOptimizer(1e-3).minimize(loss)], {x: data}


def _planned(tf: ModuleType, fetches: Sequence[Any], feed: Any, **fields: Any) -> int:
    with tf.Session(config=tf.SessionConfig(**fields)) as session:
        return sum(session.explain(fetches, feed).plan.arena_bytes.values())


def budget(part: float | None) -> Callable[[], Case]:
    """The network's step, within that part of its buffers."""

    def build() -> Case:
        tf = graphdock()
        fetches, feed = _layers(tf)
        fields = {} if part is None else {"memory_budget": {"cpu": int(_planned(tf, fetches, feed) * part)}}
        session = tf.Session(config=tf.SessionConfig(**fields))
        session.run(tf.global_variables_initializer())
        return Case(lambda: session.run(fetches, feed), lambda: [session.run(fetches, feed)[0]])

    return build


PROGRAMS = (
    Program(
        "budget",
        f"a training step of {LAYERS} layers with {PART} of the buffers that it has without a budget",
        {"graphdock": budget(PART), "graphdock/unbounded": budget(None)},
        (Bar("26.4", ("graphdock/unbounded",), 1.35, note="computed again"),),
        reference="graphdock/unbounded",
    ),
)


def peak(fetches: Sequence[Any], feed: Any, **fields: Any) -> Peak:
    """Bytes of the second step of fetches of the default graph."""
    tf = graphdock()
    planned = _planned(tf, fetches, feed, **fields)
    with tf.Session(config=tf.SessionConfig(**fields)) as session:
        session.run(tf.global_variables_initializer())
        tracemalloc.start()
        try:
            session.run(fetches, feed)
            gc.collect()
            kept = sum(trace.size for trace in _arrays())
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            session.run(fetches, feed)
            return Peak(planned, kept + tracemalloc.get_traced_memory()[1] - before)
        finally:
            tracemalloc.stop()


def _arrays() -> Iterator[Any]:
    """Traces of what NumPy's arrays hold."""
    import numpy as np

    domain = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
    yield from tracemalloc.take_snapshot().filter_traces([domain]).traces


def _networks() -> Iterator[tuple[str, Peak]]:
    from benchmarks.network_sessions import build

    tf = graphdock()
    for program in NETWORKS:
        shape: Any = program.builders["jax"] if "jax" in program.builders else next(iter(program.builders.values()))
        if not shape.keywords.get("optimizer"):
            continue
        with tf.Graph().as_default():
            graph = build(tf, shape.keywords["network"], shape.keywords["sizes"])
            (loss,) = graph.losses
            name = shape.keywords["optimizer"]
            train = getattr(tf.train, f"{name}Optimizer")(**OPTIMIZERS[name]).minimize(loss)
            yield program.name, peak([loss, train], graph.feed)
    with tf.Graph().as_default():
        fetches, feed = _layers(tf)
        yield f"{LAYERS} layers", peak(fetches, feed)
        whole = _planned(tf, fetches, feed)
        yield f"  {PART} of it", peak(fetches, feed, memory_budget={"cpu": int(whole * PART)})


def main() -> int:
    """Print the bytes of all networks, where no programs are chosen, and the time that a budget costs."""
    if "--programs" not in sys.argv[1:]:
        print(f"{'network':12} {'planned':>12} {'measured':>12} {'off':>7}")
        for name, found in _networks():
            print(
                f"{name:12} {found.planned / 1e6:9.2f} MB {found.measured / 1e6:9.2f} MB {found.error:+7.1%}",
                flush=True,
            )
        print()
    return benchmark_main("memory", PROGRAMS)


if __name__ == "__main__":
    sys.exit(main())
