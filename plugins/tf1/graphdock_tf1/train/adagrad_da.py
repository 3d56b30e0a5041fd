"""Adagrad by dual averaging."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.typing import ScalarLike
from graphdock_std._gen import optimizers_ops

from graphdock_tf1.train.rule import Rule


class AdagradDAOptimizer(Rule):
    """Weights that follow from the sums of all gradients, so that an L1 term makes them sparse.

    Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning and stochastic optimization", 2011, section 5::

        g += grad; gg += grad ** 2; t = global_step + 1
        var = -learning_rate * sign(g) * max(|g| - l1 * t, 0) / (l2 * t * learning_rate + sqrt(gg))

    The initial value of a variable counts for nothing. Slots are ``gradient_accumulator`` and ``gradient_squared_accumulator``,
    variables ``W/AdagradDA`` and ``W/AdagradDA_1``.

    Args:
      learning_rate: a number, a scalar tensor, or a function that returns one.
      global_step: an integer Variable or tensor, how many steps were made before.
      initial_gradient_squared_accumulator_value: where ``gg`` begins; positive.
      l1_regularization_strength, l2_regularization_strength: numbers, not negative.
      use_locking: taken for TensorFlow's sake.
      name: prefix of what it adds to the graph.
    """

    _before_gradient = 0

    def __init__(
        self,
        learning_rate: ScalarLike | Callable[[], ScalarLike],
        global_step: _tf.Variable | _ops.Tensor,
        initial_gradient_squared_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "AdagradDA",
    ) -> None:
        start = initial_gradient_squared_accumulator_value
        slots = {"gradient_accumulator": 0, "gradient_squared_accumulator": start}
        super().__init__(use_locking, name, slots, learning_rate=learning_rate)
        self._regularize(l1_regularization_strength, l2_regularization_strength)
        self._check_positive(initial_gradient_squared_accumulator_value=start)
        self._global_step = global_step
        self._passed: Any = None

    def _prepare(self) -> None:
        self._passed = _ops.cast(_ops.convert_to_tensor(self._global_step), _tf.int64) + 1

    def _scalars(self, var: Any) -> list[Any]:
        return [*super()._scalars(var), self._passed]

    def _updates(self) -> tuple[Any, Any]:
        return optimizers_ops.resource_apply_adagrad_da, optimizers_ops.resource_sparse_apply_adagrad_da
