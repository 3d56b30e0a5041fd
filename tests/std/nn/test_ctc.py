"""Connectionist temporal classification. Losses, gradients and labels are TensorFlow's, to float32."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops
from graphdock.errors import GradientError

X = np.random.RandomState(0).randn(5, 3, 4).astype(np.float32)
LABELS = ([[0, 0], [0, 1], [1, 0], [1, 1], [1, 2], [2, 0]], [0, 1, 2, 2, 1, 0])


def sparse(indices: Any = LABELS[0], values: Any = LABELS[1]) -> Any:
    places = tf.constant(np.array(indices, np.int64).reshape(-1, 2))
    return SimpleNamespace(
        indices=places, values=tf.constant(values, tf.int32), dense_shape=tf.constant([3, 3], tf.int64)
    )


def run(*fetches: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        values = session.run(list(fetches), feed)
    return values[0] if len(fetches) == 1 else values


@pytest.mark.parametrize(
    ("arguments", "lengths", "want", "first", "size"),
    [
        ({}, [5, 5, 4], [1.8537613, 8.661704, 3.9881299], [0.01082188, 0.0769463, 0.13723414, -0.22500229], 13.002159),
        ({"preprocess_collapse_repeated": True}, [5, 5, 4], [1.8537613, 3.8940244, 3.9881299], None, 10.889824),
        (
            {"ctc_merge_repeated": False},
            [5, 5, 4],
            [3.652215, 4.7954593, 4.1870189],
            [0.24907932, 0.0769463, 0.13723414, -0.4632597],
            12.925425,
        ),
        (
            {"preprocess_collapse_repeated": True, "ctc_merge_repeated": False},
            [5, 5, 4],
            [3.652215, 5.0134974, 4.1870189],
            None,
            12.516827,
        ),
        ({"time_major": False}, [5, 5, 4], [1.8537613, 8.661704, 3.9881299], None, 13.00216),
        ({}, [5, 3, 4], [1.8537613, np.inf, 3.9881299], None, 9.274943),
        ({"ignore_longer_outputs_than_inputs": True}, [0, 5, 4], [0.0, 8.661704, 3.9881299], [0.0] * 4, 10.375921),
    ],
)
def test_losses_and_gradients(arguments: Any, lengths: Any, want: Any, first: Any, size: float) -> None:
    x = tf.constant(X if arguments.get("time_major", True) else X.transpose(1, 0, 2))
    loss = tf.nn.ctc_loss(sparse(), x, lengths, **arguments)
    assert loss.shape.as_list() == [3]
    value, slope = run(loss, tf.gradients(loss, x)[0])
    np.testing.assert_allclose(value, want, rtol=2e-6)
    np.testing.assert_allclose(np.abs(slope).sum(), size, rtol=1e-5)
    if first is not None:
        np.testing.assert_allclose(slope.ravel()[:4], first, rtol=2e-4, atol=1e-7)


def test_the_gradient_is_the_derivative() -> None:
    x = tf.placeholder(tf.float64, [5, 3, 4])
    loss = tf.nn.ctc_loss(sparse(), x, [5, 5, 4]) * [1.0, 2.0, 3.0]
    (slope,) = tf.gradients(loss, x)
    at = X.astype(np.float64)
    with tf.Session() as session:
        got = session.run(slope, {x: at})
        for place in [(0, 0, 0), (2, 1, 2), (3, 2, 3), (4, 2, 1)]:
            step = np.zeros(at.shape)
            step[place] = 1e-6
            high, low = (session.run(loss, {x: at + s}).sum() for s in (step, -step))
            np.testing.assert_allclose(got[place], (high - low) / 2e-6, rtol=1e-6, atol=1e-8)
    with pytest.raises(GradientError, match="second derivative"):
        tf.gradients(slope, x)


def test_a_row_without_labels_is_all_blank() -> None:
    loss = tf.nn.ctc_loss(sparse([[0, 0], [2, 0]], [0, 1]), X, [5, 2, 0], ignore_longer_outputs_than_inputs=True)
    blanks = X[:2, 1].astype(np.float64)
    logs = blanks[:, 3] - np.log(np.exp(blanks).sum(-1))
    np.testing.assert_allclose(run(loss)[1:], [-logs.sum(), 0.0], rtol=1e-6)


def test_long_sequences_do_not_underflow() -> None:
    steps, classes = 400, 30
    x = 10 * np.random.RandomState(1).randn(steps, 1, classes)
    label = np.arange(100) % (classes - 1)
    indices = np.stack([np.zeros(100, np.int64), np.arange(100)], 1)
    loss = tf.nn.ctc_loss(sparse(indices, label), x, [steps])
    value, slope = run(loss, tf.gradients(loss, loss.op.inputs[0])[0])
    assert np.isfinite(value).all() and 500 < value[0] < 20_000
    np.testing.assert_allclose(slope.sum(-1), 0, atol=1e-9)


def test_errors() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="SparseTensor"):
        tf.nn.ctc_loss([[1]], X, [5, 5, 4])
    with pytest.raises(tf.errors.InvalidArgumentError, match="longer than"):
        run(tf.nn.ctc_loss(sparse(), X, [0, 5, 4]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="sequence_length"):
        run(tf.nn.ctc_loss(sparse(), X, [6, 5, 4]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="class 3 is the blank"):
        run(tf.nn.ctc_loss(sparse([[0, 0]], [3]), X, [5, 5, 4]))
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.nn.ctc_loss(sparse(), X, [5, 5])


def decoded(op: str, **attrs: Any) -> list[Any]:
    made = ops.apply_op(op, inputs=tf.constant(X), sequence_length=tf.constant([5, 5, 3]), **attrs)
    return run(*[t for part in made for t in (part if isinstance(part, list) else [part])])


def test_greedy_labels() -> None:
    places, values, shape, scores = decoded("CTCGreedyDecoder")
    assert (places.tolist(), values.tolist(), shape.tolist()) == ([[0, 0], [1, 0], [2, 0]], [0, 0, 2], [3, 1])
    np.testing.assert_allclose(scores, [[-6.8888783], [-7.2735238], [-2.4750586]], rtol=1e-6)
    places, values, shape, _ = decoded("CTCGreedyDecoder", merge_repeated=False)
    assert values.tolist() == [0] * 6 + [2] and shape.tolist() == [3, 3]


def test_labels_of_a_beam() -> None:
    places, values, shape, scores = decoded("CTCBeamSearchDecoder", beam_width=1, top_paths=1)
    assert (places.tolist(), values.tolist(), shape.tolist()) == ([[0, 0], [1, 0], [2, 0]], [0, 0, 2], [3, 1])
    np.testing.assert_allclose(scores, [[-3.2177439], [-2.4005213], [-1.5772637]], rtol=1e-6)
    first, second, labels, others, shape, _, scores = decoded("CTCBeamSearchDecoder", beam_width=3, top_paths=2)
    assert (first.tolist(), labels.tolist()) == ([[0, 0], [0, 1], [1, 0], [2, 0]], [0, 1, 0, 2])
    assert (second.tolist(), others.tolist()) == ([[0, 0], [1, 0], [1, 1], [2, 0]], [0, 0, 1, 1])
    want = [[-1.8791963, -2.3981292], [-2.2783279, -2.2908814], [-1.3122182, -1.7912302]]
    np.testing.assert_allclose(scores, want, rtol=1e-6)
    parts = decoded("CTCBeamSearchDecoder", beam_width=100, top_paths=3)
    assert [v.tolist() for v in parts[3:6]] == [[0, 1, 0, 1, 2], [2, 0, 1, 0, 1], [0, 0, 2, 1, 2]]
    want = [
        [-1.853761, -2.3549633, -2.3774095],
        [-2.1496124, -2.2687347, -2.2950406],
        [-1.2558963, -1.7731208, -1.8115714],
    ]
    np.testing.assert_allclose(parts[-1], want, rtol=1e-6)


def test_labels_are_sparse_tensors() -> None:
    (labels,), scores = tf.nn.ctc_greedy_decoder(X, [5, 5, 3])
    assert labels.values.dtype == tf.int64 and scores.shape.as_list() == [3, 1]
    found, scores = tf.nn.ctc_beam_search_decoder(X, [5, 5, 3], beam_width=3, top_paths=2)
    assert len(found) == 2 and scores.shape.as_list() == [3, 2]
    assert run(found[0].values).tolist() == [0, 1, 0, 2]
