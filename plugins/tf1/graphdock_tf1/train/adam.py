"""Adam, and Adam with decoupled weight decay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.typing import ScalarLike
from graphdock_std._gen import train_ops

from graphdock_tf1.train.rule import Rule


class AdamOptimizer(Rule):
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
        rates = {"learning_rate": learning_rate, "beta1": beta1, "beta2": beta2, "epsilon": epsilon}
        super().__init__(use_locking, name, {"m": 0, "v": 0}, **rates)

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        first = min(var_list, key=lambda var: var.name)
        wide = _tf.float64 if any(var.dtype is _tf.float64 for var in var_list) else _tf.float32
        for name in ("beta1", "beta2"):
            beta = self._rates[name]
            start = beta() if callable(beta) and not isinstance(beta, _tf.Tensor | _tf.Variable) else beta
            if isinstance(start, _tf.Variable):
                start = start.initialized_value()
            if isinstance(start, _tf.Tensor):
                start = _ops.cast(start, wide)
            self._create_non_slot_variable(start, f"{name}_power", first, wide)
        super()._create_slots(var_list)

    def _powers(self, graph: Any) -> tuple[Any, Any]:
        return self._get_non_slot_variable("beta1_power", graph), self._get_non_slot_variable("beta2_power", graph)

    def _scalars(self, var: Any) -> list[Any]:
        powers = zip(("beta1_power", "beta2_power"), self._powers(var.graph), strict=True)
        return [*[self._hyper(name, power, var) for name, power in powers], *super()._scalars(var)]

    def _updates(self) -> tuple[Any, Any]:
        return train_ops.resource_apply_adam, None

    def _finish(self, update_ops: Sequence[Any], name_scope: str) -> Any:
        with _ops.init_scope():
            power1, power2 = self._powers(_tf.get_default_graph())
        with _tf.control_dependencies(update_ops), _tf.colocate_with(power1.op):
            done = [
                power.assign(power.read_value() * self._hyper(name, self._rates[name], power), read_value=False)
                for power, name in ((power1, "beta1"), (power2, "beta2"))
            ]
        return _tf.group(*update_ops, *done, name=name_scope)


class AdamWOptimizer(AdamOptimizer):
    """``var *= 1 - learning_rate * weight_decay`` before each step of Adam; ``tf.contrib.opt`` has another, as TensorFlow's.

    Loshchilov and Hutter, "Decoupled weight decay regularization", 2017. The decay is no part of the gradient, so the
    moments do not see it.

    Args:
      weight_decay: a number, a scalar tensor, or a function that returns one.
      learning_rate, beta1, beta2, epsilon, use_locking, name: as of AdamOptimizer.
    """

    def __init__(
        self,
        weight_decay: ScalarLike | Callable[[], ScalarLike],
        learning_rate: ScalarLike | Callable[[], ScalarLike] = 0.001,
        beta1: ScalarLike | Callable[[], ScalarLike] = 0.9,
        beta2: ScalarLike | Callable[[], ScalarLike] = 0.999,
        epsilon: ScalarLike | Callable[[], ScalarLike] = 1e-8,
        use_locking: bool = False,
        name: str = "AdamW",
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)
        self._check_rates(weight_decay=weight_decay)
        self._rates["weight_decay"] = weight_decay

    def _updates(self) -> tuple[Any, Any]:
        return train_ops.resource_apply_adam_w, None
