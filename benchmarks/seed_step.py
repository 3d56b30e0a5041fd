"""P1: one training step of the seeds' program, softmax regression 784 to 10 with Adagrad, as one session.run.

NumPy is the same step by hand, every result written to a buffer made beforehand (`out=`). PyTorch and JAX compile the
whole step, PyTorch with the backward pass written out (autograd costs it 3 times as much), JAX with its state donated.
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

RATE, MOMENTUM, ACCUMULATOR = 0.01, 0.9, 0.1


def softmax_data(feed_dtype: str = "float32") -> tuple[Any, Any, Any, Any]:
    """x [10, 784] and y [10, 10] (distributions) in `feed_dtype`; W [784, 10] and b [10] in float32."""
    import numpy as np

    random = np.random.RandomState(0)
    x = random.normal(size=(10, 784)).astype(feed_dtype)
    y = random.uniform(size=(10, 10))
    w = random.uniform(-0.1, 0.1, size=(784, 10)).astype("float32")
    return x, (y / y.sum(1, keepdims=True)).astype(feed_dtype), w, np.zeros(10, "float32")


def softmax_session(
    tf: ModuleType, open_session: Callable[[], Any], feed_dtype: str = "float32", with_loss: bool = True
) -> Case:
    """The seeds' listing; the step returns the loss too, or (as the listing has it) nothing."""
    x_data, y_data, w0, b0 = softmax_data(feed_dtype)
    x = tf.placeholder(tf.float32, [10, 784])
    y = tf.placeholder(tf.float32, [10, 10])
    w, b = tf.Variable(w0), tf.Variable(b0)
    loss = tf.nn.softmax_cross_entropy_with_logits(logits=tf.matmul(x, w) + b, labels=y)
    train = tf.train.AdagradOptimizer(RATE).minimize(loss)
    session = open_session()
    session.run(tf.global_variables_initializer())
    fetches, feed = ([loss, train] if with_loss else train), {x: x_data, y: y_data}
    return Case(lambda: session.run(fetches, feed), lambda: session.run([w, b, loss], feed))


def softmax_numpy(feed_dtype: str = "float32", with_loss: bool = True) -> Case:
    """The step by hand: 19 calls with `out=`, and two casts where the feed is float64."""
    import numpy as np

    x_data, y_data, w, b = softmax_data(feed_dtype)
    rate = np.array(RATE, "float32")
    aw, ab = np.full_like(w, ACCUMULATOR), np.full_like(b, ACCUMULATOR)
    x32, y32, z, e, d = (np.empty(shape, "float32") for shape in [(10, 784), *[(10, 10)] * 4])
    column, log, loss = np.empty((10, 1), "float32"), np.empty((10, 1), "float32"), np.empty(10, "float32")
    gw, tw, gb, tb = np.empty_like(w), np.empty_like(w), np.empty_like(b), np.empty_like(b)

    def forward() -> tuple[Any, Any]:
        x, y = x_data, y_data
        if x.dtype != np.float32:
            np.copyto(x32, x, "same_kind")
            np.copyto(y32, y, "same_kind")
            x, y = x32, y32
        np.matmul(x, w, z)
        np.add(z, b, z)
        np.maximum.reduce(z, 1, None, column, True)
        np.subtract(z, column, z)
        np.exp(z, e)
        np.add.reduce(e, 1, None, column, True)
        if with_loss:
            np.log(column, log)
            np.subtract(log, z, d)
            np.multiply(d, y, d)
            np.add.reduce(d, 1, None, loss)
        return x, y

    def call() -> Any:
        x, y = forward()
        np.divide(e, column, d)
        np.subtract(d, y, d)
        np.matmul(x.T, d, gw)
        np.add.reduce(d, 0, None, gb)
        for g, a, t, v in ((gw, aw, tw, w), (gb, ab, tb, b)):
            np.multiply(g, g, t)
            np.add(a, t, a)
            np.sqrt(a, t)
            np.divide(g, t, t)
            np.multiply(t, rate, t)
            np.subtract(v, t, v)
        return loss

    def values() -> list[Any]:
        nonlocal with_loss
        timed, with_loss = with_loss, True
        forward()
        with_loss = timed
        return [w, b, loss]

    return Case(call, values)


def softmax_torch(feed_dtype: str = "float32", with_loss: bool = True) -> Case:
    """torch.compile of the whole step, backward pass by hand, parameters updated in place."""
    import torch

    x_data, y_data, w0, b0 = softmax_data(feed_dtype)
    w, b = torch.from_numpy(w0), torch.from_numpy(b0)
    aw, ab = torch.full_like(w, ACCUMULATOR), torch.full_like(b, ACCUMULATOR)

    def loss_of(x: Any, y: Any, w: Any, b: Any) -> tuple[Any, Any]:
        logs = torch.log_softmax(x @ w + b, 1)
        return -(logs * y).sum(1), logs

    def step(x: Any, y: Any, w: Any, b: Any, aw: Any, ab: Any) -> Any:
        x, y = x.to(torch.float32), y.to(torch.float32)
        loss, logs = loss_of(x, y, w, b)
        d = logs.exp() - y
        for g, a, v in ((x.T @ d, aw, w), (d.sum(0), ab, b)):
            a.add_(g * g)
            v.sub_(RATE * g / a.sqrt())
        return loss if with_loss else None

    compiled = torch.compile(step)

    def call() -> Any:
        with torch.no_grad():
            return compiled(torch.from_numpy(x_data), torch.from_numpy(y_data), w, b, aw, ab)

    def values() -> list[Any]:
        x, y = torch.from_numpy(x_data).float(), torch.from_numpy(y_data).float()
        return [w.numpy(), b.numpy(), loss_of(x, y, w, b)[0].numpy()]

    return Case(call, values)


def softmax_jax(feed_dtype: str = "float32", with_loss: bool = True) -> Case:
    """jax.jit of the whole step with donated state; the call waits for the result."""
    import jax
    import jax.numpy as jnp

    x_data, y_data, w0, b0 = softmax_data(feed_dtype)

    def loss_of(parameters: Any, x: Any, y: Any) -> Any:
        w, b = parameters
        return -(jax.nn.log_softmax(x @ w + b) * y).sum(1)

    def step(parameters: Any, accumulators: Any, x: Any, y: Any) -> Any:
        loss, pull = jax.vjp(lambda p: loss_of(p, x, y), parameters)
        (gradients,) = pull(jnp.ones_like(loss))
        accumulators = [a + g * g for a, g in zip(accumulators, gradients, strict=True)]
        parameters = [p - RATE * g / jnp.sqrt(a) for p, g, a in zip(parameters, gradients, accumulators, strict=True)]
        return parameters, accumulators, (loss if with_loss else None)

    compiled = jax.jit(step, donate_argnums=(0, 1))
    state = [[jnp.asarray(w0), jnp.asarray(b0)], [jnp.full_like(v, ACCUMULATOR) for v in (w0, b0)]]

    def call() -> Any:
        state[0], state[1], loss = compiled(state[0], state[1], x_data, y_data)
        return jax.block_until_ready(loss if with_loss else state[0])

    return Case(call, lambda: [*state[0], loss_of(state[0], x_data, y_data)])


def layers_data() -> tuple[Any, ...]:
    """x [32, 784], y [32, 10] one-hot, and W1, b1, W2, b2 of a 784-128-10 network, float32."""
    import numpy as np

    random = np.random.RandomState(1)
    x = random.normal(size=(32, 784)).astype("float32")
    y = np.eye(10, dtype="float32")[random.randint(10, size=32)]
    w1 = (random.normal(size=(784, 128)) * 0.05).astype("float32")
    w2 = (random.normal(size=(128, 10)) * 0.1).astype("float32")
    return x, y, w1, np.zeros(128, "float32"), w2, np.zeros(10, "float32")


def layers_session(tf: ModuleType, open_session: Callable[[], Any]) -> Case:
    """Two layers, mean cross-entropy, momentum."""
    x_data, y_data, *initial = layers_data()
    x = tf.placeholder(tf.float32, [32, 784])
    y = tf.placeholder(tf.float32, [32, 10])
    w1, b1, w2, b2 = variables = [tf.Variable(value) for value in initial]
    hidden = tf.nn.relu(tf.matmul(x, w1) + b1)
    logits = tf.matmul(hidden, w2) + b2
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=logits, labels=y))
    train = tf.train.MomentumOptimizer(RATE, MOMENTUM).minimize(loss)
    session = open_session()
    session.run(tf.global_variables_initializer())
    fetches, feed = [loss, train], {x: x_data, y: y_data}
    return Case(lambda: session.run(fetches, feed), lambda: session.run([*variables, loss], feed))


def layers_numpy() -> Case:
    """The two-layer step by hand with `out=`."""
    import numpy as np

    x, y, *variables = layers_data()
    w1, b1, w2, b2 = variables
    rate, momentum, scale = (np.array(value, "float32") for value in (RATE, MOMENTUM, 1 / 32))
    h, dh = np.empty((32, 128), "float32"), np.empty((32, 128), "float32")
    mask = np.empty((32, 128), bool)
    z, e, d = (np.empty((32, 10), "float32") for _ in range(3))
    column, log = np.empty((32, 1), "float32"), np.empty((32, 1), "float32")
    zero, loss = np.zeros((), "float32"), np.empty((), "float32")
    gradients, scratch = [np.empty_like(v) for v in variables], [np.empty_like(v) for v in variables]
    moments = [np.zeros_like(v) for v in variables]
    slots = list(zip(variables, gradients, moments, scratch, strict=True))
    gw1, gb1, gw2, gb2 = gradients

    def forward() -> None:
        np.matmul(x, w1, h)
        np.add(h, b1, h)
        np.maximum(h, zero, h)
        np.matmul(h, w2, z)
        np.add(z, b2, z)
        np.maximum.reduce(z, 1, None, column, True)
        np.subtract(z, column, z)
        np.exp(z, e)
        np.add.reduce(e, 1, None, column, True)
        np.log(column, log)
        np.subtract(log, z, d)
        np.multiply(d, y, d)
        np.add.reduce(d, None, None, loss)
        np.multiply(loss, scale, loss)

    def call() -> Any:
        forward()
        np.divide(e, column, d)
        np.subtract(d, y, d)
        np.multiply(d, scale, d)
        np.matmul(h.T, d, gw2)
        np.add.reduce(d, 0, None, gb2)
        np.matmul(d, w2.T, dh)
        np.greater(h, zero, mask)
        np.multiply(dh, mask, dh)
        np.matmul(x.T, dh, gw1)
        np.add.reduce(dh, 0, None, gb1)
        for v, g, m, t in slots:
            np.multiply(m, momentum, m)
            np.add(m, g, m)
            np.multiply(m, rate, t)
            np.subtract(v, t, v)
        return loss

    def values() -> list[Any]:
        forward()
        return [*variables, loss]

    return Case(call, values)


def layers_torch() -> Case:
    """torch.compile of the two-layer step, backward pass by hand."""
    import torch

    x_data, y_data, *initial = layers_data()
    variables = [torch.from_numpy(value) for value in initial]
    moments = [torch.zeros_like(value) for value in variables]

    def forward(x: Any, y: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> tuple[Any, Any, Any]:
        h = torch.relu(x @ w1 + b1)
        logs = torch.log_softmax(h @ w2 + b2, 1)
        return -(logs * y).sum(1).mean(), h, logs

    def step(x: Any, y: Any, variables: Any, moments: Any) -> Any:
        loss, h, logs = forward(x, y, *variables)
        d = (logs.exp() - y) * (1 / 32)
        dh = (d @ variables[2].T) * (h > 0)
        for v, m, g in zip(variables, moments, (x.T @ dh, dh.sum(0), h.T @ d, d.sum(0)), strict=True):
            m.mul_(MOMENTUM).add_(g)
            v.sub_(RATE * m)
        return loss

    compiled = torch.compile(step)

    def call() -> Any:
        with torch.no_grad():
            return compiled(torch.from_numpy(x_data), torch.from_numpy(y_data), variables, moments)

    def values() -> list[Any]:
        loss = forward(torch.from_numpy(x_data), torch.from_numpy(y_data), *variables)[0]
        return [*(value.numpy() for value in variables), loss.numpy()]

    return Case(call, values)


def layers_jax() -> Case:
    """jax.jit of the two-layer step with donated state."""
    import jax
    import jax.numpy as jnp

    x_data, y_data, *initial = layers_data()

    def loss_of(variables: Any, x: Any, y: Any) -> Any:
        w1, b1, w2, b2 = variables
        return -(jax.nn.log_softmax(jax.nn.relu(x @ w1 + b1) @ w2 + b2) * y).sum(1).mean()

    def step(variables: Any, moments: Any, x: Any, y: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(variables, x, y)
        moments = [MOMENTUM * m + g for m, g in zip(moments, gradients, strict=True)]
        return [v - RATE * m for v, m in zip(variables, moments, strict=True)], moments, loss

    compiled = jax.jit(step, donate_argnums=(0, 1))
    state = [[jnp.asarray(value) for value in initial], [jnp.zeros_like(value) for value in initial]]

    def call() -> Any:
        state[0], state[1], loss = compiled(state[0], state[1], x_data, y_data)
        return jax.block_until_ready(loss)

    return Case(call, lambda: [*state[0], loss_of(state[0], x_data, y_data)])


def _softmax(name: str, summary: str, feed_dtype: str, with_loss: bool, bars: tuple[Bar, ...]) -> Program:
    shape = {"feed_dtype": feed_dtype, "with_loss": with_loss}
    builders = session_builders(partial(softmax_session, **shape), [("no_passes", {"passes": False}), LLVM])
    builders |= {"numpy": partial(softmax_numpy, **shape), "torch": partial(softmax_torch, **shape)}
    builders["jax"] = partial(softmax_jax, **shape)
    return Program(name, summary, builders, bars, check_calls=20, rtol=1e-3, atol=1e-5)


BARS = (
    Bar("P1", ("tensorflow",), 0.22, note="first bar"),
    Bar("P1", ("tensorflow",), 0.19, note="with the planner's passes"),
    Bar("P1", ("torch",), 0.85, note="first bar"),
    Bar("P1", ("torch",), 0.75, note="with the planner's passes"),
    Bar("P1", ("numpy",), 1.15, note="the same step by hand"),
    Bar("P1", ("torch",), 0.25, subject="graphdock/llvm", note="compiled"),
    Bar("P1", ("graphdock",), 0.5, subject="graphdock/llvm", note="compiled"),
)

PROGRAMS = (
    _softmax(
        "softmax", "softmax regression 784-10, batch 10, Adagrad, float32 feed, loss fetched", "float32", True, BARS
    ),
    _softmax("softmax_train_only", "the same, only train_op fetched, as in the seeds' listing", "float32", False, BARS),
    _softmax("softmax_float64", "the same with loss, float64 feed", "float64", True, ()),
    Program(
        "layers",
        "784-128-10 with relu, batch 32, momentum, float32 feed, loss fetched",
        {
            **session_builders(layers_session),
            "numpy": layers_numpy,
            "torch": layers_torch,
            "jax": layers_jax,
        },
        (
            Bar("P1", ("numpy",), 1.15, note="second shape"),
            Bar("P1", ("torch",), 1.0, note="second shape"),
        ),
        check_calls=20,
        rtol=1e-3,
        atol=1e-5,
    ),
)

if __name__ == "__main__":
    sys.exit(benchmark_main("seed_step", PROGRAMS))
