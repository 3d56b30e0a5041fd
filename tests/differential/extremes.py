"""Random programs over numbers at the ends of their dtypes: infinities, NaN, the largest, the smallest, zeros of both signs.

They compute element by element, choose and move; what sums is left out, for what a sum of such numbers is depends on its order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import graphdock as tf
import numpy as np
from graphdock_differential_random_graph import Generator

__all__ = ["Extremes"]


class Extremes(Generator):
    """Grows a program of ops that no order of summation changes, over numbers of which most are extreme."""

    def array(self, dtype: str, shape: Sequence[int]) -> np.ndarray:
        found = super().array(dtype, shape)
        if found.dtype.kind == "f":
            ends = np.finfo(found.dtype)
            some = [
                np.nan,
                np.inf,
                -np.inf,
                ends.max,
                ends.min,
                ends.tiny,
                ends.smallest_subnormal,
                0.0,
                -0.0,
                1.0,
                -1.0,
            ]
        elif found.dtype.kind == "i":
            whole = np.iinfo(found.dtype)
            some = [whole.max, whole.min, 0, -1, 1]
        else:
            return found
        return np.where(
            self.rng.random(found.shape) < 0.6, self.rng.choice(np.array(some, found.dtype), found.shape), found
        )

    def shape(self) -> tuple[int, ...]:
        if self.chance(0.25):
            return tuple(self.pick([0, 1, 1, 3]) for _ in range(self.pick([1, 2, 3])))
        return super().shape()

    def add(self, what: str, inputs: Sequence[int], numpy: Callable[..., Any], tensor: Callable[..., Any]) -> None:
        if not what.startswith(("reduce_sum", "reduce_mean", "tanh")):  # numbers stay as large as they get
            super().add(what, inputs, numpy, tensor)

    def makers(self) -> Sequence[Callable[[], None]]:
        return [self.unary, self.unary, self.binary, self.binary, self.binary, self.view, self.reduce, self.combine, self.choose,
                self.choose, self.index, self.constant, self.several, self.same, self.tests, self.clipped]  # fmt: skip

    def tests(self) -> None:
        """Tests of floats: whether they are numbers, and how two compare."""
        n = self.some(lambda a: a.dtype.kind == "f")
        if n is None:
            return
        m = self.like(n)
        assert m is not None
        what, f, g = self.pick([
            ("is_nan", lambda a, b: np.isnan(a), lambda a, b: tf.is_nan(a)),
            ("is_inf", lambda a, b: np.isinf(b), lambda a, b: tf.is_inf(b)),
            ("is_finite", lambda a, b: np.isfinite(a), lambda a, b: tf.is_finite(a)),
            ("less", np.less, tf.less), ("ge", np.greater_equal, tf.greater_equal), ("equal", np.equal, tf.equal),
            ("not_equal", np.not_equal, tf.not_equal),
        ])  # fmt: skip
        self.add(what, [n, m], f, g)

    def clipped(self) -> None:
        n = self.some(lambda a: a.dtype.kind == "f")
        if n is None:
            return
        self.add("clip", [n], lambda a: np.minimum(np.maximum(a, a.dtype.type(-2)), a.dtype.type(2)),
                 lambda t: tf.maximum(tf.minimum(t, 2.0), -2.0))  # fmt: skip
