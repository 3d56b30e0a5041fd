"""Averages of variables over the steps, which often generalize better than their last values."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import DTypeError, InvalidArgumentError
from graphdock.typing import TensorLike


class ExponentialMovingAverage:
    """Shadow variables: ``shadow = decay * shadow + (1 - decay) * value`` at each run of :meth:`apply`'s operation.

    Polyak and Juditsky, "Acceleration of stochastic approximation by averaging", 1992. The shadow of a variable begins at its
    initial value, that of a tensor at zero.

    Args:
      decay: number or scalar tensor, near 1.
      num_updates: step; the decay is then at most ``(1 + num_updates) / (10 + num_updates)``.
      zero_debias: correct averages of tensors for their beginning at zero, as Adam does (Kingma and Ba, "Adam: a method for
        stochastic optimization", 2014, section 3): the shadow is ``biased / (1 - decay ** step)`` of two more variables.
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
        #: Of a tensor whose average is corrected: the sum that began at zero, and the number of updates.
        self._biased: dict[Any, tuple[Any, Any]] = {}

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
                if _key(item) not in self._averages:
                    self._make_shadow(item)
        with _tf.name_scope(self._name) as scope:
            decay = _ops.convert_to_tensor(self._decay)
            if self._num_updates is not None:
                updates = _ops.cast(_ops.convert_to_tensor(self._num_updates), decay.dtype)
                decay = _tf.minimum(decay, (1.0 + updates) / (10.0 + updates))
            done = [self._update(item, _ops.cast(decay, item.dtype)) for item in items]
            return _tf.group(*done, name=scope)

    def _update(self, item: Any, decay: Any) -> Any:
        value = item.read_value() if isinstance(item, _tf.Variable) else item
        shadow = self._averages[_key(item)]
        if _key(item) not in self._biased:
            return shadow.assign_sub((shadow.read_value() - value) * (1.0 - decay), read_value=False)
        biased, count = self._biased[_key(item)]
        total = biased.assign_sub((biased.read_value() - value) * (1.0 - decay))
        return shadow.assign(total / (1.0 - _tf.pow(decay, count.assign_add(1.0))), read_value=False)

    def _make_shadow(self, item: Any) -> None:
        is_variable = isinstance(item, _tf.Variable)
        around = _tf.get_variable_scope().name
        name = "/".join(part for part in (around, item.op.name, self._name) if part)
        near = _tf.colocate_with(item.op) if is_variable else contextlib.nullcontext()
        with _tf.name_scope(None), near:
            if not item.shape.is_fully_defined():
                raise InvalidArgumentError(f"{item.name} needs a known shape to be averaged", got=str(item.shape))
            start = item.initialized_value() if is_variable else _tf.zeros(item.shape.as_list(), item.dtype)
            self._averages[_key(item)] = _tf.Variable(start, trainable=False, name=name)
            if self._zero_debias and not is_variable:
                below = f"{around}/{name}" if around else name
                self._biased[_key(item)] = (
                    _tf.Variable(_ops.zeros_like(start), trainable=False, name=f"{below}/biased"),
                    _tf.Variable(_tf.zeros([], item.dtype), trainable=False, name=f"{below}/local_step"),
                )
        if is_variable:
            _tf.add_to_collection(_tf.GraphKeys.MOVING_AVERAGE_VARIABLES, item)

    def average(self, var: _tf.Variable | _ops.Tensor) -> _tf.Variable | None:
        """The shadow of a variable or tensor; None where :meth:`apply` has not made one."""
        return self._averages.get(_key(var))

    def average_name(self, var: _tf.Variable | _ops.Tensor) -> str:
        """Name under which the shadow is saved."""
        shadow = self._averages.get(_key(var))
        return f"{var.op.name}/{self._name}" if shadow is None else str(shadow.op.name)

    def variables_to_restore(self, moving_avg_variables: Sequence[Any] | None = None) -> dict[str, Any]:
        """Name in a checkpoint -> Variable: averaged variables under their shadows' names, the others under their own."""
        averaged = list(_tf.trainable_variables() if moving_avg_variables is None else moving_avg_variables)
        names = {self.average_name(v): v for v in averaged}
        taken = {v.op for v in averaged}
        return {v.op.name: v for v in _tf.global_variables() if v.op not in taken} | names


def _key(item: Any) -> Any:
    """Return what tells a variable or tensor from others."""
    return item.op if isinstance(item, _tf.Variable) else item
