"""Adagrad."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphdock.errors import InvalidArgumentError
from graphdock.typing import ScalarLike
from graphdock_std._gen import train_ops

from graphdock_tf1.train.optimizer import Optimizer


class AdagradOptimizer(Optimizer):
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
        super().__init__(use_locking, name)
        self._check_rates(learning_rate=learning_rate)
        self._check_numbers(initial_accumulator_value=initial_accumulator_value)
        if not initial_accumulator_value > 0.0:
            raise InvalidArgumentError("initial_accumulator_value must be positive", got=str(initial_accumulator_value))
        self._learning_rate = learning_rate
        self._initial_accumulator_value = initial_accumulator_value

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            self._filled_slot(var, self._initial_accumulator_value, "accumulator", self._name)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        rate = self._hyper("learning_rate", self._learning_rate, var)
        accumulator = self.get_slot(var, "accumulator")
        return train_ops.resource_apply_adagrad(var.handle, accumulator.handle, rate, grad)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        rate = self._hyper("learning_rate", self._learning_rate, var)
        accumulator = self.get_slot(var, "accumulator")
        return train_ops.resource_sparse_apply_adagrad(var.handle, accumulator.handle, rate, grad.values, grad.indices)
