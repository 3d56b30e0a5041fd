"""Fused kernels: GELU, layer norm, softmax cross-entropy and Adam over large arrays, each beside the best of the compilers.

The session computes each with the `llvm` backend. All results are arrays of the framework that computes them; Adam updates what it
holds in place (JAX with its state donated). `copy` is `np.copyto` of as many elements, what memory allows one thread.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any

from benchmarks.cli import benchmark_main
from benchmarks.frameworks import LLVM, session_builders
from benchmarks.program import Bar, Case, Program

COMPILERS = ("jax", "torch", "tensorflow/xla")
RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.999, 1e-7


def _numbers(*shape: int, seed: int = 0) -> Any:
    import numpy as np

    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def _probe(value: Any) -> Any:
    """A few thousand elements of a large array."""
    import numpy as np

    flat = np.asarray(value).reshape(-1)
    return flat[:: max(1, flat.size // 4096)]


def gelu_data(size: int) -> tuple[Any, ...]:
    return (_numbers(size),)


def gelu(m: Any, x: Any) -> Sequence[Any]:
    """`m` has `erf`; the formula as people write it."""
    return [0.5 * x * (1.0 + m.erf(x * 0.7071067811865476))]


def norm_data(rows: int, columns: int) -> tuple[Any, ...]:
    return _numbers(rows, columns), _numbers(columns, seed=1), _numbers(columns, seed=2)


def norm(m: Any, x: Any, scale: Any, shift: Any) -> Sequence[Any]:
    """Layer norm by its parts, over the last axis."""
    centred = x - m.mean(x)
    return [centred * m.rsqrt(m.mean(centred * centred) + 1e-5) * scale + shift]


def entropy_data(rows: int, classes: int) -> tuple[Any, ...]:
    import numpy as np

    labels = np.eye(classes, dtype="float32")[np.arange(rows) * 7 % classes]
    return _numbers(rows, classes), labels


def entropy(m: Any, logits: Any, labels: Any) -> Sequence[Any]:
    """The loss of each row and the gradient of their sum."""
    shifted = logits - m.max(logits)
    e = m.exp(shifted)
    total = m.sum(e)
    return [m.sum(labels * (m.log(total) - shifted)), e / total - labels]


class _Words:
    """The functions of a framework that the programs use; reductions keep the last axis."""

    def __init__(self, **functions: Callable[..., Any]) -> None:
        self.__dict__.update(functions)


def _of_session(tf: ModuleType) -> _Words:
    along = {"axis": -1, "keepdims": True}
    return _Words(
        erf=tf.erf if hasattr(tf, "erf") else tf.math.erf,
        exp=tf.exp,
        log=tf.log,
        rsqrt=tf.rsqrt,
        mean=partial(tf.reduce_mean, **along),
        sum=partial(tf.reduce_sum, **along),
        max=partial(tf.reduce_max, **along),
    )


def _session(
    tf: ModuleType, open_session: Callable[[], Any], data: Callable[[], tuple[Any, ...]], program: Any
) -> Case:
    """Inputs are variables, so that no step copies a feed; results are fetched."""
    values = data()
    inputs = [tf.get_variable(f"v{i}", initializer=value, use_resource=True) for i, value in enumerate(values)]
    results = program(_of_session(tf), *[v.read_value() for v in inputs])
    session = open_session()
    session.run(tf.global_variables_initializer())
    return Case(lambda: session.run(results), lambda: [_probe(r) for r in session.run(results)])


def _fed(tf: ModuleType, open_session: Callable[[], Any], data: Callable[[], tuple[Any, ...]], program: Any) -> Case:
    """The first input is fed, of a batch of any size; the others are constants."""
    first, *others = data()
    batch = tf.placeholder(tf.float32, [None, *first.shape[1:]])
    results = program(_of_session(tf), batch, *map(tf.constant, others))
    session = open_session()
    call = session.make_callable(results, [batch])
    return Case(lambda: call(first), lambda: [_probe(r) for r in call(first)])


def _jax(data: Callable[[], tuple[Any, ...]], program: Any) -> Case:
    import jax
    from jax import lax
    from jax import numpy as jnp
    from jax.scipy.special import erf

    along = {"axis": -1, "keepdims": True}
    words = _Words(
        erf=erf,
        exp=jnp.exp,
        log=jnp.log,
        rsqrt=lax.rsqrt,
        mean=partial(jnp.mean, **along),
        sum=partial(jnp.sum, **along),
        max=partial(jnp.max, **along),
    )
    values = [jax.device_put(v) for v in data()]
    compiled = jax.jit(partial(program, words))
    return Case(lambda: jax.block_until_ready(compiled(*values)), lambda: [_probe(r) for r in compiled(*values)])


def _torch(data: Callable[[], tuple[Any, ...]], program: Any) -> Case:
    import torch

    words = _Words(
        erf=torch.erf,
        exp=torch.exp,
        log=torch.log,
        rsqrt=torch.rsqrt,
        mean=lambda x: torch.mean(x, -1, keepdim=True),
        sum=lambda x: torch.sum(x, -1, keepdim=True),
        max=lambda x: torch.amax(x, -1, keepdim=True),
    )
    values = [torch.from_numpy(v) for v in data()]
    compiled = torch.compile(partial(program, words))

    def call() -> Any:
        with torch.no_grad():
            return compiled(*values)

    return Case(call, lambda: [_probe(r) for r in call()])


def _numpy(data: Callable[[], tuple[Any, ...]], program: Any) -> Case:
    import math

    import numpy as np

    along = {"axis": -1, "keepdims": True}
    words = _Words(
        erf=lambda x: np.vectorize(math.erf, otypes="f")(x),
        exp=np.exp,
        log=np.log,
        rsqrt=lambda x: 1 / np.sqrt(x),
        mean=partial(np.mean, **along),
        sum=partial(np.sum, **along),
        max=partial(np.max, **along),
    )
    values = data()
    call = partial(program, words, *values)
    return Case(call, lambda: [_probe(r) for r in call()])


def _copy(data: Callable[[], tuple[Any, ...]], program: Any) -> Case:
    """The results are NumPy's, so that they can be compared; what is timed is a copy of the first input."""
    import numpy as np

    values = data()
    room = np.empty_like(values[0])
    case = _numpy(data, program)
    return Case(lambda: np.copyto(room, values[0]), case.values)


def _program(name: str, summary: str, data: Any, program: Any, row: str, at_most: float, copies: float = 0) -> Program:
    parts = {"data": data, "program": program}
    bars = [Bar(row, COMPILERS, at_most, subject="graphdock/llvm")]
    if copies:
        bars.append(Bar(row, ("numpy/copy",), copies, subject="graphdock/llvm", note="a copy"))
    builders = {
        **session_builders(partial(_session, **parts), [LLVM], ["xla"]),
        "numpy": partial(_numpy, **parts),
        **({"numpy/copy": partial(_copy, **parts)} if copies else {}),
        "torch": partial(_torch, **parts),
        "jax": partial(_jax, **parts),
    }
    return Program(name, summary, builders, tuple(bars), rtol=1e-4, atol=1e-4)


def _any_program(rows: int) -> Program:
    """Layer norm of a batch that is fed, by a plan for its size and by one for any size, with regions and without."""
    parts = {"data": partial(norm_data, rows, 768), "program": norm}
    plain: tuple[str, dict[str, object]] = ("any_size", {"shape_policy": "generic"})
    of_any_size = ("llvm_any_size", {**LLVM[1], "shape_policy": "generic"})
    builders = {
        **session_builders(partial(_fed, **parts), [LLVM, of_any_size, plain]),
        "numpy": partial(_numpy, **parts),
    }
    bars = (
        Bar("P3", ("graphdock/llvm",), 1.5, subject="graphdock/llvm_any_size", note="a plan for the size"),
        Bar("P3", ("graphdock/any_size",), 0.7, subject="graphdock/llvm_any_size", note="unfused"),
    )
    return Program(f"any_size_{rows}", f"layer norm of [?, 768], {rows} rows", builders, bars, rtol=1e-4, atol=1e-4)


def adam_session(tf: ModuleType, open_session: Callable[[], Any], size: int) -> Case:
    """An update of one variable by a gradient that lies in another."""
    weights = tf.get_variable("w", initializer=_numbers(size), use_resource=True)
    gradient = tf.get_variable("g", initializer=_numbers(size, seed=1), use_resource=True, trainable=False)
    optimizer = tf.train.AdamOptimizer(RATE, BETA1, BETA2, EPSILON)
    train = optimizer.apply_gradients([(gradient.read_value(), weights)])
    session = open_session()
    session.run(tf.global_variables_initializer())
    return Case(lambda: session.run(train), lambda: [_probe(session.run(weights))])


def _adam(m: Any, w: Any, g: Any, first: Any, second: Any, step: Any) -> tuple[Any, ...]:
    first = BETA1 * first + (1 - BETA1) * g
    second = BETA2 * second + (1 - BETA2) * g * g
    rate = RATE * m.sqrt(1 - BETA2**step) / (1 - BETA1**step)
    return w - rate * first / (m.sqrt(second) + EPSILON), first, second, step + 1


def adam_numpy(size: int) -> Case:
    """The formula over whole arrays."""
    import numpy as np

    state: list[Any] = [_numbers(size), np.zeros(size, "float32"), np.zeros(size, "float32"), np.float32(1)]
    g = _numbers(size, seed=1)

    def call() -> None:
        state[:] = _adam(np, state[0], g, *state[1:])

    return Case(call, lambda: [_probe(state[0])])


def adam_jax(size: int) -> Case:
    """jax.jit with the state donated."""
    import jax
    from jax import numpy as jnp

    state: list[Any] = [jnp.asarray(_numbers(size)), jnp.zeros(size), jnp.zeros(size), jnp.float32(1)]
    g = jnp.asarray(_numbers(size, seed=1))
    compiled = jax.jit(lambda w, a, b, step, g: _adam(jnp, w, g, a, b, step), donate_argnums=(0, 1, 2, 3))

    def call() -> None:
        state[:] = jax.block_until_ready(compiled(*state, g))

    return Case(call, lambda: [_probe(state[0])])


def adam_torch(size: int) -> Case:
    """torch's own fused optimizer."""
    import torch

    weights = torch.nn.Parameter(torch.from_numpy(_numbers(size)))
    weights.grad = torch.from_numpy(_numbers(size, seed=1))
    optimizer = torch.optim.Adam([weights], RATE, (BETA1, BETA2), EPSILON, fused=True)
    return Case(optimizer.step, lambda: [_probe(weights.detach().numpy())])


def _adam_program(size: int) -> Program:
    builders = {
        **session_builders(partial(adam_session, size=size), [LLVM], ["xla"]),
        "numpy": partial(adam_numpy, size),
        "torch": partial(adam_torch, size),
        "jax": partial(adam_jax, size),
    }
    bar = Bar("P3", COMPILERS, 1.0, subject="graphdock/llvm")
    return Program("adam", f"Adam's update of {size} elements", builders, (bar,), rtol=1e-3, atol=1e-5)


PROGRAMS = (
    _program("gelu_1m", "GELU of 1M elements", partial(gelu_data, 1 << 20), gelu, "P3", 0.85, 1.6),
    _program("gelu_16m", "GELU of 16M elements", partial(gelu_data, 1 << 24), gelu, "P3", 0.85, 1.6),
    _program("layer_norm", "layer norm of [4096, 768]", partial(norm_data, 4096, 768), norm, "P3", 1.0),
    _program(
        "cross_entropy",
        "softmax cross-entropy of [128, 1000] and its gradient",
        partial(entropy_data, 128, 1000),
        entropy,
        "P3",
        1.0,
    ),
    _adam_program(10_000_000),
    _any_program(32),
    _any_program(4096),
)

if __name__ == "__main__":
    sys.exit(benchmark_main("fused", PROGRAMS))
