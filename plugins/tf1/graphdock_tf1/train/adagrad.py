"""Adagrad."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphdock.typing import ScalarLike
from graphdock_std._gen import train_ops

from graphdock_tf1.train.rule import Rule


class AdagradOptimizer(Rule):
    """``accum += grad ** 2; var -= learning_rate * grad / sqrt(accum)``.

    Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning and stochastic optimization", 2011. The
    slot is ``accumulator``, variables ``W/Adagrad``.

    Args:
      learning_rate: a number, a scalar tensor, or a function that returns one.
      initial_accumulator_value: where ``accum`` begins; positive, because nothing is added to it before the division.
      use_locking: taken for TensorFlow's sake.
      name: prefix of what it adds to the graph.
    """

    def __init__(
        self,
        learning_rate: ScalarLike | Callable[[], ScalarLike],
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        slots = {"accumulator": initial_accumulator_value}
        super().__init__(use_locking, name, slots, learning_rate=learning_rate)
        self._check_positive(initial_accumulator_value=initial_accumulator_value)

    def _updates(self) -> tuple[Any, Any]:
        return train_ops.resource_apply_adagrad, train_ops.resource_sparse_apply_adagrad
