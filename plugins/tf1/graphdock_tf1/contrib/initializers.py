"""Initialisers as contrib has them."""

from __future__ import annotations

import math
from typing import Any, Literal

import graphdock as _tf
from graphdock import dtypes
from graphdock.errors import DTypeError, InvalidArgumentError
from graphdock.typing import DTypeLike
from graphdock_std.variables.initializers import Initializer, fans


class _VarianceScaling(Initializer):
    def __init__(self, factor: float, mode: str, uniform: bool, seed: int | None, dtype: DTypeLike) -> None:
        super().__init__(dtype)
        self.factor, self.mode, self.uniform, self.seed = factor, mode, uniform, seed

    def _value(self, shape: Any, dtype: dtypes.DType) -> Any:
        sizes = [int(d) for d in shape]
        into, out = fans(sizes)
        n = {"FAN_IN": into, "FAN_OUT": out, "FAN_AVG": (into + out) / 2.0}[self.mode]
        if self.uniform:
            limit = math.sqrt(3.0 * self.factor / n)
            return _tf.random_uniform(sizes, -limit, limit, dtype, self.seed)
        # a truncated normal distribution is narrower: 1.3 makes up for it
        return _tf.truncated_normal(sizes, 0.0, math.sqrt(1.3 * self.factor / n), dtype, self.seed)


def variance_scaling_initializer(
    factor: float = 2.0,
    mode: Literal["FAN_IN", "FAN_OUT", "FAN_AVG"] = "FAN_IN",
    uniform: bool = False,
    seed: int | None = None,
    dtype: DTypeLike = dtypes.float32,
) -> Initializer:
    """Random with a variance of ``factor / n`` (He, Zhang, Ren and Sun, "Delving deep into rectifiers", 2015).

    Args:
      mode: what n counts: inputs, outputs, or the mean of both.
      uniform: even, else from a truncated normal distribution.

    Raises:
      InvalidArgumentError: no such mode. DTypeError: not floating.
    """
    if mode not in ("FAN_IN", "FAN_OUT", "FAN_AVG"):
        raise InvalidArgumentError("no such mode", expected="FAN_IN, FAN_OUT or FAN_AVG", got=repr(mode))
    if not dtypes.as_dtype(dtype).is_floating:
        raise DTypeError("an initial value of random numbers is floating", got=dtypes.as_dtype(dtype).name)
    return _VarianceScaling(factor, mode, uniform, seed, dtype)


def xavier_initializer(uniform: bool = True, seed: int | None = None, dtype: DTypeLike = dtypes.float32) -> Initializer:
    """Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", 2010."""
    return variance_scaling_initializer(1.0, "FAN_AVG", uniform, seed, dtype)
