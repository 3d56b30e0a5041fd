"""P2: what a step costs when it computes nothing: feed, one op, fetch.

JAX and PyTorch return their own arrays; `jax/fetch` also hands the result over as a NumPy array, as a session does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from benchmarks.cli import benchmark_main
from benchmarks.frameworks import session_builders
from benchmarks.program import Bar, Case, Program

FEEDS = 10


def _scalar() -> Any:
    import numpy as np

    return np.array(1.5, "float32")


def _pieces() -> list[Any]:
    import numpy as np

    random = np.random.RandomState(2)
    return [random.normal(size=10).astype("float32") for _ in range(FEEDS)]


def scalar_session(tf: ModuleType, open_session: Callable[[], Any]) -> Case:
    """Feed a float32 scalar, add 1, fetch."""
    x = tf.placeholder(tf.float32, [])
    y = x + 1.0
    session = open_session()
    feed = {x: _scalar()}
    return Case(lambda: session.run(y, feed), lambda: [session.run(y, feed)])


def scalar_numpy() -> Case:
    """One call of np.add."""
    import numpy as np

    x, one, y = _scalar(), np.array(1.0, "float32"), np.empty((), "float32")
    return Case(lambda: np.add(x, one, y), lambda: [y])


def scalar_jax(fetch: bool = False) -> Case:
    """jax.jit of x + 1 on a NumPy scalar."""
    import jax
    import numpy as np

    x = _scalar()
    add = jax.jit(lambda value: value + np.float32(1.0))
    call = (lambda: np.asarray(add(x))) if fetch else (lambda: add(x).block_until_ready())
    return Case(call, lambda: [add(x)])


def scalar_torch() -> Case:
    """torch.compile of x + 1 on a NumPy scalar."""
    import torch

    x = _scalar()
    add = torch.compile(lambda value: value + 1.0)

    def call() -> Any:
        with torch.no_grad():
            return add(torch.from_numpy(x))

    return Case(call, lambda: [call().numpy()])


def concat_session(tf: ModuleType, open_session: Callable[[], Any]) -> Case:
    """Feed ten vectors of ten, concatenate, fetch."""
    places = [tf.placeholder(tf.float32, [10]) for _ in range(FEEDS)]
    y = tf.concat(places, 0)
    session = open_session()
    feed = dict(zip(places, _pieces(), strict=True))
    return Case(lambda: session.run(y, feed), lambda: [session.run(y, feed)])


def concat_numpy() -> Case:
    """One call of np.concatenate with out=."""
    import numpy as np

    pieces, y = _pieces(), np.empty(10 * FEEDS, "float32")
    return Case(lambda: np.concatenate(pieces, 0, y), lambda: [y])


def concat_jax(fetch: bool = False) -> Case:
    """jax.jit of concatenate on ten NumPy arrays."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    pieces = _pieces()
    concat = jax.jit(lambda *parts: jnp.concatenate(parts))
    call = (lambda: np.asarray(concat(*pieces))) if fetch else (lambda: concat(*pieces).block_until_ready())
    return Case(call, lambda: [concat(*pieces)])


def concat_torch() -> Case:
    """torch.compile of cat on ten NumPy arrays."""
    import torch

    pieces = _pieces()
    concat = torch.compile(lambda parts: torch.cat(parts))

    def call() -> Any:
        with torch.no_grad():
            return concat([torch.from_numpy(piece) for piece in pieces])

    return Case(call, lambda: [call().numpy()])


PROGRAMS = (
    Program(
        "scalar",
        "feed a float32 scalar, add 1, fetch",
        {
            **session_builders(scalar_session),
            "numpy": scalar_numpy,
            "torch": scalar_torch,
            "jax": scalar_jax,
            "jax/fetch": lambda: scalar_jax(fetch=True),
        },
        (Bar("P2", ("tensorflow",), 0.08), Bar("P2", ("jax",), 1.0)),
    ),
    Program(
        "concat",
        "feed ten float32 vectors of 10, concatenate, fetch",
        {
            **session_builders(concat_session),
            "numpy": concat_numpy,
            "torch": concat_torch,
            "jax": concat_jax,
            "jax/fetch": lambda: concat_jax(fetch=True),
        },
        (Bar("P2", ("tensorflow",), 0.08, note="second shape"), Bar("P2", ("jax",), 1.0, note="second shape")),
    ),
)

if __name__ == "__main__":
    sys.exit(benchmark_main("null_step", PROGRAMS))
