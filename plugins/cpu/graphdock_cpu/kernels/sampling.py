"""Kernels of ops that draw from distributions with parameters: classes, gamma and Poisson numbers.

What is rejected is drawn again from a block of its own, so that no number depends on what happened to its neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, KernelDef, errors

from graphdock_cpu.kernels.random import Philox, sizes

__all__ = ["KERNELS"]

#: Elements that are drawn at once, so that what is between stays in the cache.
AT_ONCE = 1 << 13
#: Classes, and comparisons for a row, up to which all are made: a call for each row takes as long as the latter.
FEW_CLASSES, FEW_COMPARED = 16, 1 << 12


def uniform(words: np.ndarray) -> np.ndarray:
    """The top 53 bits of words as fractions of one."""
    return (words >> np.uint64(11)) * 2.0**-53


def _into(ctx: BuildContext, draw: Callable[..., np.ndarray]) -> Bound:
    """A kernel of ``draw(*inputs, stream)``, which returns its result."""
    dtype = ctx.outputs[0].dtype.np
    if ctx.fresh:
        return Bound(lambda *args: draw(*args).astype(dtype))

    def planned(*args: Any) -> None:
        np.copyto(args[-1], draw(*args[:-1]), "unsafe")

    return Bound(planned)


def _multinomial(ctx: BuildContext) -> Bound:
    philox = Philox()
    start = philox.starter(ctx)

    def draw(logits: Any, num_samples: Any, stream: Any) -> np.ndarray:
        count, (rows, classes) = int(num_samples), logits.shape
        if count < 0:
            raise errors.InvalidArgumentError("num_samples is negative", got=str(count))
        weights = logits.astype(np.float64)
        possible = np.isfinite(weights)
        if count and not possible.any(1).all():
            row = int(np.argmin(possible.any(1)))
            raise errors.InvalidArgumentError(f"row {row} of logits has no class to draw", expected="a finite logit")
        weights[~possible] = -math.inf
        if classes:
            np.subtract(weights, weights.max(1, keepdims=True), weights)
        sums = np.cumsum(np.exp(weights, weights), 1)
        start(stream)
        out = np.empty((rows, count), np.int64)
        for first, last, at, end in _pieces(rows, count):
            part = sums[first:last]
            drawn = uniform(philox.words((last - first) * (end - at))).reshape(last - first, end - at)
            _first_above(part, np.multiply(drawn, part[:, -1:], drawn), out[first:last, at:end])
        return out

    return _into(ctx, draw)


def _pieces(rows: int, count: int) -> Iterator[tuple[int, int, int, int]]:
    """Pieces of a matrix in the order of its elements: some whole rows, or a part of one."""
    if not count:
        return
    step = max(1, AT_ONCE // count)
    for first in range(0, rows, step):
        for at in range(0, count, AT_ONCE):
            yield first, min(rows, first + step), at, min(count, at + AT_ONCE)


def _first_above(sums: np.ndarray, drawn: np.ndarray, out: np.ndarray) -> None:
    """Number of running sums of its row that each number reaches: compared with all where they are few, else by bisection."""
    rows, classes = sums.shape
    count = drawn.shape[1]
    if classes <= FEW_CLASSES and classes <= count:
        out.fill(0)
        for k in range(classes):
            out += sums[:, k : k + 1] <= drawn
    elif rows > 1 and count * classes <= FEW_COMPARED:
        for j in range(count):
            np.sum(sums <= drawn[:, j : j + 1], 1, out=out[:, j])
    else:
        for row in range(rows):
            out[row] = np.searchsorted(sums[row], drawn[row], "right")


#: Numbers of pending elements, given their parameters and four words each; and which of them are taken.
Attempt = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def _of_each(attempt: Attempt, valid: Callable[[np.ndarray], np.ndarray]) -> Callable[[BuildContext], Bound]:
    """The kernel of an op that draws ``shape`` numbers with each of its parameters, and rejects some."""

    def build(ctx: BuildContext) -> Bound:
        philox = Philox()
        dtype = ctx.outputs[0].dtype

        def draw(shape: Any, parameters: Any, stream: Any) -> np.ndarray:
            made = (*sizes(shape), *parameters.shape)
            size = math.prod(made)
            out = np.full(size, math.nan if dtype.is_floating else 0.0)
            flat = parameters.astype(np.float64).reshape(-1)
            each = np.broadcast_to(flat, size) if flat.size == 1 else np.resize(flat, size) if size else out
            pending, block = np.flatnonzero(valid(each)), 0
            philox.start(stream)
            while pending.size:
                left = []
                edges = np.searchsorted(pending, np.arange(0, size, AT_ONCE))
                for some in np.split(pending, edges[1:]):
                    if some.size:
                        first = some[0]
                        philox.skip_to(block + int(first))
                        words = philox.words(4 * int(some[-1] - first + 1)).reshape(-1, 4)
                        values, taken = attempt(each[some], words[some - first])
                        out[some[taken]] = values[taken]
                        left.append(some[~taken])
                pending, block = np.concatenate(left), block + size
            return out.reshape(made)

        return _into(ctx, draw)

    return build


def _gamma(alpha: np.ndarray, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Marsaglia and Tsang, "A simple method for generating gamma variables", 2000."""
    u = uniform(words)
    below = alpha < 1
    d = np.where(below, alpha + 1, alpha) - 1 / 3
    z = np.sqrt(-2 * np.log(1 - u[:, 0])) * np.cos(2 * math.pi * u[:, 1])
    v = (1 + z / np.sqrt(9 * d)) ** 3
    with np.errstate(all="ignore"):
        taken = (v > 0) & (np.log(1 - u[:, 2]) < z * z / 2 + d - d * v + d * np.log(v))
        return d * v * np.where(below, (1 - u[:, 3]) ** (1 / alpha), 1.0), taken


#: Rates from here on are drawn by rejection.
_LARGE = 10.0
#: More than a Poisson number below that rate can be: the distribution function is 1 there in float64.
_MOST = 100


def _poisson(rate: np.ndarray, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    u = uniform(words[:, :2])
    values, taken = np.zeros(rate.shape), np.ones(rate.shape, bool)
    small = np.flatnonzero(rate < _LARGE)
    if small.size:
        values[small] = _counted(rate[small], u[small, 0])
    large = np.flatnonzero(rate >= _LARGE)
    if large.size:
        values[large], taken[large] = _transformed(rate[large], u[large, 0], u[large, 1])
    return values, taken


def _counted(rate: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The first count whose distribution function is above u."""
    counts = np.zeros(rate.shape)
    term = np.exp(-rate)
    total = term.copy()
    for k in range(1, _MOST):
        above = u >= total
        if not above.any():
            break
        counts += above
        term = term * rate / k
        total += term
    return counts


def _transformed(rate: np.ndarray, u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Hoermann, "The transformed rejection method for generating Poisson random variables", 1993: PTRS."""
    b = 0.931 + 2.53 * np.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    centred, v = u - 0.5, 1 - v
    edge = 0.5 - np.abs(centred)
    with np.errstate(all="ignore"):
        k = np.floor((2 * a / edge + b) * centred + rate + 0.43)
        taken = (edge >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
        open_ = np.flatnonzero(~taken & (k >= 0) & ((edge >= 0.013) | (v <= edge)))
        factorial = np.array([math.lgamma(n + 1) for n in k[open_].tolist()])
        bound = k[open_] * np.log(rate[open_]) - rate[open_] - factorial
        shape = a[open_] / edge[open_] ** 2 + b[open_]
        taken[open_] = np.log(v[open_] * inverse_alpha[open_] / shape) <= bound
    return k, taken


KERNELS = [
    KernelDef("Multinomial", "cpu", _multinomial, host=("num_samples",)),
    KernelDef("StatelessMultinomial", "cpu", _multinomial, host=("num_samples", "seed")),
    KernelDef("RandomGamma", "cpu", _of_each(_gamma, lambda alpha: (alpha > 0) & (alpha < math.inf)), host=("shape",)),
    KernelDef(
        "RandomPoisson", "cpu", _of_each(_poisson, lambda rate: (rate >= 0) & np.isfinite(rate)), host=("shape",)
    ),
]
