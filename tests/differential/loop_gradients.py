"""First and second derivatives of random nested conds and loops, against differences of what Python's own ``if`` and ``while``
give.

The first derivative is compared along one random direction, with a difference of the interpreted program; the second along the same
direction, with a difference of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import graphdock as tf
import numpy as np

FLOATS = "fmgu"
STEP = 1e-6


def small(random_loops: Any, seed: int, size: int = 6, depth: int = 3, favoured: str = "") -> Any:
    """A random program without huge integers: what is computed from them has no digits left for a difference."""

    class Loops(random_loops.Loops):  # type: ignore[name-defined,misc]
        def value(self, kind: str) -> Any:
            if kind in "il":
                return random_loops.DTYPES[kind](self.rng.integers(-4, 9))
            return super().value(kind)

    program = Loops(seed, favoured)
    program.grow(size, depth)
    return program


def check(program: Any, open_session: Callable[[tf.Graph], Any], scope: Callable[[], str | None] | None = None) -> None:
    """Build the gradients of a weighted sum over all floating values of the program, run them, and compare."""
    feeds = program.feeds()
    rng = np.random.default_rng(program.seed)
    flat = [(k, i) for k in FLOATS for i in range(len(feeds[k]))]
    directions = [rng.normal(size=feeds[k][i].shape) for k, i in flat]
    weights: dict[tuple[str, int], float] = {}

    def loss(env: Mapping[str, Any]) -> float:
        return float(sum(w * np.tanh(env[k][i]).sum() for (k, i), w in weights.items()))

    def moved(by: float) -> dict[str, list[Any]]:
        made = {k: list(v) for k, v in feeds.items()}
        for (k, i), direction in zip(flat, directions, strict=True):
            made[k][i] = made[k][i] + by * direction
        return made

    with tf.Graph().as_default() as graph:
        fed, values = program.build(feeds, scope)
        weights.update({(k, i): float(rng.normal()) for k in FLOATS for i in range(len(values[k]))})
        total = tf.add_n([w * tf.reduce_sum(tf.tanh(values[k][i])) for (k, i), w in weights.items()])
        xs = [fed[k][i] for k, i in flat]
        first = _known(tf.gradients(total, xs))
        inner = tf.add_n([tf.reduce_sum(tf.sin(g)) for _, g in first])
        second = _known(tf.gradients(inner, xs))

        def fd(given: Mapping[str, Any]) -> dict[Any, Any]:
            return {fed[k][i]: v for k, vs in given.items() for i, v in enumerate(vs)}

        with open_session(graph) as sess:
            value, by_x, by_xx = sess.run([total, [g for _, g in first], [g for _, g in second]], fd(feeds))
            np.testing.assert_allclose(value, loss(program.interpret(feeds)), rtol=1e-8)
            ahead, behind = moved(STEP), moved(-STEP)
            wanted = (loss(program.interpret(ahead)) - loss(program.interpret(behind))) / (2 * STEP)
            np.testing.assert_allclose(_along(by_x, first, directions), wanted, rtol=1e-4, atol=1e-4)
            wanted = (sess.run(inner, fd(ahead)) - sess.run(inner, fd(behind))) / (2 * STEP)
            np.testing.assert_allclose(_along(by_xx, second, directions), wanted, rtol=1e-3, atol=1e-3)


def _known(grads: list[Any]) -> list[tuple[int, Any]]:
    return [(i, g) for i, g in enumerate(grads) if g is not None]


def _along(values: list[Any], known: list[tuple[int, Any]], directions: list[Any]) -> float:
    return float(sum((v * directions[i]).sum() for v, (i, _) in zip(values, known, strict=True)))
