"""Connectionist temporal classification: its loss with the derivative, and two decoders. All is computed in float64."""

from __future__ import annotations

import struct

import numpy as np
from graphdock.contracts import KernelDef, dtypes, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.immediate import Run, dynamic_family
from graphdock_cuda.kernel import family
from graphdock_cuda.launch import Param, i32, i64, raw
from graphdock_cuda.work import ErrorWord, Operand, Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)
dynamic = dynamic_family(KERNELS)


def _sequences(x: tuple[int, ...], labels: int) -> Param:
    return raw(struct.pack("<4q", *x, labels))


def _length(steps: int) -> ErrorWord:
    return ErrorWord(
        lambda got, row: errors.InvalidArgumentError(
            "sequence_length is out of range", expected=f"0 to {steps}", got=str(got)
        )
    )


def _no_class(got: int, blank: int) -> errors.GraphdockError:
    expected = f"0 to {blank - 1}: class {blank} is the blank"
    return errors.InvalidArgumentError("a label is no class", expected=expected, got=str(got))


def _no_row(got: int, rows: int) -> errors.GraphdockError:
    return errors.InvalidArgumentError(f"a label of row {got}", expected=f"rows from 0 to {rows - 1}")


def _too_long(row: int, length: int) -> errors.GraphdockError:
    return errors.InvalidArgumentError(
        f"the label of row {row} is longer than its sequence",
        expected=f"{length} labels at most",
        hint="ignore_longer_outputs_than_inputs=True leaves such rows out",
    )


@kernel("CTCLoss")
def ctc_loss(w: Work) -> None:
    """``(inputs, label indices, label values, lengths) -> (loss, gradient)``.

    A row has a place in the scratch buffers by the number of labels before it, so that nothing need be known of single labels.
    """
    x, indices, values, lengths = w.inputs
    steps, rows, _ = x.shape
    count = values.size
    loss, gradient = w.output((rows,)), w.output(x.shape, 1)
    states = 2 * count + rows
    label, following = w.scratch(dtypes.int32, (count,)), w.scratch(dtypes.int32, (states,))
    alpha, beta, norms = (w.scratch(dtypes.float64, (n, m)) for n, m in ((steps, states), (2, states), (rows, steps)))
    names = ("preprocess_collapse_repeated", "ctc_merge_repeated", "ignore_longer_outputs_than_inputs")
    options = raw(struct.pack("<3i", *(w.attr(name) for name in names)))
    made = source("block.cuh", "ctc.cuh", "ctc_loss.cuh", TYPE=w.ctype(x))
    room = (label, following, alpha, beta, norms, _sequences(x.shape, count), options)
    words = (_length(steps), ErrorWord(_no_class), ErrorWord(_no_row), ErrorWord(_too_long))
    w.launch(made, "ctc_loss", rows, 256, x, indices, values, lengths, loss, gradient, *room, *words)


def _check_lengths(r: Run, lengths: Operand, steps: int) -> None:
    given = r.read(lengths)
    outside = given[(given < 0) | (given > steps)]
    if outside.size:
        raise errors.InvalidArgumentError(
            "sequence_length is out of range",
            expected=f"0 to {steps}",
            got=str(int(outside[0])),
            op=r.node.origin,
            site=r.node.site,
        )


@dynamic("CTCGreedyDecoder")
def ctc_greedy_decoder(r: Run) -> None:
    """``(inputs, lengths) -> (indices, values, shape, log probability)``."""
    x, lengths = r.inputs
    steps, rows, _ = x.shape
    _check_lengths(r, lengths, steps)
    best, counts = r.scratch(dtypes.int32, (rows, steps)), r.scratch(dtypes.int64, (rows,))
    log_probability = r.output((rows, 1), 3)
    made, merge = source("block.cuh", "ctc.cuh", "ctc_greedy.cuh", TYPE=r.ctype(x)), i32(r.attr("merge_repeated"))
    sequences = _sequences(x.shape, 0)
    r.launch(made, "ctc_best", rows, 256, x, lengths, best, counts, log_probability, sequences, merge, _length(steps))
    found = r.read(counts)
    indices, values, shape = r.output((int(found.sum()), 2)), r.output((int(found.sum()),), 1), r.output((2,), 2)
    r.fill(shape)  # of no rows
    outs = (indices, values, shape, i64(int(found.max(initial=0))))
    r.launch(made, "ctc_labels", rows, 256, best, lengths, counts, *outs, sequences, merge)


@dynamic("CTCBeamSearchDecoder")
def ctc_beam_search_decoder(r: Run) -> None:
    """``(inputs, lengths) -> (indices of each path, values of each, shape of each, log probability)``."""
    x, lengths = r.inputs
    steps, rows, classes = x.shape
    _check_lengths(r, lengths, steps)
    width, top = r.attr("beam_width"), r.attr("top_paths")
    nodes = 1 + steps * width
    search = raw(struct.pack("<3qi4x", width, top, nodes, r.attr("merge_repeated")))
    scores, beams = (r.scratch(dtypes.float64, (rows, n)) for n in (width * classes, 7 * width))
    places, ends = r.scratch(dtypes.int32, (rows, 2 * width)), r.scratch(dtypes.int32, (top, rows))
    parents, labels = (r.scratch(dtypes.int32, (rows, nodes)) for _ in range(2))
    hashes, chosen = r.scratch(dtypes.uint64, (rows, nodes)), r.scratch(dtypes.uint32, (rows, width))
    found, log_probability = r.scratch(dtypes.int64, (top + 1, rows)), r.output((rows, top), 3 * top)
    made = source("block.cuh", "ctc.cuh", "ctc_beam.cuh", TYPE=r.ctype(x))
    room = (scores, beams, places, parents, labels, hashes, chosen)
    r.launch(
        made, "ctc_beams", rows, 256, x, lengths, *room, ends, found, log_probability, _sequences(x.shape, 0), search
    )
    *counts, faults = r.read(found)
    _check_beams(r, faults, top)
    for path, of_rows in enumerate(counts):
        total, widest = int(of_rows.sum()), i64(int(of_rows.max(initial=0)))
        outs = (r.output((total, 2), path), r.output((total,), top + path), r.output((2,), 2 * top + path))
        r.fill(outs[2])  # of no rows
        kept = (ends.at(path * rows), found.at(path * rows), parents, labels)
        r.launch(made, "ctc_beam_labels", blocks(rows) if rows else 0, 256, *kept, *outs, widest, i64(rows), search)


def _check_beams(r: Run, faults: np.ndarray, top: int) -> None:
    """The error of the first row that has one, as ``source/ctc_beam.cuh`` tells it."""
    for row in np.flatnonzero(faults)[:1].tolist():
        fault, facts = int(faults[row]), {"op": r.node.origin, "site": r.node.site}
        if fault > 0:
            raise errors.InvalidArgumentError(
                f"inputs give no class of row {row} a probability at step {fault - 1}", **facts
            )
        raise errors.InvalidArgumentError(
            f"row {row} has fewer labels than top_paths", expected=str(top), got=str(-1 - fault), **facts
        )
