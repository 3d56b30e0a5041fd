"""Oracles of the optimizer updates: the papers' formulas in float64.

Each returns the new values of what its op mutates, in the order of the op's inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def _wide(*values: Any) -> list[np.ndarray]:
    return [np.asarray(v).astype(np.float64) for v in values]


def resource_apply_gradient_descent(var: Any, alpha: Any, delta: Any, **_: Any) -> np.ndarray:
    v, a, d = _wide(var, alpha, delta)
    return np.asarray(v - a * d).astype(var.dtype)


def resource_apply_momentum(
    var: Any, accum: Any, lr: Any, grad: Any, momentum: Any, use_nesterov: bool = False, **_: Any
) -> tuple[np.ndarray, np.ndarray]:
    v, a, rate, g, mu = _wide(var, accum, lr, grad, momentum)
    velocity = mu * a + g
    step = g + mu * velocity if use_nesterov else velocity
    return np.asarray(v - rate * step).astype(var.dtype), np.asarray(velocity).astype(accum.dtype)


def resource_apply_adagrad(var: Any, accum: Any, lr: Any, grad: Any, **_: Any) -> tuple[np.ndarray, np.ndarray]:
    v, a, rate, g = _wide(var, accum, lr, grad)
    total = a + g**2
    return np.asarray(v - rate * g * total**-0.5).astype(var.dtype), np.asarray(total).astype(accum.dtype)


def resource_apply_adam(
    var: Any,
    m: Any,
    v: Any,
    beta1_power: Any,
    beta2_power: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
    grad: Any,
    **_: Any,
) -> tuple[np.ndarray, ...]:
    x, mean, square, p1, p2, rate, b1, b2, eps, g = _wide(
        var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad
    )
    mean = b1 * mean + (1.0 - b1) * g
    square = b2 * square + (1.0 - b2) * g**2
    scale = rate * (1.0 - p2) ** 0.5 / (1.0 - p1)
    moved = x - scale * mean / (square**0.5 + eps)
    return tuple(np.asarray(a).astype(var.dtype) for a in (moved, mean, square))


def resource_apply_adam_w(var: Any, lr: Any, weight_decay: Any, **rest: Any) -> tuple[np.ndarray, ...]:
    v, rate, decay = _wide(var, lr, weight_decay)
    moved, mean, square = resource_apply_adam(var=v - rate * decay * v, lr=lr, **rest)
    return tuple(np.asarray(a).astype(var.dtype) for a in (moved, mean, square))


def resource_apply_rms_prop(
    var: Any, ms: Any, mom: Any, lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any, **_: Any
) -> tuple[np.ndarray, ...]:
    zero = np.zeros_like(np.asarray(var).astype(np.float64))
    moved, _mean, square, move = _rms(var, zero, ms, mom, lr, rho, momentum, epsilon, grad, centered=False)
    return moved, square, move


def resource_apply_centered_rms_prop(
    var: Any, mg: Any, ms: Any, mom: Any, lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any, **_: Any
) -> tuple[np.ndarray, ...]:
    return _rms(var, mg, ms, mom, lr, rho, momentum, epsilon, grad, centered=True)


def _rms(
    var: Any,
    mg: Any,
    ms: Any,
    mom: Any,
    lr: Any,
    rho: Any,
    momentum: Any,
    epsilon: Any,
    grad: Any,
    centered: bool,
) -> tuple[np.ndarray, ...]:
    x, mean, square, move, rate, r, mu, eps, g = _wide(var, mg, ms, mom, lr, rho, momentum, epsilon, grad)
    mean, square = r * mean + (1.0 - r) * g, r * square + (1.0 - r) * g**2
    move = mu * move + rate * g / (square - (mean**2 if centered else 0.0) + eps) ** 0.5
    return tuple(np.asarray(a).astype(var.dtype) for a in (x - move, mean, square, move))


def resource_apply_ftrl(
    var: Any, accum: Any, linear: Any, grad: Any, lr: Any, l1: Any, l2: Any, lr_power: Any, **_: Any
) -> tuple[np.ndarray, ...]:
    x, n, z, g, rate, one, two, p = _wide(var, accum, linear, grad, lr, l1, l2, lr_power)
    total = n + g**2
    z = z + g - (total**-p - n**-p) / rate * x
    x = np.where(np.abs(z) > one, (np.sign(z) * one - z) / (total**-p / rate + 2.0 * two), 0.0)
    return tuple(np.asarray(a).astype(var.dtype) for a in (x, total, z))


def sparse(dense: Callable[..., Any], *slots: str, grad: str = "grad") -> Callable[..., tuple[np.ndarray, ...]]:
    """The oracle of a sparse update: the dense one on one named row at a time, with the sum of its gradients, in float64.

    Args:
      slots: the inputs that are mutated besides ``var``.
      grad: the input with a gradient for each of the indices.
    """

    def oracle(indices: Any, **given: Any) -> tuple[np.ndarray, ...]:
        tensors = {name: given.pop(name) for name in ("var", *slots)}
        new, grads = {name: np.array(t, np.float64) for name, t in tensors.items()}, given.pop(grad)
        for row in dict.fromkeys(int(i) for i in indices):
            total = sum(np.asarray(g).astype(np.float64) for g, i in zip(grads, indices, strict=True) if int(i) == row)
            found = dense(**{name: t[row] for name, t in new.items()}, **given, **{grad: total})
            for tensor, value in zip(new.values(), found if isinstance(found, tuple) else (found,), strict=True):
                tensor[row] = value
        return tuple(new[name].astype(t.dtype) for name, t in tensors.items())

    return oracle


resource_sparse_apply_gradient_descent = sparse(resource_apply_gradient_descent, grad="delta")
resource_sparse_apply_momentum = sparse(resource_apply_momentum, "accum")
resource_sparse_apply_adagrad = sparse(resource_apply_adagrad, "accum")
