"""``graphdock demo``: train two networks on real handwritten digits, on whatever backend the configuration names.

Each has a folder of its own, with its checkpoints and an event file. Run again, it goes on from the last checkpoint. Everything
goes through the public API, so this file is also a small example of it.
"""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from typing import Any, NamedTuple

import click
from graphdock.contracts.command_line.options import file_options
from graphdock.errors import GraphdockError, UnavailableError

BATCH = 32
#: Where checkpoints and event files go, below the working directory.
LOGDIR = "graphdock-demo"
#: Steps from one summary, and from one checkpoint, to the next.
SEEN, SAVED = 100, 1000


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
    """The tensors and operations of one network. ``weights``: of the first layer, 64 rows."""

    x: Any
    y: Any
    loss: Any
    accuracy: Any
    train_op: Any
    weights: Any


def softmax_regression(tf: Any, step: Any = None) -> Network:
    """The seeds' program: one layer, trained with Adagrad. ``step`` counts updates, if it is given."""
    x = tf.placeholder(tf.float32, [None, 64], name="x")
    y = tf.placeholder(tf.float32, [None, 10], name="y")
    W = tf.Variable(tf.zeros([64, 10]), name="W")
    b = tf.Variable(tf.zeros([10]), name="b")
    return _finish(tf, x, y, tf.matmul(x, W) + b, tf.train.AdagradOptimizer(0.1), W, step)


def two_layers(tf: Any, step: Any = None) -> Network:
    """A hidden layer of 64 rectified units, trained with Adam."""
    x = tf.placeholder(tf.float32, [None, 64], name="x")
    y = tf.placeholder(tf.float32, [None, 10], name="y")
    W1 = tf.Variable(tf.truncated_normal([64, 64], stddev=0.18, seed=1), name="W1")
    b1 = tf.Variable(tf.zeros([64]), name="b1")
    W2 = tf.Variable(tf.truncated_normal([64, 10], stddev=0.18, seed=2), name="W2")
    b2 = tf.Variable(tf.zeros([10]), name="b2")
    hidden = tf.nn.relu(tf.matmul(x, W1) + b1)
    return _finish(tf, x, y, tf.matmul(hidden, W2) + b2, tf.train.AdamOptimizer(0.003), W1, step)


def _finish(tf: Any, x: Any, y: Any, logits: Any, optimizer: Any, weights: Any, step: Any) -> Network:
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=logits, labels=y))
    right = tf.equal(tf.argmax(logits, 1), tf.argmax(y, 1))
    accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
    return Network(x, y, loss, accuracy, optimizer.minimize(loss, global_step=step), weights)


def summaries_of(tf: Any, net: Network) -> Any:
    """Return what TensorBoard shows of a network: two curves, the weights as a histogram, and some of them as pictures."""
    tf.summary.scalar("loss", net.loss)
    tf.summary.scalar("accuracy", net.accuracy)
    tf.summary.histogram("weights", net.weights)
    pictures = tf.transpose(tf.reshape(net.weights, [8, 8, -1, 1]), [2, 0, 1, 3])
    tf.summary.image("weights_as_pictures", pictures, max_outputs=10)
    return tf.summary.merge_all()


def training_step() -> tuple[Any, dict[Any, Any]]:
    """A step of two layers, with a batch of noise: for ``graphdock profile graphdock_tf1.demo:training_step``."""
    import graphdock as tf
    import numpy as np

    net = two_layers(tf)
    noise = np.random.default_rng(0)
    images = noise.random((BATCH, 64), np.float32)
    return net.train_op, {net.x: images, net.y: np.eye(10, dtype=np.float32)[noise.integers(0, 10, BATCH)]}


class Trained(NamedTuple):
    """Results of a network: accuracy on held-out digits, steps per second, the step it began with, its step explained."""

    name: str
    accuracy: float
    rate: float
    began: int
    explained: Any


def train(name: str, build: Any, digits: Digits, steps: int, config: Any, bar: Any, folder: Path) -> Trained:
    """Train a network for some steps, from the last checkpoint of a folder if it has one. Saves, and writes an event file."""
    import graphdock as tf
    import numpy as np

    with tf.Graph().as_default():
        step = tf.train.create_global_step()
        net = build(tf, step)
        summaries = summaries_of(tf, net)
        saver = tf.train.Saver(max_to_keep=2)
        with tf.Session(config=config) as sess, tf.summary.FileWriter(str(folder)) as writer:
            began = _begin(tf, sess, saver, folder, step)
            if not began:
                writer.add_graph(sess.graph)
            # of the same random numbers, wherever a run begins
            picks = np.random.default_rng(1).integers(0, len(digits.train_x), (began + steps, BATCH))[began:]
            task = bar.add_task(name, total=steps, loss="")
            start, elsewhere = time.perf_counter(), 0.0
            feed: dict[Any, Any] = {}
            for done, pick in enumerate(picks, 1):
                feed = {net.x: digits.train_x[pick], net.y: digits.train_y[pick]}
                if done % SEEN and done != steps:
                    sess.run(net.train_op, feed)
                    continue
                loss, summary, _ = sess.run([net.loss, summaries, net.train_op], feed)
                paused = time.perf_counter()
                writer.add_summary(summary, began + done)
                if done % SAVED == 0 or done == steps:
                    saver.save(sess, str(folder / "model"), global_step=step)
                bar.update(task, completed=done, loss=f"loss {loss:.3f}")
                elsewhere += time.perf_counter() - paused
            rate = steps / (time.perf_counter() - start - elsewhere)
            _trace(tf, sess, net, feed, writer, began + steps)
            accuracy = float(sess.run(net.accuracy, {net.x: digits.test_x, net.y: digits.test_y}))
            return Trained(name, accuracy, rate, began, sess.explain(net.train_op, feed))


def _begin(tf: Any, sess: Any, saver: Any, folder: Path, step: Any) -> int:
    """Give variables their values; returns how many steps they have been trained."""
    state = tf.train.get_checkpoint_state(str(folder))
    if state is None:
        sess.run(tf.global_variables_initializer())
        return 0
    try:
        saver.restore(sess, state.model_checkpoint_path)
    except GraphdockError as error:
        error.hint = "graphdock demo --fresh begins anew"
        raise
    saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
    return int(sess.run(step))


def _trace(tf: Any, sess: Any, net: Network, feed: Any, writer: Any, step: int) -> None:
    """Write what the parts of a step take; one that only looks, so that no update comes after the last checkpoint."""
    seen = tf.RunMetadata()
    sess.run(net.loss, feed, tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), seen)
    writer.add_run_metadata(seen, f"step {step}", step)


def forget(folder: Path) -> None:
    """Remove what earlier runs wrote into a folder, and nothing else."""
    import graphdock as tf

    state = tf.train.get_checkpoint_state(str(folder))
    for path in [] if state is None else state.all_model_checkpoint_paths:
        tf.train.remove_checkpoint(path)
    for file in [folder / "checkpoint", *folder.glob("events.out.tfevents.*")]:
        file.unlink(missing_ok=True)


def _networks() -> dict[str, Any]:
    return {"softmax regression": softmax_regression, "two layers": two_layers}


@click.command(
    help="Train softmax regression and a two-layer network on scikit-learn's handwritten digits; print the accuracy on "
    "held-out digits, steps per second, and which plugin's kernel ran each op. Checkpoints and event files for TensorBoard go to "
    "a folder, from whose last checkpoints the next run goes on."
)
@click.option("--backends", help="Comma-separated, the most wanted first, e.g. toy,cpu.")
@file_options
@click.option(
    "--steps", default=3000, show_default=True, type=click.IntRange(min=1), help="Training steps per network."
)
@click.option(
    "--logdir", default=LOGDIR, show_default=True, type=click.Path(file_okay=False, path_type=Path), help="The folder."
)
@click.option("--fresh", is_flag=True, help="Remove what an earlier run wrote to the folder, and begin anew.")
@click.pass_context
def command(ctx: click.Context, backends: str | None, steps: int, logdir: Path, fresh: bool) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    config = ctx.obj.config(**({"backends": backends} if backends else {}))
    digits = load_digits()
    console = Console(soft_wrap=True)
    console.print(
        f"{len(digits.train_x)} digits to learn from, {len(digits.test_x)} held out · "
        f"backends={','.join(config.backends)} ({config.source('backends')})"
    )
    click.echo(f"checkpoints and event files: {logdir.absolute()} (--logdir says where)")
    folders = {name: logdir / name.replace(" ", "-") for name in _networks()}
    for folder in folders.values():
        if fresh:
            forget(folder)
        folder.mkdir(parents=True, exist_ok=True)
    columns = (
        TextColumn("{task.description:>18}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[loss]}"),
    )
    with Progress(*columns, console=console) as bar:
        results = [train(n, build, digits, steps, config, bar, folders[n]) for n, build in _networks().items()]
    for each in results:
        went_on = f", went on from step {each.began:,}" if each.began else ""
        console.print(
            f"{each.name:>18}: accuracy {each.accuracy:.4f} on held-out digits, {each.rate:,.0f} steps per second{went_on}"
        )
    console.print("\nOne training step of the two-layer network:", highlight=False)
    click.echo(str(results[-1].explained))
    click.echo("\nRun it again to train on from here, with --fresh to begin anew.")
    how = "" if importlib.util.find_spec("tensorboard") else "   (pip install tensorboard)"
    click.echo(f"Curves, weights, graphs and times: tensorboard --logdir {logdir}{how}")
    if min(each.accuracy for each in results) < 0.95:
        click.echo("error: a network is below 0.95 on held-out digits", err=True)
        ctx.exit(1)
