"""Ftrl-proximal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphdock.errors import InvalidArgumentError
from graphdock.typing import ScalarLike
from graphdock_std._gen import optimizers_ops, train_ops

from graphdock_tf1.train.rule import Rule


class FtrlOptimizer(Rule):
    """Follow the regularized leader: sparse weights by an L1 term that is handled exactly.

    McMahan and others, "Ad click prediction: a view from the trenches", 2013. Slots are ``accum`` and ``linear``,
    variables ``W/Ftrl`` and ``W/Ftrl_1``. Rows that a sparse gradient does not name stay as they are.

    Args:
      learning_rate: a number, a scalar tensor, or a function that returns one.
      learning_rate_power: how the rate falls with the squared gradients; not positive.
      initial_accumulator_value: where ``accum`` begins; not negative.
      l1_regularization_strength, l2_regularization_strength: not negative.
      use_locking: taken for TensorFlow's sake.
      name: prefix of what it adds to the graph.
      accum_name, linear_name: endings of the slots' names; default: ``name``.
      l2_shrinkage_regularization_strength: not negative; a part of the gradient that ``accum`` does not see.
    """

    _before_gradient = 0

    def __init__(
        self,
        learning_rate: ScalarLike | Callable[[], ScalarLike],
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
        accum_name: str | None = None,
        linear_name: str | None = None,
        l2_shrinkage_regularization_strength: float = 0.0,
    ) -> None:
        slots = {"accum": initial_accumulator_value, "linear": 0}
        super().__init__(use_locking, name, slots, learning_rate=learning_rate)
        self._check_not_negative(initial_accumulator_value=initial_accumulator_value)
        self._regularize(l1_regularization_strength, l2_regularization_strength)
        self._check_not_negative(l2_shrinkage_regularization_strength=l2_shrinkage_regularization_strength)
        self._check_numbers(learning_rate_power=learning_rate_power)
        if learning_rate_power > 0.0:
            raise InvalidArgumentError("learning_rate_power must not be positive", got=str(learning_rate_power))
        self._shrinks = l2_shrinkage_regularization_strength > 0.0
        if self._shrinks:
            self._rates["l2_shrinkage"] = l2_shrinkage_regularization_strength
        self._rates["learning_rate_power"] = learning_rate_power
        self._accum_name = accum_name
        self._linear_name = linear_name

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            self._filled_slot(var, self._starts["accum"], "accum", self._accum_name or self._name)
            self._zeros_slot(var, "linear", self._linear_name or self._name)

    def _updates(self) -> tuple[Any, Any]:
        if self._shrinks:
            return optimizers_ops.resource_apply_ftrl_v2, optimizers_ops.resource_sparse_apply_ftrl_v2
        return train_ops.resource_apply_ftrl, optimizers_ops.resource_sparse_apply_ftrl
