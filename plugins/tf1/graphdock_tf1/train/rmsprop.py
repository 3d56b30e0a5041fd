"""RMSProp, plain and centred."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphdock.typing import ScalarLike
from graphdock_std._gen import optimizers_ops, train_ops

from graphdock_tf1.train.rule import Rule


class RMSPropOptimizer(Rule):
    """Divide each gradient by the root of a running mean of its squares.

    Tieleman and Hinton, lecture 6.5 of "Neural networks for machine learning", 2012; the centred form is Graves's,
    "Generating sequences with recurrent neural networks", 2013::

        ms = decay * ms + (1 - decay) * grad ** 2
        mom = momentum * mom + learning_rate * grad / sqrt(ms + epsilon)     # centred: sqrt(ms - mg ** 2 + epsilon)
        var -= mom

    As in TensorFlow ms begins at one. Slots are ``rms`` and ``momentum``, variables ``W/RMSProp`` and ``W/RMSProp_1``; when
    centred ``rms``, ``mg`` and ``momentum``, the last ``W/RMSProp_2``.

    Args:
      learning_rate, decay, momentum, epsilon: numbers, scalar tensors, or functions that return one.
      use_locking: taken for TensorFlow's sake.
      centered: divide by the root of the variance, not of the mean square.
      name: prefix of what it adds to the graph.
    """

    def __init__(
        self,
        learning_rate: ScalarLike | Callable[[], ScalarLike],
        decay: ScalarLike | Callable[[], ScalarLike] = 0.9,
        momentum: ScalarLike | Callable[[], ScalarLike] = 0.0,
        epsilon: ScalarLike | Callable[[], ScalarLike] = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        slots = {"mg": 0, "rms": 1, "momentum": 0} if centered else {"rms": 1, "momentum": 0}
        rates = {"learning_rate": learning_rate, "decay": decay, "momentum": momentum, "epsilon": epsilon}
        super().__init__(use_locking, name, slots, **rates)
        self._centered = centered

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            self._filled_slot(var, 1, "rms", self._name)
            if self._centered:
                self._zeros_slot(var, "mg", self._name)
            self._zeros_slot(var, "momentum", self._name)

    def _updates(self) -> tuple[Any, Any]:
        """For rows: only those that the gradient names move, and only their means decay."""
        if self._centered:
            centered = optimizers_ops.resource_sparse_apply_centered_rms_prop
            return train_ops.resource_apply_centered_rms_prop, centered
        return train_ops.resource_apply_rms_prop, optimizers_ops.resource_sparse_apply_rms_prop
