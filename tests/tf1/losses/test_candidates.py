"""Candidate samplers and the losses over sampled classes. Values of the losses are TensorFlow's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from scipy import stats


def run(*fetches: Any) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        values = session.run(list(fetches))
    return values[0] if len(fetches) == 1 else values


TRUE = np.array([[0, 3], [7, 9]])


def test_expected_counts_without_repetition() -> None:
    drawn, of_true, of_drawn = run(*tf.nn.uniform_candidate_sampler(TRUE, 2, 5, True, 10, seed=1))
    assert drawn.dtype == np.int64 and len(set(drawn)) == 5
    assert of_true.shape == (2, 2) and np.ptp(of_true) == 0 and 0.4 < of_true[0, 0] <= 0.95
    np.testing.assert_allclose(of_drawn, of_true[0, 0])


def test_expected_counts_are_tensorflows() -> None:
    drawn, of_true, of_drawn = run(*tf.nn.log_uniform_candidate_sampler(TRUE, 2, 5, False, 10, seed=1))
    want = [[1.4453242, 0.46529043], [0.24559671, 0.19873716]]
    np.testing.assert_allclose(of_true, want, rtol=1e-5)
    np.testing.assert_allclose(of_drawn, 5 * np.log((drawn + 2) / (drawn + 1)) / np.log(11), rtol=1e-6)
    weights = list(range(1, 11))
    sampler = tf.nn.fixed_unigram_candidate_sampler
    want = [[0.14348438, 0.40583515], [0.68253154, 0.80687201]]
    got = run(*sampler(TRUE, 2, 5, False, 10, unigrams=weights, distortion=0.75, seed=1))
    np.testing.assert_allclose(got[1], want, rtol=1e-5)
    got = run(*sampler(TRUE, 2, 5, False, 10, unigrams=weights[:9], num_reserved_ids=1, seed=1))
    np.testing.assert_allclose(got[1], [[0.0, 1 / 3], [7 / 9, 1.0]], rtol=1e-6)
    assert 0 not in got[0]


@pytest.mark.parametrize("name", ["uniform", "log_uniform"])
def test_distributions(name: str) -> None:
    sampler = getattr(tf.random, f"{name}_candidate_sampler")
    drawn = run(sampler([[0]], 1, 20_000, False, 12, seed=3)[0])
    k = np.arange(12)
    p = np.full(12, 1 / 12) if name == "uniform" else np.log((k + 2) / (k + 1)) / np.log(13)
    assert stats.chisquare(np.bincount(drawn, minlength=12), 20_000 * p).pvalue > 1e-3


def test_weights_of_a_file_and_of_a_shard(tmp_path: Path) -> None:
    file = tmp_path / "vocab.csv"
    file.write_text("the,40\nof,20\nand,0\nto,20\n")
    drawn, of_true, _ = run(*tf.nn.fixed_unigram_candidate_sampler([[0]], 1, 8000, False, 4, str(file), seed=1))
    assert stats.chisquare(np.bincount(drawn, minlength=4)[[0, 1, 3]], [4000, 2000, 2000]).pvalue > 1e-3
    assert of_true == [[4000]]
    sampler = tf.nn.fixed_unigram_candidate_sampler
    drawn = run(sampler([[0]], 1, 2, True, 2, unigrams=[1.0, 2.0, 3.0, 4.0], num_shards=2, shard=1, seed=1)[0])
    assert sorted(drawn) == [0, 1]


def test_a_learned_sampler_counts_target_classes() -> None:
    true_classes = tf.constant([[2], [2], [5]], tf.int64)
    sampled = tf.nn.learned_unigram_candidate_sampler(true_classes, 1, 4000, False, 6, seed=2)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        _, first, _ = session.run(sampled)
        drawn, second, _ = session.run(sampled)
    np.testing.assert_allclose(first, np.full((3, 1), 4000 / 6), rtol=1e-6)
    np.testing.assert_allclose(second, 4000 * np.array([[3], [3], [2]]) / 9, rtol=1e-6)
    assert stats.chisquare(np.bincount(drawn), 4000 * np.array([1, 1, 3, 1, 1, 2]) / 9).pvalue > 1e-3


def test_all_candidates_and_hits() -> None:
    assert [v.tolist() for v in run(*tf.nn.all_candidate_sampler([[1], [2]], 1, 3, True))] == [
        [0, 1, 2],
        [[1.0], [1.0]],
        [1.0] * 3,
    ]
    rows, positions, weights = run(*tf.nn.compute_accidental_hits(TRUE, np.array([3, 1, 9, 7, 3]), 2))
    assert (rows.tolist(), positions.tolist()) == ([0, 0, 1, 1], [0, 4, 2, 3])
    assert weights.tolist() == [float(np.finfo(np.float32).min)] * 4


def test_errors_of_samplers() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="11 unique classes of 10"):
        tf.nn.uniform_candidate_sampler(TRUE, 2, 11, True, 10)
    with pytest.raises(tf.errors.InvalidArgumentError, match="no class 9"):
        run(tf.nn.uniform_candidate_sampler(TRUE, 2, 3, True, 9)[0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="range_max"):
        tf.nn.fixed_unigram_candidate_sampler(TRUE, 2, 5, False, 10, unigrams=[1.0, 2.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="one of vocab_file and unigrams"):
        tf.nn.fixed_unigram_candidate_sampler(TRUE, 2, 5, False, 10)


def problem() -> dict[str, Any]:
    r = np.random.RandomState(0)
    w, b, x = r.randn(7, 3), r.randn(7), r.randn(4, 3)
    labels = np.array([[1, 2], [3, 0], [6, 6], [5, 4]])
    counts = r.uniform(0.2, 0.9, (4, 2)), r.uniform(0.2, 0.9, 4)
    sampled = tf.constant([0, 2, 4, 6], tf.int64), *(tf.constant(c.astype(np.float32)) for c in counts)
    inputs = {"weights": w, "biases": b, "inputs": x}
    tensors = {n: tf.constant(v.astype(np.float32)) for n, v in inputs.items()}
    return tensors | {"labels": labels, "num_sampled": 4, "num_classes": 7, "num_true": 2, "sampled_values": sampled}


@pytest.mark.parametrize(
    ("hits", "softmax", "nce"),
    [
        (True, [3.287611, 6.925555, 4.826247, 2.808066], [10.85277, 9.598837, 5.9271107, 8.387331]),
        (False, [3.2893596, 6.9262333, 4.83682, 2.8349404], [12.513836, 10.0530815, 6.0002027, 9.041779]),
    ],
)
def test_losses_are_tensorflows(hits: bool, softmax: list[float], nce: list[float]) -> None:
    given = problem()
    loss = tf.nn.sampled_softmax_loss(**given, remove_accidental_hits=hits)
    other = tf.nn.nce_loss(**given, remove_accidental_hits=hits)
    got = run(loss, other)
    np.testing.assert_allclose(got[0], softmax, rtol=1e-5)
    np.testing.assert_allclose(got[1], nce, rtol=1e-5)
    if hits:
        (slope,) = tf.gradients(loss, given["inputs"])
        np.testing.assert_allclose(run(slope)[0], [0.6239537, 0.9493071, -0.3616486], rtol=1e-5)


def test_gradients_of_rows_are_sparse_and_shards_are_taken() -> None:
    given = problem() | {"sampled_values": None}
    table = tf.Variable(np.ones([7, 3], np.float32))
    loss = tf.nn.sampled_softmax_loss(**(given | {"weights": table}), seed=1)
    assert isinstance(tf.gradients(loss, table)[0], tf.IndexedSlices)
    shards = [tf.ones([4, 3]), tf.ones([3, 3])]
    sharded = tf.nn.sampled_softmax_loss(**(given | {"weights": shards, "partition_strategy": "div"}), seed=1)
    values = run(loss, sharded)
    np.testing.assert_allclose(values[0], values[1], rtol=1e-6)
