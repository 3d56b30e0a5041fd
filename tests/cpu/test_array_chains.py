"""Random programs of views, copies and arithmetic against the same programs in NumPy.

What it hunts: a buffer that is reused, or taken over in place, while a view of it is still read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

#: name -> (on tensors, on arrays); every one takes and returns matrices.
UNARY: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "transpose": (tf.transpose, np.transpose),
    "reverse": (lambda t: tf.reverse(t, [0]), lambda a: a[::-1]),
    "rows": (lambda t: t[:, None][:, 0], lambda a: a),
    "every other": (lambda t: tf.concat([t[::2], t[1::2]], 0), lambda a: np.concatenate([a[::2], a[1::2]])),
    "flat": (lambda t: tf.reshape(tf.reshape(t, [-1]), tf.shape(t)), lambda a: a),
    "turned": (lambda t: tf.reshape(t, tf.reverse(tf.shape(t), [0])), lambda a: a.reshape(a.shape[::-1])),
    "square": (tf.square, np.square),
    "negative": (lambda t: -t, np.negative),
    "halves": (lambda t: tf.stack(tf.unstack(t, num=4 if t.shape[0] is None else None)), lambda a: a),
    "added": (lambda t: t + tf.expand_dims(t[0], 0), lambda a: a + a[:1]),
    "doubled": (lambda t: t + t, lambda a: a + a),
    "split": (lambda t: tf.concat(tf.split(t, 2, 1)[::-1], 1), lambda a: np.concatenate(np.split(a, 2, 1)[::-1], 1)),
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


@settings(max_examples=200, deadline=None)
@given(programs(), st.booleans(), st.data())
def test_programs_agree_with_numpy(steps: list[tuple[Any, ...]], known: bool, data: Any) -> None:
    feeds = [np.arange(16, dtype=np.float64).reshape(4, 4) / 8, np.linspace(-1, 1, 16).reshape(4, 4)]
    with tf.Graph().as_default(), tf.Session() as session:
        xs = [tf.placeholder(tf.float64, [4, 4] if known else [None, 4]) for _ in feeds]
        tensors: list[Any] = list(xs)
        arrays: list[Any] = list(feeds)
        for name, *reads in steps:
            on_tensors, on_arrays = (UNARY if len(reads) == 1 else BINARY)[name]
            tensors.append(on_tensors(*[tensors[i] for i in reads]))
            arrays.append(on_arrays(*[arrays[i] for i in reads]))
        count = data.draw(st.integers(1, 3))
        picked = [len(tensors) - 1, *(data.draw(st.integers(2, len(tensors) - 1)) for _ in range(count - 1))]
        given_ = [f.copy() for f in feeds]
        first = session.run([tensors[i] for i in picked], dict(zip(xs, given_, strict=True)))
        kept = [f.copy() for f in first]
        second = session.run([tensors[i] for i in picked], dict(zip(xs, given_, strict=True)))
        for f, before in zip(given_, feeds, strict=True):
            np.testing.assert_array_equal(f, before)
        for i, a, b, c in zip(picked, first, second, kept, strict=True):
            np.testing.assert_allclose(a, arrays[i], rtol=1e-12)
            np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(a, c)
