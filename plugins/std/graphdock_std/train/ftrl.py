"""Ftrl-proximal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphdock.errors import InvalidArgumentError
from graphdock.typing import ScalarLike

from graphdock_std._gen import train_ops
from graphdock_std.train.optimizer import Optimizer

__all__ = ["FtrlOptimizer"]


class FtrlOptimizer(Optimizer):
    """Follow the regularized leader: sparse weights by an L1 term that is handled exactly.

    McMahan and others, "Ad click prediction: a view from the trenches", 2013. Slots are ``accum`` and ``linear``,
    variables ``W/Ftrl`` and ``W/Ftrl_1``.

    Args:
      learning_rate: a number, a scalar tensor, or a function that returns one.
      learning_rate_power: how the rate falls with the squared gradients; not positive.
      initial_accumulator_value: where ``accum`` begins; not negative.
      l1_regularization_strength, l2_regularization_strength: not negative.
      use_locking: taken for TensorFlow's sake.
      name: prefix of what it adds to the graph.
    """

    def __init__(
        self,
        learning_rate: ScalarLike | Callable[[], ScalarLike],
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
    ) -> None:
        super().__init__(use_locking, name)
        self._check_rates(learning_rate=learning_rate)
        self._check_numbers(
            learning_rate_power=learning_rate_power,
            initial_accumulator_value=initial_accumulator_value,
            l1_regularization_strength=l1_regularization_strength,
            l2_regularization_strength=l2_regularization_strength,
        )
        limits = {
            "learning_rate_power": -learning_rate_power,
            "initial_accumulator_value": initial_accumulator_value,
            "l1_regularization_strength": l1_regularization_strength,
            "l2_regularization_strength": l2_regularization_strength,
        }
        for argument, size in limits.items():
            if size < 0.0:
                sign = "positive" if argument == "learning_rate_power" else "negative"
                raise InvalidArgumentError(
                    f"{argument} must not be {sign}", got=str(abs(size) if sign == "positive" else size)
                )
        self._learning_rate = learning_rate
        self._power = learning_rate_power
        self._start = initial_accumulator_value
        self._l1 = l1_regularization_strength
        self._l2 = l2_regularization_strength

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            self._filled_slot(var, self._start, "accum", self._name)
            self._zeros_slot(var, "linear", self._name)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return train_ops.resource_apply_ftrl(
            var.handle,
            self.get_slot(var, "accum").handle,
            self.get_slot(var, "linear").handle,
            grad,
            self._hyper("learning_rate", self._learning_rate, var),
            self._hyper("l1", self._l1, var),
            self._hyper("l2", self._l2, var),
            self._hyper("learning_rate_power", self._power, var),
        )
