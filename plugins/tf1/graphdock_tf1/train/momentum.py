"""Gradient descent with momentum, and Nesterov's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphdock.typing import ScalarLike
from graphdock_std._gen import train_ops

from graphdock_tf1.train.optimizer import Optimizer


class MomentumOptimizer(Optimizer):
    """``accum = momentum * accum + grad; var -= learning_rate * accum``.

    Sutskever, Martens, Dahl and Hinton, "On the importance of initialization and momentum in deep learning", 2013. The
    slot is ``momentum``, variables ``W/Momentum``.

    Args:
      learning_rate, momentum: numbers, scalar tensors, or functions that return one.
      use_locking: taken for TensorFlow's sake.
      name: prefix of what it adds to the graph.
      use_nesterov: look ahead: ``var -= learning_rate * (grad + momentum * accum)``.
    """

    def __init__(
        self,
        learning_rate: ScalarLike | Callable[[], ScalarLike],
        momentum: ScalarLike | Callable[[], ScalarLike],
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(use_locking, name)
        self._check_rates(learning_rate=learning_rate, momentum=momentum)
        self._learning_rate = learning_rate
        self._momentum = momentum
        self._use_nesterov = use_nesterov

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            self._zeros_slot(var, "momentum", self._name)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return train_ops.resource_apply_momentum(
            var.handle,
            self.get_slot(var, "momentum").handle,
            self._hyper("learning_rate", self._learning_rate, var),
            grad,
            self._hyper("momentum", self._momentum, var),
            use_nesterov=self._use_nesterov,
        )

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        """Only the rows that the gradient names move, and only their momentum decays."""
        return train_ops.resource_sparse_apply_momentum(
            var.handle,
            self.get_slot(var, "momentum").handle,
            self._hyper("learning_rate", self._learning_rate, var),
            grad.values,
            grad.indices,
            self._hyper("momentum", self._momentum, var),
            use_nesterov=self._use_nesterov,
        )
