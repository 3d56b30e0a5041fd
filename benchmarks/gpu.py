"""Training steps on a GPU beside PyTorch and JAX, in one run: time per step, launch overhead, copies, products.

    python -m benchmarks.gpu [--programs mlp,transformer] [--seconds 3] [--out FILE]

Each program is one training step with its feeds on the host, as a program of a session has them; the peers copy the same arrays.
Every row is the median of steps after warm-up, in turns of all frameworks, and its ratio to graphdock's. What is not installed, or
fails, is a row that says so. Nothing here runs without a GPU.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

#: What a step does: runs once and returns when its loss is on the host.
Step = Callable[[], Any]
BATCH, WIDTH, STEPS_LONG = 256, 1024, 64


def _arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [(random.standard_normal(s) * 0.05).astype(np.float32) for s in shapes]


# -- the programs: shapes of the parameters, shapes of the feeds, and the loss in terms of a framework's functions

PROGRAMS: dict[str, tuple[list[tuple[int, ...]], list[tuple[int, ...]], Callable[..., Any]]] = {
    "mlp": (
        [(784, WIDTH), (WIDTH, WIDTH), (WIDTH, 10)],
        [(BATCH, 784), (BATCH, 10)],
        lambda f, p, x, y: f.mean(f.square(f.relu(f.relu(x @ p[0]) @ p[1]) @ p[2] - y)),
    ),
    "transformer": (
        [(WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)],
        [(8 * STEPS_LONG, WIDTH), (8 * STEPS_LONG, WIDTH)],
        lambda f, p, x, y: f.mean(f.square(f.block(x, p) - y)),
    ),
    "elementwise": (
        [(BATCH, 4096)],
        [(BATCH, 4096), (BATCH, 4096)],
        lambda f, p, x, y: f.mean(f.square(f.gelu(x * p[0]) + f.tanh(x) - y)),
    ),
}


def _block(f: Any, x: Any, p: Any) -> Any:
    """Attention of 8 sequences over all heads at once, then a layer of two products."""
    qkv = f.reshape(x @ p[0], (8, STEPS_LONG, 3, 16, WIDTH // 16))
    q, k, v = (f.heads(qkv[:, :, i]) for i in range(3))
    mixed = f.softmax(q @ f.swap(k) * 0.125) @ v
    x = x + f.reshape(f.heads(mixed), (8 * STEPS_LONG, WIDTH)) @ p[1]
    return x + f.gelu(x @ p[2]) @ p[3]


# -- the frameworks


def graphdock_step(name: str) -> Step:
    import graphdock as tf

    class F:
        mean, square, relu, tanh, softmax = tf.reduce_mean, tf.square, tf.nn.relu, tf.tanh, tf.nn.softmax
        reshape = staticmethod(tf.reshape)
        gelu = staticmethod(lambda x: 0.5 * x * (1.0 + tf.erf(x * 0.7071067811865476)))
        heads = staticmethod(lambda x: tf.transpose(x, [0, 2, 1, 3]))
        swap = staticmethod(lambda x: tf.transpose(x, [0, 1, 3, 2]))
        block = classmethod(_block)

    parameters, feeds, loss_of = PROGRAMS[name]
    with tf.Graph().as_default() as graph:
        inputs = [tf.placeholder(tf.float32, s) for s in feeds]
        variables = [tf.Variable(a) for a in _arrays(*parameters)]
        loss = loss_of(F, [v + 0.0 for v in variables], *inputs)
        train = tf.train.GradientDescentOptimizer(1e-3).minimize(loss)
        init = tf.global_variables_initializer()
    session = tf.Session(graph=graph, config=tf.SessionConfig(backends=("cuda", "cpu")))
    session.run(init)
    call = session.make_callable([loss, train], feed_list=inputs)
    arrays = _arrays(*feeds)
    return lambda: call(*arrays)


def torch_step(name: str, mode: str) -> Step:
    import torch
    import torch.nn.functional as nn

    class F:
        mean, square, relu, tanh = torch.mean, torch.square, torch.relu, torch.tanh
        softmax = staticmethod(lambda x: torch.softmax(x, -1))
        reshape = staticmethod(torch.reshape)
        gelu = staticmethod(nn.gelu)
        heads = staticmethod(lambda x: x.permute(0, 2, 1, 3))
        swap = staticmethod(lambda x: x.transpose(-1, -2))
        block = classmethod(_block)

    parameters, feeds, loss_of = PROGRAMS[name]
    weights = [torch.tensor(a, device="cuda", requires_grad=True) for a in _arrays(*parameters)]

    def loss(*inputs: Any) -> Any:
        return loss_of(F, weights, *inputs)

    compiled = loss if mode == "eager" else torch.compile(loss, mode=None if mode == "compile" else "reduce-overhead")
    arrays = [torch.from_numpy(a).pin_memory() for a in _arrays(*feeds)]
    optimizer = torch.optim.SGD(weights, 1e-3)

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        found = compiled(*[a.to("cuda", non_blocking=True) for a in arrays])
        found.backward()
        optimizer.step()
        return found.item()

    return step


def jax_step(name: str) -> Step:
    import jax
    import jax.numpy as jnp

    class F:
        mean, square, tanh, softmax = jnp.mean, jnp.square, jnp.tanh, jax.nn.softmax
        relu = staticmethod(jax.nn.relu)
        reshape = staticmethod(jnp.reshape)
        gelu = staticmethod(lambda x: jax.nn.gelu(x, approximate=False))
        heads = staticmethod(lambda x: jnp.transpose(x, (0, 2, 1, 3)))
        swap = staticmethod(lambda x: jnp.swapaxes(x, -1, -2))
        block = classmethod(_block)

    parameters, feeds, loss_of = PROGRAMS[name]
    state = {"weights": [jnp.asarray(a) for a in _arrays(*parameters)]}

    @jax.jit
    def update(weights: Any, *inputs: Any) -> Any:
        value, gradients = jax.value_and_grad(lambda w: loss_of(F, w, *inputs))(weights)
        return value, [w - 1e-3 * g for w, g in zip(weights, gradients, strict=True)]

    arrays = _arrays(*feeds)

    def step() -> Any:
        value, state["weights"] = update(state["weights"], *arrays)
        return float(value)

    return step


FRAMEWORKS: dict[str, Callable[[str], Step]] = {
    "graphdock": graphdock_step,
    "torch eager": lambda name: torch_step(name, "eager"),
    "torch.compile": lambda name: torch_step(name, "compile"),
    "torch.compile, CUDA graphs": lambda name: torch_step(name, "graphs"),
    "jax.jit": jax_step,
}


def measure(steps: dict[str, Step], seconds: float) -> dict[str, float]:
    """Median seconds per step, in turns of a few steps each."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    until = time.perf_counter() + seconds * len(steps)
    while time.perf_counter() < until:
        for name, step in steps.items():
            for _ in range(5):
                begin = time.perf_counter()
                step()
                times[name].append(time.perf_counter() - begin)
    return {name: statistics.median(found) for name, found in times.items()}


def device_facts() -> list[str]:
    """What the device itself does: null step, copies both ways."""
    import graphdock as tf

    lines = []
    config = tf.SessionConfig(backends=("cuda", "cpu"))
    for label, count in (("null step (feed, add, fetch of 1 float)", 1), ("256 MiB there and back", 1 << 26)):
        with tf.Graph().as_default() as graph:
            x = tf.placeholder(tf.float32, [count])
            y = x + 1.0
        with tf.Session(graph=graph, config=config) as session:
            array = np.ones(count, np.float32)
            call = session.make_callable(y, feed_list=[x])
            times = []
            for _ in range(200 if count == 1 else 8):
                begin = time.perf_counter()
                call(array)
                times.append(time.perf_counter() - begin)
            best = min(times)
            speed = "" if count == 1 else f", {2 * array.nbytes / best / 1e9:.1f} GB/s"
            lines.append(f"{label}: {best * 1e6:.1f} us{speed}")
    return lines


def main(args: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--out")
    given = parser.parse_args(args)
    from graphdock.errors import GraphdockError
    from graphdock.plugin.host import default_host

    try:
        default_host().open_device("/device:cuda:0")
    except GraphdockError as error:
        print(f"nothing to measure: {error.message}", file=sys.stderr)
        return 1
    lines = device_facts()
    for name in given.programs.split(","):
        steps, absent = {}, {}
        for framework, make in FRAMEWORKS.items():
            try:
                step = make(name)
                for _ in range(5):
                    step()
            except Exception as error:  # noqa: BLE001 - a peer that can't run is a row that says so
                if framework == "graphdock":
                    raise
                absent[framework] = f"{type(error).__name__}: {str(error).partition(chr(10))[0][:80]}"
                continue
            steps[framework] = step
        medians = measure(steps, given.seconds)
        own = medians["graphdock"]
        for framework, value in medians.items():
            lines.append(f"{name:12} {framework:28} {value * 1e6:10.1f} us   graphdock / it = {own / value:.2f}")
        lines += [f"{name:12} {framework:28} {why}" for framework, why in absent.items()]
    print("\n".join(lines))
    if given.out:
        with open(given.out, "w") as file:
            file.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
