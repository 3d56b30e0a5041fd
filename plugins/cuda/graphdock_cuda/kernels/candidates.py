"""Candidate samplers: classes drawn for a loss over some of them, their expected counts, and where they are targets."""

from __future__ import annotations

import functools
import math

from graphdock.contracts import KernelDef, dtypes, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.immediate import Run, dynamic_family
from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.where import chosen
from graphdock_cuda.launch import Param, f64, i32, i64, u64
from graphdock_cuda.work import ErrorWord, Operand, Stream, Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)
dynamic = dynamic_family(KERNELS)


def _sampler(w: Work, distribution: str) -> None:
    targets = w.input("true_classes")
    classes, count, unique = (w.attr(n) for n in ("range_max", "num_sampled", "unique"))
    drawn, of_targets, of_drawn = w.output((count,)), w.output(targets.shape, 1), w.output((count,), 2)
    weighted = distribution == "weighted_classes"
    weights: Operand | Param = w.input("unigrams") if weighted else u64(0)
    code = source(
        "block.cuh",
        "philox.cuh",
        "candidates.cuh",
        DISTRIBUTION=distribution,
        WEIGHT=w.ctype(weights) if isinstance(weights, Operand) else "float",
    )
    sums: Operand | Param = w.scratch(dtypes.float64, classes) if weighted else u64(0)
    usable: Operand | Param = w.scratch(dtypes.uint32, 1) if weighted else u64(0)
    tries = w.scratch(dtypes.int64, 1)
    w.launch(code, "check_classes", 1, 256, targets, i64(targets.size), i64(classes), ErrorWord(_no_class))
    if weighted:
        few = ErrorWord(functools.partial(_too_few, count))
        w.launch(
            code, "sum_weights", 1, 1024, weights, sums, usable, i64(classes), i64(count if unique else 0),
            ErrorWord(_no_weights), few,
        )  # fmt: skip
    known = (weights, sums, i64(classes), f64(math.log(classes + 1)))
    if unique:
        firsts = w.scratch(dtypes.uint64, classes)
        w.fill(firsts, 0xFF)
        threads = 128 if count <= 128 else 1024
        w.launch(code, "draw_unique", 1, threads, Stream(), drawn, tries, i64(count), firsts, usable, *known)
    else:
        w.launch(code, "draw_any", blocks(count), 256, Stream(), drawn, tries, i64(count), usable, *known)
    for ids, y in ((targets, of_targets), (drawn, of_drawn)):
        w.launch(code, "expect", blocks(ids.size), 256, ids, y, i64(ids.size), tries, i32(unique), usable, *known)


def _no_class(found: int, classes: int) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(f"there is no class {found}", expected=f"true_classes from 0 to {classes - 1}")


def _no_weights(_possible: int, _classes: int) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(
        "unigrams are no weights", expected="finite numbers, 0 or more, not all of them 0"
    )


def _too_few(count: int, possible: int, classes: int) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(
        f"{count} unique classes are to be drawn, and {possible} of {classes} classes have a weight"
    )


kernel("UniformCandidateSampler")(functools.partial(_sampler, distribution="uniform_classes"))
kernel("LogUniformCandidateSampler")(functools.partial(_sampler, distribution="log_uniform_classes"))
kernel("FixedUnigramCandidateSampler")(functools.partial(_sampler, distribution="weighted_classes"))


@dynamic("ComputeAccidentalHits")
def accidental_hits(r: Run) -> None:
    targets, candidates = r.input("true_classes"), r.input("sampled_candidates")
    rows, width = targets.shape[0], candidates.size
    code = source("accidental_hits.cuh")
    flags = r.scratch(dtypes.uint8, rows * width)
    if flags.size:
        r.launch(
            code, "mark_hits", blocks(flags.size), 256, targets, candidates, flags, i64(flags.size), i64(width),
            i64(targets.shape[1]),
        )  # fmt: skip
    places = chosen(r, flags)
    outs = [r.output((places.size,), i) for i in range(3)]
    if places.size:
        r.launch(code, "write_hits", blocks(places.size), 256, places, *outs, i64(places.size), i64(width))
