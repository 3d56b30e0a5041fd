"""Learning rates that change with the step: functions of a step tensor that return a scalar tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError
from graphdock.typing import TensorLike

__all__ = [
    "cosine_decay",
    "exponential_decay",
    "inverse_time_decay",
    "natural_exp_decay",
    "piecewise_constant",
    "polynomial_decay",
]


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
    with _tf.name_scope(name or "ExponentialDecay"):
        rate, periods = _periods("exponential_decay", learning_rate, global_step, decay_steps, staircase)
        return rate * _tf.pow(_ops.convert_to_tensor(decay_rate, rate.dtype), periods)


def natural_exp_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    decay_rate: TensorLike,
    staircase: bool = False,
    name: str | None = None,
) -> _ops.Tensor:
    """``learning_rate * exp(-decay_rate * global_step / decay_steps)``."""
    with _tf.name_scope(name or "NaturalExpDecay"):
        rate, periods = _periods("natural_exp_decay", learning_rate, global_step, decay_steps, staircase)
        return rate * _tf.exp(-_ops.convert_to_tensor(decay_rate, rate.dtype) * periods)


def inverse_time_decay(
    learning_rate: TensorLike,
    global_step: TensorLike,
    decay_steps: TensorLike,
    decay_rate: TensorLike,
    staircase: bool = False,
    name: str | None = None,
) -> _ops.Tensor:
    """``learning_rate / (1 + decay_rate * global_step / decay_steps)``."""
    with _tf.name_scope(name or "InverseTimeDecay"):
        rate, periods = _periods("inverse_time_decay", learning_rate, global_step, decay_steps, staircase)
        return rate / (1.0 + _ops.convert_to_tensor(decay_rate, rate.dtype) * periods)


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
    with _tf.name_scope(name or "PolynomialDecay"):
        rate, step = _step("polynomial_decay", learning_rate, global_step)
        end = _ops.convert_to_tensor(end_learning_rate, rate.dtype)
        length = _ops.cast(_ops.convert_to_tensor(decay_steps), rate.dtype)
        if cycle:
            length = length * _tf.maximum(_tf.ceil(step / length), _ops.ones_like(step))
        else:
            step = _tf.minimum(step, length)
        return (rate - end) * _tf.pow(1.0 - step / length, _ops.convert_to_tensor(power, rate.dtype)) + end


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
