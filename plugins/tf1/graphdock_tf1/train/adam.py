"""Adam."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.typing import ScalarLike
from graphdock_std._gen import train_ops

from graphdock_tf1.train.optimizer import Optimizer


class AdamOptimizer(Optimizer):
    """Adam, with epsilon added before the bias of the second moment is corrected ("epsilon hat" in the paper).

    Kingma and Ba, "Adam: a method for stochastic optimization", 2014::

        m = beta1 * m + (1 - beta1) * grad
        v = beta2 * v + (1 - beta2) * grad ** 2
        var -= learning_rate * sqrt(1 - beta2 ** t) / (1 - beta1 ** t) * m / (sqrt(v) + epsilon)

    Slots ``m`` and ``v`` are the variables ``W/Adam`` and ``W/Adam_1``; ``beta1_power`` and ``beta2_power`` keep the
    powers.

    Args:
      learning_rate, beta1, beta2, epsilon: numbers, scalar tensors, or functions that return one.
      use_locking: taken for TensorFlow's sake.
      name: prefix of what it adds to the graph.
    """

    def __init__(
        self,
        learning_rate: ScalarLike | Callable[[], ScalarLike] = 0.001,
        beta1: ScalarLike | Callable[[], ScalarLike] = 0.9,
        beta2: ScalarLike | Callable[[], ScalarLike] = 0.999,
        epsilon: ScalarLike | Callable[[], ScalarLike] = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(use_locking, name)
        self._check_rates(learning_rate=learning_rate, beta1=beta1, beta2=beta2, epsilon=epsilon)
        self._learning_rate = learning_rate
        self._beta1 = beta1
        self._beta2 = beta2
        self._epsilon = epsilon

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        first = min(var_list, key=lambda var: var.name)
        wide = _tf.float64 if any(var.dtype is _tf.float64 for var in var_list) else _tf.float32
        for name, beta in (("beta1_power", self._beta1), ("beta2_power", self._beta2)):
            start = beta() if callable(beta) and not isinstance(beta, _tf.Tensor | _tf.Variable) else beta
            if isinstance(start, _tf.Variable):
                start = start.initialized_value()
            if isinstance(start, _tf.Tensor):
                start = _ops.cast(start, wide)
            self._create_non_slot_variable(start, name, first, wide)
        for var in var_list:
            self._zeros_slot(var, "m", self._name)
            self._zeros_slot(var, "v", self._name)

    def _powers(self, graph: Any) -> tuple[Any, Any]:
        return self._get_non_slot_variable("beta1_power", graph), self._get_non_slot_variable("beta2_power", graph)

    def _inputs(self, var: Any) -> tuple[list[Any], list[Any]]:
        """Handles of the variable and its slots, and the scalars of the update."""
        power1, power2 = self._powers(var.graph)
        scalars = {
            "beta1_power": power1,
            "beta2_power": power2,
            "learning_rate": self._learning_rate,
            "beta1": self._beta1,
            "beta2": self._beta2,
            "epsilon": self._epsilon,
        }
        handles = [var.handle, self.get_slot(var, "m").handle, self.get_slot(var, "v").handle]
        return handles, [self._hyper(name, value, var) for name, value in scalars.items()]

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        handles, rates = self._inputs(var)
        return train_ops.resource_apply_adam(*handles, *rates, grad)

    def _finish(self, update_ops: Sequence[Any], name_scope: str) -> Any:
        with _ops.init_scope():
            power1, power2 = self._powers(_tf.get_default_graph())
        with _tf.control_dependencies(update_ops), _tf.colocate_with(power1.op):
            done = [
                power.assign(power.read_value() * self._hyper(name, beta, power), read_value=False)
                for power, name, beta in ((power1, "beta1", self._beta1), (power2, "beta2", self._beta2))
            ]
        return _tf.group(*update_ops, *done, name=name_scope)
