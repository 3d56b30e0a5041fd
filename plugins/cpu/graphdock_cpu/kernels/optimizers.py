"""The update rules of Adadelta, of the proximal optimizers and of dual averaging, dense and of some rows."""

from __future__ import annotations

from typing import Any

from numpy import absolute, add, copysign, divide, maximum, multiply, sqrt, subtract

from graphdock_cpu.kernels.updates import Rule, dense_kernel, derived, sparse_kernel

__all__ = ["KERNELS"]


def _adadelta(var: Any, accum: Any, moves: Any, grad: Any, lr: Any, rest: Any, epsilon: Any, t: Any, n: Any) -> None:
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


def _adagrad_da(
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


def _proximal_gradient_descent(var: Any, delta: Any, alpha: Any, limit: Any, shrink: Any, t: Any) -> None:
    multiply(delta, alpha, t)
    subtract(var, t, var)
    absolute(var, t)
    subtract(t, limit, t)
    maximum(t, 0.0, out=t)
    copysign(t, var, var)
    divide(var, shrink, var)


def _proximal_adagrad(var: Any, accum: Any, grad: Any, lr: Any, l1: Any, l2: Any, t: Any, n: Any, size: Any) -> None:
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


_adadelta_scalars = derived(lambda lr, rho, epsilon: (lr, 1.0 - rho, epsilon))
_adagrad_da_scalars = derived(lambda lr, l1, l2, step: (-lr, l1 * step, l2 * step * lr))
_proximal_scalars = derived(lambda alpha, l1, l2: (alpha, alpha * l1, 1.0 + alpha * l2))
_PROXIMAL = Rule((0, 4), (1, 2, 3), _proximal_gradient_descent, _proximal_scalars)
_PROXIMAL_ADAGRAD = Rule((0, 1, 5), (2, 3, 4), _proximal_adagrad, scratch=3)
_ADADELTA = Rule((0, 1, 2, 6), (3, 4, 5), _adadelta, _adadelta_scalars, scratch=2)

KERNELS = [
    dense_kernel("ResourceApplyAdadelta", _ADADELTA),
    dense_kernel(
        "ResourceApplyAdagradDA", Rule((0, 1, 2, 3), (4, 5, 6, 7), _adagrad_da, _adagrad_da_scalars, scratch=2)
    ),
    dense_kernel("ResourceApplyProximalGradientDescent", _PROXIMAL),
    dense_kernel("ResourceApplyProximalAdagrad", _PROXIMAL_ADAGRAD),
    sparse_kernel("ResourceSparseApplyAdadelta", _ADADELTA, 7),
    sparse_kernel(
        "ResourceSparseApplyAdagradDA", Rule((0, 1, 2, 3), (5, 6, 7, 8), _adagrad_da, _adagrad_da_scalars, scratch=2), 4
    ),
    sparse_kernel("ResourceSparseApplyProximalGradientDescent", _PROXIMAL, 5),
    sparse_kernel("ResourceSparseApplyProximalAdagrad", _PROXIMAL_ADAGRAD, 6),
]
