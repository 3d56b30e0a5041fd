"""The dataflow executor beside TensorFlow's: nodes of a chain, nodes side by side, iterations of a loop, large products.

The straight-line executor stands beside it as what the same steps cost where nothing waits. Of the dataflow executor's products
each keeps to one thread; as many are computed at once as the executor has threads.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

from benchmarks.chain import chain_session
from benchmarks.cli import benchmark_main
from benchmarks.frameworks import session_builders
from benchmarks.program import Bar, Case, Program
from benchmarks.while_loop import body_session

NODES, PRODUCTS, SIZE = 1000, 16, 512
DATAFLOW = {"executor": "dataflow"}
ALONE = {**DATAFLOW, "intra_op_threads": 1}
VARIANTS: list[tuple[str, dict[str, object]]] = [("dataflow", DATAFLOW)]


def wide_session(tf: ModuleType, open_session: Callable[[], Any]) -> Case:
    """As many additions of one vector, which wait for nothing but the feed, and their sum."""
    import numpy as np

    random = np.random.RandomState(3)
    x, w = (tf.placeholder(tf.float32, [32]) for _ in range(2))
    parts = [x + w * (i + 1.0) for i in range(NODES // 2)]
    y = tf.add_n(parts)
    session = open_session()
    feed = {p: random.normal(size=32).astype("float32") for p in (x, w)}
    return Case(lambda: session.run(y, feed), lambda: [session.run(y, feed)])


def products_session(tf: ModuleType, open_session: Callable[[], Any]) -> Case:
    """Products of square matrices, none of which waits for another, and their sum."""
    import numpy as np

    random = np.random.RandomState(3)
    a, b = (tf.placeholder(tf.float32, [SIZE, SIZE]) for _ in range(2))
    y = tf.add_n([tf.matmul(a + float(i), b) for i in range(PRODUCTS)])
    session = open_session()
    feed = {p: random.normal(size=(SIZE, SIZE)).astype("float32") for p in (a, b)}
    return Case(lambda: session.run(y, feed), lambda: [session.run(y, feed)])


def _bar(ratio: float, note: str) -> Bar:
    return Bar("C2", ("tensorflow",), ratio, subject="graphdock/dataflow", note=note)


PROGRAMS = (
    Program(
        "chain",
        f"{NODES} elementwise nodes in one chain over [32] float32",
        session_builders(partial(chain_session, shape=(32,)), VARIANTS),
        (_bar(3.0, "each node waits for one"),),
        rtol=1e-3,
        atol=1e-3,
    ),
    Program(
        "wide",
        f"{NODES} elementwise nodes side by side over [32] float32",
        session_builders(wide_session, VARIANTS),
        (_bar(1.0, "no node waits"),),
        rtol=1e-3,
        atol=1e-3,
    ),
    Program(
        "loop",
        "per iteration: a counter and a body of two nodes over [10] float32",
        session_builders(body_session, VARIANTS),
        (_bar(1.0, "of a loop"),),
        rtol=1e-4,
        atol=1e-4,
    ),
    Program(
        "products",
        f"{PRODUCTS} products of {SIZE} by {SIZE} float32 matrices side by side",
        session_builders(
            products_session,
            [(f"dataflow/{n}", {**ALONE, "inter_op_threads": n}) for n in (1, 2)],
        ),
        (Bar("C2", ("graphdock/dataflow/1",), 0.65, subject="graphdock/dataflow/2", note="with one BLAS thread"),),
        rtol=1e-3,
        atol=1e-2,
    ),
)

if __name__ == "__main__":
    sys.exit(benchmark_main("dataflow", PROGRAMS))
