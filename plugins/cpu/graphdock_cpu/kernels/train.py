"""The update rules of the optimizers that most people take, dense and of some rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import absolute, add, divide, greater, multiply, power, sign, sqrt, subtract

from graphdock_cpu.kernels.updates import Rule, dense_kernel, derived, sparse_kernel

__all__ = ["KERNELS"]


def _gradient_descent(var: Any, delta: Any, alpha: Any, t: Any) -> None:
    multiply(delta, alpha, t)
    subtract(var, t, var)


def _momentum(var: Any, accum: Any, grad: Any, lr: Any, momentum: Any, t: Any) -> None:
    multiply(accum, momentum, accum)
    add(accum, grad, accum)
    multiply(accum, lr, t)
    subtract(var, t, var)


def _nesterov(var: Any, accum: Any, grad: Any, lr: Any, momentum: Any, t: Any) -> None:
    multiply(accum, momentum, accum)
    add(accum, grad, accum)
    multiply(accum, momentum, t)
    add(t, grad, t)
    multiply(t, lr, t)
    subtract(var, t, var)


def _adagrad(var: Any, accum: Any, grad: Any, lr: Any, t: Any) -> None:
    multiply(grad, grad, t)
    add(accum, t, accum)
    sqrt(accum, t)
    divide(grad, t, t)
    multiply(t, lr, t)
    subtract(var, t, var)


def _adam(var: Any, m: Any, v: Any, grad: Any, rate: Any, rest1: Any, rest2: Any, epsilon: Any, t: Any) -> None:
    subtract(grad, m, t)
    multiply(t, rest1, t)
    add(m, t, m)
    multiply(grad, grad, t)
    subtract(t, v, t)
    multiply(t, rest2, t)
    add(v, t, v)
    sqrt(v, t)
    add(t, epsilon, t)
    divide(m, t, t)
    multiply(t, rate, t)
    subtract(var, t, var)


def _adam_scalars(dtype: np.dtype[Any]) -> Callable[..., tuple[Any, ...]]:
    """The bias-corrected rate and the complements of the decays, as rank-0 arrays that are kept.

    As :func:`derived` makes them, in half the time.
    """
    rate, rest1, rest2 = np.empty((), dtype), np.empty((), dtype), np.empty((), dtype)
    root = math.sqrt

    def prepare(power1: Any, power2: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any) -> tuple[Any, ...]:
        rate[()] = lr.item() * root(1.0 - power2.item()) / (1.0 - power1.item())
        rest1[()] = 1.0 - beta1.item()
        rest2[()] = 1.0 - beta2.item()
        return rate, rest1, rest2, epsilon

    return prepare


def _adam_w(var: Any, m: Any, v: Any, grad: Any, keep: Any, *rest: Any) -> None:
    multiply(var, keep, var)
    _adam(var, m, v, grad, *rest)


def _adam_w_scalars(dtype: np.dtype[Any]) -> Callable[..., tuple[Any, ...]]:
    keep, adam = np.empty((), dtype), _adam_scalars(dtype)

    def prepare(power1: Any, power2: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, decay: Any) -> tuple[Any, ...]:
        keep[()] = 1.0 - lr.item() * decay.item()
        return keep, *adam(power1, power2, lr, beta1, beta2, epsilon)

    return prepare


def _rms_prop(var: Any, ms: Any, mom: Any, grad: Any, lr: Any, rest: Any, momentum: Any, epsilon: Any, t: Any) -> None:
    multiply(grad, grad, t)
    subtract(t, ms, t)
    multiply(t, rest, t)
    add(ms, t, ms)
    add(ms, epsilon, t)
    _rms_move(var, mom, grad, lr, momentum, t)


def _rms_move(var: Any, mom: Any, grad: Any, lr: Any, momentum: Any, t: Any) -> None:
    """The momentum and the step, by the mean of squares in ``t``."""
    sqrt(t, t)
    divide(grad, t, t)
    multiply(t, lr, t)
    multiply(mom, momentum, mom)
    add(mom, t, mom)
    subtract(var, mom, var)


def _centered_rms_prop(
    var: Any, mg: Any, ms: Any, mom: Any, grad: Any, lr: Any, rest: Any, momentum: Any, epsilon: Any, t: Any
) -> None:
    subtract(grad, mg, t)
    multiply(t, rest, t)
    add(mg, t, mg)
    multiply(grad, grad, t)
    subtract(t, ms, t)
    multiply(t, rest, t)
    add(ms, t, ms)
    multiply(mg, mg, t)
    subtract(ms, t, t)
    add(t, epsilon, t)
    _rms_move(var, mom, grad, lr, momentum, t)


_rms_prop_scalars = derived(lambda lr, rho, momentum, epsilon: (lr, 1.0 - rho, momentum, epsilon))


def _ftrl(
    var: Any, accum: Any, linear: Any, grad: Any, rate: Any, l1: Any, l2: Any, exponent: Any, t: Any, n: Any
) -> None:
    _ftrl_slope(accum, grad, rate, exponent, t, n)
    _ftrl_solve(var, linear, grad, rate, l1, l2, t, n)


def _ftrl_v2(
    var: Any,
    accum: Any,
    linear: Any,
    grad: Any,
    rate: Any,
    l1: Any,
    l2: Any,
    shrinkage: Any,
    exponent: Any,
    *buffers: Any,
) -> None:
    t, n = buffers
    _ftrl_slope(accum, grad, rate, exponent, t, n)
    subtract(t, shrinkage, t)
    _ftrl_solve(var, linear, grad, rate, l1, l2, t, n)


def _ftrl_slope(accum: Any, grad: Any, rate: Any, exponent: Any, t: Any, n: Any) -> None:
    """``accum`` with the squares, its power in ``n``, and by how much that grew, times the rate, in ``t``."""
    power(accum, exponent, t)
    multiply(grad, grad, n)
    add(accum, n, accum)
    power(accum, exponent, n)
    subtract(n, t, t)
    multiply(t, rate, t)


def _ftrl_solve(var: Any, linear: Any, grad: Any, rate: Any, l1: Any, l2: Any, t: Any, n: Any) -> None:
    """``linear``, and the variable that is best for it."""
    multiply(t, var, t)
    subtract(grad, t, t)
    add(linear, t, linear)
    multiply(n, rate, n)
    add(n, l2, n)
    sign(linear, t)
    multiply(t, l1, t)
    subtract(t, linear, t)
    divide(t, n, t)
    absolute(linear, n)
    greater(n, l1, n)
    multiply(t, n, var)


_ftrl_scalars = derived(lambda lr, l1, l2, lr_power: (1.0 / lr, l1, 2.0 * l2, -lr_power))
_ftrl_v2_scalars = derived(lambda lr, l1, l2, shrinkage, lr_power: (1.0 / lr, l1, 2.0 * l2, 2.0 * shrinkage, -lr_power))

KERNELS = [
    dense_kernel("ResourceApplyGradientDescent", Rule((0, 2), (1,), _gradient_descent)),
    dense_kernel("ResourceApplyMomentum", Rule((0, 1, 3), (2, 4), _momentum, nesterov=_nesterov)),
    dense_kernel("ResourceApplyAdagrad", Rule((0, 1, 3), (2,), _adagrad)),
    dense_kernel("ResourceApplyAdam", Rule((0, 1, 2, 9), (3, 4, 5, 6, 7, 8), _adam, _adam_scalars)),
    dense_kernel("ResourceApplyAdamW", Rule((0, 1, 2, 10), (3, 4, 5, 6, 7, 8, 9), _adam_w, _adam_w_scalars)),
    dense_kernel("ResourceApplyRMSProp", Rule((0, 1, 2, 7), (3, 4, 5, 6), _rms_prop, _rms_prop_scalars)),
    dense_kernel(
        "ResourceApplyCenteredRMSProp", Rule((0, 1, 2, 3, 8), (4, 5, 6, 7), _centered_rms_prop, _rms_prop_scalars)
    ),
    dense_kernel("ResourceApplyFtrl", Rule((0, 1, 2, 3), (4, 5, 6, 7), _ftrl, _ftrl_scalars, scratch=2)),
    dense_kernel("ResourceApplyFtrlV2", Rule((0, 1, 2, 3), (4, 5, 6, 7, 8), _ftrl_v2, _ftrl_v2_scalars, scratch=2)),
    sparse_kernel("ResourceSparseApplyGradientDescent", Rule((0, 2), (1,), _gradient_descent), 3),
    sparse_kernel("ResourceSparseApplyMomentum", Rule((0, 1, 3), (2, 5), _momentum, nesterov=_nesterov), 4),
    sparse_kernel("ResourceSparseApplyAdagrad", Rule((0, 1, 3), (2,), _adagrad), 4),
    sparse_kernel("ResourceSparseApplyAdam", Rule((0, 1, 2, 9), (3, 4, 5, 6, 7, 8), _adam, _adam_scalars), 10),
    sparse_kernel("ResourceSparseApplyRMSProp", Rule((0, 1, 2, 7), (3, 4, 5, 6), _rms_prop, _rms_prop_scalars), 8),
    sparse_kernel(
        "ResourceSparseApplyCenteredRMSProp",
        Rule((0, 1, 2, 3, 8), (4, 5, 6, 7), _centered_rms_prop, _rms_prop_scalars),
        9,
    ),
    sparse_kernel("ResourceSparseApplyFtrl", Rule((0, 1, 2, 3), (5, 6, 7, 8), _ftrl, _ftrl_scalars, scratch=2), 4),
    sparse_kernel(
        "ResourceSparseApplyFtrlV2", Rule((0, 1, 2, 3), (5, 6, 7, 8, 9), _ftrl_v2, _ftrl_v2_scalars, scratch=2), 4
    ),
]
