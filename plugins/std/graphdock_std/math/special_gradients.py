"""Derivatives of special functions by parameters, of which there is no closed form.

They are central differences of fourth order in float64, whatever the dtype: about ten digits of the value. Since they are made of
the function itself, they can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops

from graphdock_std.grad_support import sum_to

_STEP = 1e-3


def _slope(function: Callable[[Any], Any], at: Any, step: Any) -> Any:
    """The derivative of ``function`` where ``at`` is; the step is no variable of it."""
    h = _ops.stop_gradient(step)
    near, far = (function(at + d) - function(at - d) for d in (h, 2 * h))
    return (8 * near - far) / (12 * h)


def _wide(*tensors: Any) -> list[Any]:
    return [_ops.cast(t, _tf.float64) for t in tensors]


def _back(slope: Any, grad: Any, like: Any, *others: Any) -> Any:
    return sum_to(grad * _ops.cast(slope, grad.dtype), like, *others)


def _parameter_step(a: Any) -> Any:
    """Small against a positive parameter, and against its root, which is how far the function takes to change."""
    return _STEP * a / (1 + _tf.sqrt(a))


def zeta_x(op: Any, grad: Any) -> Any:
    x, q = op.inputs
    at, base = _wide(x, q)
    step = _STEP * _tf.minimum(at - 1, 1)
    return _back(_slope(lambda v: _tf.zeta(v, base), at, step), grad, x, q)


def igamma_grad_a_a(op: Any, grad: Any) -> Any:
    a, x = op.inputs
    at, fixed = _wide(a, x)
    slope = _slope(lambda v: _ops.apply_op("IgammaGradA", a=v, x=fixed), at, _parameter_step(at))
    return _back(slope, grad, a, x)


def betainc_a(op: Any, grad: Any) -> Any:
    a, b, x = op.inputs
    at, other, fixed = _wide(a, b, x)
    slope = _slope(lambda v: _tf.betainc(v, other, fixed), at, _parameter_step(at))
    return _back(slope, grad, a, b, x)


def betainc_b(op: Any, grad: Any) -> Any:
    a, b, x = op.inputs
    other, at, fixed = _wide(a, b, x)
    slope = _slope(lambda v: _tf.betainc(other, v, fixed), at, _parameter_step(at))
    return _back(slope, grad, b, a, x)
