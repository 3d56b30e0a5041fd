"""Weighted: a layer with a kernel, a bias and an activation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import graphdock as _tf

from graphdock_tf1.layers.base import Layer, LayerKeywords
from graphdock_tf1.layers.lookup import activation_of, initializer_of


class WeightedKeywords(LayerKeywords, total=False):
    """Keywords that a class hands on to :class:`Layer`; ``reuse``, which its function alone takes, is here for type checkers."""

    reuse: Any


class Weighted(Layer):
    """Base of dense layers and convolutions: their arguments, which are attributes, and their variables."""

    activation: Callable[[Any], Any] | None
    use_bias: bool
    kernel_initializer: Any
    bias_initializer: Any
    kernel_regularizer: Callable[[Any], Any] | None
    bias_regularizer: Callable[[Any], Any] | None
    kernel_constraint: Callable[[Any], Any] | None
    bias_constraint: Callable[[Any], Any] | None
    kernel: Any = None
    bias: Any = None
    _bias_format = "NHWC"

    def __init__(self, given: Mapping[str, Any]) -> None:
        """Of the arguments of a class of layers, by their names; ``keywords`` are those that it only hands on."""
        super().__init__(
            given["trainable"], given["name"], activity_regularizer=given["activity_regularizer"], **given["keywords"]
        )
        self._keep(given)

    def _keep(self, given: Mapping[str, Any]) -> None:
        """Make attributes of arguments: of the activation, and of initializers, regularizers and constraints of each variable."""
        self.activation = activation_of(given["activation"])
        self.use_bias = given["use_bias"]
        for name, value in given.items():
            if name.endswith("_initializer"):
                setattr(self, name, initializer_of(value))
            elif name.endswith(("_regularizer", "_constraint")):
                setattr(self, name, value)

    def _variable(self, name: str, shape: list[int], prefix: str) -> Any:
        """A variable with the initializer, regularizer and constraint of a prefix, such as ``bias``."""
        return self.add_weight(
            name,
            shape,
            initializer=getattr(self, f"{prefix}_initializer"),
            regularizer=getattr(self, f"{prefix}_regularizer"),
            constraint=getattr(self, f"{prefix}_constraint"),
        )

    def _build_bias(self, size: int) -> None:
        if self.use_bias:
            self.bias = self._variable("bias", [size], "bias")
        self.built = True

    def _finish(self, made: Any) -> Any:
        if self.use_bias:
            made = _tf.nn.bias_add(made, self.bias, data_format=self._bias_format)
        return made if self.activation is None else self.activation(made)
