"""Adadelta."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphdock.typing import ScalarLike
from graphdock_std._gen import optimizers_ops

from graphdock_tf1.train.optimizer import Optimizer


class AdadeltaOptimizer(Optimizer):
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
        super().__init__(use_locking, name)
        self._check_rates(learning_rate=learning_rate, rho=rho, epsilon=epsilon)
        self._learning_rate = learning_rate
        self._rho = rho
        self._epsilon = epsilon

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            self._zeros_slot(var, "accum", self._name)
            self._zeros_slot(var, "accum_update", self._name)

    def _inputs(self, var: Any) -> list[Any]:
        rates = {"learning_rate": self._learning_rate, "rho": self._rho, "epsilon": self._epsilon}
        return [
            var.handle,
            self.get_slot(var, "accum").handle,
            self.get_slot(var, "accum_update").handle,
            *[self._hyper(name, value, var) for name, value in rates.items()],
        ]

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return optimizers_ops.resource_apply_adadelta(*self._inputs(var), grad)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return optimizers_ops.resource_sparse_apply_adadelta(*self._inputs(var), grad.values, grad.indices)
