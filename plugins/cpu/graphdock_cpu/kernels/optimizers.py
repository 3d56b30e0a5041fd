"""The update rules of Adadelta, of the proximal optimizers and of dual averaging, dense and of some rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphdock_cpu.kernels.updates import Rule, dense_kernel, sparse_kernel

__all__ = ["KERNELS"]


def _adadelta(dtype: np.dtype[Any], attrs: Any) -> Callable[..., None]:
    multiply, add, sqrt, divide, subtract = np.multiply, np.add, np.sqrt, np.divide, np.subtract

    def update(var: Any, accum: Any, moves: Any, grad: Any, lr: Any, rest: Any, epsilon: Any, t: Any, n: Any) -> None:
        multiply(grad, grad, t)
        subtract(t, accum, t)
        multiply(t, rest, t)
        add(accum, t, accum)
        add(moves, epsilon, n)
        add(accum, epsilon, t)
        divide(n, t, n)
        sqrt(n, n)
        multiply(n, grad, n)
        multiply(n, lr, t)
        subtract(var, t, var)
        multiply(n, n, n)
        subtract(n, moves, n)
        multiply(n, rest, n)
        add(moves, n, moves)

    return update


def _adadelta_scalars(dtype: np.dtype[Any]) -> Callable[..., tuple[Any, ...]]:
    rest = np.empty((), dtype)

    def prepare(lr: Any, rho: Any, epsilon: Any) -> tuple[Any, ...]:
        rest[()] = 1.0 - rho.item()
        return lr, rest, epsilon

    return prepare


def _adagrad_da(dtype: np.dtype[Any], attrs: Any) -> Callable[..., None]:
    multiply, add, sqrt, divide, subtract = np.multiply, np.add, np.sqrt, np.divide, np.subtract
    absolute, maximum, copysign = np.absolute, np.maximum, np.copysign

    def update(
        var: Any, total: Any, squares: Any, grad: Any, back: Any, limit: Any, ridge: Any, t: Any, n: Any
    ) -> None:
        add(total, grad, total)
        multiply(grad, grad, t)
        add(squares, t, squares)
        sqrt(squares, t)
        add(t, ridge, t)
        absolute(total, n)
        subtract(n, limit, n)
        maximum(n, 0.0, out=n)
        copysign(n, total, n)
        divide(n, t, n)
        multiply(n, back, var)

    return update


def _adagrad_da_scalars(dtype: np.dtype[Any]) -> Callable[..., tuple[Any, ...]]:
    back, limit, ridge = np.empty((), dtype), np.empty((), dtype), np.empty((), dtype)

    def prepare(lr: Any, l1: Any, l2: Any, step: Any) -> tuple[Any, ...]:
        back[()] = -lr.item()
        limit[()] = l1.item() * step.item()
        ridge[()] = l2.item() * step.item() * lr.item()
        return back, limit, ridge

    return prepare


def _proximal_gradient_descent(dtype: np.dtype[Any], attrs: Any) -> Callable[..., None]:
    multiply, divide, subtract = np.multiply, np.divide, np.subtract
    absolute, maximum, copysign = np.absolute, np.maximum, np.copysign

    def update(var: Any, delta: Any, alpha: Any, limit: Any, shrink: Any, t: Any) -> None:
        multiply(delta, alpha, t)
        subtract(var, t, var)
        absolute(var, t)
        subtract(t, limit, t)
        maximum(t, 0.0, out=t)
        copysign(t, var, var)
        divide(var, shrink, var)

    return update


def _proximal_scalars(dtype: np.dtype[Any]) -> Callable[..., tuple[Any, ...]]:
    limit, shrink = np.empty((), dtype), np.empty((), dtype)

    def prepare(alpha: Any, l1: Any, l2: Any) -> tuple[Any, ...]:
        limit[()] = alpha.item() * l1.item()
        shrink[()] = 1.0 + alpha.item() * l2.item()
        return alpha, limit, shrink

    return prepare


def _proximal_adagrad(dtype: np.dtype[Any], attrs: Any) -> Callable[..., None]:
    multiply, add, sqrt, divide, subtract = np.multiply, np.add, np.sqrt, np.divide, np.subtract
    absolute, maximum, copysign = np.absolute, np.maximum, np.copysign

    def update(var: Any, accum: Any, grad: Any, lr: Any, l1: Any, l2: Any, t: Any, n: Any, size: Any) -> None:
        multiply(grad, grad, t)
        add(accum, t, accum)
        sqrt(accum, t)
        divide(lr, t, t)
        multiply(t, grad, n)
        subtract(var, n, var)
        multiply(t, l1, n)
        absolute(var, size)
        subtract(size, n, size)
        maximum(size, 0.0, out=size)
        copysign(size, var, var)
        multiply(t, l2, t)
        add(t, 1.0, t)
        divide(var, t, var)

    return update


def _ftrl_v2(dtype: np.dtype[Any], attrs: Any) -> Callable[..., None]:
    multiply, add, power, divide, subtract = np.multiply, np.add, np.power, np.divide, np.subtract
    sign, absolute, greater = np.sign, np.absolute, np.greater

    def update(
        var: Any,
        accum: Any,
        linear: Any,
        grad: Any,
        rate: Any,
        l1: Any,
        l2: Any,
        shrinkage: Any,
        exponent: Any,
        t: Any,
        n: Any,
    ) -> None:
        power(accum, exponent, t)
        multiply(grad, grad, n)
        add(accum, n, accum)
        power(accum, exponent, n)
        subtract(n, t, t)
        multiply(t, rate, t)
        subtract(t, shrinkage, t)
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

    return update


def _ftrl_v2_scalars(dtype: np.dtype[Any]) -> Callable[..., tuple[Any, ...]]:
    rate, double, twice, exponent = (np.empty((), dtype) for _ in range(4))

    def prepare(lr: Any, l1: Any, l2: Any, shrinkage: Any, lr_power: Any) -> tuple[Any, ...]:
        rate[()] = 1.0 / lr.item()
        double[()] = 2.0 * l2.item()
        twice[()] = 2.0 * shrinkage.item()
        exponent[()] = -lr_power.item()
        return rate, l1, double, twice, exponent

    return prepare


_PROXIMAL_ADAGRAD = Rule((0, 1, 5), (2, 3, 4), _proximal_adagrad, scratch=3)

KERNELS = [
    dense_kernel("ResourceApplyAdadelta", Rule((0, 1, 2, 6), (3, 4, 5), _adadelta, _adadelta_scalars, scratch=2)),
    dense_kernel(
        "ResourceApplyAdagradDA", Rule((0, 1, 2, 3), (4, 5, 6, 7), _adagrad_da, _adagrad_da_scalars, scratch=2)
    ),
    dense_kernel(
        "ResourceApplyProximalGradientDescent",
        Rule((0, 4), (1, 2, 3), _proximal_gradient_descent, _proximal_scalars),
    ),
    dense_kernel("ResourceApplyProximalAdagrad", _PROXIMAL_ADAGRAD),
    dense_kernel("ResourceApplyFtrlV2", Rule((0, 1, 2, 3), (4, 5, 6, 7, 8), _ftrl_v2, _ftrl_v2_scalars, scratch=2)),
    sparse_kernel(
        "ResourceSparseApplyAdadelta", Rule((0, 1, 2, 6), (3, 4, 5), _adadelta, _adadelta_scalars, scratch=2), 7
    ),
    sparse_kernel(
        "ResourceSparseApplyAdagradDA",
        Rule((0, 1, 2, 3), (5, 6, 7, 8), _adagrad_da, _adagrad_da_scalars, scratch=2),
        4,
    ),
    sparse_kernel(
        "ResourceSparseApplyProximalGradientDescent",
        Rule((0, 4), (1, 2, 3), _proximal_gradient_descent, _proximal_scalars),
        5,
    ),
    sparse_kernel("ResourceSparseApplyProximalAdagrad", _PROXIMAL_ADAGRAD, 6),
    sparse_kernel(
        "ResourceSparseApplyFtrlV2", Rule((0, 1, 2, 3), (5, 6, 7, 8, 9), _ftrl_v2, _ftrl_v2_scalars, scratch=2), 4
    ),
]
