"""Random programs of views, copies and arithmetic against the same programs in NumPy.

What it hunts: a buffer that is reused, or taken over in place, while a view of it is still read; a result that a later
step changes; a plan that does not fit the next shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

#: name -> (on tensors, on arrays); every one takes and returns matrices of n rows and 4 columns.
UNARY: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "transpose": (lambda t: tf.transpose(tf.reverse(tf.transpose(t), [1])), lambda a: a[::-1]),
    "reverse": (lambda t: tf.reverse(t, [1]), lambda a: a[:, ::-1]),
    "rows": (lambda t: t[:, None][:, 0], lambda a: a),
    "every other": (lambda t: tf.concat([t[::2], t[1::2]], 0), lambda a: np.concatenate([a[::2], a[1::2]])),
    "flat": (lambda t: tf.reshape(tf.reshape(t, [-1]), tf.shape(t)), lambda a: a),
    "turned": (
        lambda t: tf.transpose(tf.reshape(t, tf.reverse(tf.shape(t), [0]))),
        lambda a: a.reshape(a.shape[::-1]).T,
    ),
    "square": (tf.square, np.square),
    "negative": (lambda t: -t, np.negative),
    "columns": (lambda t: tf.stack(tf.unstack(t, axis=1), axis=1), lambda a: a),
    "added": (lambda t: t + tf.expand_dims(t[0], 0), lambda a: a + a[:1]),
    "doubled": (lambda t: t + t, lambda a: a + a),
    "split": (lambda t: tf.concat(tf.split(t, 2, 1)[::-1], 1), lambda a: np.concatenate(np.split(a, 2, 1)[::-1], 1)),
    "gather": (lambda t: tf.gather(t, tf.range(tf.shape(t)[0] - 1, -1, -1)), lambda a: a[::-1]),
    "pad": (lambda t: tf.pad(t, [[1, 1], [0, 0]])[1:-1], lambda a: a),
    "tile": (lambda t: tf.tile(t, [2, 1])[: tf.shape(t)[0]], lambda a: a),
}
BINARY: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "add": (lambda x, y: x + y, np.add),
    "sub": (lambda x, y: x - y, np.subtract),
    "mul": (lambda x, y: x * y, np.multiply),
}


@st.composite
def programs(draw: Any) -> list[tuple[Any, ...]]:
    """Steps: a name and the numbers of the values it reads; value 0 and 1 are the feeds."""
    steps: list[tuple[Any, ...]] = []
    for _ in range(draw(st.integers(3, 14))):
        reads = st.integers(0, len(steps) + 1)
        if draw(st.booleans()):
            steps.append((draw(st.sampled_from(sorted(UNARY))), draw(reads)))
        else:
            steps.append((draw(st.sampled_from(sorted(BINARY))), draw(reads), draw(reads)))
    return steps


#: Rows per step; more sizes than get a plan of their own, so that one plan comes to serve them all.
SIZES = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 3, 12, 1]


@settings(max_examples=120, deadline=None)
@given(programs(), st.booleans(), st.data())
@pytest.mark.slow
def test_programs_agree_with_numpy(steps: list[tuple[Any, ...]], known: bool, data: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        xs = [tf.placeholder(tf.float64, [4 if known else None, 4]) for _ in range(2)]
        tensors: list[Any] = list(xs)
        for name, *reads in steps:
            tensors.append(_table(reads)[name][0](*[tensors[i] for i in reads]))
        picked = [len(tensors) - 1, data.draw(st.integers(2, len(tensors) - 1))]
        earlier: list[tuple[Any, Any]] = []
        for n in [4, 4] if known else SIZES:
            feeds = [np.arange(4.0 * n).reshape(n, 4) / (8 + len(earlier)), np.linspace(-1, 1, 4 * n).reshape(n, 4)]
            arrays: list[Any] = list(feeds)
            for name, *reads in steps:
                arrays.append(_table(reads)[name][1](*[arrays[i] for i in reads]))
            given_ = [f.copy() for f in feeds]
            found = session.run([tensors[i] for i in picked], dict(zip(xs, given_, strict=True)))
            for f, before in zip(given_, feeds, strict=True):
                np.testing.assert_array_equal(f, before)
            for i, value in zip(picked, found, strict=True):
                np.testing.assert_allclose(value, arrays[i], rtol=1e-12)
            earlier += [(value, value.copy()) for value in found]
        for value, kept in earlier:
            np.testing.assert_array_equal(value, kept)


def _table(reads: list[int]) -> dict[str, tuple[Any, Any]]:
    return UNARY if len(reads) == 1 else BINARY
