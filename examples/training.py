"""Common parts of the example programs: their command line, their session, the loop of steps with its progress, and a summary.

Each program is ordinary TensorFlow 1 but for ``--backend`` and for what a step tells of itself, which stand here.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import graphdock as tf

__all__ = ["Training", "command_line", "session", "train"]


@dataclass(frozen=True)
class Training:
    """Record of what a program did.

    losses: of every step. results: what it measured afterwards, such as the accuracy. explanation: of the training step, as
    ``Session.explain`` gives it.
    """

    losses: list[float]
    results: dict[str, float]
    explanation: Any


def command_line(
    doc: str | None, arguments: list[str] | None, steps: int = 1000, batch: int = 64, **more: tuple[Any, str]
) -> argparse.Namespace:
    """Read ``--backend``, ``--steps``, ``--batch``, ``--seed`` and the program's own options, ``name=(default, help)``.

    doc: the program's docstring; its first line is the help. arguments: those of the process where None.
    """
    parser = argparse.ArgumentParser(
        description=(doc or "").split("\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--backend", help="backends with commas, the most wanted first, such as cuda,cpu")
    parser.add_argument("--steps", type=int, default=steps, help="training steps")
    parser.add_argument("--batch", type=int, default=batch, help="examples in a step")
    parser.add_argument("--seed", type=int, default=0, help="of the weights and the data")
    for name, (default, text) in more.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default, help=text)
    options = parser.parse_args(arguments)
    if min(options.steps, options.batch) < 1:
        parser.error("--steps and --batch must be positive")
    return options


def session(options: argparse.Namespace) -> Any:
    """A session of the default graph on the backends of ``--backend``, or on those that the configuration names."""
    if options.backend is None:
        return tf.Session()
    return tf.Session(config=tf.SessionConfig(backends=tuple(options.backend.split(","))))


def train(
    sess: Any,
    options: argparse.Namespace,
    step: Any,
    loss: Any,
    feed: Callable[[int], Mapping[Any, Any]],
    measure: Callable[[], dict[str, float]] = dict,
) -> Training:
    """Initialise the variables, run the steps and print ten lines of progress; then measure and print the summary.

    step: the training operation. loss: a scalar, fetched in every step. feed: what the n-th step is fed. measure: called once,
    after the last step.
    """
    sess.run(tf.global_variables_initializer())
    losses: list[float] = []
    every = max(1, options.steps // 10)
    start = time.perf_counter()
    for number in range(options.steps):
        value, _ = sess.run([loss, step], feed(number))
        losses.append(float(value))
        if (number + 1) % every == 0:
            rate = (number + 1) / (time.perf_counter() - start)
            print(f"step {number + 1:6d} of {options.steps}   loss {value:8.4f}   {_rate(rate)}", flush=True)
    training = Training(losses, measure(), sess.explain([loss, step], feed(0)))
    for name, result in training.results.items():
        print(f"{name} {result:.4f}")
    print(summary(training.explanation))
    return training


def summary(explanation: Any, kernels: int = 6) -> str:
    """Two lines of the step: its nodes, devices and memory, and the kernels that it launches most often."""
    counts = sorted(explanation.kernels().items(), key=lambda item: -item[1])
    listed = ", ".join(f"{count} {name}" for name, count in counts[:kernels])
    left = len(counts) - kernels
    return f"one step: {explanation.summary()}\nkernels:  {listed}" + (f" and {left} others" if left > 0 else "")


def _rate(steps: float) -> str:
    return f"{steps:,.1f} steps/s" if steps >= 1 else f"{1 / steps:,.2f} s/step"
