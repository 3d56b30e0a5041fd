"""Every random op against its distribution: Kolmogorov and Smirnov for numbers, chi squared for counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from scipy import stats

#: Of a test that should pass one time in a thousand draws it does not; the seeds are fixed.
LEVEL = 1e-3
COUNT = 20_000


def drawn(build: Callable[[], Any]) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(build())


NUMBERS: dict[str, tuple[Callable[..., Any], Any]] = {
    "uniform": (lambda n, t: tf.random_uniform(n, dtype=t, seed=1), stats.uniform()),
    "uniform of a range": (lambda n, t: tf.random_uniform(n, -3.0, 5.0, t, seed=2), stats.uniform(-3, 8)),
    "normal": (lambda n, t: tf.random_normal(n, 2.0, 3.0, t, seed=3), stats.norm(2, 3)),
    "truncated normal": (lambda n, t: tf.truncated_normal(n, dtype=t, seed=4), stats.truncnorm(-2, 2)),
    "gamma 0.5": (lambda n, t: tf.random_gamma(n, 0.5, dtype=t, seed=5), stats.gamma(0.5)),
    "gamma 1": (lambda n, t: tf.random_gamma(n, 1.0, dtype=t, seed=6), stats.gamma(1)),
    "gamma 8, 2": (lambda n, t: tf.random_gamma(n, 8.0, 2.0, t, seed=7), stats.gamma(8, scale=0.5)),
    "stateless uniform": (lambda n, t: tf.random.stateless_uniform(n, [1, 2], dtype=t), stats.uniform()),
    "stateless normal": (lambda n, t: tf.random.stateless_normal(n, [1, 2], 1.0, 2.0, t), stats.norm(1, 2)),
    "stateless truncated normal": (
        lambda n, t: tf.random.stateless_truncated_normal(n, [1, 2], dtype=t),
        stats.truncnorm(-2, 2),
    ),
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers(name: str, dtype: str) -> None:
    build, distribution = NUMBERS[name]
    values = drawn(lambda: build([COUNT], tf.as_dtype(dtype)))
    assert values.dtype == dtype
    assert stats.kstest(values.astype(np.float64), distribution.cdf).pvalue > LEVEL


def agrees(counts: Any, expected: Any) -> None:
    """Chi squared over the classes of which five or more are expected; the rest are one class."""
    counts, expected = np.asarray(counts, float), np.asarray(expected, float)
    rare = expected < 5
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    assert stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > LEVEL


@pytest.mark.parametrize("rate", [0.3, 4.0, 9.9, 10.0, 40.0, 1000.0])
def test_poisson(rate: float) -> None:
    values = drawn(lambda: tf.random_poisson(rate, [COUNT], seed=8))
    low, high = stats.poisson(rate).ppf([1e-4, 1 - 1e-4])
    edges = np.arange(low, high + 2, max(1, (high - low) // 40))
    masses = np.diff(np.concatenate(([0.0], stats.poisson(rate).cdf(edges), [1.0])))
    agrees(np.histogram(values, np.concatenate(([-1], edges + 0.5, [math.inf])))[0], masses * COUNT)


@pytest.mark.parametrize("span", [2, 7, 1000])
def test_integers(span: int) -> None:
    values = drawn(lambda: tf.random_uniform([COUNT], 5, 5 + span, tf.int32, seed=9))
    agrees(np.bincount(values - 5, minlength=span), np.full(span, COUNT / span))
    values = drawn(lambda: tf.random.stateless_uniform([COUNT], [3, 4], 5, 5 + span, tf.int64))
    agrees(np.bincount(values - 5, minlength=span), np.full(span, COUNT / span))


@pytest.mark.parametrize(("low", "high"), [(0, 3 * 2**61), (-(2**63), 2**63 - 1), (-5, 2**40)])
def test_integers_of_a_wide_range(low: int, high: int) -> None:
    values = drawn(lambda: tf.random_uniform([COUNT], np.int64(low), np.int64(high), tf.int64, seed=9))
    assert values.min() >= low and values.max() < high
    fractions = np.array([(int(v) - low) / (high - low) for v in values])
    assert stats.kstest(fractions, stats.uniform().cdf).pvalue > LEVEL


def test_classes() -> None:
    logits = np.log(
        [[0.1, 0.2, 0.7, 0.0], [0.25, 0.25, 0.25, 0.25]], where=[[1, 1, 1, 0]] * 2, out=np.full((2, 4), -np.inf)
    )
    weights = np.exp(logits)
    for values in (
        drawn(lambda: tf.multinomial(logits, COUNT, seed=1)),
        drawn(lambda: tf.random.categorical(logits.astype(np.float32), COUNT, seed=2)),
        drawn(lambda: tf.random.stateless_categorical(logits, COUNT, [5, 6])),
    ):
        assert values.shape == (2, COUNT) and values.dtype == np.int64
        for row in range(2):
            counts = np.bincount(values[row], minlength=4)
            assert counts[3] == 0 or weights[row, 3] > 0
            agrees(counts[weights[row] > 0], weights[row][weights[row] > 0] * COUNT)


def test_one_sample_of_many_rows() -> None:
    logits = np.log(np.tile([[0.5, 0.1, 0.4]], (COUNT, 1)))
    values = drawn(lambda: tf.multinomial(logits, 1, seed=3))
    agrees(np.bincount(values[:, 0]), np.array([0.5, 0.1, 0.4]) * COUNT)


def test_orders() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        order = session.make_callable(tf.random_shuffle(tf.range(3), seed=4))
        orders = [int(order() @ [9, 3, 1]) for _ in range(3000)]
    agrees(np.unique(orders, return_counts=True)[1], np.full(6, 500))


@pytest.mark.parametrize("keep", [0.001, 0.01, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("fed", [False, True])
def test_dropout_keeps_as_many_as_it_says(keep: float, dtype: str, fed: bool) -> None:
    count = 200_000
    kind = tf.as_dtype(dtype)
    kept = drawn(lambda: tf.nn.dropout(tf.ones([count], kind), tf.constant(keep, kind) if fed else keep, seed=5))
    rounded = float(kind.np.type(keep)) if fed else keep
    assert stats.binomtest(int(np.count_nonzero(kept)), count, rounded).pvalue > LEVEL


@pytest.mark.parametrize(("low", "high"), [(1000.0, 1001.0), (6e4, 6.1e4), (-1.0, 1.0), (0.0, 3.0), (1.0, 1.0)])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_uniform_numbers_stay_below_the_bound(low: float, high: float, dtype: str) -> None:
    kind = tf.as_dtype(dtype)
    first, last = float(kind.np.type(low)), float(kind.np.type(high))
    for build in (
        lambda: tf.random_uniform([100_000], low, high, kind, seed=1),
        lambda: tf.random_uniform([100_000], tf.constant(low, kind), tf.constant(high, kind), kind, seed=1),
        lambda: tf.random.stateless_uniform([100_000], [1, 2], low, high, kind),
    ):
        values = drawn(build).astype(np.float64)
        assert values.min() >= first and (values.max() < last or first == last)


def test_a_range_of_few_numbers_is_even() -> None:
    """What is rounded up to the bound fills the half step that the smallest number lacks."""
    values = drawn(lambda: tf.random_uniform([80_000], 1024.0, 1032.0, tf.float16, seed=2)).astype(int)
    agrees(np.bincount(values - 1024, minlength=8), np.full(8, 10_000))
