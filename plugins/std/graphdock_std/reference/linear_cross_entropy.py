"""Oracles of specs/linear_cross_entropy.yaml, in float64, a row at a time."""

from __future__ import annotations

from typing import Any

import numpy as np


def _logits(x: Any, w: Any, bias: Any, transpose_w: bool) -> np.ndarray:
    weights = w.astype(np.float64)
    made = np.einsum("nd,vd->nv" if transpose_w else "nd,dv->nv", x.astype(np.float64), weights)
    return made if bias is None else made + bias.astype(np.float64)


def linear_cross_entropy(
    x: Any, w: Any, labels: Any, bias: Any = None, transpose_w: bool = False, U: Any = np.float32, **_: Any
) -> tuple[np.ndarray, ...]:
    logits = _logits(x, w, bias, transpose_w)
    sums = [np.logaddexp.reduce(row) for row in logits]
    losses = [total - row[label] for row, label, total in zip(logits, labels, sums, strict=True)]
    kind = np.dtype(getattr(U, "np", U))
    return np.array(losses, kind), np.array(sums, kind)


def linear_cross_entropy_grad(
    loss_backprop: Any, x: Any, w: Any, labels: Any, log_sum: Any, bias: Any = None, transpose_w: bool = False, **_: Any
) -> tuple[np.ndarray, ...]:
    rows = x.astype(np.float64)
    slopes = np.exp(_logits(x, w, bias, transpose_w) - log_sum.astype(np.float64)[:, None])
    for slope, label, factor in zip(slopes, labels, loss_backprop.astype(np.float64), strict=True):
        if 0 <= label < slope.size:  # the loss refuses others
            slope[label] -= 1.0
        slope *= factor
    weights = w.astype(np.float64)
    found = (
        np.einsum("nv,vd->nd" if transpose_w else "nv,dv->nd", slopes, weights),
        np.einsum("nv,nd->vd" if transpose_w else "nv,nd->dv", slopes, rows),
        slopes.sum(0),
    )
    return tuple(a.astype(x.dtype) for a in found)
