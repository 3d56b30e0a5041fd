"""Adam with decoupled weight decay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphdock.typing import ScalarLike
from graphdock_std._gen import train_ops

from graphdock_tf1.train.adam import AdamOptimizer


class AdamWOptimizer(AdamOptimizer):
    """``var *= 1 - learning_rate * weight_decay`` before each step of Adam.

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
