"""Candidate samplers: classes drawn for a loss over some of them, their expected counts, and which of them are targets."""

from __future__ import annotations

import math

from graphdock.contracts import KernelDef, dtypes, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.immediate import Run, dynamic_family
from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.scan import exclusive_sums
from graphdock_cuda.launch import f64, i32, i64, u64
from graphdock_cuda.work import ErrorWord, Operand, Stream, Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)
dynamic = dynamic_family(KERNELS)


@kernel("UniformCandidateSampler")
def uniform(w: Work) -> None:
    _sample(w, "0", None, 0.0)


@kernel("LogUniformCandidateSampler")
def log_uniform(w: Work) -> None:
    _sample(w, "1", None, math.log(w.attr("range_max") + 1))


@kernel("FixedUnigramCandidateSampler")
def fixed_unigram(w: Work) -> None:
    weights, classes, count = w.input("unigrams"), w.attr("range_max"), w.attr("num_sampled")
    sums = w.scratch(dtypes.float64, 2 * classes)

    def wrong(_: int, __: int) -> errors.GraphdockError:
        return errors.InvalidArgumentError(
            "unigrams are no weights", expected="finite numbers, 0 or more, not all of them 0"
        )

    def few(possible: int, _: int) -> errors.GraphdockError:
        return errors.InvalidArgumentError(
            f"{count} unique classes are to be drawn, and {possible} of {classes} classes have a weight"
        )

    made = source("report.cuh", "block.cuh", "running_sums.cuh", "weight_sums.cuh", ELEMENT=w.ctype(weights))
    wanted = count if w.attr("unique") else 0
    w.launch(made, "weight_sums", 1, 256, weights, sums, i64(classes), i64(wanted), ErrorWord(wrong), ErrorWord(few))
    _sample(w, "2", sums, 0.0)


def _sample(w: Work, kind: str, sums: Operand | None, width: float) -> None:
    """Draw by a distribution of ``source/candidates.cuh``, then say what is expected."""
    true, classes, count = w.input("true_classes"), w.attr("range_max"), w.attr("num_sampled")
    drawn = w.output((count,))
    expected = [w.output(true.shape, 1), w.output((count,), 2)]
    tries = w.scratch(dtypes.int64, 1)

    def unknown(found: int, _: int) -> errors.GraphdockError:
        return errors.InvalidArgumentError(
            f"there is no class {found}", expected=f"true_classes from 0 to {classes - 1}"
        )

    made = source("report.cuh", "block.cuh", "philox.cuh", "running_sums.cuh", "candidates.cuh", KIND=kind)
    by = (u64(0) if sums is None else sums, i64(classes), f64(width))
    unique = i32(w.attr("unique"))
    w.launch(made, "draw", 1, 256, Stream(), drawn, tries, i64(count), unique, *by)
    for ids, counts in ((true, expected[0]), (drawn, expected[1])):
        if ids.size:
            args = (ids, counts, i64(ids.size), tries, unique, *by, ErrorWord(unknown))
            w.launch(made, "expect", blocks(ids.size), 256, *args)


@dynamic("ComputeAccidentalHits")
def hits(r: Run) -> None:
    true, candidates = r.inputs
    rows, targets = true.shape
    pairs = rows * candidates.size
    places = r.scratch(dtypes.int32, pairs + 1)
    made = source("accidental_hits.cuh")
    facts = (i64(pairs), i64(candidates.size), i64(targets))
    r.launch(made, "mark", blocks(pairs + 1), 256, true, candidates, places, *facts)
    exclusive_sums(r, places)
    count = int(r.read(places.at(pairs, (1,)))[0])
    indices, ids, weights = (r.output((count,), i) for i in range(3))
    if count:
        r.launch(made, "write", blocks(pairs), 256, places, indices, ids, weights, *facts[:2])
