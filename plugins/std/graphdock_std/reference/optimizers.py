"""Oracles of Adadelta, the proximal optimizers, dual averaging and of sparse updates: the papers' formulas in float64.

Each returns the new values of what its op mutates, in the order of the op's inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphdock_std.reference.train import resource_apply_adam, resource_apply_centered_rms_prop, resource_apply_ftrl
from graphdock_std.reference.train import resource_apply_rms_prop as _rms_prop


def _each(rule: Callable[..., tuple[Any, ...]], grad: Any, *tensors: Any) -> tuple[np.ndarray, ...]:
    """``rule(gradient, *tensors)`` in float64."""
    found = rule(np.asarray(grad).astype(np.float64), *[np.asarray(t).astype(np.float64) for t in tensors])
    return tuple(np.asarray(new).astype(np.asarray(t).dtype) for new, t in zip(found, tensors, strict=True))


def _rows(rule: Callable[..., Any], grad: Any, indices: Any, *tensors: Any) -> tuple[np.ndarray, ...]:
    """A dense rule, ``rule(grad, *tensors)``, on one named row at a time with the sum of its gradients."""
    new = [np.array(t, np.float64) for t in tensors]
    for row in dict.fromkeys(int(i) for i in indices):
        total = sum(np.asarray(g, np.float64) for g, i in zip(grad, indices, strict=True) if int(i) == row)
        found = rule(np.asarray(total), *[np.asarray(t[row], np.float64) for t in new])
        for tensor, value in zip(new, found, strict=True):
            tensor[row] = value
    return tuple(t.astype(old.dtype) for t, old in zip(new, tensors, strict=True))


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


def resource_sparse_apply_adadelta(
    var: Any, accum: Any, accum_update: Any, grad: Any, indices: Any, **rates: Any
) -> tuple[np.ndarray, ...]:
    return _rows(
        lambda g, v, a, u: resource_apply_adadelta(v, a, u, grad=g, **rates), grad, indices, var, accum, accum_update
    )


def resource_sparse_apply_adagrad_da(
    var: Any, gradient_accumulator: Any, gradient_squared_accumulator: Any, grad: Any, indices: Any, **rates: Any
) -> tuple[np.ndarray, ...]:
    slots = gradient_accumulator, gradient_squared_accumulator
    return _rows(lambda g, *rows: resource_apply_adagrad_da(*rows, g, **rates), grad, indices, var, *slots)


def resource_sparse_apply_proximal_gradient_descent(
    var: Any, alpha: Any, l1: Any, l2: Any, grad: Any, indices: Any, **_: Any
) -> np.ndarray:
    return _rows(lambda g, v: (resource_apply_proximal_gradient_descent(v, alpha, l1, l2, g),), grad, indices, var)[0]


def resource_sparse_apply_proximal_adagrad(
    var: Any, accum: Any, lr: Any, l1: Any, l2: Any, grad: Any, indices: Any, **_: Any
) -> tuple[np.ndarray, ...]:
    return _rows(lambda g, v, a: resource_apply_proximal_adagrad(v, a, lr, l1, l2, g), grad, indices, var, accum)


def resource_sparse_apply_ftrl(
    var: Any, accum: Any, linear: Any, grad: Any, indices: Any, **rates: Any
) -> tuple[np.ndarray, ...]:
    return _rows(lambda g, *rows: resource_apply_ftrl(*rows, g, **rates), grad, indices, var, accum, linear)


def resource_sparse_apply_ftrl_v2(
    var: Any, accum: Any, linear: Any, grad: Any, indices: Any, **rates: Any
) -> tuple[np.ndarray, ...]:
    return _rows(lambda g, *rows: resource_apply_ftrl_v2(*rows, g, **rates), grad, indices, var, accum, linear)


def resource_sparse_apply_rms_prop(
    var: Any, ms: Any, mom: Any, grad: Any, indices: Any, **rates: Any
) -> tuple[np.ndarray, ...]:
    return _rows(lambda g, *rows: _rms_prop(*rows, grad=g, **rates), grad, indices, var, ms, mom)


def resource_sparse_apply_centered_rms_prop(
    var: Any, mg: Any, ms: Any, mom: Any, grad: Any, indices: Any, **rates: Any
) -> tuple[np.ndarray, ...]:
    return _rows(
        lambda g, *rows: resource_apply_centered_rms_prop(*rows, grad=g, **rates), grad, indices, var, mg, ms, mom
    )


def resource_sparse_apply_adam(
    var: Any, m: Any, v: Any, grad: Any, indices: Any, **rates: Any
) -> tuple[np.ndarray, ...]:
    return _rows(lambda g, *rows: resource_apply_adam(*rows, grad=g, **rates), grad, indices, var, m, v)
