"""Adagrad by dual averaging."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError
from graphdock.typing import ScalarLike
from graphdock_std._gen import optimizers_ops

from graphdock_tf1.train.optimizer import Optimizer


class AdagradDAOptimizer(Optimizer):
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
        super().__init__(use_locking, name)
        self._check_rates(learning_rate=learning_rate)
        self._check_not_negative(
            l1_regularization_strength=l1_regularization_strength,
            l2_regularization_strength=l2_regularization_strength,
        )
        self._check_numbers(initial_gradient_squared_accumulator_value=initial_gradient_squared_accumulator_value)
        if not initial_gradient_squared_accumulator_value > 0.0:
            raise InvalidArgumentError(
                "initial_gradient_squared_accumulator_value must be positive",
                got=str(initial_gradient_squared_accumulator_value),
            )
        self._learning_rate = learning_rate
        self._global_step = global_step
        self._start = initial_gradient_squared_accumulator_value
        self._l1 = l1_regularization_strength
        self._l2 = l2_regularization_strength
        self._passed: Any = None

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            self._zeros_slot(var, "gradient_accumulator", self._name)
            self._filled_slot(var, self._start, "gradient_squared_accumulator", self._name)

    def _prepare(self) -> None:
        self._passed = _ops.cast(_ops.convert_to_tensor(self._global_step), _tf.int64) + 1

    def _slots_of(self, var: Any) -> list[Any]:
        names = ("gradient_accumulator", "gradient_squared_accumulator")
        return [var.handle, *[self.get_slot(var, name).handle for name in names]]

    def _rates(self, var: Any) -> list[Any]:
        rates = {"learning_rate": self._learning_rate, "l1": self._l1, "l2": self._l2}
        return [*[self._hyper(name, value, var) for name, value in rates.items()], self._passed]

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return optimizers_ops.resource_apply_adagrad_da(*self._slots_of(var), grad, *self._rates(var))

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return optimizers_ops.resource_sparse_apply_adagrad_da(
            *self._slots_of(var), grad.values, grad.indices, *self._rates(var)
        )
