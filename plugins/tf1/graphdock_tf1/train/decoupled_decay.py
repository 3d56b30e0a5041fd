"""Weight decay beside the gradient, as ``tf.contrib.opt`` has it: a share of each weight goes before the optimizer's own update."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.typing import ScalarLike

from graphdock_tf1.train.adam import AdamOptimizer
from graphdock_tf1.train.gradient_descent import MomentumOptimizer
from graphdock_tf1.train.optimizer import Optimizer


class DecoupledWeightDecayExtension(Optimizer):
    """``var -= weight_decay * var`` before each update of the optimizer that stands behind it among a class's bases.

    Loshchilov and Hutter, "Decoupled weight decay regularization", 2017; as in TensorFlow, the learning rate does not scale the
    decay. Of a gradient of some rows, these rows decay.

    Args:
      weight_decay: a number, a scalar tensor, or a function that returns one.
      kwargs: the optimizer's own arguments.

    Raises:
      InvalidArgumentError, ShapeError: ``weight_decay`` is none of these.
    """

    def __init__(self, weight_decay: ScalarLike | Callable[[], ScalarLike], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._check_rates(weight_decay=weight_decay)
        self._weight_decay = weight_decay
        self._decayed: list[Any] | None = None

    def minimize(  # type: ignore[override]  # as TensorFlow's
        self, *args: Any, decay_var_list: Iterable[Any] | None = None, **kwargs: Any
    ) -> _ops.Operation:
        """As of the optimizer. ``decay_var_list``: the variables that decay; None: all."""
        self._decayed = None if decay_var_list is None else list(decay_var_list)
        return super().minimize(*args, **kwargs)

    def apply_gradients(  # type: ignore[override]
        self, *args: Any, decay_var_list: Iterable[Any] | None = None, **kwargs: Any
    ) -> _ops.Operation:
        """As of the optimizer. ``decay_var_list``: the variables that decay; None: those that ``minimize`` was given, else all."""
        if decay_var_list is not None:
            self._decayed = list(decay_var_list)
        return super().apply_gradients(*args, **kwargs)

    def _decays(self, var: Any) -> bool:
        return self._decayed is None or any(var is v for v in self._decayed)

    def _share(self, var: Any) -> Any:
        return self._hyper("weight_decay", self._weight_decay, var)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        if not self._decays(var):
            return super()._apply_dense(grad, var)
        with _tf.control_dependencies([grad]):  # which reads the weights as they were
            decay = var.assign_sub(self._share(var) * var.read_value(), read_value=False)
        with _tf.control_dependencies([decay]):
            return super()._apply_dense(grad, var)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        if not self._decays(var):
            return super()._apply_sparse(grad, var)
        with _tf.control_dependencies([grad.values, grad.indices]):
            once = _tf.unique(grad.indices)[0]
            decay = _tf.scatter_sub(var, once, self._share(var) * _tf.gather(var, once))
        with _tf.control_dependencies([decay]):
            return super()._apply_sparse(grad, var)


class AdamWOptimizer(DecoupledWeightDecayExtension, AdamOptimizer):
    """Adam behind a decay of the weights; arguments as of :class:`DecoupledWeightDecayExtension` and AdamOptimizer."""

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
        rates = {"learning_rate": learning_rate, "beta1": beta1, "beta2": beta2, "epsilon": epsilon}
        super().__init__(weight_decay, **rates, use_locking=use_locking, name=name)


class MomentumWOptimizer(DecoupledWeightDecayExtension, MomentumOptimizer):
    """Momentum behind a decay of the weights; arguments as of :class:`DecoupledWeightDecayExtension` and MomentumOptimizer."""

    def __init__(
        self,
        weight_decay: ScalarLike | Callable[[], ScalarLike],
        learning_rate: ScalarLike | Callable[[], ScalarLike],
        momentum: ScalarLike | Callable[[], ScalarLike],
        use_locking: bool = False,
        name: str = "MomentumW",
        use_nesterov: bool = False,
    ) -> None:
        rates = {"learning_rate": learning_rate, "momentum": momentum, "use_nesterov": use_nesterov}
        super().__init__(weight_decay, **rates, use_locking=use_locking, name=name)


def extend_with_decoupled_weight_decay(base_optimizer: type[Optimizer]) -> type[Optimizer]:
    """The class of an optimizer behind a decay of the weights: its first argument is ``weight_decay``, the others go by name."""
    return type(
        f"{base_optimizer.__name__}WithDecoupledWeightDecay", (DecoupledWeightDecayExtension, base_optimizer), {}
    )
