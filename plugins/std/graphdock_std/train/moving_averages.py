"""Averages of variables over the steps, which often generalize better than their last values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import DTypeError, InvalidArgumentError
from graphdock.typing import TensorLike

__all__ = ["ExponentialMovingAverage"]


class ExponentialMovingAverage:
    """Shadow variables: ``shadow = decay * shadow + (1 - decay) * variable`` at each run of :meth:`apply`'s operation.

    Polyak and Juditsky, "Acceleration of stochastic approximation by averaging", 1992. A shadow begins at its variable's
    initial value; that of a tensor at zero, and then the average is corrected for it.

    Args:
      decay: number or scalar tensor, near 1.
      num_updates: step; the decay is then at most ``(1 + num_updates) / (10 + num_updates)``.
      zero_debias: begin shadows of variables at zero too, and correct the average for it.
      name: ending of the shadows' names, ``W/ExponentialMovingAverage``.
    """

    def __init__(
        self,
        decay: TensorLike,
        num_updates: TensorLike | None = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        self._decay = decay
        self._num_updates = num_updates
        self._zero_debias = zero_debias
        self._name = name
        self._averages: dict[Any, Any] = {}
        self._weights: dict[Any, Any] = {}

    @property
    def name(self) -> str:
        return self._name

    def apply(self, var_list: Sequence[Any] | None = None) -> _ops.Operation:
        """An operation that updates the averages of ``var_list`` (default: the trainable variables).

        Put it after the update of the variables with ``tf.control_dependencies``.

        Raises:
          DTypeError: one of them is not floating.
        """
        items = list(_tf.trainable_variables() if var_list is None else var_list)
        for item in items:
            if not item.dtype.is_floating:
                raise DTypeError(f"{item.name} has no average", expected="a floating dtype", got=item.dtype.name)
        with _ops.init_scope():
            for item in items:
                if item.op not in self._averages:
                    self._make_shadow(item)
        with _tf.name_scope(self._name) as scope:
            decay = _ops.convert_to_tensor(self._decay)
            if self._num_updates is not None:
                updates = _ops.cast(_ops.convert_to_tensor(self._num_updates), decay.dtype)
                decay = _tf.minimum(decay, (1.0 + updates) / (10.0 + updates))
            done = []
            for item in items:
                value = item.read_value() if isinstance(item, _tf.Variable) else item
                rest = 1.0 - _ops.cast(decay, item.dtype)
                shadow = self._averages[item.op]
                done.append(shadow.assign_sub((shadow.read_value() - value) * rest, read_value=False))
                weight = self._weights.get(item.op)
                if weight is not None:
                    done.append(weight.assign_sub((weight.read_value() - 1.0) * rest, read_value=False))
            return _tf.group(*done, name=scope)

    def _make_shadow(self, item: Any) -> None:
        from_zero = self._zero_debias or not isinstance(item, _tf.Variable)
        keys = [_tf.GraphKeys.GLOBAL_VARIABLES]
        with _tf.name_scope(None), _tf.colocate_with(item.op):
            if not item.shape.is_fully_defined():
                raise InvalidArgumentError(f"{item.name} needs a known shape to be averaged", got=str(item.shape))
            start = _tf.zeros(item.shape.as_list(), item.dtype) if from_zero else item.initialized_value()
            name = f"{item.op.name}/{self._name}"
            self._averages[item.op] = _tf.Variable(start, trainable=False, collections=keys, name=name)
            if from_zero:
                self._weights[item.op] = _tf.Variable(
                    _tf.zeros([], item.dtype), trainable=False, collections=keys, name=f"{name}/weight"
                )
        if isinstance(item, _tf.Variable):
            _tf.add_to_collection(_tf.GraphKeys.MOVING_AVERAGE_VARIABLES, item)

    def average(self, var: _tf.Variable) -> _tf.Variable | _ops.Tensor | None:
        """The average of ``var``: its shadow Variable, or a corrected tensor where the shadow began at zero; else None."""
        shadow, weight = self._averages.get(var.op), self._weights.get(var.op)
        if weight is None:
            return shadow
        return shadow / _tf.where(weight > 0, weight, _ops.ones_like(weight))

    def average_name(self, var: _tf.Variable) -> str:
        """Name under which the shadow is saved."""
        shadow = self._averages.get(var.op)
        return f"{var.op.name}/{self._name}" if shadow is None else str(shadow.op.name)

    def variables_to_restore(self, moving_avg_variables: Sequence[Any] | None = None) -> dict[str, Any]:
        """Name in a checkpoint -> Variable: averaged variables under their shadows' names, the others under their own."""
        averaged = list(_tf.trainable_variables() if moving_avg_variables is None else moving_avg_variables)
        names = {self.average_name(v): v for v in averaged}
        taken = {v.op for v in averaged} | {s.op for s in self._averages.values()}
        return names | {v.op.name: v for v in _tf.global_variables() if v.op not in taken}
