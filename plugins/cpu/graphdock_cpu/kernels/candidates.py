"""Kernels of candidate samplers: classes drawn for a loss over some of them, and their expected counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, KernelDef, PlanNode, errors

from graphdock_cpu.kernels.random import Philox
from graphdock_cpu.kernels.sampling import uniform

__all__ = ["KERNELS"]

#: Classes of uniform numbers, and the probabilities of classes.
Distribution = tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]]


def _uniform(node: PlanNode, classes: int) -> Distribution:
    return lambda u: (u * classes).astype(np.int64), lambda ids: np.full(ids.shape, 1 / classes)


def _log_uniform(node: PlanNode, classes: int) -> Distribution:
    width = math.log(classes + 1)

    def draw(u: np.ndarray) -> np.ndarray:
        return np.minimum(np.exp(u * width).astype(np.int64) - 1, classes - 1)

    return draw, lambda ids: np.log((ids + 2) / (ids + 1)) / width


def _weighted(node: PlanNode, classes: int, weights: np.ndarray) -> Distribution:
    wide = weights.astype(np.float64)
    sums = np.cumsum(wide)
    if not (wide >= 0).all() or not 0 < sums[-1] < math.inf:
        raise errors.InvalidArgumentError(
            "unigrams are no weights", expected="finite numbers, 0 or more, not all of them 0"
        )
    possible = int(np.count_nonzero(wide))
    if node.attrs["unique"] and possible < node.attrs["num_sampled"]:
        raise errors.InvalidArgumentError(
            f"{node.attrs['num_sampled']} unique classes are to be drawn, and {possible} of {classes} classes have a weight"
        )
    return lambda u: np.searchsorted(sums, u * sums[-1], "right"), lambda ids: wide[ids] / sums[-1]


def _draw(philox: Philox, draw: Callable[[np.ndarray], np.ndarray], count: int, unique: bool) -> tuple[np.ndarray, int]:
    """The classes, and how many draws they took."""
    if not unique:
        return draw(uniform(philox.words(count))), count
    drawn = np.empty(0, np.int64)
    while True:
        drawn = np.concatenate([drawn, draw(uniform(philox.words(max(4 * count, drawn.size) // 4 * 4)))])
        first = np.sort(np.unique(drawn, return_index=True)[1])
        if len(first) >= count:
            return drawn[first[:count]], int(first[count - 1]) + 1


def _sampler(distribution: Callable[..., Distribution]) -> Callable[[BuildContext], Bound]:
    def build(ctx: BuildContext) -> Bound:
        philox, node = Philox(), ctx.node
        classes, count, unique = (ctx.attr(n) for n in ("range_max", "num_sampled", "unique"))
        inputs = len(ctx.inputs)

        def expected(probabilities: np.ndarray, tries: int) -> np.ndarray:
            if not unique:
                return probabilities * tries
            with np.errstate(divide="ignore"):
                return -np.expm1(tries * np.log1p(-probabilities))

        def sample(true_classes: Any, *rest: Any) -> tuple[np.ndarray, ...]:
            outside = (true_classes < 0) | (true_classes >= classes)
            if outside.any():
                raise errors.InvalidArgumentError(
                    f"there is no class {int(true_classes[outside][0])}",
                    expected=f"true_classes from 0 to {classes - 1}",
                )
            draw, probability = distribution(node, classes, *rest[:-1])
            philox.start(rest[-1])
            drawn, tries = _draw(philox, draw, count, unique)
            counts = (expected(probability(ids), tries).astype(np.float32) for ids in (true_classes, drawn))
            return drawn, *counts

        if all(o.mode.kind == "fresh" for o in ctx.outputs):
            return Bound(sample)

        def planned(*args: Any) -> None:
            for out, made in zip(args[inputs + 1 :], sample(*args[: inputs + 1]), strict=True):
                np.copyto(out, made)

        return Bound(planned)

    return build


def _hits(ctx: BuildContext) -> Bound:
    lowest = np.finfo(np.float32).min

    def hits(true_classes: Any, candidates: Any) -> tuple[np.ndarray, ...]:
        rows, positions = np.nonzero((true_classes[:, :, None] == candidates).any(1))
        return rows.astype(np.int32), positions.astype(np.int64), np.full(len(rows), lowest, np.float32)

    return Bound(hits)


KERNELS = [
    KernelDef("UniformCandidateSampler", "cpu", _sampler(_uniform)),
    KernelDef("LogUniformCandidateSampler", "cpu", _sampler(_log_uniform)),
    KernelDef("FixedUnigramCandidateSampler", "cpu", _sampler(_weighted)),
    KernelDef("ComputeAccidentalHits", "cpu", _hits, modes=("fresh",)),
]
