"""Initial values of variables: objects that are called with a shape and a dtype.

w = tf.Variable(tf.glorot_uniform_initializer()([784, 10]))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import graphdock as _tf
import numpy as np
from graphdock import dtypes
from graphdock import ops as _ops
from graphdock.errors import ArgumentTypeError, DTypeError, InvalidArgumentError
from graphdock.typing import DTypeLike, ShapeLike, TensorLike


class Initializer:
    """Base: ``__call__(shape, dtype)`` returns the initial value. ``dtype`` of the constructor is the default one."""

    def __init__(self, dtype: DTypeLike = dtypes.float32) -> None:
        self.dtype = dtypes.as_dtype(dtype)

    def __call__(self, shape: ShapeLike, dtype: DTypeLike | None = None, partition_info: Any = None) -> _ops.Tensor:
        """The initial value. ``shape`` is a list of sizes; ``partition_info`` is taken for TensorFlow's sake."""
        return self._value(shape, self.dtype if dtype is None else dtypes.as_dtype(dtype))

    def _value(self, shape: Any, dtype: dtypes.DType) -> Any:
        raise TypeError(f"{type(self).__name__} does not define _value")


class Floating(Initializer):
    """Base of those whose values are floating numbers.

    Raises:
      DTypeError: ``dtype`` is another kind.
    """

    def __init__(self, dtype: DTypeLike = dtypes.float32) -> None:
        super().__init__(dtype)
        if not self.dtype.is_floating:
            raise DTypeError(f"{type(self).__name__} makes floating numbers", got=self.dtype.name)


class Zeros(Initializer):
    def _value(self, shape: Any, dtype: dtypes.DType) -> Any:
        return _tf.zeros(shape, dtype)


class Ones(Initializer):
    def _value(self, shape: Any, dtype: dtypes.DType) -> Any:
        return _tf.ones(shape, dtype)


class Constant(Initializer):
    """A number everywhere, or numbers in row-major order, the last of which repeats to fill the shape.


    Args:
      verify_shape: refuse a value of another shape instead.

    Raises:
      ArgumentTypeError: the value is no scalar, text, list, tuple or array, but a tensor, say.
    """

    def __init__(self, value: TensorLike = 0, dtype: DTypeLike = dtypes.float32, verify_shape: bool = False) -> None:
        super().__init__(dtype)
        if not np.isscalar(value) and not isinstance(value, list | tuple | np.ndarray):
            raise ArgumentTypeError(
                "the value of a constant initializer", expected="a scalar, a list, a tuple or an array", got=repr(value)
            )
        self.value, self.verify_shape = value, verify_shape

    def _value(self, shape: Any, dtype: dtypes.DType) -> Any:
        sizes = tuple(int(d) for d in shape)
        try:
            values = np.asarray(self.value)
        except ValueError as error:
            raise InvalidArgumentError(f"the values of a constant initializer are no array: {error}") from None
        if values.size == 0 or values.size > max(1, math.prod(sizes)):
            raise InvalidArgumentError(
                "a constant initializer of another size",
                expected=f"1 to {math.prod(sizes)} values for the shape {list(sizes)}",
                got=str(values.size),
            )
        return _ops.constant(self.value, dtype, sizes, verify_shape=self.verify_shape)


class Identity(Initializer):
    """``gain`` on the diagonal of a matrix, zero elsewhere."""

    def __init__(self, gain: float = 1.0, dtype: DTypeLike = dtypes.float32) -> None:
        super().__init__(dtype)
        self.gain = gain

    def _value(self, shape: Any, dtype: dtypes.DType) -> Any:
        sizes = [int(d) for d in shape]
        if len(sizes) != 2:
            raise InvalidArgumentError("an identity is a matrix", expected="a shape of rank 2", got=str(sizes))
        return _ops.constant(self.gain * np.eye(*sizes), dtype)


class Orthogonal(Floating):
    """A matrix with orthonormal columns, or rows where it has more columns; a tensor is one of all dims but the last.

    Saxe, McClelland and Ganguli, "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks", 2013: of
    the QR decomposition of a random normal matrix, the orthogonal part, with signs that make it even among all of them.
    """

    def __init__(self, gain: float = 1.0, seed: int | None = None, dtype: DTypeLike = dtypes.float32) -> None:
        super().__init__(dtype)
        self.gain, self.seed = gain, seed

    def _value(self, shape: Any, dtype: dtypes.DType) -> Any:
        sizes = [int(d) for d in shape]
        if len(sizes) < 2:
            raise InvalidArgumentError(
                "an orthogonal initializer needs a matrix", expected="rank 2 or more", got=str(sizes)
            )
        rows, columns = math.prod(sizes[:-1]), sizes[-1]
        drawn = _tf.random_normal([max(rows, columns), min(rows, columns)], dtype=dtype, seed=self.seed)
        q, r = _tf.qr(drawn, full_matrices=False)
        q = q * _tf.sign(_tf.diag_part(r))
        return self.gain * _tf.reshape(_tf.transpose(q) if rows < columns else q, sizes)


class RandomUniform(Initializer):
    """Even over ``[minval, maxval)``."""

    def __init__(
        self,
        minval: TensorLike = 0,
        maxval: TensorLike | None = None,
        seed: int | None = None,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__(dtype)
        self.minval, self.maxval, self.seed = minval, maxval, seed

    def _value(self, shape: Any, dtype: dtypes.DType) -> Any:
        return _tf.random_uniform(shape, self.minval, self.maxval, dtype, self.seed)


class RandomNormal(Floating):
    """Normal with this mean and standard deviation."""

    def __init__(
        self,
        mean: TensorLike = 0.0,
        stddev: TensorLike = 1.0,
        seed: int | None = None,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__(dtype)
        self.mean, self.stddev, self.seed = mean, stddev, seed

    def _value(self, shape: Any, dtype: dtypes.DType) -> Any:
        return _tf.random_normal(shape, self.mean, self.stddev, dtype, self.seed)


class TruncatedNormal(RandomNormal):
    """Normal, within two standard deviations of the mean."""

    def _value(self, shape: Any, dtype: dtypes.DType) -> Any:
        return _tf.truncated_normal(shape, self.mean, self.stddev, dtype, self.seed)


def fans(shape: Sequence[int]) -> tuple[float, float]:
    """Inputs and outputs of a unit whose weights have this shape: the last two dims, times those before them."""
    if len(shape) < 2:
        size = float(shape[0]) if shape else 1.0
        return size, size
    field = math.prod(shape[:-2])
    return float(field * shape[-2]), float(field * shape[-1])


#: Standard deviation of the standard normal distribution between -2 and 2.
_WITHIN_TWO = 0.87962566103423978


class VarianceScaling(Floating):
    """Random with variance ``scale / n``.

    Args:
      scale: positive.
      mode: what n counts: ``fan_in``, ``fan_out`` or ``fan_avg``.
      distribution: ``truncated_normal`` (or ``normal``), ``untruncated_normal`` or ``uniform``.
    """

    def __init__(
        self,
        scale: float = 1.0,
        mode: Literal["fan_in", "fan_out", "fan_avg"] = "fan_in",
        distribution: Literal["normal", "truncated_normal", "untruncated_normal", "uniform"] = "truncated_normal",
        seed: int | None = None,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__(dtype)
        if scale <= 0:
            raise InvalidArgumentError("the scale must be positive", got=str(scale))
        for value, known in (
            (mode, ("fan_in", "fan_out", "fan_avg")),
            (distribution, ("normal", "truncated_normal", "untruncated_normal", "uniform")),
        ):
            if value not in known:
                raise InvalidArgumentError(
                    f"variance_scaling does not know {value!r}", expected="one of " + ", ".join(known), got=repr(value)
                )
        self.scale, self.mode, self.distribution, self.seed = scale, mode, distribution, seed

    def _value(self, shape: Any, dtype: dtypes.DType) -> Any:
        sizes = [int(d) for d in shape]
        into, out = fans(sizes)
        n = {"fan_in": into, "fan_out": out, "fan_avg": (into + out) / 2.0}[self.mode]
        variance = self.scale / max(1.0, n)
        if self.distribution == "uniform":
            limit = math.sqrt(3.0 * variance)
            return _tf.random_uniform(sizes, -limit, limit, dtype, self.seed)
        if self.distribution == "untruncated_normal":
            return _tf.random_normal(sizes, 0.0, math.sqrt(variance), dtype, self.seed)
        return _tf.truncated_normal(sizes, 0.0, math.sqrt(variance) / _WITHIN_TWO, dtype, self.seed)


class UniformUnitScaling(Floating):
    """Even over an interval that keeps the scale of inputs: ``sqrt(3 / n) * factor`` to both sides of 0.

    n is the product of all dims but the last.

    Sussillo and Abbott, "Random walk initialization for training very deep feedforward networks", 2014.
    """

    def __init__(self, factor: float = 1.0, seed: int | None = None, dtype: DTypeLike = dtypes.float32) -> None:
        super().__init__(dtype)
        self.factor, self.seed = factor, seed

    def _value(self, shape: Any, dtype: dtypes.DType) -> Any:
        sizes = [int(d) for d in shape]
        limit = math.sqrt(3.0 / max(1.0, float(math.prod(sizes[:-1])))) * self.factor
        return _tf.random_uniform(sizes, -limit, limit, dtype, self.seed)


class GlorotUniform(VarianceScaling):
    """Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", 2010."""

    def __init__(self, seed: int | None = None, dtype: DTypeLike = dtypes.float32) -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed, dtype)


class GlorotNormal(VarianceScaling):
    """As :class:`GlorotUniform`, from the truncated normal distribution."""

    def __init__(self, seed: int | None = None, dtype: DTypeLike = dtypes.float32) -> None:
        super().__init__(1.0, "fan_avg", "truncated_normal", seed, dtype)


class HeUniform(VarianceScaling):
    """He, Zhang, Ren and Sun, "Delving deep into rectifiers", 2015."""

    def __init__(self, seed: int | None = None, dtype: DTypeLike = dtypes.float32) -> None:
        super().__init__(2.0, "fan_in", "uniform", seed, dtype)


class HeNormal(VarianceScaling):
    """As :class:`HeUniform`, from the truncated normal distribution."""

    def __init__(self, seed: int | None = None, dtype: DTypeLike = dtypes.float32) -> None:
        super().__init__(2.0, "fan_in", "truncated_normal", seed, dtype)


class LecunUniform(VarianceScaling):
    """LeCun, Bottou, Orr and Mueller, "Efficient backprop", 1998."""

    def __init__(self, seed: int | None = None, dtype: DTypeLike = dtypes.float32) -> None:
        super().__init__(1.0, "fan_in", "uniform", seed, dtype)


class LecunNormal(VarianceScaling):
    """As :class:`LecunUniform`, from the truncated normal distribution."""

    def __init__(self, seed: int | None = None, dtype: DTypeLike = dtypes.float32) -> None:
        super().__init__(1.0, "fan_in", "truncated_normal", seed, dtype)
