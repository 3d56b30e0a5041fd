"""Oracles of Adadelta, the proximal optimizers, dual averaging and of sparse updates: the papers' formulas in float64.

Each returns the new values of what its op mutates, in the order of the op's inputs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphdock_std.reference.train import (
    resource_apply_adam,
    resource_apply_centered_rms_prop,
    resource_apply_ftrl,
    resource_apply_rms_prop,
    sparse,
    updates,
)


def _shrunk(value: Any, limit: Any) -> Any:
    """Towards zero by ``limit``, and zero where it would get past it."""
    return np.where(value > limit, value - limit, np.where(value < -limit, value + limit, 0.0))


@updates("var", "accum", "accum_update")
def resource_apply_adadelta(
    var: Any, accum: Any, accum_update: Any, lr: Any, rho: Any, epsilon: Any, grad: Any, **_: Any
) -> Any:
    squares = rho * accum + (1 - rho) * grad**2
    move = ((accum_update + epsilon) / (squares + epsilon)) ** 0.5 * grad
    return var - lr * move, squares, rho * accum_update + (1 - rho) * move**2


@updates("var", "gradient_accumulator", "gradient_squared_accumulator")
def resource_apply_adagrad_da(
    gradient_accumulator: Any,
    gradient_squared_accumulator: Any,
    grad: Any,
    lr: Any,
    l1: Any,
    l2: Any,
    global_step: Any,
    **_: Any,
) -> Any:
    total, squares = gradient_accumulator + grad, gradient_squared_accumulator + grad * grad
    return -lr * _shrunk(total, l1 * global_step) / (l2 * global_step * lr + squares**0.5), total, squares


def _proximal(var: Any, rate: Any, l1: Any, l2: Any, grad: Any) -> Any:
    return _shrunk(var - rate * grad, rate * l1) / (1 + rate * l2)


@updates("var")
def resource_apply_proximal_gradient_descent(var: Any, alpha: Any, l1: Any, l2: Any, delta: Any, **_: Any) -> Any:
    return _proximal(var, alpha, l1, l2, delta)


@updates("var", "accum")
def resource_apply_proximal_adagrad(var: Any, accum: Any, lr: Any, l1: Any, l2: Any, grad: Any, **_: Any) -> Any:
    squares = accum + grad * grad
    return _proximal(var, lr / squares**0.5, l1, l2, grad), squares


@updates("var", "accum", "linear")
def resource_apply_ftrl_v2(
    var: Any, accum: Any, linear: Any, grad: Any, lr: Any, l1: Any, l2: Any, l2_shrinkage: Any, lr_power: Any, **_: Any
) -> Any:
    total = accum + grad * grad
    z = linear + grad + 2 * l2_shrinkage * var - (total**-lr_power - accum**-lr_power) / lr * var
    weight = total**-lr_power / lr + 2 * l2
    return np.where(np.abs(z) > l1, (np.sign(z) * l1 - z) / weight, 0.0), total, z


def _proximal_gradient_descent(grad: Any, **given: Any) -> tuple[np.ndarray, ...]:
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
