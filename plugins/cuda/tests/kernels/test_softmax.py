"""Rows of many lengths, which warps and blocks have; rows that are not finite; labels outside of the classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np
import pytest


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize(("rows", "width"), [(1, 1), (9, 31), (3, 33), (40, 257), (2, 1025), (1, 5000)])
def test_rows(run: Callable[..., Any], rows: int, width: int) -> None:
    x = np.random.default_rng(width).normal(0, 9, (rows, width)).astype(np.float32)
    soft, log = run(lambda t: [tf.nn.softmax(t), tf.nn.log_softmax(t)], x)
    np.testing.assert_allclose(soft, _softmax(x), rtol=2e-5, atol=1e-7)
    np.testing.assert_allclose(log, np.log(_softmax(x.astype(np.float64))), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("width", [3, 2000])
def test_rows_that_are_not_finite(run: Callable[..., Any], width: int) -> None:
    x = np.zeros((4, width), np.float32)
    x[0, 0], x[1, 1], x[2, :], x[3, 2] = np.nan, np.inf, -np.inf, -np.inf
    soft = run(tf.nn.softmax, x)
    assert np.isnan(soft[0]).all() and np.isnan(soft[2]).all()
    assert np.isnan(soft[1, 1]) and not soft[1, [0, 2]].any()
    np.testing.assert_allclose(soft[3], np.where(np.arange(width) == 2, 0, 1 / (width - 1)), rtol=1e-5)


@pytest.mark.parametrize("width", [5, 2000])
def test_losses_of_rows_that_are_not_finite(run: Callable[..., Any], width: int) -> None:
    """As the cpu has them; a row where some logits are impossible stays a row."""
    x = np.zeros((4, width), np.float32)
    x[0, 0], x[1, 1], x[2, :], x[3, 2] = np.nan, np.inf, -np.inf, -np.inf
    one_hot = np.eye(width, dtype=np.float32)[[0, 0, 0, 1]]

    def both(t: Any, hot: Any, index: Any) -> Any:
        sparse = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=index, logits=t)
        dense = tf.nn.softmax_cross_entropy_with_logits(labels=hot, logits=t)
        return [sparse, dense, *tf.gradients(sparse, [t]), *tf.gradients(dense, [t])]

    sparse, dense, by_sparse, by_dense = run(both, x, one_hot, np.array([0, 0, 0, 1]))
    for found in (sparse, dense, by_sparse, by_dense):
        assert np.isnan(found[:3]).all(), found[:3]
    assert sparse[3] == pytest.approx(np.log(width - 1), rel=1e-5)
    np.testing.assert_allclose(by_sparse[3], by_dense[3], atol=1e-6)


@pytest.mark.parametrize("arrives", [False, True])
@pytest.mark.parametrize("width", [7, 1500])
def test_cross_entropies_agree(run: Callable[..., Any], width: int, arrives: bool) -> None:
    """With what arrives at the losses, which is multiplied in the same launch, and without."""
    rng = np.random.default_rng(3)
    slope = rng.normal(0, 1, 5).astype(np.float32) if arrives else np.ones(5, np.float32)
    x, labels = rng.normal(0, 3, (5, width)).astype(np.float32), rng.integers(0, width, 5)
    one_hot = np.eye(width, dtype=np.float32)[labels]

    def both(t: Any, hot: Any, index: Any, reaches: Any) -> Any:
        given = [reaches] if arrives else None
        sparse = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=index, logits=t)
        dense = tf.nn.softmax_cross_entropy_with_logits(labels=hot, logits=t)
        return [sparse, dense, *tf.gradients(sparse, [t], given), *tf.gradients(dense, [t], given)]

    sparse, dense, by_sparse, by_dense = run(both, x, one_hot, labels, slope)
    want = -np.log(_softmax(x)[np.arange(5), labels])
    np.testing.assert_allclose(sparse, want, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(dense, want, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(by_sparse, (_softmax(x) - one_hot) * slope[:, None], atol=2e-6)
    np.testing.assert_allclose(by_dense, (_softmax(x) - one_hot) * slope[:, None], atol=2e-6)


@pytest.mark.parametrize(("label", "arrives"), [(-1, False), (4, False), (4, True)])
def test_a_label_that_is_no_class(run: Callable[..., Any], label: int, arrives: bool) -> None:
    """The error names the loss, with its gradient too."""

    def loss(t: Any, index: Any) -> Any:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=index, logits=t, name="mine")
        return [losses, *tf.gradients(losses, [t], [tf.constant([1.0, 2.0, 3.0])])] if arrives else losses

    with pytest.raises(tf.errors.InvalidArgumentError, match=f"labels from 0 to 3.*got {label}") as failed:
        run(loss, np.zeros((3, 4), np.float32), np.array([0, label, 3]))
    assert failed.value.op_name == "mine"
