"""Random programs of conds, loops and arithmetic: values and gradients against PyTorch, where it is installed."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


class Mine:
    """The operations of a program, on the graph."""

    sin, exp, tanh = staticmethod(tf.sin), staticmethod(tf.exp), staticmethod(tf.tanh)
    matmul, total = staticmethod(tf.matmul), staticmethod(tf.reduce_sum)

    @staticmethod
    def choose(x, threshold, f, g):
        return tf.cond(tf.reduce_sum(x) > threshold, lambda: f(x), lambda: g(x))

    @staticmethod
    def repeat(x, times, f):
        return tf.while_loop(lambda i, y: i < times, lambda i, y: (i + 1, f(y)), [0, x])[1]

    @staticmethod
    def until(x, bound, f):
        small = lambda i, y: tf.logical_and(i < 6, tf.reduce_sum(tf.abs(y)) < bound)  # noqa: E731
        return tf.while_loop(small, lambda i, y: (i + 1, f(y)), [0, x])[1]


class Torch:
    """The same, eagerly."""

    sin, exp, tanh = torch.sin, torch.exp, torch.tanh
    matmul, total = torch.matmul, torch.sum

    @staticmethod
    def choose(x, threshold, f, g):
        return f(x) if float(x.sum()) > threshold else g(x)

    @staticmethod
    def repeat(x, times, f):
        for _ in range(times):
            x = f(x)
        return x

    @staticmethod
    def until(x, bound, f):
        i = 0
        while i < 6 and float(x.abs().sum()) < bound:
            x, i = f(x), i + 1
        return x


def program(rng, depth):
    """A function (operations, weights) -> (value -> value)."""
    kind = int(rng.integers(0, 7 if depth else 4))
    k, c = int(rng.integers(1, 4)), float(rng.normal())
    if kind == 0:
        return lambda o, w: lambda x: o.sin(x) * c + x * w[0]
    if kind == 1:
        return lambda o, w: lambda x: o.tanh(o.matmul(x, w[1]))
    if kind == 2:
        return lambda o, w: lambda x: o.exp(o.tanh(x)) / 2.0 - w[0]
    if kind == 3:
        return lambda o, w: lambda x: x * o.tanh(o.total(x)) + c
    a, b = program(rng, depth - 1), program(rng, depth - 1)
    if kind == 4:
        return lambda o, w: lambda x: o.choose(x, c, a(o, w), b(o, w))
    if kind == 5:
        return lambda o, w: lambda x: o.repeat(x, k, lambda y: b(o, w)(a(o, w)(y)))
    return lambda o, w: lambda x: o.until(x, 3.0 + c, lambda y: a(o, w)(y) + 0.5 * b(o, w)(y) + y)


@pytest.mark.parametrize("seed", range(40))
def test_values_and_gradients(seed):
    rng = np.random.default_rng(seed)
    made = program(rng, 3)
    x0, w0, w1 = rng.normal(size=(2, 3)), rng.normal(size=(3,)), rng.normal(size=(3, 3))
    leaves = [torch.tensor(v, requires_grad=True) for v in (x0, w0, w1)]
    y = made(Torch, leaves[1:])(leaves[0])
    (y * y).sum().backward()
    want = [y.detach().numpy(), *(np.zeros(v.shape) if v.grad is None else v.grad.numpy() for v in leaves)]
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float64, [2, 3] if seed % 2 else [None, 3])
        weights = [tf.Variable(w0), tf.Variable(w1)]
        out = made(Mine, weights)(x)
        grads = tf.gradients(tf.reduce_sum(out * out), [x, *weights], unconnected_gradients="zero")
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            got = sess.run([out, *grads], {x: x0})
    for mine, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-10)
