"""Gradient descent and Adagrad whose steps end with the proximal step of an L1 and an L2 term."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphdock.typing import ScalarLike
from graphdock_std._gen import optimizers_ops

from graphdock_tf1.train.rule import Rule


class ProximalGradientDescentOptimizer(Rule):
    """``p = var - learning_rate * grad``, then shrunk by L1 and L2 in proportion to the learning rate.

    Duchi and Singer, "Efficient learning using forward-backward splitting", 2009::

        var = sign(p) * max(|p| - learning_rate * l1, 0) / (1 + learning_rate * l2)

    Args:
      learning_rate: a number, a scalar tensor, or a function that returns one.
      l1_regularization_strength, l2_regularization_strength: numbers, not negative.
      use_locking: taken for TensorFlow's sake.
      name: prefix of what it adds to the graph.
    """

    def __init__(
        self,
        learning_rate: ScalarLike | Callable[[], ScalarLike],
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        super().__init__(use_locking, name, learning_rate=learning_rate)
        self._regularize(l1_regularization_strength, l2_regularization_strength)

    def _updates(self) -> tuple[Any, Any]:
        return (
            optimizers_ops.resource_apply_proximal_gradient_descent,
            optimizers_ops.resource_sparse_apply_proximal_gradient_descent,
        )


class ProximalAdagradOptimizer(Rule):
    """Adagrad, whose moved weight is then shrunk by L1 and L2 in proportion to its own rate.

    Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning and stochastic optimization", 2011::

        accum += grad ** 2; rate = learning_rate / sqrt(accum); p = var - rate * grad
        var = sign(p) * max(|p| - rate * l1, 0) / (1 + rate * l2)

    The slot is ``accumulator``, variables ``W/ProximalAdagrad``.

    Args:
      learning_rate: a number, a scalar tensor, or a function that returns one.
      initial_accumulator_value: where ``accum`` begins; positive.
      l1_regularization_strength, l2_regularization_strength: numbers, not negative.
      use_locking: taken for TensorFlow's sake.
      name: prefix of what it adds to the graph.
    """

    def __init__(
        self,
        learning_rate: ScalarLike | Callable[[], ScalarLike],
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalAdagrad",
    ) -> None:
        slots = {"accumulator": initial_accumulator_value}
        super().__init__(use_locking, name, slots, learning_rate=learning_rate)
        self._regularize(l1_regularization_strength, l2_regularization_strength)
        self._check_positive(initial_accumulator_value=initial_accumulator_value)

    def _updates(self) -> tuple[Any, Any]:
        return optimizers_ops.resource_apply_proximal_adagrad, optimizers_ops.resource_sparse_apply_proximal_adagrad
