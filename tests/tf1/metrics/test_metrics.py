"""tf.metrics over several batches: values against NumPy over all of them at once, names and collections as TensorFlow 1's."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError, ShapeError

M = tf.metrics
RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 2, (3, 8))
PARTS = RNG.uniform(0, 1, (3, 8)).astype(np.float32)
GUESSES = RNG.integers(0, 2, (3, 8))
WEIGHTS = (RNG.integers(0, 3, (3, 8)) * 0.5).astype(np.float32)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def run_all(metric, *sources, weights=None):
    """The last update's value, and the value after it, over all batches."""
    holders = [tf.placeholder(s.dtype, s.shape[1:]) for s in (*sources, *([] if weights is None else [weights]))]
    more = {} if weights is None else {"weights": holders[-1]}
    value, update = metric(*holders[: len(sources)], **more)
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        for batch in zip(*sources, *([] if weights is None else [weights]), strict=True):
            last = sess.run(update, dict(zip(holders, batch, strict=True)))
        return last, sess.run(value)


def counts(kind, above, labels, weights):
    wanted = {"tp": (1, 1), "tn": (0, 0), "fp": (0, 1), "fn": (1, 0)}[kind]
    return (((labels == wanted[0]) & (above == wanted[1])) * weights).sum()


#: Metric -> what NumPy says over all batches, by labels, guesses (or probabilities) and weights.
YES_OR_NO = {
    "accuracy": lambda t, g, w: ((t == g) * w).sum() / w.sum(),
    "true_positives": lambda t, g, w: counts("tp", g, t, w),
    "true_negatives": lambda t, g, w: counts("tn", g, t, w),
    "false_positives": lambda t, g, w: counts("fp", g, t, w),
    "false_negatives": lambda t, g, w: counts("fn", g, t, w),
    "precision": lambda t, g, w: counts("tp", g, t, w) / (g * w).sum(),
    "recall": lambda t, g, w: counts("tp", g, t, w) / (t * w).sum(),
}
ERRORS = {
    "mean_absolute_error": lambda t, p, w: (abs(t - p) * w).sum() / w.sum(),
    "mean_squared_error": lambda t, p, w: ((t - p) ** 2 * w).sum() / w.sum(),
    "root_mean_squared_error": lambda t, p, w: np.sqrt(((t - p) ** 2 * w).sum() / w.sum()),
}


@pytest.mark.parametrize("name", [*YES_OR_NO, *ERRORS])
@pytest.mark.parametrize("weighted", [False, True])
def test_values_over_batches(name, weighted):
    weights = WEIGHTS if weighted else None
    sources = (LABELS, GUESSES) if name in YES_OR_NO else (LABELS.astype(np.float32), PARTS)
    last, value = run_all(getattr(M, name), *sources, weights=weights)
    expected = (YES_OR_NO | ERRORS)[name](*sources, WEIGHTS if weighted else np.ones((3, 8)))
    np.testing.assert_allclose([last, value], [expected] * 2, rtol=1e-5)


@pytest.mark.parametrize("kind", ["tp", "tn", "fp", "fn"])
def test_counts_at_thresholds(kind):
    name = {"tp": "true_positives", "tn": "true_negatives", "fp": "false_positives", "fn": "false_negatives"}[kind]
    cuts = [0.2, 0.6]
    metric = getattr(M, name + "_at_thresholds")
    last, value = run_all(lambda t, p, **k: metric(t, p, cuts, **k), LABELS, PARTS, weights=WEIGHTS)
    expected = [counts(kind, np.greater(PARTS, c), LABELS, WEIGHTS) for c in cuts]
    np.testing.assert_allclose([last, value], [expected] * 2, rtol=1e-6)
    assert [v.op.name for v in tf.local_variables()] == [f"{name}/{name}"]


def test_precision_and_recall_at_thresholds():
    above = PARTS > 0.4
    for metric, total in ((M.precision_at_thresholds, above.sum()), (M.recall_at_thresholds, LABELS.sum())):
        last, _ = run_all(lambda t, p, f=metric: f(t, p, [0.4]), LABELS, PARTS)
        np.testing.assert_allclose(last, [(above & (LABELS == 1)).sum() / total], rtol=1e-5)


def test_areas():
    pairs = PARTS[LABELS == 1][:, None] - PARTS[LABELS == 0][None]
    by_rank = (pairs > 0).mean() + 0.5 * (pairs == 0).mean()
    last, value = run_all(lambda t, p: M.auc(t, p, num_thresholds=5000), LABELS, PARTS)
    assert abs(last - by_rank) < 1e-3 and last == value
    below, middle, above = (
        run_all(lambda t, p, m=m: M.auc(t, p, num_thresholds=10, summation_method=m), LABELS, PARTS)[0]
        for m in ("minoring", "trapezoidal", "majoring")
    )
    assert below < middle < above
    exact = run_all(lambda t, p: M.auc(t, p, curve="PR", summation_method="careful_interpolation"), LABELS, PARTS)[0]
    assert 0 < exact < 1


def test_one_rate_at_another():
    perfect = np.where(LABELS == 1, 0.9, 0.1).astype(np.float32)
    for metric in (M.sensitivity_at_specificity, M.specificity_at_sensitivity):
        assert abs(run_all(lambda t, p, f=metric: f(t, p, 0.8), LABELS, perfect)[1] - 1) < 1e-5


def test_means_of_tensors_and_classes():
    last, value = run_all(M.mean_tensor, PARTS, weights=WEIGHTS)
    np.testing.assert_allclose(value, (PARTS * WEIGHTS).sum(0) / np.maximum(WEIGHTS.sum(0), 1e-9), rtol=1e-5)
    np.testing.assert_allclose(run_all(lambda v: M.percentage_below(v, 0.5), PARTS)[1], (PARTS < 0.5).mean())
    t, g = RNG.integers(0, 3, (2, 3, 8))
    each = [(g[t == c] == c).mean() for c in range(3)]
    last, value = run_all(lambda a, b: M.mean_per_class_accuracy(a, b, 4), t, g)
    np.testing.assert_allclose(last, [*each, 0], rtol=1e-6)
    np.testing.assert_allclose(value, sum(each) / 4, rtol=1e-6)
    iou = [((t == c) & (g == c)).sum() / ((t == c) | (g == c)).sum() for c in range(3)]
    last, value = run_all(lambda a, b: M.mean_iou(a, b, 4), t, g)
    np.testing.assert_allclose(value, np.mean(iou), rtol=1e-6)
    assert last.shape == (4, 4) and last.sum() == 24
    scaled, normalizer = run_all(lambda a, b: M.mean_relative_error(a, b, tf.fill([8], 2.0)), PARTS, PARTS[::-1]), 2.0
    np.testing.assert_allclose(scaled[1], abs(PARTS - PARTS[::-1]).mean() / normalizer, rtol=1e-5)
    unit = np.ones((3, 8, 1), np.float32)
    assert run_all(lambda a, b: M.mean_cosine_distance(a, b, 1), unit, unit)[1] == 0


def test_the_best_guesses():
    labels = np.array([[[0, 2], [1, 3]], [[1, 2], [0, 3]]])
    scores = np.array(
        [[[0.9, 0.5, 0.1, 0.3], [0.1, 0.2, 0.8, 0.9]], [[0.3, 0.4, 0.2, 0.1], [0.0, 0.9, 0.8, 0.7]]], np.float32
    )
    # the two best: {0, 1} {3, 2} {1, 0} {1, 2}: right are 0, 3, 1 and none
    assert run_all(lambda t, p: M.precision_at_k(t, p, 2), labels, scores)[1] == 3 / 8
    assert run_all(lambda t, p: M.recall_at_k(t, p, 2), labels, scores)[1] == 3 / 8
    assert run_all(lambda t, p: M.precision_at_k(t, p, 2, class_id=1), labels, scores)[1] == 1 / 3
    assert run_all(lambda t, p: M.recall_at_k(t, p, 2, class_id=3), labels, scores)[1] == 1 / 2
    assert run_all(lambda t, p: M.average_precision_at_k(t, p, 2), labels, scores)[1] == (0.5 + 0.5 + 0.5 + 0) / 4
    names = [v.op.name for v in tf.local_variables()]
    assert names[:2] == ["precision_at_2/true_positive_at_2", "precision_at_2/false_positive_at_2"]
    assert "precision_at_2_class1/true_positive_at_2_class1" in names


def test_names_and_collections():
    value, update = M.accuracy(LABELS[0], GUESSES[0], metrics_collections="values", updates_collections=["a", "b"])
    assert (value.op.name, update.op.name) == ("accuracy/value", "accuracy/update_op")
    M.accuracy(LABELS[0], GUESSES[0])
    with tf.variable_scope("eval"):
        M.precision(LABELS[0], GUESSES[0], name="mine")
    names = [v.op.name for v in tf.local_variables()]
    assert names == [
        "accuracy/total",
        "accuracy/count",
        "accuracy_1/total",
        "accuracy_1/count",
        "eval/mine/true_positives/count",
        "eval/mine/false_positives/count",
    ]
    assert tf.get_collection(tf.GraphKeys.METRIC_VARIABLES) == tf.local_variables() and tf.global_variables() == []
    assert tf.get_collection("values") == [value] and tf.get_collection("a") == tf.get_collection("b") == [update]


def test_nothing_counted_is_zero_and_counting_begins_again():
    value, update = M.mean(PARTS[0])
    with tf.Session() as sess:
        for _ in range(2):
            sess.run(tf.local_variables_initializer())
            assert sess.run(value) == 0
            np.testing.assert_allclose(sess.run(update), PARTS[0].mean(), rtol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: M.accuracy(LABELS[0], GUESSES[0, :5]), ShapeError, "of one shape"),
        (lambda: M.mean(PARTS, weights=np.ones((3, 5))), ShapeError, "can not be broadcast"),
        (lambda: M.true_positives(LABELS, GUESSES, np.ones((3, 8, 1, 1))), ShapeError, "rank 0 or 2"),
        (lambda: M.auc(LABELS, PARTS, curve="ROCK"), InvalidArgumentError, "ROC or PR"),
        (lambda: M.auc(LABELS, PARTS, summation_method="up"), InvalidArgumentError, "minoring"),
        (lambda: M.auc(LABELS, PARTS, num_thresholds=1), InvalidArgumentError, "too few"),
        (lambda: M.average_precision_at_k(LABELS, PARTS, 0), InvalidArgumentError, "1 or more"),
        (lambda: M.precision_at_k(LABELS[None], PARTS, 2), ShapeError, "of another rank"),
        (lambda: M.sensitivity_at_specificity(LABELS, PARTS, 1.5), InvalidArgumentError, "specificity is a part"),
    ],
)
def test_what_they_refuse(wrong, error, words):
    with pytest.raises(error, match=words):
        wrong()


def test_probabilities_beyond_one_are_refused_in_the_step():
    _, update = M.auc(LABELS[0], tf.placeholder_with_default(PARTS[0] * 3, [8]))
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        with pytest.raises(InvalidArgumentError, match=r"\[0, 1\]"):
            sess.run(update)
