"""Public functions that draw from distributions with parameters, and those whose only state is their seed.

Names, argument names and defaults are TensorFlow 1's; the numbers are of graphdock's streams, the same on every backend.
"""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import dtypes
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError
from graphdock.typing import DTypeLike, ShapeLike, TensorLike

from graphdock_std.random.functions import op_seeds, reaches, shape_input


def _count(num_samples: Any) -> Any:
    return num_samples if isinstance(num_samples, _tf.Tensor) else _ops.convert_to_tensor(num_samples, dtypes.int32)


def multinomial(
    logits: TensorLike,
    num_samples: TensorLike,
    seed: int | None = None,
    name: str | None = None,
    output_dtype: DTypeLike | None = None,
) -> _ops.Tensor:
    """Classes drawn at random with these unnormalised log-probabilities.

    Args:
      logits: ``[batch, classes]``. A class whose logit is not finite is never drawn.
      num_samples: scalar; how many are drawn per row, with replacement.
      seed: see ``tf.set_random_seed``.
      output_dtype: int64 (default) or int32.

    Returns:
      ``[batch, num_samples]``.

    Raises:
      InvalidArgumentError: in the step: a row without a finite logit.
    """
    kind = dtypes.int64 if output_dtype is None else dtypes.as_dtype(output_dtype)
    count, seeds = _count(num_samples), op_seeds(seed)
    return _ops.apply_op("Multinomial", logits=logits, num_samples=count, output_dtype=kind, name=name, **seeds)


def categorical(
    logits: TensorLike,
    num_samples: TensorLike,
    dtype: DTypeLike | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> _ops.Tensor:
    """:func:`multinomial` with another order of arguments."""
    return multinomial(logits, num_samples, seed, name or "categorical", dtype)


def random_gamma(
    shape: ShapeLike | TensorLike,
    alpha: TensorLike,
    beta: TensorLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> _ops.Tensor:
    """Numbers of gamma distributions, ``shape`` of each.

    Args:
      alpha: shape parameters.
      beta: inverse scales; 1 by default. Broadcasts with ``alpha``.
      dtype: float16, bfloat16, float32 or float64.

    Returns:
      A tensor of shape ``shape + (alpha + beta).shape``, of numbers above 0. A gradient flows to ``beta``, none to ``alpha``.
    """
    kind = dtypes.as_dtype(dtype)
    with _tf.name_scope(name or "random_gamma"):
        alpha = _ops.convert_to_tensor(alpha, kind)
        if beta is not None:
            beta = _ops.convert_to_tensor(beta, kind)
            alpha = alpha + _ops.zeros_like(beta)
        draws = _ops.apply_op("RandomGamma", shape=shape_input(shape), alpha=alpha, **op_seeds(seed))
        smallest = _ops.constant(kind._limits().tiny, kind)
        return _tf.maximum(smallest, draws if beta is None else draws / beta)


def random_poisson(
    lam: TensorLike,
    shape: ShapeLike | TensorLike,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> _ops.Tensor:
    """Numbers of Poisson distributions, ``shape`` of each.

    Args:
      lam: rates: float16, bfloat16, float32, float64, int32 or int64.
      dtype: of the result; one of the same.

    Returns:
      A tensor of shape ``shape + lam.shape``; NaN where a rate is negative or not finite.
    """
    kind = dtypes.as_dtype(dtype)
    with _tf.name_scope(name or "random_poisson"):
        lam = lam if isinstance(lam, _tf.Tensor) else _ops.convert_to_tensor(lam)
        return _ops.apply_op("RandomPoisson", shape=shape_input(shape), lam=lam, dtype=kind, **op_seeds(seed))


def stateless_random_uniform(
    shape: ShapeLike | TensorLike,
    seed: TensorLike,
    minval: TensorLike = 0,
    maxval: TensorLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> _ops.Tensor:
    """Numbers evenly distributed over ``[minval, maxval)``: the same ones for the same seed, in every step.

    Args:
      seed: two integers, int32 or int64.
      minval, maxval: as for ``tf.random_uniform``; ``maxval`` is needed for integers.
      dtype: float16, bfloat16, float32, float64, int32 or int64.
    """
    kind = dtypes.as_dtype(dtype)
    if maxval is None and kind.is_integer:
        raise InvalidArgumentError(f"stateless_random_uniform of {kind.name} needs maxval")
    with _tf.name_scope(name or "stateless_random_uniform"):
        top = 1 if maxval is None else maxval
        if kind.is_integer:
            limits = {"minval": _ops.convert_to_tensor(minval, kind), "maxval": _ops.convert_to_tensor(top, kind)}
            return _ops.apply_op("StatelessRandomUniformInt", shape=shape_input(shape), seed=seed, **limits)
        exact = reaches(minval, top, kind) is False
        low, high = _ops.convert_to_tensor(minval, kind), _ops.convert_to_tensor(top, kind)
        draws = _ops.apply_op("StatelessRandomUniform", shape=shape_input(shape), seed=seed, dtype=kind)
        draws = draws * (high - low) + low
        return draws if exact else _tf.select(_tf.equal(draws, high), low, draws)


def _scaled(op: str, shape: Any, seed: Any, mean: Any, stddev: Any, dtype: Any, name: str) -> Any:
    kind = dtypes.as_dtype(dtype)
    with _tf.name_scope(name):
        draws = _ops.apply_op(op, shape=shape_input(shape), seed=seed, dtype=kind)
        return draws * _ops.convert_to_tensor(stddev, kind) + _ops.convert_to_tensor(mean, kind)


def stateless_random_normal(
    shape: ShapeLike | TensorLike,
    seed: TensorLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> _ops.Tensor:
    """Numbers of the normal distribution: the same ones for the same ``seed`` (two integers), in every step."""
    return _scaled("StatelessRandomNormal", shape, seed, mean, stddev, dtype, name or "stateless_random_normal")


def stateless_truncated_normal(
    shape: ShapeLike | TensorLike,
    seed: TensorLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> _ops.Tensor:
    """As :func:`stateless_random_normal`, within two standard deviations of the mean."""
    return _scaled("StatelessTruncatedNormal", shape, seed, mean, stddev, dtype, name or "stateless_truncated_normal")


def stateless_multinomial(
    logits: TensorLike,
    num_samples: TensorLike,
    seed: TensorLike,
    output_dtype: DTypeLike = dtypes.int64,
    name: str | None = None,
) -> _ops.Tensor:
    """As :func:`multinomial`, by ``seed`` (two integers) alone."""
    kind, count = dtypes.as_dtype(output_dtype), _count(num_samples)
    op = "StatelessMultinomial"
    return _ops.apply_op(op, logits=logits, num_samples=count, seed=seed, output_dtype=kind, name=name)


def stateless_categorical(
    logits: TensorLike,
    num_samples: TensorLike,
    seed: TensorLike,
    dtype: DTypeLike = dtypes.int64,
    name: str | None = None,
) -> _ops.Tensor:
    """:func:`stateless_multinomial` under its later name."""
    return stateless_multinomial(logits, num_samples, seed, dtype, name or "stateless_categorical")
