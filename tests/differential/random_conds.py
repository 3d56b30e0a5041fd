"""Random chains of conds over a vector, nested, whose branches capture what stands before them; and the same in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import graphdock as tf
import numpy as np

__all__ = ["Chain"]

#: Smooth functions of one or two vectors, in NumPy and in tensors.
_ONE: Sequence[tuple[Any, Any]] = [
    (np.sin, tf.sin), (np.cos, tf.cos), (np.tanh, tf.tanh), (lambda a: a * a, lambda t: t * t),
    (lambda a: a * 0.5, lambda t: t * 0.5),
    (lambda a: np.exp(-a * a), lambda t: tf.exp(-t * t)), (lambda a: a + 1.0, lambda t: t + 1.0), (lambda a: a, tf.identity),
    (lambda a: a * a.sum(), lambda t: t * tf.reduce_sum(t)), (lambda a: a[::-1], lambda t: tf.reverse(t, [0])),
]  # fmt: skip
_TWO: Sequence[tuple[Any, Any]] = [
    (lambda a, b: a * b, lambda s, t: s * t), (lambda a, b: a - b, lambda s, t: s - t),
    (lambda a, b: a * b.sum(), lambda s, t: s * tf.reduce_sum(t)),
    (lambda a, b: np.tanh(a) + b, lambda s, t: tf.tanh(s) + t),
]  # fmt: skip

Both = tuple[Callable[..., Any], Callable[..., Any]]


class Chain:
    """Values, each a function of those before it: the first is fed.

    Attributes:
      predicates: how many there are; each is fed.
    """

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.predicates = int(self.rng.integers(1, 4))
        self.steps: list[Both] = []
        for _ in range(int(self.rng.integers(2, 6))):
            self.steps.append(self._cond(2) if self.rng.random() < 0.6 else self._plain())

    def _pick(self, items: Sequence[Any]) -> Any:
        return items[int(self.rng.integers(len(items)))]

    def _value(self) -> Callable[[Sequence[Any]], Any]:
        """One of the values before, rather a late one."""
        back = 1 + int(self.rng.geometric(0.6))
        return lambda values: values[-min(back, len(values))] if back > 1 else values[-1]

    def _plain(self) -> Both:
        """A few operations in a row."""
        numpy: Callable[..., Any] = self._value()
        tensor = numpy
        made: Both = (lambda v, p: numpy(v), lambda v, p: tensor(v))
        for _ in range(int(self.rng.integers(1, 4))):
            made = self._after(made)
        return made

    def _after(self, made: Both) -> Both:
        f, g = made
        if self.rng.random() < 0.6:
            one, other = self._pick(_ONE)
            return lambda v, p: one(f(v, p)), lambda v, p: other(g(v, p))
        two, more = self._pick(_TWO)
        beside = self._value()
        return lambda v, p: two(f(v, p), beside(v)), lambda v, p: more(g(v, p), beside(v))

    def _cond(self, depth: int) -> Both:
        which = int(self.rng.integers(self.predicates))
        a, b = (self._cond(depth - 1) if depth and self.rng.random() < 0.4 else self._plain() for _ in range(2))
        return (
            lambda v, p: (a if p[which] else b)[0](v, p),
            lambda v, p: tf.cond(p[which], lambda: a[1](v, p), lambda: b[1](v, p)),
        )

    def numpy(self, x: np.ndarray, predicates: Sequence[bool]) -> float:
        """The loss: one number."""
        values = [x]
        for f, _ in self.steps:
            values.append(f(values, predicates))
        return float(np.tanh(values[-1]).sum())

    def tensor(self, x: Any, predicates: Sequence[Any]) -> Any:
        values = [x]
        for _, g in self.steps:
            values.append(g(values, predicates))
        return tf.reduce_sum(tf.tanh(values[-1]))
