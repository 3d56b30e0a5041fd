"""Checks gradients against differences of the function itself: two means that share nothing but the forward ops.

    check_gradients(y, {x: np.random.rand(3, 4)})          # raises AssertionError where they differ

Central differences in float64 along random directions: the symbolic gradient ``g`` for a random cotangent ``u`` must satisfy
``<g, d> = <u, (y(x + eps d) - y(x - eps d)) / 2 eps>`` for every direction ``d``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from graphdock.errors import DTypeError, InvalidArgumentError
from graphdock.gradients.backprop import gradients
from graphdock.graph.tensor import Tensor
from graphdock.ops.convert import convert_to_tensor
from graphdock.ops.core import placeholder
from graphdock.session.session import Session

__all__ = [
    "GradientDifference",
    "check_gradients",
    "compute_gradient",
    "compute_gradient_error",
    "gradient_differences",
]


@dataclass(frozen=True, slots=True)
class GradientDifference:
    """One directional derivative by both means.

    Attributes:
      name: the tensor by which the derivative was taken.
      symbolic: from the graph that ``gradients`` built. ``numeric``: from differences.
    """

    name: str
    symbolic: float
    numeric: float

    @property
    def error(self) -> float:
        """Relative to the larger of the two and 1."""
        return abs(self.symbolic - self.numeric) / max(1.0, abs(self.symbolic), abs(self.numeric))


def _needs_float64(tensors: Sequence[Tensor], what: str) -> None:
    for tensor in tensors:
        if tensor.dtype.name != "float64":
            raise DTypeError(f"{what} {tensor.name} must be float64 for a numeric check", got=tensor.dtype.name)


def gradient_differences(
    ys: Any,
    values: Mapping[Tensor, Any],
    feed_dict: Mapping[Any, Any] | None = None,
    session: Any = None,
    eps: float = 1e-6,
    directions: int = 2,
    seed: int = 0,
) -> list[GradientDifference]:
    """Directional derivatives of ``ys`` by each tensor of ``values``, by both means.

    Args:
      ys: a float64 tensor or a list of them.
      values: float64 tensor (it is fed) -> where the derivative is taken.
      feed_dict: what else must be fed.
      session: a session on the graph; default: one of its own. Random ops give other numbers each step and can't be checked.
      eps: step of the central difference.
      directions: random directions per tensor.
      seed: of the directions and cotangents.

    Raises:
      DTypeError: a tensor is not float64.
    """
    outputs: list[Tensor] = list(ys) if isinstance(ys, (list, tuple)) else [ys]
    xs = list(values)
    _needs_float64(outputs, "output")
    _needs_float64(xs, "input")
    rng = np.random.default_rng(seed)
    points = {x: np.array(v, np.float64) for x, v in values.items()}
    graph = outputs[0].graph
    found: list[GradientDifference] = []
    own = session is None
    sess = Session(graph=graph) if own else session
    try:
        with graph.as_default():
            cotangents = [placeholder(y.dtype, None, name="cotangent") for y in outputs]
            found_grads = gradients(outputs, xs, grad_ys=cotangents)
            # rows of a gather become the whole tensor
            grads = [None if g is None else convert_to_tensor(g) for g in found_grads]
        feeds = {**(feed_dict or {}), **points}
        us = [rng.standard_normal(np.shape(v)) for v in sess.run(outputs, feeds)]
        wanted = [g for g in grads if g is not None]
        got = iter(sess.run(wanted, {**feeds, **dict(zip(cotangents, us, strict=True))}) if wanted else [])
        symbolic = [
            np.zeros_like(points[x]) if g is None else np.asarray(next(got)) for g, x in zip(grads, xs, strict=True)
        ]

        def weighted(x: Tensor, at: Any) -> float:
            results = sess.run(outputs, {**feeds, x: at})
            return float(sum(np.sum(u * r) for u, r in zip(us, results, strict=True)))

        for x, gradient in zip(xs, symbolic, strict=True):
            for _ in range(directions):
                d = rng.standard_normal(points[x].shape)
                numeric = (weighted(x, points[x] + eps * d) - weighted(x, points[x] - eps * d)) / (2 * eps)
                found.append(GradientDifference(x.name, float(np.sum(gradient * d)), numeric))
    finally:
        if own:
            sess.close()
    return found


def check_gradients(
    ys: Any,
    values: Mapping[Tensor, Any],
    feed_dict: Mapping[Any, Any] | None = None,
    session: Any = None,
    tolerance: float = 1e-5,
    **options: Any,
) -> float:
    """Compare both means; returns the largest relative error.

    Args:
      tolerance: what it may be. The rest as for :func:`gradient_differences`.

    Raises:
      AssertionError: it is larger; names the tensor and both numbers.
    """
    differences = gradient_differences(ys, values, feed_dict, session, **options)
    if not differences:
        raise InvalidArgumentError("check_gradients needs at least one tensor to differentiate by")
    worst = max(differences, key=lambda d: d.error)
    if not worst.error <= tolerance:
        raise AssertionError(
            f"the gradient by {worst.name} is {worst.symbolic:.9g} along a direction, differences say {worst.numeric:.9g} "
            f"(relative error {worst.error:.3g}, allowed {tolerance:.3g})"
        )
    return worst.error


def compute_gradient(
    x: Tensor, x_shape: Sequence[int], y: Tensor, y_shape: Sequence[int], x_init_value: Any = None, delta: float = 1e-3
) -> tuple[Any, Any]:
    """Both Jacobians of ``y`` by ``x``, of shape ``[size of x, size of y]``: (symbolic, numeric); TensorFlow 1's function.

    Args:
      x_init_value: where; default: uniform random numbers in [0, 1).
      delta: step of the central difference.
    """
    point = np.random.default_rng(0).random(tuple(x_shape)) if x_init_value is None else np.asarray(x_init_value)
    point = point.astype(x.dtype.np).reshape(tuple(x_shape))
    columns = int(np.prod(y_shape, dtype=np.int64))
    with y.graph.as_default():
        cotangent = placeholder(y.dtype, tuple(y_shape), name="cotangent")
        (gradient,) = gradients(y, x, grad_ys=cotangent, unconnected_gradients="zero")
    symbolic = np.zeros((point.size, columns), x.dtype.np)
    numeric = np.zeros((point.size, columns), x.dtype.np)
    with Session(graph=y.graph) as sess:
        for column in range(columns):
            one = np.zeros(columns, y.dtype.np)
            one[column] = 1
            symbolic[:, column] = np.ravel(sess.run(gradient, {x: point, cotangent: one.reshape(tuple(y_shape))}))
        for row in range(point.size):
            step = np.zeros(point.size, x.dtype.np)
            step[row] = delta
            step = step.reshape(point.shape)
            ahead, behind = sess.run(y, {x: point + step}), sess.run(y, {x: point - step})
            numeric[row] = np.ravel(np.asarray(ahead) - np.asarray(behind)) / (2 * delta)
    return symbolic, numeric


def compute_gradient_error(
    x: Tensor, x_shape: Sequence[int], y: Tensor, y_shape: Sequence[int], x_init_value: Any = None, delta: float = 1e-3
) -> float:
    """The largest absolute difference between the two Jacobians of :func:`compute_gradient`."""
    symbolic, numeric = compute_gradient(x, x_shape, y, y_shape, x_init_value, delta)
    return float(np.max(np.abs(symbolic - numeric), initial=0.0))
