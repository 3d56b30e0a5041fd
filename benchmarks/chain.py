"""P3: a chain of 1000 elementwise nodes, x*w then +b in turns; w and b are fed, so no planner can fold the chain.

NumPy is the same 1000 calls in a loop over prepared arguments, each with `out=`. What fuses (JAX, torch.compile,
graphdock with the `llvm` backend) runs one kernel.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

from benchmarks.cli import benchmark_main
from benchmarks.frameworks import LLVM, session_builders
from benchmarks.program import Bar, Case, Program

NODES = 1000


def _data(shape: tuple[int, ...]) -> tuple[Any, Any, Any]:
    import numpy as np

    random = np.random.RandomState(3)
    x, b = (random.normal(size=shape).astype("float32") for _ in range(2))
    return x, random.uniform(0.9, 1.0, size=shape).astype("float32"), b


def _chain(x: Any, w: Any, b: Any) -> Any:
    for _ in range(NODES // 2):
        x = x * w
        x = x + b
    return x


def chain_session(tf: ModuleType, open_session: Callable[[], Any], shape: tuple[int, ...]) -> Case:
    """The chain between three placeholders and a fetch."""
    data = _data(shape)
    x, w, b = (tf.placeholder(tf.float32, shape) for _ in data)
    y = _chain(x, w, b)
    session = open_session()
    feed = dict(zip((x, w, b), data, strict=True))
    return Case(lambda: session.run(y, feed), lambda: [session.run(y, feed)])


def chain_numpy(shape: tuple[int, ...]) -> Case:
    """Two calls with `out=` per turn of a Python loop; the result is one buffer, overwritten in place."""
    import numpy as np

    x, w, b = _data(shape)
    y = np.empty_like(x)

    def call(multiply: Any = np.multiply, add: Any = np.add) -> Any:
        multiply(x, w, y)
        add(y, b, y)
        for _ in range(NODES // 2 - 1):
            multiply(y, w, y)
            add(y, b, y)
        return y

    return Case(call, lambda: [y])


def chain_jax(shape: tuple[int, ...]) -> Case:
    """jax.jit of the chain."""
    import jax

    data = _data(shape)
    compiled = jax.jit(_chain)
    return Case(lambda: compiled(*data).block_until_ready(), lambda: [compiled(*data)])


def chain_torch(shape: tuple[int, ...], compiled: bool = True) -> Case:
    """torch.compile of the chain, or eager."""
    import torch

    data = _data(shape)
    chain = torch.compile(_chain) if compiled else _chain

    def call() -> Any:
        with torch.no_grad():
            return chain(*(torch.from_numpy(value) for value in data))

    return Case(call, lambda: [call().numpy()])


def _program(name: str, shape: tuple[int, ...], note: str) -> Program:
    return Program(
        name,
        f"{NODES} elementwise nodes over {list(shape)} float32",
        {
            **session_builders(partial(chain_session, shape=shape), [LLVM]),
            "numpy": partial(chain_numpy, shape),
            "torch": partial(chain_torch, shape),
            "torch/eager": partial(chain_torch, shape, compiled=False),
            "jax": partial(chain_jax, shape),
        },
        (
            Bar("P3", ("numpy",), 1.25, note=f"unfused{note}"),
            Bar("P3", ("jax",), 1.0, subject="graphdock/llvm", note=f"fused{note}"),
        ),
        rtol=1e-3,
        atol=1e-3,
    )


PROGRAMS = (_program("vector", (32,), ""), _program("matrix", (64, 64), ", second shape"))

if __name__ == "__main__":
    sys.exit(benchmark_main("chain", PROGRAMS))
