"""Parts of the networks that people bring: drawn weights, attention's heads, a session that is ready, the bars of a program."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from benchmarks.frameworks import LLVM, session_builders
from benchmarks.program import Bar, Case, Program

__all__ = ["Weights", "heads", "merged", "program", "ready"]


class Weights:
    """Variables of values that NumPy draws from a fixed seed, the same for all."""

    def __init__(self, tf: ModuleType) -> None:
        import numpy as np

        self.tf, self.random = tf, np.random.RandomState(5)

    def __call__(self, *shape: int, scale: float | None = None) -> Any:
        import math

        import numpy as np

        size = scale or 1 / math.sqrt(math.prod(shape[:-1]))
        return self.tf.Variable((self.random.normal(size=shape) * size).astype(np.float32))


def heads(tf: ModuleType, x: Any, texts: int, length: int, count: int) -> Any:
    """[texts, heads, length, width / heads] of what has a row of a text's width for each of its words."""
    width = int(x.shape[-1])
    return tf.transpose(tf.reshape(x, [texts, length, count, width // count]), [0, 2, 1, 3])


def merged(tf: ModuleType, x: Any, shape: list[int]) -> Any:
    """The heads of each word side by side again."""
    return tf.reshape(tf.transpose(x, [0, 2, 1, 3]), shape)


def ready(tf: ModuleType, open_session: Callable[[], Any]) -> Any:
    """A session whose variables have their initial values."""
    session = open_session()
    session.run(tf.global_variables_initializer())
    return session


def program(name: str, summary: str, text: Callable[[ModuleType, Callable[[], Any]], Case]) -> Program:
    """A program that is held to TensorFlow's time: 1.1 of it with NumPy, 0.8 with compiled regions."""
    bars = (Bar("P8", ("tensorflow",), 1.1), Bar("P8", ("tensorflow",), 0.8, subject="graphdock/llvm"))
    return Program(name, summary, session_builders(text, [LLVM]), bars, reference="tensorflow", rtol=2e-3, atol=2e-4)
