"""Histograms as TensorFlow makes them: buckets whose limits grow by a tenth, from 1e-12 to 1e20 on both sides of zero."""

from __future__ import annotations

import functools
import math
import sys
from typing import Any

import numpy as np
from graphdock.messages import make

__all__ = ["bucket_limits", "histogram"]

#: Elements that are added up at once.
_CHUNK = 1 << 16


@functools.cache
def bucket_limits() -> Any:
    """The upper limits of all buckets, in order, as a read-only array; a limit itself belongs into the next bucket."""
    positive, limit = [], 1.0e-12
    while limit < 1.0e20:
        positive.append(limit)
        limit *= 1.1
    positive.append(sys.float_info.max)
    limits = np.array([*(-v for v in reversed(positive)), 0.0, *positive])
    limits.flags.writeable = False
    return limits


def histogram(values: Any) -> Any:
    """The histogram of an array of finite numbers. Runs of empty buckets are one bucket.

    Sums are taken in float64, element after element, so that they are TensorFlow's to the last bit.
    """
    flat = np.ravel(values).astype(np.float64)
    limits = bucket_limits()
    if not flat.size:
        largest = sys.float_info.max
        return make("HistogramProto", min=largest, max=-largest, bucket_limit=[largest], bucket=[0.0])
    places = np.searchsorted(limits, flat, side="right")
    counts = np.bincount(np.minimum(places, len(limits) - 1), minlength=len(limits))
    with np.errstate(over="ignore"):
        squares = flat * flat
    made = make(
        "HistogramProto", min=flat.min(), max=flat.max(), num=flat.size, sum=_sum(flat), sum_squares=_sum(squares)
    )
    kept = _kept(counts)
    made.bucket_limit.extend(limits[kept].tolist())
    made.bucket.extend(counts[kept].astype(np.float64).tolist())
    return made


def _kept(counts: Any) -> Any:
    """Return which buckets are told: those with values, and of each run of empty ones the last."""
    empty = counts == 0
    ends = np.append(~empty[1:], True)
    return ~empty | ends


def _sum(values: Any) -> float:
    """The sum from left to right; NumPy's own adds in pairs."""
    total = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for at in range(0, len(values), _CHUNK):
            part = values[at : at + _CHUNK].copy()
            part[0] += total
            total = float(np.add.accumulate(part)[-1])
    return total if not math.isnan(total) else math.nan
