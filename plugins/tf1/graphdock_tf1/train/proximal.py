"""Gradient descent and Adagrad whose steps end with the proximal step of an L1 and an L2 term."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphdock.errors import InvalidArgumentError
from graphdock.typing import ScalarLike
from graphdock_std._gen import optimizers_ops

from graphdock_tf1.train.optimizer import Optimizer


class ProximalGradientDescentOptimizer(Optimizer):
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
        super().__init__(use_locking, name)
        self._check_rates(learning_rate=learning_rate)
        self._check_not_negative(
            l1_regularization_strength=l1_regularization_strength,
            l2_regularization_strength=l2_regularization_strength,
        )
        self._rates = {
            "learning_rate": learning_rate,
            "l1": l1_regularization_strength,
            "l2": l2_regularization_strength,
        }

    def _inputs(self, var: Any) -> list[Any]:
        return [var.handle, *[self._hyper(name, value, var) for name, value in self._rates.items()]]

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return optimizers_ops.resource_apply_proximal_gradient_descent(*self._inputs(var), grad)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return optimizers_ops.resource_sparse_apply_proximal_gradient_descent(
            *self._inputs(var), grad.values, grad.indices
        )


class ProximalAdagradOptimizer(Optimizer):
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
        super().__init__(use_locking, name)
        self._check_rates(learning_rate=learning_rate)
        self._check_not_negative(
            l1_regularization_strength=l1_regularization_strength,
            l2_regularization_strength=l2_regularization_strength,
        )
        self._check_numbers(initial_accumulator_value=initial_accumulator_value)
        if not initial_accumulator_value > 0.0:
            raise InvalidArgumentError("initial_accumulator_value must be positive", got=str(initial_accumulator_value))
        self._start = initial_accumulator_value
        self._rates = {
            "learning_rate": learning_rate,
            "l1": l1_regularization_strength,
            "l2": l2_regularization_strength,
        }

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            self._filled_slot(var, self._start, "accumulator", self._name)

    def _inputs(self, var: Any) -> list[Any]:
        handles = [var.handle, self.get_slot(var, "accumulator").handle]
        return [*handles, *[self._hyper(name, value, var) for name, value in self._rates.items()]]

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return optimizers_ops.resource_apply_proximal_adagrad(*self._inputs(var), grad)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return optimizers_ops.resource_sparse_apply_proximal_adagrad(*self._inputs(var), grad.values, grad.indices)
