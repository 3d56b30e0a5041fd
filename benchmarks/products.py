"""The products of a training step of the MLP of `networks`: 784-1024-1024-10, 128 rows, forward and both gradients alone.

With `--isa avx2` all frameworks are held to AVX2 on a CPU that has more.

    python -m benchmarks.products --isa avx2
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from benchmarks.cli import benchmark_main
from benchmarks.frameworks import LLVM, session_builders
from benchmarks.program import Bar, Case, Program

__all__ = ["PROGRAMS"]

ROWS, SIZES = 128, (784, 1024, 1024, 10)


def _data() -> list[tuple[Any, Any, Any]]:
    """Of each layer what enters it, its weight, and the gradient that comes back."""
    import numpy as np

    random = np.random.default_rng(0)

    def drawn(*shape: int) -> Any:
        return random.standard_normal(shape).astype("float32") / 30

    return [(drawn(ROWS, a), drawn(a, b), drawn(ROWS, b)) for a, b in zip(SIZES, SIZES[1:], strict=False)]


def _products(dot: Callable[..., Any], layers: Any) -> list[Any]:
    """Outputs, gradients of weights, and gradients of what enters all layers but the first. ``dot``: ``(a, b, turn_a, turn_b)``."""
    forward = [dot(x, w, False, False) for x, w, _ in layers]
    weights = [dot(x, dy, True, False) for x, _, dy in layers]
    return [*forward, *weights, *[dot(dy, w, False, True) for _, w, dy in layers[1:]]]


def _case(call: Callable[[], Any], computed: Callable[[], Any] | None = None) -> Case:
    """``computed``: gives the results, where the timed call does not."""

    def values() -> list[Any]:
        import numpy as np

        return [np.asarray(r) for r in (computed or call)()]

    return Case(call, values)


def _session(tf: ModuleType, open_session: Callable[[], Any]) -> Case:
    """Inputs are variables and results stay in the session, as in a training step: no step copies a feed or a fetch."""
    layers = [
        [tf.get_variable(f"v{i}_{j}", initializer=a, use_resource=True).read_value() for j, a in enumerate(layer)]
        for i, layer in enumerate(_data())
    ]
    results = _products(lambda a, b, ta, tb: tf.matmul(a, b, transpose_a=ta, transpose_b=tb), layers)
    session = open_session()
    session.run(tf.global_variables_initializer())
    operations = [r.op for r in results]
    return _case(lambda: session.run(operations), lambda: session.run(results))


def _numpy() -> Case:
    layers = _data()
    return _case(lambda: _products(lambda a, b, ta, tb: (a.T if ta else a) @ (b.T if tb else b), layers))


def _jax() -> Case:
    import jax
    from jax import numpy as jnp

    layers = [tuple(map(jax.device_put, layer)) for layer in _data()]

    def dot(a: Any, b: Any, ta: bool, tb: bool) -> Any:
        return jnp.dot(a.T if ta else a, b.T if tb else b)

    compiled = jax.jit(lambda given: _products(dot, given))
    return _case(lambda: jax.block_until_ready(compiled(layers)))


def _torch() -> Case:
    import torch

    layers = [tuple(map(torch.from_numpy, layer)) for layer in _data()]

    def call() -> Any:
        with torch.no_grad():
            return _products(lambda a, b, ta, tb: (a.T if ta else a) @ (b.T if tb else b), layers)

    return _case(call)


PROGRAMS = (
    Program(
        "mlp_products",
        f"the eight products of a step of an MLP {'-'.join(map(str, SIZES))}, {ROWS} rows",
        {**session_builders(_session, [LLVM]), "numpy": _numpy, "torch": _torch, "jax": _jax},
        (Bar("P8", ("jax",), 1.1, subject="graphdock/llvm"),),
        rtol=1e-3,
        atol=1e-4,
    ),
)


def main(arguments: list[str] | None = None) -> int:
    """Print the ratios."""
    return benchmark_main("products", PROGRAMS, arguments)


if __name__ == "__main__":
    sys.exit(main())
