"""Oracles of the optimizer updates: the papers' formulas in float64.

Each returns the new values of what its op mutates, in the order of the op's inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def updates(*tensors: str) -> Callable[[Callable[..., Any]], Callable[..., tuple[np.ndarray, ...]]]:
    """Decorate a rule over float64 so that it takes any dtype, by name; it returns the new values of these of its inputs."""

    def decorate(rule: Callable[..., Any]) -> Callable[..., tuple[np.ndarray, ...]]:
        def oracle(**given: Any) -> tuple[np.ndarray, ...]:
            found = rule(**{n: v.astype(np.float64) if isinstance(v, _ARRAYS) else v for n, v in given.items()})
            values = found if isinstance(found, tuple) else (found,)
            return tuple(np.asarray(v).astype(given[n].dtype) for n, v in zip(tensors, values, strict=True))

        return oracle

    return decorate


_ARRAYS = (np.ndarray, np.generic)


@updates("var")
def resource_apply_gradient_descent(var: Any, alpha: Any, delta: Any, **_: Any) -> Any:
    return var - alpha * delta


@updates("var", "accum")
def resource_apply_momentum(
    var: Any, accum: Any, lr: Any, grad: Any, momentum: Any, use_nesterov: bool = False, **_: Any
) -> Any:
    velocity = momentum * accum + grad
    return var - lr * (grad + momentum * velocity if use_nesterov else velocity), velocity


@updates("var", "accum")
def resource_apply_adagrad(var: Any, accum: Any, lr: Any, grad: Any, **_: Any) -> Any:
    total = accum + grad**2
    return var - lr * grad * total**-0.5, total


def _adam(
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
) -> Any:
    mean, square = beta1 * m + (1.0 - beta1) * grad, beta2 * v + (1.0 - beta2) * grad**2
    scale = lr * (1.0 - beta2_power) ** 0.5 / (1.0 - beta1_power)
    return var - scale * mean / (square**0.5 + epsilon), mean, square


resource_apply_adam = updates("var", "m", "v")(_adam)


@updates("var", "m", "v")
def resource_apply_adam_w(var: Any, lr: Any, weight_decay: Any, **rest: Any) -> Any:
    return _adam(var=var - lr * weight_decay * var, lr=lr, **rest)


@updates("var", "ms", "mom")
def resource_apply_rms_prop(
    var: Any, ms: Any, mom: Any, lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any, **_: Any
) -> Any:
    square = rho * ms + (1.0 - rho) * grad**2
    move = momentum * mom + lr * grad / (square + epsilon) ** 0.5
    return var - move, square, move


@updates("var", "mg", "ms", "mom")
def resource_apply_centered_rms_prop(
    var: Any, mg: Any, ms: Any, mom: Any, lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any, **_: Any
) -> Any:
    mean, square = rho * mg + (1.0 - rho) * grad, rho * ms + (1.0 - rho) * grad**2
    move = momentum * mom + lr * grad / (square - mean**2 + epsilon) ** 0.5
    return var - move, mean, square, move


@updates("var", "accum", "linear")
def resource_apply_ftrl(
    var: Any, accum: Any, linear: Any, grad: Any, lr: Any, l1: Any, l2: Any, lr_power: Any, **_: Any
) -> Any:
    total = accum + grad**2
    z = linear + grad - (total**-lr_power - accum**-lr_power) / lr * var
    weight = total**-lr_power / lr + 2.0 * l2
    return np.where(np.abs(z) > l1, (np.sign(z) * l1 - z) / weight, 0.0), total, z


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
