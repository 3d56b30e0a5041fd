"""``graphdock demo``: train two networks on real handwritten digits, on whatever backend the configuration names.

Everything goes through the public API, so this file is also a small example of it.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import click

from graphdock.cli.options import file_options
from graphdock.errors import UnavailableError

__all__ = ["command"]

BATCH = 32


class Digits(NamedTuple):
    """Images as rows of 64 floats from 0 to 1, labels as one-hot rows of 10; a quarter is held out."""

    train_x: Any
    train_y: Any
    test_x: Any
    test_y: Any


def load_digits() -> Digits:
    """scikit-learn's copy of the UCI handwritten digits (1797 images of 8 by 8), shuffled with a fixed seed.

    Raises:
      UnavailableError: scikit-learn is not installed.
    """
    import numpy as np

    try:
        from sklearn.datasets import load_digits as load
    except ModuleNotFoundError:
        raise UnavailableError(
            "the demo's digits come with scikit-learn, which is not installed", hint="pip install 'graphdock[examples]'"
        ) from None
    data = load()
    order = np.random.default_rng(0).permutation(len(data.target))
    x = (data.data[order] / 16.0).astype(np.float32)
    y = np.eye(10, dtype=np.float32)[data.target[order]]
    held_out = len(x) // 4
    return Digits(x[held_out:], y[held_out:], x[:held_out], y[:held_out])


class Network(NamedTuple):
    """The tensors and operations of one network."""

    x: Any
    y: Any
    loss: Any
    accuracy: Any
    train_op: Any


def softmax_regression(tf: Any) -> Network:
    """The seeds' program: one layer, trained with Adagrad."""
    x = tf.placeholder(tf.float32, [None, 64], name="x")
    y = tf.placeholder(tf.float32, [None, 10], name="y")
    W = tf.Variable(tf.zeros([64, 10]), name="W")
    b = tf.Variable(tf.zeros([10]), name="b")
    return _finish(tf, x, y, tf.matmul(x, W) + b, tf.train.AdagradOptimizer(0.1))


def two_layers(tf: Any) -> Network:
    """A hidden layer of 64 rectified units, trained with Adam."""
    x = tf.placeholder(tf.float32, [None, 64], name="x")
    y = tf.placeholder(tf.float32, [None, 10], name="y")
    W1 = tf.Variable(tf.truncated_normal([64, 64], stddev=0.18, seed=1), name="W1")
    b1 = tf.Variable(tf.zeros([64]), name="b1")
    W2 = tf.Variable(tf.truncated_normal([64, 10], stddev=0.18, seed=2), name="W2")
    b2 = tf.Variable(tf.zeros([10]), name="b2")
    hidden = tf.nn.relu(tf.matmul(x, W1) + b1)
    return _finish(tf, x, y, tf.matmul(hidden, W2) + b2, tf.train.AdamOptimizer(0.003))


def _finish(tf: Any, x: Any, y: Any, logits: Any, optimizer: Any) -> Network:
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=logits, labels=y))
    right = tf.equal(tf.argmax(logits, 1), tf.argmax(y, 1))
    return Network(x, y, loss, tf.reduce_mean(tf.cast(right, tf.float32)), optimizer.minimize(loss))


def training_step() -> tuple[Any, dict[Any, Any]]:
    """A step of two layers, with a batch of noise: for ``graphdock profile graphdock.cli.demo:training_step``."""
    import numpy as np

    import graphdock as tf

    net = two_layers(tf)
    noise = np.random.default_rng(0)
    images = noise.random((BATCH, 64), np.float32)
    return net.train_op, {net.x: images, net.y: np.eye(10, dtype=np.float32)[noise.integers(0, 10, BATCH)]}


def train(name: str, build: Any, digits: Digits, steps: int, config: Any, bar: Any) -> tuple[float, float, Any]:
    """Train one network; returns (accuracy on held-out digits, steps per second, explanation of the training step)."""
    import numpy as np

    import graphdock as tf

    order = np.random.default_rng(1)
    with tf.Graph().as_default():
        net = build(tf)
        with tf.Session(config=config) as sess:
            sess.run(tf.global_variables_initializer())
            task = bar.add_task(name, total=steps, loss="")
            start = time.perf_counter()
            for step in range(steps):
                pick = order.integers(0, len(digits.train_x), BATCH)
                feed = {net.x: digits.train_x[pick], net.y: digits.train_y[pick]}
                if step % 100 == 99:
                    loss, _ = sess.run([net.loss, net.train_op], feed)
                    bar.update(task, completed=step + 1, loss=f"loss {loss:.3f}")
                else:
                    sess.run(net.train_op, feed)
            seconds = time.perf_counter() - start
            bar.update(task, completed=steps)
            test = {net.x: digits.test_x, net.y: digits.test_y}
            accuracy = float(sess.run(net.accuracy, test))
            return accuracy, steps / seconds, sess.explain(net.train_op, feed)


@click.command(
    help="Train softmax regression and a two-layer network on scikit-learn's handwritten digits; print the accuracy on "
    "held-out digits, steps per second, and which plugin's kernel ran each op."
)
@click.option("--backends", help="Comma-separated, the most wanted first, e.g. toy,cpu.")
@file_options
@click.option("--steps", default=3000, show_default=True, help="Training steps per network.")
@click.pass_context
def command(ctx: click.Context, backends: str | None, steps: int) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from graphdock.session.config import effective_config

    given = {"backends": backends} if backends else None
    config = effective_config(None, given)
    digits = load_digits()
    console = Console()
    console.print(
        f"{len(digits.train_x)} digits to learn from, {len(digits.test_x)} held out · "
        f"backends={','.join(config.backends)} ({config.source('backends')})"
    )
    results = []
    columns = (
        TextColumn("{task.description:>18}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[loss]}"),
    )
    with Progress(*columns, console=console) as bar:
        for name, build in (("softmax regression", softmax_regression), ("two layers", two_layers)):
            results.append((name, *train(name, build, digits, steps, config, bar)))
    for name, accuracy, rate, _ in results:
        console.print(f"{name:>18}: accuracy {accuracy:.4f} on held-out digits, {rate:,.0f} steps per second")
    console.print("\nOne training step of the two-layer network:", highlight=False)
    click.echo(str(results[-1][3]))
    if min(r[1] for r in results) < 0.95:
        click.echo(f"error: after {steps} steps a network is below 0.95 on held-out digits", err=True)
        ctx.exit(1)
