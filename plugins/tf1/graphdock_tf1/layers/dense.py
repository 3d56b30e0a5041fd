"""Dense: a matrix, a bias and an activation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

import graphdock as _tf
from graphdock.errors import DTypeError, InvalidArgumentError, ShapeError

from graphdock_tf1.layers.functional import layer_function
from graphdock_tf1.layers.input_spec import InputSpec
from graphdock_tf1.layers.weighted import Weighted, WeightedKeywords


class Dense(Weighted):
    """``activation(inputs @ kernel + bias)``, with variables ``dense/kernel`` and ``dense/bias``.

    Args:
      inputs: of a call, floating tensor ``[..., n]`` of rank 2 or more.
      units: size of the last dim of the result.
      activation: function of a tensor, or its name below ``tf.nn``; None for none.
      use_bias: whether there is a bias.
      kernel_initializer, bias_initializer: of the variables; None: the variable scope's, else Glorot's uniform one.
      kernel_regularizer, bias_regularizer: functions of a variable; the results join ``GraphKeys.REGULARIZATION_LOSSES``.
      activity_regularizer: function of the output, whose result joins them, divided by the size of the batch.
      kernel_constraint, bias_constraint: functions that optimizers apply to a variable after they have changed it.
      trainable: whether optimizers change the variables.
      name: the variable scope; default: ``dense``, ``dense_1`` for the second.
      reuse: of the function. True: the variables must exist; ``tf.AUTO_REUSE``: they are made where they do not.

    Returns:
      A tensor ``[..., units]``.

    Raises:
      ShapeError: the last dim is not known, or the rank is below 2. DTypeError: the inputs are not floating.
      AlreadyExistsError, NotFoundError: of variables, as ``tf.get_variable``.
    """

    def __init__(
        self,
        units: int,
        activation: Callable[[Any], Any] | str | None = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = "zeros",
        kernel_regularizer: Callable[[Any], Any] | None = None,
        bias_regularizer: Callable[[Any], Any] | None = None,
        activity_regularizer: Callable[[Any], Any] | None = None,
        kernel_constraint: Callable[[Any], Any] | None = None,
        bias_constraint: Callable[[Any], Any] | None = None,
        trainable: bool = True,
        name: str | None = None,
        **keywords: Unpack[WeightedKeywords],
    ) -> None:
        super().__init__(locals())
        self.units = int(units)
        if self.units <= 0:
            raise InvalidArgumentError("a dense layer needs units", expected="a positive number", got=str(units))
        self.input_spec = InputSpec(min_ndim=2)

    def build(self, input_shape: Any) -> None:
        if self.dtype is not None and not (self.dtype.is_floating or self.dtype.is_complex):
            raise DTypeError(
                f"the layer {self.name!r} multiplies floating numbers", expected="floating", got=self.dtype.name
            )
        last = _tf.TensorShape(input_shape)[-1].value
        if last is None:
            raise ShapeError(
                f"the layer {self.name!r} must know the last dim of its inputs",
                expected="a number",
                got=str(input_shape),
            )
        self.input_spec = InputSpec(min_ndim=2, axes={-1: last})
        self.kernel = self._variable("kernel", [last, self.units], "kernel")
        self._build_bias(self.units)

    def call(self, inputs: Any) -> Any:
        if inputs.shape.rank in (None, 2):
            outputs = _tf.matmul(inputs, self.kernel)
        else:
            outputs = _tf.tensordot(inputs, self.kernel, [[inputs.shape.rank - 1], [0]])
            outputs.set_shape([*inputs.shape.as_list()[:-1], self.units])
        return self._finish(outputs)

    def compute_output_shape(self, input_shape: Any) -> _tf.TensorShape:
        dims = _tf.TensorShape(input_shape).with_rank_at_least(2)
        if dims.rank is None or dims.as_list()[-1] is None:
            raise ShapeError("dense needs to know the last dim of its input", got=str(dims))
        return _tf.TensorShape([*dims.as_list()[:-1], self.units])


dense = layer_function(Dense)
