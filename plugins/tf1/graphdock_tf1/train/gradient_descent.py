"""Gradient descent: plain, with momentum, and Nesterov's."""

from __future__ import annotations

import functools
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


class MomentumOptimizer(Rule):
    """``accum = momentum * accum + grad; var -= learning_rate * accum``.

    Sutskever, Martens, Dahl and Hinton, "On the importance of initialization and momentum in deep learning", 2013. The
    slot is ``momentum``, variables ``W/Momentum``.

    Args:
      learning_rate, momentum: numbers, scalar tensors, or functions that return one.
      use_locking: taken for TensorFlow's sake.
      name: prefix of what it adds to the graph.
      use_nesterov: look ahead: ``var -= learning_rate * (grad + momentum * accum)``.
    """

    _before_gradient = 1

    def __init__(
        self,
        learning_rate: ScalarLike | Callable[[], ScalarLike],
        momentum: ScalarLike | Callable[[], ScalarLike],
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(use_locking, name, {"momentum": 0}, learning_rate=learning_rate, momentum=momentum)
        self._use_nesterov = use_nesterov

    def _updates(self) -> tuple[Any, Any]:
        """For rows: only those that the gradient names move, and only their momentum decays."""
        updates = train_ops.resource_apply_momentum, train_ops.resource_sparse_apply_momentum
        return tuple(functools.partial(update, use_nesterov=self._use_nesterov) for update in updates)  # type: ignore[return-value]
