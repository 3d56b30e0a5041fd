"""Oracles of candidate samplers: one draw after another, over Philox in Python integers."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphdock_std.reference import random as plain


def _sample(
    true_classes: Any,
    draw: Callable[[float], int],
    probability: Callable[[int], float],
    num_sampled: int,
    unique: bool,
    key: Sequence[int],
    counter: tuple[int, ...],
) -> list[np.ndarray]:
    kept: list[int] = []
    tries = 0
    words = plain.words(400 * num_sampled, key, counter)
    while len(kept) < num_sampled:
        found = draw((words[tries] >> 11) * 2.0**-53)
        tries += 1
        if not unique or found not in kept:
            kept.append(found)

    def expected(k: int) -> float:
        p = probability(k)
        return 1 - (1 - p) ** tries if unique else tries * p

    rows = np.asarray(true_classes)
    counts = np.array([expected(int(k)) for k in rows.flat], np.float64).reshape(rows.shape)
    return [
        np.array(kept, np.int64),
        counts.astype(np.float32),
        np.array([expected(k) for k in kept], np.float64).astype(np.float32),
    ]


def uniform(
    true_classes: Any, num_sampled: int, unique: bool, range_max: int, key: Any, counter: tuple[int, ...], **_: Any
) -> list[np.ndarray]:
    """Every class as often as another."""
    draw, probability = (lambda u: math.floor(u * range_max)), (lambda k: 1 / range_max)
    return _sample(true_classes, draw, probability, num_sampled, unique, key, counter)


def log_uniform(
    true_classes: Any, num_sampled: int, unique: bool, range_max: int, key: Any, counter: tuple[int, ...], **_: Any
) -> list[np.ndarray]:
    """Class k as often as the logarithm grows from k + 1 to k + 2."""
    width = math.log(range_max + 1)

    def draw(u: float) -> int:
        return min(math.floor(math.exp(u * width)) - 1, range_max - 1)

    def probability(k: int) -> float:
        return (math.log(k + 2) - math.log(k + 1)) / width

    return _sample(true_classes, draw, probability, num_sampled, unique, key, counter)


def fixed_unigram(
    true_classes: Any, unigrams: Any, num_sampled: int, unique: bool, key: Any, counter: tuple[int, ...], **_: Any
) -> list[np.ndarray]:
    """By weights."""
    weights = [float(w) for w in unigrams]
    sums = list(itertools.accumulate(weights))
    return _sample(
        true_classes,
        lambda u: bisect.bisect_right(sums, u * sums[-1]),
        lambda k: weights[k] / sums[-1],
        num_sampled,
        unique,
        key,
        counter,
    )


def accidental_hits(true_classes: Any, sampled_candidates: Any, **_: Any) -> list[np.ndarray]:
    """Every pair looked at."""
    pairs = [
        (row, position)
        for row, classes in enumerate(np.asarray(true_classes).tolist())
        for position, candidate in enumerate(np.asarray(sampled_candidates).tolist())
        if candidate in classes
    ]
    rows, positions = np.array([p[0] for p in pairs], np.int32), np.array([p[1] for p in pairs], np.int64)
    return [rows, positions, np.full(len(pairs), np.finfo(np.float32).min, np.float32)]
