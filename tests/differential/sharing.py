"""Random programs whose operations share what they read: tied weights, one addend twice, one part in several places.

A value that is used twice is two uses. So a program computes what the same program does whose uses are each of their own
(``unshared``), in its values and in its gradients: a law that needs no reference, and holds for every pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import graphdock as tf
import numpy as np
from graphdock_differential_random_graph import Generator, Program

__all__ = ["Sharing", "differentiable", "loss", "slope_along", "unshared"]

_NAN = (np.nan, np.inf, -np.inf, 1e308, -1e308)


class Sharing(Generator):
    """Grows a program in which most operands are used several times.

    Attributes:
      side: of the square weights that all products share.
      hidden: values with NaN and infinities where no result depends on them; read by what keeps them hidden alone.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed, feeds=1)
        self.hidden: set[int] = set()
        self.side = self.pick([2, 3, 3, 12])
        shapes = [(self.side, self.side), (self.side, self.side), (2 * self.side, self.side), (1, self.side)]
        self.weights = [self.feed(shape) for shape in shapes]

    def feed(self, shape: Sequence[int]) -> int:
        number = self.new(self.array("float64", shape))
        self.program.feeds[number] = self.program.values[number]
        return number

    def shape(self) -> tuple[int, ...]:
        if self.chance(0.2):  # empty and one-sized dims
            return tuple(self.pick([0, 1, 1, 3]) for _ in range(self.pick([1, 2, 3])))
        return super().shape()

    def some(self, test: Callable[[np.ndarray], bool] = lambda a: True, last: int = 12) -> int | None:
        fits = [i for i, a in self.program.values.items() if i not in self.hidden and test(a)]
        if not fits:
            return None
        return self.pick(fits[-self.pick([2, last, len(fits)]) :])

    def add(self, what: str, inputs: Sequence[int], numpy: Callable[..., Any], tensor: Callable[..., Any]) -> None:
        # central differences know no stopped gradients
        super().add(what, inputs, numpy, tf.identity if what == "stop_gradient" else tensor)

    def several_of(self, test: Callable[[np.ndarray], bool], most: int = 5) -> list[int]:
        """Some values that pass the test; one may be there more than once."""
        found = [self.some(test) for _ in range(int(self.rng.integers(2, most + 1)))]
        return [i for i in found if i is not None]

    def makers(self) -> Sequence[Callable[[], None]]:
        mine = [self.total, self.total, self.products, self.products, self.squares, self.tied, self.twice, self.recurrence,
                self.pieces, self.masked, self.neutral]  # fmt: skip
        return [*super().makers(), *mine, *mine]

    def total(self) -> None:
        """A sum of several, some of them more than once."""
        n = self.some(lambda a: a.dtype.kind in "fi")
        assert n is not None
        x = self.program.values[n]
        addends = [n, *self.several_of(lambda b: b.dtype == x.dtype and b.shape == x.shape)]
        self.rng.shuffle(addends)
        self.add("add_n", addends, _added, lambda *t: tf.add_n(list(t)))

    def products(self) -> None:
        """A sum of products of slivers, of weights, and of what stands beside them, in any order."""
        side, count = self.side, int(self.rng.integers(2, 4))
        columns = [self.sliver((side, 1)) for _ in range(count)]
        rows = [self.sliver((1, side)) for _ in range(count)]
        rest = [self.pick(self.weights[:2]) for _ in range(int(self.rng.integers(4)))]
        order = [int(i) for i in self.rng.permutation(count + len(rest))]

        def numpy(*a: Any) -> Any:
            made = [p @ q for p, q in zip(a[:count], a[count : 2 * count], strict=True)] + list(a[2 * count :])
            return _added(*[made[i] for i in order])

        def tensor(*t: Any) -> Any:
            pairs = zip(t[:count], t[count : 2 * count], strict=True)
            made = [tf.matmul(p, q) for p, q in pairs] + list(t[2 * count :])
            return tf.add_n([made[i] for i in order])

        self.add(f"sum of {count} products, {order}", [*columns, *rows, *rest], numpy, tensor)

    def sliver(self, shape: tuple[int, int]) -> int:
        """A value of the shape: one that is there, or another feed."""
        found = self.some(lambda a: a.dtype == np.float64 and a.shape == shape)
        return self.feed(shape) if found is None or self.chance(0.3) else found

    def squares(self) -> None:
        given = self.several_of(lambda a: a.dtype == np.float64 and a.ndim <= 2)
        halves = [bool(self.chance(0.7)) for _ in given]

        def numpy(*a: Any) -> Any:
            return _added(*[np.sum(x * x) / 2 if half else np.sum(x) for x, half in zip(a, halves, strict=True)])

        def tensor(*t: Any) -> Any:
            return tf.add_n([tf.nn.l2_loss(x) if half else tf.reduce_sum(x) for x, half in zip(t, halves, strict=True)])

        self.add(f"squares {halves}", given, numpy, tensor)

    def tied(self) -> None:
        """A layer whose weight is used once more, turned or as it is."""
        w = self.pick(self.weights[:2])
        x = self.some(lambda a: a.dtype == np.float64 and a.ndim == 2 and a.shape[1] == self.side)
        turned = self.chance(0.6)
        assert x is not None
        self.add(f"tied {turned}", [x, w, w], lambda x, v, w: np.tanh(x @ v) @ (w.T if turned else w),
                 lambda x, v, w: tf.matmul(tf.tanh(tf.matmul(x, v)), w, transpose_b=turned))  # fmt: skip

    def twice(self) -> None:
        """One value as several operands of one operation."""
        n = self.some(lambda a: a.dtype == np.float64 and a.ndim > 0)
        assert n is not None
        what, f, g = self.pick([
            ("x - x", lambda a, b: a - b, lambda a, b: a - b),
            ("x * x", lambda a, b: a * b, lambda a, b: a * b),
            ("x + x", lambda a, b: a + b, lambda a, b: a + b),
            ("max", np.maximum, tf.maximum),
            ("concat", lambda a, b: np.concatenate([a, b, a], 0), lambda a, b: tf.concat([a, b, a], 0)),
            ("stack", lambda a, b: np.stack([b, a, b], 1).sum(1), lambda a, b: tf.reduce_sum(tf.stack([b, a, b], 1), 1)),
            ("identity_n", lambda a, b: [b, a], lambda a, b: tf.identity_n([b, a])),
            ("where", lambda a, b: np.where(a > 0, a, b), lambda a, b: tf.where(a > 0, a, b)),
            ("squared_difference", lambda a, b: (a - 2 * b) ** 2, lambda a, b: tf.squared_difference(a, 2 * b)),
            ("x' x", lambda a, b: np.tensordot(a, b, [[0], [0]]), lambda a, b: tf.tensordot(a, b, [[0], [0]])),
        ])  # fmt: skip
        self.add(f"twice: {what}", [n, n], f, g)

    def neutral(self) -> None:
        """A neutral element, which may stretch what it changes not."""
        n = self.some(lambda a: a.dtype == np.float64)
        assert n is not None
        ones = np.ones([self.pick([1, 1, 2]), *self.program.values[n].shape][self.pick([0, 1]) :])
        what, f, g = self.pick(
            [("x * 1", np.multiply, tf.multiply), ("x / 1", np.divide, tf.divide), ("x ** 1", np.power, tf.pow)]
        )
        self.add(f"{what} of {list(ones.shape)}", [n], lambda a: f(a, ones), lambda t: g(t, ones))

    def recurrence(self) -> None:
        """Steps of ``h = tanh([x, h] W)``; some steps have the same input."""
        row, both = self.weights[3], self.weights[2]
        steps = int(self.rng.integers(2, 6))
        fits = [self.some(lambda a: a.dtype == np.float64 and a.shape == (1, self.side)) for _ in range(steps)]
        given = [row if i is None else i for i in fits]

        def run(join: Any, product: Any, tanh: Any, given: Sequence[Any], w: Any) -> Any:
            h = given[0]
            for x in given:
                h = tanh(product(join([x, h], 1), w))
            return h

        self.add(f"recurrence of {steps}", [*given, both],
                 lambda *a: run(np.concatenate, np.matmul, np.tanh, a[:-1], a[-1]),
                 lambda *t: run(tf.concat, tf.matmul, tf.tanh, t[:-1], t[-1]))  # fmt: skip

    def pieces(self) -> None:
        """Parts of a value joined in another order, some of them more than once."""
        n = self.some(lambda a: a.dtype.kind in "fi" and a.ndim > 0 and a.shape[0] > 1)
        if n is None:
            return
        size = self.program.values[n].shape[0]
        order = [int(i) for i in self.rng.integers(0, size, int(self.rng.integers(1, 5)))]
        self.add(f"pieces {order}", [n], lambda a: np.stack([a[i] for i in order]),
                 lambda t: tf.stack([tf.unstack(t, size)[i] for i in order]))  # fmt: skip

    def masked(self) -> None:
        """NaN and infinities at places that a mask takes away again after some operations."""
        n = self.some(lambda a: a.dtype == np.float64 and a.ndim in (1, 2) and 0 < a.size <= 64)
        if n is None:
            return
        shape = self.program.values[n].shape
        mask, bad = self.rng.random(shape) < 0.6, self.rng.choice(_NAN, shape)
        chain = [self.pick(_CHAIN) for _ in range(int(self.rng.integers(1, 4)))]

        def numpy(a: Any) -> Any:
            made = np.where(mask, a, bad)
            for f, _ in chain:
                made = f(made)
            return np.where(mask, made, 0.0)

        def tensor(t: Any) -> Any:
            made = tf.where(mask, t, tf.constant(bad))
            for _, g in chain:
                made = g(made)
            return tf.where(mask, made, tf.zeros_like(made))

        self.add(f"masked {mask.astype(int).tolist()}", [n], numpy, tensor)
        if len(self.program.values) - 1 != n and self.chance(0.3):
            # hidden from everything but a slice that has none of it
            self.behind()

    def behind(self) -> None:
        """Rows that are no numbers below rows that are taken alone."""
        n = self.some(lambda a: a.dtype == np.float64 and a.ndim == 2 and 0 < a.shape[0] <= 6 and a.shape[1] > 0)
        if n is None:
            return
        rows, columns = self.program.values[n].shape
        bad = self.rng.choice(_NAN, (2, columns))
        before = len(self.program.values)
        self.add(
            "rows below", [n], lambda a: np.concatenate([a, bad], 0), lambda t: tf.concat([t, tf.constant(bad)], 0)
        )
        self.hidden.update(range(before, len(self.program.values)))
        if before not in self.program.values:
            return
        take = [int(i) for i in self.rng.integers(0, rows, 3)]
        self.add(f"rows {take}", [before], lambda a: a.take(take, 0), lambda t: tf.gather(t, take))
        self.add("rows above", [before], lambda a: a[:rows], lambda t: t[:rows])


_CHAIN: Sequence[tuple[Any, Any]] = [
    (np.tanh, tf.tanh), (lambda a: a * 0.5, lambda t: t * 0.5), (lambda a: a + 1.0, lambda t: t + 1.0),
    (lambda a: np.maximum(a, 0), tf.nn.relu), (lambda a: a * a, tf.square), (np.abs, tf.abs),
    (lambda a: a - a * 2, lambda t: t - t * 2),
]  # fmt: skip


def _added(*arrays: np.ndarray) -> np.ndarray:
    total = arrays[0]
    for array in arrays[1:]:
        total = total + array
    return total


def unshared(extra: dict[Any, Any]) -> Callable[[Any], Any]:
    """Tensors of their own for each use: the tensor, changed by a feed that changes nothing. ``extra`` collects the feeds."""

    def use(tensor: Any) -> Any:
        nothing = tf.placeholder(tensor.dtype, [])
        extra[nothing] = np.zeros((), tensor.dtype.as_numpy_dtype)
        return tf.logical_or(tensor, nothing) if tensor.dtype == tf.bool else tensor + nothing

    return use


def differentiable(program: Program, hidden: set[int]) -> list[int]:
    """The values whose sum is the loss: float64, finite, and read by little else."""
    read = {i for step in program.steps for i in step.inputs}
    fits = [i for i, a in program.values.items() if a.dtype == np.float64 and i not in hidden and np.isfinite(a).all()]
    return [i for i in fits if i not in read] or fits[-3:]


def loss(tensors: dict[int, Any], numbers: Sequence[int]) -> Any:
    """One number; the first value is in it twice."""
    return tf.add_n([tf.reduce_sum(tf.tanh(tensors[i])) for i in [*numbers, numbers[0]]])


def slope_along(program: Program, numbers: Sequence[int], by: dict[int, np.ndarray], step: float) -> float:
    """The derivative of the loss along a direction of its feeds, by central differences of the interpreter."""
    found = []
    for sign in (1, -1):
        feeds = {i: a + sign * step * by[i] if i in by else a for i, a in program.feeds.items()}
        values = program.evaluate(feeds)
        found.append(sum(float(np.tanh(values[i]).sum()) for i in [*numbers, numbers[0]]))
    return (found[0] - found[1]) / (2 * step)
