"""Adadelta."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphdock.typing import ScalarLike
from graphdock_std._gen import optimizers_ops

from graphdock_tf1.train.rule import Rule


class AdadeltaOptimizer(Rule):
    """Moves as large as the moves before, relative to the gradients before.

    Zeiler, "ADADELTA: an adaptive learning rate method", 2012::

        accum = rho * accum + (1 - rho) * grad ** 2
        update = sqrt(accum_update + epsilon) / sqrt(accum + epsilon) * grad
        accum_update = rho * accum_update + (1 - rho) * update ** 2
        var -= learning_rate * update

    Slots ``accum`` and ``accum_update`` are the variables ``W/Adadelta`` and ``W/Adadelta_1``.

    Args:
      learning_rate, rho, epsilon: numbers, scalar tensors, or functions that return one.
      use_locking: taken for TensorFlow's sake.
      name: prefix of what it adds to the graph.
    """

    def __init__(
        self,
        learning_rate: ScalarLike | Callable[[], ScalarLike] = 0.001,
        rho: ScalarLike | Callable[[], ScalarLike] = 0.95,
        epsilon: ScalarLike | Callable[[], ScalarLike] = 1e-8,
        use_locking: bool = False,
        name: str = "Adadelta",
    ) -> None:
        slots = {"accum": 0, "accum_update": 0}
        super().__init__(use_locking, name, slots, learning_rate=learning_rate, rho=rho, epsilon=epsilon)

    def _updates(self) -> tuple[Any, Any]:
        return optimizers_ops.resource_apply_adadelta, optimizers_ops.resource_sparse_apply_adadelta
