"""Gradient descent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphdock.typing import ScalarLike
from graphdock_std._gen import train_ops

from graphdock_tf1.train.rule import Rule


class GradientDescentOptimizer(Rule):
    """``var -= learning_rate * grad``.

    Args:
      learning_rate: a number, a scalar tensor, or a function that returns one.
      use_locking: taken for TensorFlow's sake.
      name: prefix of what it adds to the graph.
    """

    def __init__(
        self,
        learning_rate: ScalarLike | Callable[[], ScalarLike],
        use_locking: bool = False,
        name: str = "GradientDescent",
    ) -> None:
        super().__init__(use_locking, name, learning_rate=learning_rate)

    def _updates(self) -> tuple[Any, Any]:
        return train_ops.resource_apply_gradient_descent, train_ops.resource_sparse_apply_gradient_descent
