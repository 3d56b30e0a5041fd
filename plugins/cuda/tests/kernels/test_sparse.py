"""Sparse tensors and sets of more elements than a block sorts, against NumPy and sets of Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock_std._gen.sets_ops import set_size, sparse_to_sparse_set_operation
from graphdock_std._gen.sparse_ops import (
    edit_distance,
    sparse_fill_empty_rows,
    sparse_reorder,
    sparse_tensor_dense_mat_mul,
)

Run = Callable[..., Any]


@pytest.fixture
def numbers() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("adjoint", [False, True])
def test_a_product(run_on_cuda: Run, numbers: np.random.Generator, adjoint: bool) -> None:
    at = np.stack([numbers.integers(0, 40, 3000), numbers.integers(0, 30, 3000)], 1)
    values, b = numbers.standard_normal(3000), numbers.standard_normal((40 if adjoint else 30, 7))
    dense = np.zeros((40, 30))
    np.add.at(dense, tuple(at.T), values)
    (found,) = run_on_cuda(
        lambda i, v, b: [sparse_tensor_dense_mat_mul(i, v, np.array([40, 30]), b, adjoint_a=adjoint)], at, values, b
    )
    np.testing.assert_allclose(found, (dense.T if adjoint else dense) @ b, rtol=1e-9, atol=1e-9)


def test_order_and_empty_rows(run_on_cuda: Run, numbers: np.random.Generator) -> None:
    at = np.stack([numbers.integers(0, 5000, 3000), numbers.integers(0, 4, 3000)], 1)
    values, shape = np.arange(3000, dtype=np.float32), np.array([5000, 4])
    ordered, filled = run_on_cuda(
        lambda i, v: [sparse_reorder(i, v, shape), sparse_fill_empty_rows(i, v, shape, tf.constant(-1.0))], at, values
    )
    order = np.argsort(at[:, 0] * 4 + at[:, 1], kind="stable")
    np.testing.assert_array_equal(ordered[0], at[order])
    np.testing.assert_array_equal(ordered[1], values[order])
    indices, found, empty, reverse = filled
    np.testing.assert_array_equal(empty, ~np.isin(np.arange(5000), at[:, 0]))
    assert (np.diff(indices[:, 0]) >= 0).all()
    np.testing.assert_array_equal(found[reverse], values)
    np.testing.assert_array_equal(indices[reverse], at)
    np.testing.assert_array_equal(indices[found == -1][:, 0], np.flatnonzero(empty))


def test_edit_distances(run_on_cuda: Run) -> None:
    words = [("kitten", "sitting"), ("flaw", "lawn"), ("", "ab"), ("same", "same"), ("", "")]
    sides = []
    for side in (0, 1):
        at = [(row, i) for row, pair in enumerate(words) for i in range(len(pair[side]))]
        sides += [np.array(at, np.int64), np.array([ord(c) for pair in words for c in pair[side]], np.int32)]
    shape = np.array([len(words), 7])
    (found,) = run_on_cuda(lambda a, b, c, d: [edit_distance(a, b, shape, c, d, shape, normalize=False)], *sides)
    np.testing.assert_array_equal(found, [3, 2, 2, 0, 0])


@pytest.mark.parametrize("operation", ["a-b", "b-a", "intersection", "union"])
def test_sets(run_on_cuda: Run, numbers: np.random.Generator, operation: str) -> None:
    sides, groups = [], []
    for count in (2500, 900):
        rows, values = np.sort(numbers.integers(0, 20, count)), numbers.integers(0, 90, count)
        places = np.arange(count) - np.searchsorted(rows, rows)
        sides += [np.stack([rows, places], 1), values, np.array([20, 2500])]
        groups.append([set(values[rows == row].tolist()) for row in range(20)])
    (indices, values, shape), sizes = run_on_cuda(
        lambda *s: [
            sparse_to_sparse_set_operation(*s, set_operation=operation),
            set_size(s[0], s[1], np.array([20, 2500])),
        ],
        *sides,
    )
    combine = {"a-b": set.difference, "b-a": lambda a, b: b - a, "intersection": set.intersection, "union": set.union}
    want = [sorted(combine[operation](a, b)) for a, b in zip(*groups, strict=True)]
    assert values.tolist() == [value for row in want for value in row]
    assert indices.tolist() == [[row, i] for row, found in enumerate(want) for i in range(len(found))]
    assert shape.tolist() == [20, max(map(len, want))]
    assert sizes.tolist() == [len(group) for group in groups[0]]
