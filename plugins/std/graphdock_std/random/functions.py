"""Public random functions: TensorFlow 1's names and seeds over the counter-based ops.

Seeds: the graph's seed (:func:`set_random_seed`) and an op's make the key of its stream. Without either the key is new
in each session. With a graph seed alone the ops of the graph count up, so that a program that builds the same graph
draws the same numbers. With an op seed alone the graph's is :data:`DEFAULT_GRAPH_SEED`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as _tf
import numpy as np
from graphdock import dtypes
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError
from graphdock.typing import DTypeLike, ShapeLike, TensorLike

from graphdock_std.array.functions import known_dims

#: Graph seed of an op that has a seed of its own in a graph that has none; TensorFlow's.
DEFAULT_GRAPH_SEED = 87654321
_MASK = (1 << 63) - 1


def _outermost() -> Any:
    graph = _tf.get_default_graph()
    while hasattr(graph, "outer"):
        graph = graph.outer
    return graph


def set_random_seed(seed: int | None) -> None:
    """Give the default graph a seed. Ops made before keep the keys they have; None takes the seed away."""
    _outermost().seed = None if seed is None else int(seed)


def get_seed(op_seed: int | None) -> tuple[int | None, int | None]:
    """The two seeds of an op that is made now in the default graph, or (None, None) for a new key in each session."""
    graph = _outermost()
    if graph.seed is None:
        return (None, None) if op_seed is None else (DEFAULT_GRAPH_SEED, int(op_seed) & _MASK)
    if op_seed is None:
        graph._last_seed += 1
        op_seed = graph._last_seed
    pair = graph.seed & _MASK, int(op_seed) & _MASK
    return (0, (1 << 31) - 1) if pair == (0, 0) else pair


def op_seeds(seed: int | None) -> dict[str, int]:
    """The seed attributes of an op that is made now."""
    graph_seed, op_seed = get_seed(seed)
    return {"seed": graph_seed or 0, "seed2": op_seed or 0}


def shape_input(shape: Any) -> Any:
    """A shape as the op takes it: tensors as they are, everything else as int32 or int64."""
    if isinstance(shape, _tf.Tensor | _tf.Variable):
        return shape
    dims = getattr(shape, "dims", shape)
    if isinstance(dims, list | tuple) and any(isinstance(d, _tf.Tensor) for d in dims):
        return _tf.stack(list(dims))
    if dims is None or (isinstance(dims, list | tuple) and None in dims):
        raise InvalidArgumentError("the shape to draw has unknown dims", got=str(shape), hint="pass tf.shape(x)")
    values = dims if isinstance(dims, np.ndarray) else np.array(known_dims(dims), np.int64)
    if values.size == 0 or values.dtype.kind in "iu" and values.max() <= np.iinfo(np.int32).max:
        values = values.astype(np.int32)
    return values


def _scaled(
    op: str, scope: str, shape: Any, scale: Any, offset: Any, dtype: Any, seed: int | None, name: str | None
) -> Any:
    """``op * scale + offset``; neither is built where it is 1 or 0."""
    kind = dtypes.as_dtype(dtype)
    scaled, moved = not _is(scale, 1), not _is(offset, 0)
    with _tf.name_scope(name or scope) as whole:
        draws = _ops.apply_op(
            op, shape=shape_input(shape), dtype=kind, name=None if scaled or moved else whole, **op_seeds(seed)
        )
        if scaled:
            factor = _ops.convert_to_tensor(scale, kind)
            draws = _tf.multiply(draws, factor, name="mul" if moved else whole)
        return _tf.add(draws, _ops.convert_to_tensor(offset, kind), name=whole) if moved else draws


def _is(value: Any, number: int) -> bool:
    return isinstance(value, int | float) and value == number


def random_uniform(
    shape: ShapeLike | TensorLike,
    minval: TensorLike = 0,
    maxval: TensorLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> _ops.Tensor:
    """Numbers evenly distributed over ``[minval, maxval)``. What rounding would make ``maxval`` is ``minval``.

    Args:
      shape: list of sizes, or an integer tensor.
      minval, maxval: numbers or scalar tensors; ``maxval`` is 1 by default for floating dtypes, needed for integers.
      dtype: float16, bfloat16, float32, float64, int32 or int64.
      seed: see :func:`set_random_seed`.
    """
    kind = dtypes.as_dtype(dtype)
    if kind.is_integer:
        if maxval is None:
            raise InvalidArgumentError(f"random_uniform of {kind.name} needs maxval")
        with _tf.name_scope(name or "random_uniform") as scope:
            limits = {"minval": _ops.convert_to_tensor(minval, kind), "maxval": _ops.convert_to_tensor(maxval, kind)}
            return _ops.apply_op("RandomUniformInt", name=scope, shape=shape_input(shape), **limits, **op_seeds(seed))
    top = 1 if maxval is None else maxval
    rounded = reaches(minval, top, kind)
    with _tf.name_scope(name or "random_uniform") as scope:
        if rounded is None:
            top, minval = _ops.convert_to_tensor(top, kind), _ops.convert_to_tensor(minval, kind)
        elif not rounded:
            return _scaled("RandomUniform", "", shape, top - minval, minval, kind, seed, scope)
        draws = _scaled("RandomUniform", "draws", shape, top - minval, minval, kind, seed, None)
        top, minval = _ops.convert_to_tensor(top, kind), _ops.convert_to_tensor(minval, kind)
        return _tf.select(_tf.equal(draws, top), minval, draws, name=scope)


#: Bits that a uniform number has.
_BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


def reaches(low: Any, high: Any, dtype: dtypes.DType) -> bool | None:
    """Return whether the largest uniform number, scaled to ``[low, high)``, is rounded to ``high``; None for tensors."""
    if not (isinstance(low, int | float) and isinstance(high, int | float)):
        return None
    kind = dtype.np.type
    with np.errstate(all="ignore"):
        largest = kind(1 - 2.0 ** -_BITS[dtype.name]) * kind(high - low) + kind(low)
    return bool(high != low and kind(largest) == kind(high))


def random_normal(
    shape: ShapeLike | TensorLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> _ops.Tensor:
    """Numbers of the normal distribution. ``mean`` and ``stddev`` are numbers, or tensors that broadcast to ``shape``.

    Floating ``dtype`` only; ``seed`` as for :func:`random_uniform`.
    """
    return _scaled("RandomStandardNormal", "random_normal", shape, stddev, mean, dtype, seed, name)


def truncated_normal(
    shape: ShapeLike | TensorLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> _ops.Tensor:
    """Numbers of the normal distribution that lie within two standard deviations of the mean."""
    return _scaled("TruncatedNormal", "truncated_normal", shape, stddev, mean, dtype, seed, name)


def random_shuffle(value: TensorLike, seed: int | None = None, name: str | None = None) -> _ops.Tensor:
    """The rows of ``value``, along its first dim, in random order."""
    shuffle: Callable[..., Any] = _ops.apply_op
    return shuffle("RandomShuffle", value=value, name=name, **op_seeds(seed))
