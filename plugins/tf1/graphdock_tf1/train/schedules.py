"""Learning rates that change with the step: functions of a step tensor that return a scalar tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError
from graphdock.typing import TensorLike

from graphdock_tf1.signatures import like


def _step(what: str, learning_rate: Any, global_step: Any) -> tuple[Any, Any]:
    """The rate as a tensor, and the step in its dtype."""
    if global_step is None:
        raise InvalidArgumentError(f"{what} needs a global_step", hint="tf.train.get_or_create_global_step()")
    rate = _ops.convert_to_tensor(learning_rate)
    return rate, _ops.cast(_ops.convert_to_tensor(global_step), rate.dtype)


def _periods(what: str, rate: Any, step: Any, decay_steps: Any, staircase: bool) -> tuple[Any, Any]:
    rate, step = _step(what, rate, step)
    passed = step / _ops.cast(_ops.convert_to_tensor(decay_steps), rate.dtype)
    return rate, _tf.floor(passed) if staircase else passed


def exponential_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    decay_rate: TensorLike,
    staircase: bool = False,
    name: str | None = None,
) -> _ops.Tensor:
    """``learning_rate * decay_rate ** (global_step / decay_steps)``; in steps of ``decay_steps`` if ``staircase``."""
    with _tf.name_scope(name or "ExponentialDecay") as scope:
        rate, periods = _periods("exponential_decay", learning_rate, global_step, decay_steps, staircase)
        return _tf.multiply(rate, _tf.pow(_ops.convert_to_tensor(decay_rate, rate.dtype), periods), name=scope)


@like(exponential_decay)
def natural_exp_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any, staircase: Any, name: Any
) -> _ops.Tensor:
    """``learning_rate * exp(-decay_rate * global_step / decay_steps)``."""
    with _tf.name_scope(name or "NaturalExpDecay") as scope:
        rate, periods = _periods("natural_exp_decay", learning_rate, global_step, decay_steps, staircase)
        return _tf.multiply(rate, _tf.exp(-_ops.convert_to_tensor(decay_rate, rate.dtype) * periods), name=scope)


@like(exponential_decay)
def inverse_time_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any, staircase: Any, name: Any
) -> _ops.Tensor:
    """``learning_rate / (1 + decay_rate * global_step / decay_steps)``."""
    with _tf.name_scope(name or "InverseTimeDecay") as scope:
        rate, periods = _periods("inverse_time_decay", learning_rate, global_step, decay_steps, staircase)
        return _tf.truediv(rate, 1.0 + _ops.convert_to_tensor(decay_rate, rate.dtype) * periods, name=scope)


def polynomial_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    end_learning_rate: TensorLike = 0.0001,
    power: TensorLike = 1.0,
    cycle: bool = False,
    name: str | None = None,
) -> _ops.Tensor:
    """``(learning_rate - end) * (1 - step / decay_steps) ** power + end``, where the step stops at ``decay_steps``.

    With ``cycle`` it does not stop: ``decay_steps`` grows to its next multiple instead.
    """
    with _tf.name_scope(name or "PolynomialDecay") as scope:
        rate, step = _step("polynomial_decay", learning_rate, global_step)
        end = _ops.convert_to_tensor(end_learning_rate, rate.dtype)
        length = _ops.cast(_ops.convert_to_tensor(decay_steps), rate.dtype)
        if cycle:
            length = length * _tf.maximum(_tf.ceil(step / length), _ops.ones_like(step))
        else:
            step = _tf.minimum(step, length)
        left = _tf.pow(1.0 - step / length, _ops.convert_to_tensor(power, rate.dtype))
        return _tf.add((rate - end) * left, end, name=scope)


def cosine_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    alpha: float = 0.0,
    name: str | None = None,
) -> _ops.Tensor:
    """Half a cosine from ``learning_rate`` to ``alpha * learning_rate`` over ``decay_steps``, then constant.

    Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts", 2016.
    """
    with _tf.name_scope(name or "CosineDecay"):
        rate, step = _step("cosine_decay", learning_rate, global_step)
        length = _ops.cast(_ops.convert_to_tensor(decay_steps), rate.dtype)
        done = _tf.minimum(step, length) / length
        return rate * ((1.0 - alpha) * 0.5 * (1.0 + _tf.cos(done * math.pi)) + alpha)


def cosine_decay_restarts(
    learning_rate: TensorLike,
    global_step: TensorLike,
    first_decay_steps: TensorLike,
    t_mul: float = 2.0,
    m_mul: float = 1.0,
    alpha: float = 0.0,
    name: str | None = None,
) -> _ops.Tensor:
    """Half a cosine from ``learning_rate`` to ``alpha * learning_rate``, again and again.

    Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts", 2016.

    Args:
      first_decay_steps: length of the first half cosine, a number or a scalar tensor.
      t_mul: each is so many times as long as the one before; a number of at least 1.
      m_mul: each begins at so many times the rate at which the one before began; a number.
    """
    with _tf.name_scope(name or "SGDRDecay"):
        rate, step = _step("cosine_decay_restarts", learning_rate, global_step)
        passed = step / _ops.cast(_ops.convert_to_tensor(first_decay_steps), rate.dtype)
        if t_mul == 1.0:
            restarts = _tf.floor(passed)
            passed = passed - restarts
        else:
            restarts = _tf.floor(_tf.log(1.0 - passed * (1.0 - t_mul)) / math.log(t_mul))
            length = _tf.pow(_ops.constant(t_mul, rate.dtype), restarts)
            passed = (passed - (1.0 - length) / (1.0 - t_mul)) / length
        height = _tf.pow(_ops.constant(m_mul, rate.dtype), restarts)
        return rate * ((1.0 - alpha) * 0.5 * height * (1.0 + _tf.cos(passed * math.pi)) + alpha)


def linear_cosine_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    num_periods: float = 0.5,
    alpha: float = 0.0,
    beta: float = 0.001,
    name: str | None = None,
) -> _ops.Tensor:
    """``learning_rate * ((alpha + linear) * cosine + beta)``: a line to zero over ``decay_steps`` times ``num_periods`` cosines.

    Bello and others, "Neural optimizer search with reinforcement learning", 2017.
    """
    with _tf.name_scope(name or "LinearCosineDecay"):
        rate, linear, cosine, _ = _linear_cosine(
            "linear_cosine_decay", learning_rate, global_step, decay_steps, num_periods
        )
        return rate * ((alpha + linear) * cosine + beta)


def noisy_linear_cosine_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    initial_variance: float = 1.0,
    variance_decay: float = 0.55,
    num_periods: float = 0.5,
    alpha: float = 0.0,
    beta: float = 0.001,
    name: str | None = None,
) -> _ops.Tensor:
    """:func:`linear_cosine_decay`, whose line has noise of variance ``initial_variance / (1 + global_step) ** variance_decay``.

    Bello and others, "Neural optimizer search with reinforcement learning", 2017. Another number at each evaluation.
    """
    with _tf.name_scope(name or "NoisyLinearCosineDecay"):
        rate, linear, cosine, step = _linear_cosine(
            "noisy_linear_cosine_decay", learning_rate, global_step, decay_steps, num_periods
        )
        spread = _tf.sqrt(initial_variance / _tf.pow(1.0 + step, _ops.constant(variance_decay, rate.dtype)))
        noise = spread * _tf.random_normal([], dtype=rate.dtype)
        return rate * ((alpha + linear + noise) * cosine + beta)


def _linear_cosine(what: str, rate: Any, step: Any, decay_steps: Any, num_periods: float) -> tuple[Any, Any, Any, Any]:
    """The rate, the line, the cosines and the step, which stops at ``decay_steps``."""
    rate, step = _step(what, rate, step)
    length = _ops.cast(_ops.convert_to_tensor(decay_steps), rate.dtype)
    step = _tf.minimum(step, length)
    cosine = 0.5 * (1.0 + _tf.cos(2.0 * num_periods * step / length * math.pi))
    return rate, (length - step) / length, cosine, step


def piecewise_constant(
    x: TensorLike,
    boundaries: Sequence[float] | Sequence[TensorLike],
    values: Sequence[TensorLike],
    name: str | None = None,
) -> _ops.Tensor:
    """``values[0]`` while ``x <= boundaries[0]``, then ``values[1]`` while ``x <= boundaries[1]``, and so on.

    Args:
      x: scalar step.
      boundaries: increasing numbers.
      values: one more than ``boundaries``, numbers or scalar tensors of one dtype.

    Raises:
      InvalidArgumentError: the lengths do not fit, or the boundaries do not increase.
    """
    if len(values) != len(boundaries) + 1:
        raise InvalidArgumentError(
            "piecewise_constant needs one value more than boundaries",
            expected=f"{len(boundaries) + 1} values",
            got=str(len(values)),
        )
    if any(b <= a for a, b in zip(boundaries, boundaries[1:], strict=False)):
        raise InvalidArgumentError("the boundaries must increase", got=str(list(boundaries)))
    select: Callable[..., Any] = _tf.where
    with _tf.name_scope(name or "PiecewiseConstant"):
        step = _ops.convert_to_tensor(x)
        found = _ops.convert_to_tensor(values[-1])
        for boundary, value in zip(reversed(boundaries), reversed(values[:-1]), strict=True):
            before = step <= _ops.convert_to_tensor(boundary, step.dtype)
            found = select(before, _ops.convert_to_tensor(value, found.dtype), found)
        return found


#: Today's name in TensorFlow 1.15.
piecewise_constant_decay = piecewise_constant
