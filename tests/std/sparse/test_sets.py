"""``tf.sets``. Expected values are TensorFlow's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock_std.sparse import sets

FIRST, SECOND = [[1, 2, 2], [3, 4, 5]], [[2, 1, 9], [5, 5, 4]]


def run(fetch: Any) -> Any:
    with tf.Session() as session:
        return session.run(fetch)


def sparse(indices: Any, values: Any, shape: Any) -> Any:
    places, sizes = tf.constant(np.array(indices, np.int64)), tf.constant(np.array(shape, np.int64))
    return SimpleNamespace(indices=places, values=tf.constant(values), dense_shape=sizes)


@pytest.fixture(autouse=True)
def triples(monkeypatch: pytest.MonkeyPatch) -> None:
    """The components of a sparse tensor, in place of it."""
    monkeypatch.setattr(sets._tf, "SparseTensor", lambda *parts: list(parts), raising=False)


@pytest.mark.parametrize(
    ("operation", "want"),
    [
        (lambda a, b: tf.sets.set_intersection(a, b), ([[0, 0], [0, 1], [1, 0], [1, 1]], [1, 2, 4, 5], [2, 2])),
        (lambda a, b: tf.sets.set_difference(a, b), ([[1, 0]], [3], [2, 1])),
        (lambda a, b: tf.sets.set_difference(a, b, aminusb=False), ([[0, 0]], [9], [2, 1])),
        (
            lambda a, b: tf.sets.set_union(a, b),
            ([[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]], [1, 2, 9, 3, 4, 5], [2, 3]),
        ),
    ],
)
def test_sets_of_tensors(operation: Any, want: Any) -> None:
    assert [v.tolist() for v in run(operation(FIRST, SECOND))] == [list(w) for w in want]


def test_a_tensor_and_a_sparse_one() -> None:
    other = sparse([[0, 0], [0, 1], [1, 0]], [9, 1, 3], [2, 2])
    got = run(tf.sets.intersection(FIRST, other))
    assert [v.tolist() for v in got] == [[[0, 0], [1, 0]], [1, 3], [2, 1]]


def test_strings() -> None:
    got = run(tf.sets.union([["a", "b"]], [["b"]]))
    assert [v.tolist() for v in got] == [[[0, 0], [0, 1]], [b"a", b"b"], [1, 2]]


def test_sizes() -> None:
    assert run(tf.sets.set_size(sparse([[0, 0], [0, 1], [2, 0]], [9, 9, 3], [3, 2]))).tolist() == [1, 0, 1]


def test_errors() -> None:
    with pytest.raises(TypeError):
        tf.sets.set_union(FIRST, np.array(SECOND, np.int64))
    with pytest.raises(ValueError):
        tf.sets.set_union([1, 2], [3])
    with pytest.raises(TypeError):
        tf.sets.set_union([[1.5]], [[1.5]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="other groups"):
        run(tf.sets.set_union([[1], [2]], [[1]]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="SparseTensor"):
        tf.sets.set_size([[1]])
