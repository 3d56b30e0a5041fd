"""Oracles of Adadelta, the proximal optimizers, dual averaging and of sparse updates: the papers' formulas in float64.

Each returns the new values of what its op mutates, in the order of the op's inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphdock_std.reference.train import (
    resource_apply_adam,
    resource_apply_centered_rms_prop,
    resource_apply_ftrl,
    resource_apply_rms_prop,
    sparse,
)


def _each(rule: Callable[..., tuple[Any, ...]], grad: Any, *tensors: Any) -> tuple[np.ndarray, ...]:
    """``rule(gradient, *tensors)`` in float64."""
    found = rule(np.asarray(grad).astype(np.float64), *[np.asarray(t).astype(np.float64) for t in tensors])
    return tuple(np.asarray(new).astype(np.asarray(t).dtype) for new, t in zip(found, tensors, strict=True))


def _shrunk(value: Any, limit: Any) -> Any:
    """Towards zero by ``limit``, and zero where it would get past it."""
    return np.where(value > limit, value - limit, np.where(value < -limit, value + limit, 0.0))


def resource_apply_adadelta(
    var: Any, accum: Any, accum_update: Any, lr: Any, rho: Any, epsilon: Any, grad: Any, **_: Any
) -> tuple[np.ndarray, ...]:
    rate, r, eps = float(lr), float(rho), float(epsilon)

    def rule(g: Any, x: Any, squares: Any, moves: Any) -> tuple[Any, ...]:
        squares = r * squares + (1 - r) * g**2
        move = ((moves + eps) / (squares + eps)) ** 0.5 * g
        return x - rate * move, squares, r * moves + (1 - r) * move**2

    return _each(rule, grad, var, accum, accum_update)


def resource_apply_adagrad_da(
    var: Any,
    gradient_accumulator: Any,
    gradient_squared_accumulator: Any,
    grad: Any,
    lr: Any,
    l1: Any,
    l2: Any,
    global_step: Any,
    **_: Any,
) -> tuple[np.ndarray, ...]:
    rate, one, two, steps = float(lr), float(l1), float(l2), float(global_step)

    def rule(g: Any, x: Any, total: Any, squares: Any) -> tuple[Any, ...]:
        total, squares = total + g, squares + g * g
        return -rate * _shrunk(total, one * steps) / (two * steps * rate + squares**0.5), total, squares

    return _each(rule, grad, var, gradient_accumulator, gradient_squared_accumulator)


def resource_apply_proximal_gradient_descent(
    var: Any, alpha: Any, l1: Any, l2: Any, delta: Any, **_: Any
) -> np.ndarray:
    rate, one, two = float(alpha), float(l1), float(l2)

    def rule(g: Any, x: Any) -> tuple[Any, ...]:
        return (_shrunk(x - rate * g, rate * one) / (1 + rate * two),)

    return _each(rule, delta, var)[0]


def resource_apply_proximal_adagrad(
    var: Any, accum: Any, lr: Any, l1: Any, l2: Any, grad: Any, **_: Any
) -> tuple[np.ndarray, ...]:
    one, two = float(l1), float(l2)

    def rule(g: Any, x: Any, squares: Any) -> tuple[Any, ...]:
        squares = squares + g * g
        rate = float(lr) / squares**0.5
        return _shrunk(x - rate * g, rate * one) / (1 + rate * two), squares

    return _each(rule, grad, var, accum)


def resource_apply_ftrl_v2(
    var: Any, accum: Any, linear: Any, grad: Any, lr: Any, l1: Any, l2: Any, l2_shrinkage: Any, lr_power: Any, **_: Any
) -> tuple[np.ndarray, ...]:
    rate, one, two, shrinkage, power = (float(v) for v in (lr, l1, l2, l2_shrinkage, lr_power))

    def rule(g: Any, x: Any, squares: Any, z: Any) -> tuple[Any, ...]:
        total = squares + g * g
        z = z + g + 2 * shrinkage * x - (total**-power - squares**-power) / rate * x
        weight = total**-power / rate + 2 * two
        return np.where(np.abs(z) > one, (np.sign(z) * one - z) / weight, 0.0), total, z

    return _each(rule, grad, var, accum, linear)


def _proximal_gradient_descent(grad: Any, **given: Any) -> np.ndarray:
    return resource_apply_proximal_gradient_descent(delta=grad, **given)


resource_sparse_apply_adadelta = sparse(resource_apply_adadelta, "accum", "accum_update")
resource_sparse_apply_adagrad_da = sparse(
    resource_apply_adagrad_da, "gradient_accumulator", "gradient_squared_accumulator"
)
resource_sparse_apply_proximal_gradient_descent = sparse(_proximal_gradient_descent)
resource_sparse_apply_proximal_adagrad = sparse(resource_apply_proximal_adagrad, "accum")
resource_sparse_apply_ftrl = sparse(resource_apply_ftrl, "accum", "linear")
resource_sparse_apply_ftrl_v2 = sparse(resource_apply_ftrl_v2, "accum", "linear")
resource_sparse_apply_rms_prop = sparse(resource_apply_rms_prop, "ms", "mom")
resource_sparse_apply_centered_rms_prop = sparse(resource_apply_centered_rms_prop, "mg", "ms", "mom")
resource_sparse_apply_adam = sparse(resource_apply_adam, "m", "v")
