"""P5: a graph of 10,000 nodes, from nothing to its first result; and graphdock's growth to 100,000 nodes.

Every call builds the graph (for JAX: traces and compiles) and runs it once, so there is no warm-up. Times are per node.
PyTorch, whose compiler takes minutes for such a graph, runs eagerly: no construction at all, only as a landmark.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

from benchmarks.cli import benchmark_main
from benchmarks.frameworks import graphdock, tensorflow
from benchmarks.program import Bar, Case, Program

NODES = 10_000

# (x, w, b, nodes) -> result of that many elementwise nodes; every framework's arrays take * and +.
Text = Callable[[Any, Any, Any, int], Any]


def deep(x: Any, w: Any, b: Any, nodes: int) -> Any:
    """One chain: x * w, then + b, in turns."""
    for _ in range(nodes // 2):
        x = x * w
        x = x + b
    return x


def wide(x: Any, w: Any, b: Any, nodes: int) -> Any:
    """A hundred chains side by side from one input, added up at the end."""
    width = 100
    # Every chain starts from another multiple of x, so that none can be merged with another.
    ends = [deep(x * (1.0 + turn / width), w, b, nodes // width - 2) for turn in range(width)]
    total = ends[0]
    for end in ends[1:]:
        total = total + end
    return total


def _data() -> tuple[Any, Any, Any]:
    import numpy as np

    random = np.random.RandomState(6)  # the chain converges: any length gives the same values
    x, b = (random.normal(size=32).astype("float32") for _ in range(2))
    return x, random.uniform(0.4, 0.6, size=32).astype("float32"), b


def _kept(build: Callable[[], Any], nodes: int) -> Case:
    results: list[Any] = []

    def call() -> None:
        results[:] = [build()]

    return Case(call, lambda: results, nodes)


def session_case(module: Callable[[], ModuleType], text: Text, nodes: int) -> Case:
    """A new Graph and Session in every call."""
    tf, data = module(), _data()

    def build() -> Any:
        with tf.Graph().as_default():
            x, w, b = (tf.placeholder(tf.float32, [32]) for _ in data)
            y = text(x, w, b, nodes)
            with tf.Session() as session:
                return session.run(y, dict(zip((x, w, b), data, strict=True)))

    return _kept(build, nodes)


def jax_case(text: Text, nodes: int) -> Case:
    """A new function, traced and compiled, in every call."""
    import jax

    data = _data()

    def build() -> Any:
        return jax.jit(lambda x, w, b: text(x, w, b, nodes))(*data).block_until_ready()

    return _kept(build, nodes)


def torch_case(text: Text, nodes: int) -> Case:
    """Eager."""
    import torch

    data = [torch.from_numpy(value) for value in _data()]

    def build() -> Any:
        with torch.no_grad():
            return text(*data, nodes).numpy()

    return _kept(build, nodes)


def numpy_case(text: Text, nodes: int) -> Case:
    """The same operators on arrays."""
    data = _data()
    return _kept(lambda: text(*data, nodes), nodes)


def _program(name: str, summary: str, text: Text, note: str) -> Program:
    return Program(
        name,
        summary,
        {
            "graphdock": partial(session_case, graphdock, text, NODES),
            "tensorflow": partial(session_case, tensorflow, text, NODES),
            "jax": partial(jax_case, text, NODES),
            "torch/eager": partial(torch_case, text, NODES),
            "numpy": partial(numpy_case, text, NODES),
        },
        (Bar("P5", ("tensorflow",), 0.25, note=note),),
        unit="node",
        rtol=1e-3,
        once=True,
    )


PROGRAMS = (
    _program("deep", f"{NODES} nodes in one chain over [32] float32: construction and first run", deep, ""),
    _program("wide", f"{NODES} nodes in 100 chains, added up: construction and first run", wide, "second shape"),
    Program(
        "linear",
        "construction and first run per node, 10,000 beside 100,000 nodes in one chain",
        {
            "graphdock": partial(session_case, graphdock, deep, 10 * NODES),
            "graphdock/small": partial(session_case, graphdock, deep, NODES),
        },
        (Bar("P5", ("graphdock/small",), 1.3, note="linear to 100,000"),),
        unit="node",
        reference="graphdock",
        once=True,
    ),
)

if __name__ == "__main__":
    sys.exit(benchmark_main("large_graph", PROGRAMS, rounds=3, seconds=0.01))
