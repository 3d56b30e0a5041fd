"""Pools of images over their spatial dims, with gradients.

The library's maximum passes over NaN, and is the lowest number where all is minus infinity. Each maximum pool has the library add
up its input by lines, too: where a sum is not finite, the pool is computed by NumPy, which does as the ops' specs say. The gradient
of a maximum pool computes the pool once more, for the places of the largest elements, and has the library count where that is not
the pool that it is given, as where NaN is: NumPy computes it then.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from graphdock.contracts import PlanNode

from graphdock_onednn.interface import Algorithm, Arg, Fact, Kind
from graphdock_onednn.kernel import Watch, kernel
from graphdock_onednn.program import Steps, row_major
from graphdock_onednn.programs import Call
from graphdock_onednn.window import Window, channels_first, image, spatial, window

__all__ = ["KERNELS"]

_ATTRS = ("ksize", "strides", "padding", "data_format")
_MAX_ATTRS = (*_ATTRS, "explicit_paddings")


def _refused(node: PlanNode) -> str | None:
    """Return why a pool is not for the library."""
    first = not node.attrs["data_format"].endswith("C")
    for name in ("ksize", "strides"):
        batch, *others = node.attrs[name]
        if batch != 1 or others[0 if first else -1] != 1:
            return "it pools over the batch or the channels"
    sizes = node.attrs["ksize"][2:] if first else node.attrs["ksize"][1:-1]
    pads = (node.attrs.get("explicit_paddings") or [])[4 if first else 2 :][: 2 * len(sizes)]
    if any(p >= k for i, k in enumerate(sizes) for p in pads[2 * i : 2 * i + 2]):
        return "a window may lie in the padding alone"
    return None


class _Pool:
    """Layouts of one pool, and what its primitives are told of the window.

    Args:
      x, y: places of images and pooled images among the arrays.
    """

    def __init__(self, steps: Steps, call: Call, x: int, y: int) -> None:
        self.steps = steps
        self.x, self.y = (steps.layout(call.dtypes[place], *image(call, place)) for place in (x, y))
        facts = window(call, spatial(call, call.attr("ksize")), x, y)
        parts = facts.stride, facts.size, (0,) * len(facts.size), facts.before, facts.behind
        self.numbers = [steps.numbers(n) for n in parts]

    def forward(self, prop: int, algorithm: int) -> Any:
        given = prop, algorithm, self.x, self.y, *self.numbers, self.steps.attributes()
        return self.steps.described("pooling_forward", *given)

    def backward(self, algorithm: int, forward: Any) -> Any:
        given = algorithm, self.x, self.y, *self.numbers, forward, self.steps.attributes()
        return self.steps.described("pooling_backward", *given)


def _rows(call: Call, place: int) -> tuple[int, ...]:
    """A number per line of images, of which there are enough for all threads."""
    return (math.prod(call.shapes[place][:2]),)


def _add_sums(steps: Steps, call: Call, place: int, source: int | None = None) -> None:
    """Add up an array by lines, or a slot of its shape in float32, into the array that stands behind all others."""
    (rows,) = _rows(call, place)
    shape = rows, math.prod(call.shapes[place]) // rows
    flat = steps.layout(call.dtypes[place] if source is None else "float32", shape, row_major(shape))
    sums = steps.layout("float32", (rows, 1), (1, 1))
    given = steps.array(place, flat) if source is None else steps.again(source, flat)
    target = steps.array(len(call.shapes), sums)
    if shape[1] == 1:
        steps.copy(given, target)
        return
    made = steps.described("reduction", Algorithm.SUM, flat, sums, 0.0, 0.0, steps.attributes())
    steps.add(made, {Arg.SRC: given, Arg.DST: target}, (target,))


def _add_differences(steps: Steps, call: Call, pool: _Pool, again: int) -> None:
    """Count by lines where the second array is not the pool that is in a slot."""
    counted = steps.room(steps.layout("float32", *image(call, 1)))
    given = Algorithm.NOT_EQUAL, pool.y, pool.y, steps.layout_of(counted), steps.attributes()
    slots = {Arg.SRC: again, Arg.SRC_1: steps.array(1, pool.y), Arg.DST: counted}
    steps.add(steps.described("binary", *given), slots, (counted,))
    _add_sums(steps, call, 1, counted)


def _max_pool(steps: Steps, call: Call) -> None:
    """``input -> output``."""
    pool = _Pool(steps, call, 0, 1)
    x, y = steps.array(0, pool.x), steps.array(1, pool.y)
    steps.add(pool.forward(Kind.INFERENCE, Algorithm.POOL_MAX), {Arg.SRC: x, Arg.DST: y}, (y,))
    _add_sums(steps, call, 0)


def _max_pool_grad(steps: Steps, call: Call) -> None:
    """``(orig_input, orig_output, grad) -> output``."""
    pool = _Pool(steps, call, 0, 1)
    forward = pool.forward(Kind.TRAINING, Algorithm.POOL_MAX)
    backward = pool.backward(Algorithm.POOL_MAX, forward)
    x, again = steps.array(0, pool.x), steps.room(pool.y)
    places = steps.room(steps.wants(forward, Fact.WORKSPACE))
    steps.add(forward, {Arg.SRC: x, Arg.DST: again, Arg.WORKSPACE: places}, (again, places))
    grad, dx = steps.array(2, pool.y), steps.array(3, pool.x)
    steps.add(backward, {Arg.DIFF_DST: grad, Arg.WORKSPACE: places, Arg.DIFF_SRC: dx}, (dx,))
    _add_differences(steps, call, pool, again)


def _avg_pool(steps: Steps, call: Call) -> None:
    """``value -> output``."""
    pool = _Pool(steps, call, 0, 1)
    x, y = steps.array(0, pool.x), steps.array(1, pool.y)
    steps.add(pool.forward(Kind.INFERENCE, Algorithm.POOL_MEAN), {Arg.SRC: x, Arg.DST: y}, (y,))


def _avg_pool_grad(steps: Steps, call: Call) -> None:
    """``(orig_input_shape, grad) -> output``."""
    pool = _Pool(steps, call, 2, 1)
    backward = pool.backward(Algorithm.POOL_MEAN, pool.forward(Kind.TRAINING, Algorithm.POOL_MEAN))
    grad, dx = steps.array(1, pool.y), steps.array(2, pool.x)
    steps.add(backward, {Arg.DIFF_DST: grad, Arg.DIFF_SRC: dx}, (dx,))


def _taps(call: Call, facts: Window) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...]]]:
    """Every element of a window, in order: which windows have it, and where these have it in the images."""
    whole, out = (spatial(call, call.shapes[place]) for place in (0, 1))
    for at in itertools.product(*map(range, facts.size)):
        windows, images = [], []
        for k, s, p, n, m in zip(at, facts.stride, facts.before, whole, out, strict=True):
            first, last = max(0, -(-(p - k) // s)), min(m, (n - 1 + p - k) // s + 1)
            windows.append(slice(first, max(first, last)))
            start = first * s + k - p
            images.append(slice(start, start + max(0, last - first - 1) * s + (last > first), s))
        yield _index(call, windows), _index(call, images)


def _index(call: Call, slices: Sequence[slice]) -> tuple[slice, ...]:
    every = slice(None)
    return (every, every, *slices) if channels_first(call) else (every, *slices, every)


def _of_max(call: Call) -> Watch:
    taps = list(_taps(call, window(call, spatial(call, call.attr("ksize")), 0, 1)))

    def instead(x: Any, y: Any) -> None:
        y.fill(-np.inf)
        for windows, images in taps:
            np.maximum(y[windows], x[images], out=y[windows])

    return Watch(_rows(call, 0), lambda sums: bool(np.isfinite(sums).all()), instead)


def _of_max_grad(call: Call) -> Watch:
    taps = list(_taps(call, window(call, spatial(call, call.attr("ksize")), 0, 1)))

    def instead(x: Any, y: Any, grad: Any, dx: Any) -> None:
        dx.fill(0)
        waiting = np.ones(y.shape, np.bool_)
        for windows, images in taps:
            found = (x[images] == y[windows]) & waiting[windows]
            np.add(dx[images], grad[windows], out=dx[images], where=found)
            waiting[windows] &= ~found

    return Watch(_rows(call, 1), lambda counts: not counts.any(), instead)


KERNELS = [
    *kernel("MaxPool", _max_pool, attrs=_MAX_ATTRS, check=_refused, watch=_of_max),
    *kernel("MaxPoolGrad", _max_pool_grad, attrs=_MAX_ATTRS, check=_refused, watch=_of_max_grad),
    *kernel("AvgPool", _avg_pool, attrs=_ATTRS, check=_refused),
    *kernel("AvgPoolGrad", _avg_pool_grad, attrs=_ATTRS, check=_refused),
]
