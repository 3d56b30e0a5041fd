"""Candidate samplers beyond the samples of their specs: many classes, drawn once each, by the same stream as the oracles."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError
from graphdock_std.reference import candidates

Computed = Callable[..., list[np.ndarray]]
SEEDS = {"seed": 5, "seed2": 9}
#: Of the stream that these seeds make, in the first step.
STREAM = {"key": (5, 9), "counter": (0, 0)}


@pytest.mark.parametrize("unique", [False, True])
@pytest.mark.parametrize("count", [1, 127, 1500])
@pytest.mark.sampled(6)
def test_draws_are_those_of_the_stream(computed: Computed, count: int, unique: bool) -> None:
    attrs = {"num_true": 1, "num_sampled": count, "unique": unique, "range_max": 1600, **SEEDS}
    targets = np.arange(0, 1600, 7).reshape(-1, 1)
    for op, oracle in (
        ("UniformCandidateSampler", candidates.uniform),
        ("LogUniformCandidateSampler", candidates.log_uniform),
    ):
        got = computed(op, {"true_classes": targets}, **attrs)
        for a, b in zip(got, oracle(targets, **attrs, **STREAM), strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-7)


@pytest.mark.parametrize("unique", [False, True])
@pytest.mark.sampled(2)
def test_many_weights(computed: Computed, unique: bool) -> None:
    weights = np.random.default_rng(1).random(2500)
    weights[::3] = 0
    targets = np.arange(10).reshape(5, 2)
    attrs = {"num_true": 2, "num_sampled": 900, "unique": unique, "range_max": 2500, **SEEDS}
    got = computed("FixedUnigramCandidateSampler", {"true_classes": targets, "unigrams": weights}, **attrs)
    want = candidates.fixed_unigram(targets, weights, **attrs, **STREAM)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-7)
    assert (weights[got[0]] > 0).all()


@pytest.mark.parametrize("bad", [[1.0, -1.0, 2.0], [0.0, 0.0, 0.0], [1.0, np.nan, 1.0], [1.0, np.inf, 1.0]])
def test_what_is_no_weight_is_refused(computed: Computed, bad: list[float]) -> None:
    arrays = {"true_classes": np.array([[0]]), "unigrams": np.array(bad)}
    attrs = {"num_true": 1, "num_sampled": 1, "range_max": 3, **SEEDS}
    for unique in (False, True):
        with pytest.raises(InvalidArgumentError, match="unigrams are no weights"):
            computed("FixedUnigramCandidateSampler", arrays, unique=unique, **attrs)


def test_many_hits(computed: Computed) -> None:
    rng = np.random.default_rng(2)
    targets, drawn = rng.integers(0, 50, (70, 3)), rng.integers(0, 50, 90)
    rows, ids, weights = computed(
        "ComputeAccidentalHits", {"true_classes": targets, "sampled_candidates": drawn}, num_true=3
    )
    want = np.nonzero((targets[:, :, None] == drawn).any(1))
    np.testing.assert_array_equal(rows, want[0])
    np.testing.assert_array_equal(ids, want[1])
    assert (weights == np.finfo(np.float32).min).all()
