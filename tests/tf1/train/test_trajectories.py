"""Optimizers against trajectories computed another way: the papers' formulas in Python floats, and torch where it agrees.

The problem is logistic regression on eight points, whose gradient is written out by hand here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import graphdock as tf
import numpy as np
import pytest

STEPS = 60
POINTS = [[math.sin(i * 1.3 + j) for j in range(3)] for i in range(8)]
TARGETS = [1.0 if i % 3 == 0 else 0.0 for i in range(8)]
START = [0.5, -0.25, 0.125]


def gradient(w: list[float]) -> list[float]:
    """Of the mean cross-entropy of sigmoid(x . w)."""
    total = [0.0] * 3
    for x, z in zip(POINTS, TARGETS, strict=True):
        p = 1.0 / (1.0 + math.exp(-sum(a * b for a, b in zip(x, w, strict=True))))
        total = [t + (p - z) * a / len(POINTS) for t, a in zip(total, x, strict=True)]
    return total


Rule = Callable[[], Iterator[Callable[[float, float], float]]]


def descent(lr: float) -> Any:
    return lambda w, g, s, t: w - lr * g


def momentum(lr: float, mu: float, nesterov: bool) -> Any:
    def rule(w: float, g: float, s: dict[str, float], t: int) -> float:
        s["a"] = mu * s.get("a", 0.0) + g
        return w - lr * (g + mu * s["a"] if nesterov else s["a"])

    return rule


def adagrad(lr: float, start: float) -> Any:
    def rule(w: float, g: float, s: dict[str, float], t: int) -> float:
        s["a"] = s.get("a", start) + g * g
        return w - lr * g / math.sqrt(s["a"])

    return rule


def adam(lr: float, b1: float, b2: float, eps: float) -> Any:
    """Algorithm 1 of the paper in the order its section 2 recommends: epsilon is not scaled by the bias correction."""

    def rule(w: float, g: float, s: dict[str, float], t: int) -> float:
        s["m"] = b1 * s.get("m", 0.0) + (1 - b1) * g
        s["v"] = b2 * s.get("v", 0.0) + (1 - b2) * g * g
        rate = lr * math.sqrt(1 - b2**t) / (1 - b1**t)
        return w - rate * s["m"] / (math.sqrt(s["v"]) + eps)

    return rule


def adam_w(lr: float, decay: float) -> Any:
    inner = adam(lr, 0.9, 0.999, 1e-8)
    return lambda w, g, s, t: inner(w * (1 - lr * decay), g, s, t)


def rmsprop(lr: float, rho: float, mu: float, eps: float, centered: bool) -> Any:
    def rule(w: float, g: float, s: dict[str, float], t: int) -> float:
        s["ms"] = rho * s.get("ms", 1.0) + (1 - rho) * g * g
        s["mg"] = rho * s.get("mg", 0.0) + (1 - rho) * g
        spread = s["ms"] - s["mg"] ** 2 if centered else s["ms"]
        s["mom"] = mu * s.get("mom", 0.0) + lr * g / math.sqrt(spread + eps)
        return w - s["mom"]

    return rule


def ftrl(lr: float, power: float, l1: float, l2: float) -> Any:
    """Algorithm 1 of the paper, with any power of the sum: z is kept as the paper keeps it."""

    def rule(w: float, g: float, s: dict[str, float], t: int) -> float:
        before = s.get("n", 0.1)
        s["n"] = before + g * g
        s["z"] = s.get("z", 0.0) + g - (s["n"] ** -power - before**-power) / lr * w
        if abs(s["z"]) <= l1:
            return 0.0
        return (math.copysign(l1, s["z"]) - s["z"]) / (s["n"] ** -power / lr + 2 * l2)

    return rule


OPTIMIZERS: dict[str, tuple[Callable[[], Any], Any]] = {
    "descent": (lambda: tf.train.GradientDescentOptimizer(0.7), descent(0.7)),
    "momentum": (lambda: tf.train.MomentumOptimizer(0.3, 0.9), momentum(0.3, 0.9, False)),
    "nesterov": (lambda: tf.train.MomentumOptimizer(0.3, 0.9, use_nesterov=True), momentum(0.3, 0.9, True)),
    "adagrad": (lambda: tf.train.AdagradOptimizer(0.4), adagrad(0.4, 0.1)),
    "adagrad_start": (lambda: tf.train.AdagradOptimizer(0.4, 2.0), adagrad(0.4, 2.0)),
    "adam": (lambda: tf.train.AdamOptimizer(0.05), adam(0.05, 0.9, 0.999, 1e-8)),
    "adam_without_epsilon": (lambda: tf.train.AdamOptimizer(0.05, epsilon=0.0), adam(0.05, 0.9, 0.999, 0.0)),
    "adam_w": (lambda: tf.train.AdamWOptimizer(0.1, 0.05), adam_w(0.05, 0.1)),
    "rmsprop": (lambda: tf.train.RMSPropOptimizer(0.05, 0.9, 0.5, 1e-3), rmsprop(0.05, 0.9, 0.5, 1e-3, False)),
    "rmsprop_centered": (
        lambda: tf.train.RMSPropOptimizer(0.05, 0.9, 0.5, 1e-3, centered=True),
        rmsprop(0.05, 0.9, 0.5, 1e-3, True),
    ),
    "ftrl": (
        lambda: tf.train.FtrlOptimizer(0.4, l1_regularization_strength=0.05, l2_regularization_strength=0.01),
        ftrl(0.4, -0.5, 0.05, 0.01),
    ),
    "ftrl_power": (lambda: tf.train.FtrlOptimizer(0.4, -0.4), ftrl(0.4, -0.4, 0.0, 0.0)),
    "adam_betas": (lambda: tf.train.AdamOptimizer(0.05, 0.7, 0.9, 1e-3), adam(0.05, 0.7, 0.9, 1e-3)),
}


def expected(rule: Any) -> list[list[float]]:
    w, states, path = list(START), [{}, {}, {}], []
    for t in range(1, STEPS + 1):
        g = gradient(w)
        w = [rule(a, b, s, t) for a, b, s in zip(w, g, states, strict=True)]
        path.append(list(w))
    return path


def trained(make: Callable[[], Any], dtype: Any) -> np.ndarray:
    with tf.Graph().as_default():
        x = tf.constant(np.array(POINTS), dtype)
        z = tf.constant(np.array(TARGETS)[:, None], dtype)
        w = tf.Variable(tf.constant(np.array(START)[:, None], dtype), name="w")
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=z, logits=tf.matmul(x, w)))
        train_op = make().minimize(loss)
        path = []
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(STEPS):
                session.run(train_op)
                path.append(session.run(w)[:, 0])
    return np.array(path)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_float64_follows_the_formula(name: str) -> None:
    make, rule = OPTIMIZERS[name]
    np.testing.assert_allclose(trained(make, tf.float64), expected(rule), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_float32_follows_the_formula_to_a_millionth(name: str) -> None:
    make, rule = OPTIMIZERS[name]
    np.testing.assert_allclose(trained(make, tf.float32), expected(rule), rtol=3e-6, atol=1e-6)


TORCH: dict[str, Callable[[Any, Any], Any]] = {
    "descent": lambda torch, p: torch.optim.SGD(p, lr=0.7),
    "momentum": lambda torch, p: torch.optim.SGD(p, lr=0.3, momentum=0.9),
    "nesterov": lambda torch, p: torch.optim.SGD(p, lr=0.3, momentum=0.9, nesterov=True),
    "adagrad": lambda torch, p: torch.optim.Adagrad(p, lr=0.4, initial_accumulator_value=0.1, eps=0.0),
    # torch corrects the bias before it adds epsilon: without epsilon the two formulas coincide
    "adam_without_epsilon": lambda torch, p: torch.optim.Adam(p, lr=0.05, betas=(0.9, 0.999), eps=0.0),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", TORCH)
def test_float64_follows_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    w = torch.tensor(np.array(START)[:, None], dtype=torch.float64, requires_grad=True)
    optimizer = TORCH[name](torch, [w])
    x, z = torch.tensor(POINTS, dtype=torch.float64), torch.tensor(TARGETS, dtype=torch.float64)[:, None]
    path = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(x @ w, z).backward()
        optimizer.step()
        path.append(w.detach().numpy()[:, 0].copy())
    np.testing.assert_allclose(trained(OPTIMIZERS[name][0], tf.float64), path, rtol=1e-9)


def test_the_seeds_program_follows_its_formula() -> None:
    """Softmax regression with Adagrad, float64 feeds into a float32 graph, twenty steps."""
    rng = np.random.default_rng(0)
    start = rng.uniform(size=(784, 10)).astype(np.float32)
    batches = [(rng.normal(size=(10, 784)), rng.normal(size=(10, 10))) for _ in range(20)]
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [10, 784])
        y = tf.placeholder(tf.float32, [10, 10])
        w = tf.Variable(start)
        b = tf.Variable(tf.zeros([10]))
        loss = tf.nn.softmax_cross_entropy_with_logits(logits=tf.matmul(x, w) + b, labels=y)
        train_op = tf.train.AdagradOptimizer(0.01).minimize(loss)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for bx, by in batches:
                session.run(train_op, {x: bx, y: by})
            got_w, got_b = session.run([w, b])
    ww, wb = start.astype(np.float64), np.zeros(10)
    aw, ab = np.full((784, 10), 0.1), np.full(10, 0.1)
    for bx, by in batches:
        logits = bx @ ww + wb
        e = np.exp(logits - logits.max(1, keepdims=True))
        d = e / e.sum(1, keepdims=True) - by
        gw, gb = bx.T @ d, d.sum(0)
        aw, ab = aw + gw**2, ab + gb**2
        ww, wb = ww - 0.01 * gw / np.sqrt(aw), wb - 0.01 * gb / np.sqrt(ab)
    np.testing.assert_allclose(got_w, ww, rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(got_b, wb, rtol=2e-5, atol=2e-5)
