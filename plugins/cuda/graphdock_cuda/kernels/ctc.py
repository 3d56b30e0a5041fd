"""Connectionist temporal classification: its loss with the derivative, one block per row, and the greedy decoder."""

from __future__ import annotations

from graphdock.contracts import KernelDef, dtypes, errors

from graphdock_cuda.compiled import Source, source
from graphdock_cuda.immediate import Run, dynamic_family
from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.sort import sort_keys
from graphdock_cuda.kernels.where import chosen
from graphdock_cuda.launch import i32, i64
from graphdock_cuda.work import ErrorWord, Operand, Work, blocks

__all__ = ["KERNELS", "MISSING"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)
dynamic = dynamic_family(KERNELS)

MISSING = {"CTCBeamSearchDecoder": "a search over prefixes that grow, one after the other: the CPU's to do"}


def _code(w: Work) -> Source:
    return source("block.cuh", "ctc.cuh", ELEMENT=w.ctype(w.input("inputs")))


def _checked_lengths(w: Work, code: Source) -> Operand:
    """Whether lengths are in range: 1 or 0; the error of the first that is not is noted."""
    steps, rows, _ = w.input("inputs").shape
    usable = w.scratch(dtypes.uint32, 1)

    def out_of_range(got: int, most: int) -> errors.InvalidArgumentError:
        return errors.InvalidArgumentError("sequence_length is out of range", expected=f"0 to {most}", got=str(got))

    w.launch(
        code,
        "check_lengths",
        1,
        256,
        w.input("sequence_length"),
        usable,
        i64(rows),
        i64(steps),
        ErrorWord(out_of_range),
    )
    return usable


def _no_class(got: int, blank: int) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(
        "a label is no class", expected=f"0 to {blank - 1}: class {blank} is the blank", got=str(got)
    )


def _no_row(got: int, rows: int) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(f"a label of row {got}", expected=f"rows from 0 to {rows - 1}")


def _too_long(row: int, both: int) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(
        f"the label of row {row} is longer than its sequence",
        expected=f"at most {both >> 32} classes",
        got=str(both & 0xFFFFFFFF),
        hint="ignore_longer_outputs_than_inputs=True leaves such rows out",
    )


@kernel("CTCLoss")
def loss(w: Work) -> None:
    logits, indices, values, lengths = (
        w.input(n) for n in ("inputs", "labels_indices", "labels_values", "sequence_length")
    )
    steps, rows, classes = logits.shape
    found, gradient = w.output((rows,)), w.output(logits.shape, 1)
    if not rows and not values.size:
        return
    code, n = _code(w), values.size
    usable = _checked_lengths(w, code)
    # by place, then by row: the second sort keeps the order of the first
    places, keys = w.scratch(dtypes.uint64, n), w.scratch(dtypes.uint32, n)
    if n:
        w.launch(code, "place_keys", blocks(n), 256, indices, places, i64(n))
    _, by_place = sort_keys(w, places, 64)
    if n:
        w.launch(code, "row_keys", blocks(n), 256, indices, by_place, keys, i64(n), i64(rows))
    by_row, order = sort_keys(w, keys, max(rows, 1).bit_length(), by_place)
    labels, starts, sizes = (w.scratch(dtypes.int32, c) for c in (n, rows + 1, rows))
    w.launch(
        code, "label_rows", 1, 256, indices, values, lengths, by_row, order, labels, starts, sizes, usable, i64(n),
        i64(rows), i64(classes - 1), i32(bool(w.attr("preprocess_collapse_repeated"))),
        i32(bool(w.attr("ignore_longer_outputs_than_inputs"))), ErrorWord(_no_class), ErrorWord(_no_row),
        ErrorWord(_too_long),
    )  # fmt: skip
    states = 2 * n + rows
    normalizers = w.scratch(dtypes.float64, steps * rows)
    ahead, behind = w.scratch(dtypes.float64, steps * states), w.scratch(dtypes.float64, 2 * states)
    if logits.size:
        grid = blocks(steps * rows, 8, 1 << 16)
        w.launch(code, "normalizers", grid, 256, logits, normalizers, i64(steps * rows), i64(classes))
    w.launch(
        code, "ctc", rows, 128, logits, normalizers, lengths, labels, starts, sizes, usable, ahead, behind, found,
        gradient, i64(steps), i64(rows), i64(classes), i64(states), i32(bool(w.attr("ctc_merge_repeated"))),
    )  # fmt: skip


@dynamic("CTCGreedyDecoder")
def greedy(r: Run) -> None:
    logits, lengths = r.input("inputs"), r.input("sequence_length")
    steps, rows, classes = logits.shape
    code, merge = _code(r), bool(r.attr("merge_repeated"))
    usable = _checked_lengths(r, code)
    best, values = r.scratch(dtypes.int32, rows * steps), r.scratch(dtypes.float64, rows * steps)
    flags, longest = r.scratch(dtypes.uint8, rows * steps), r.scratch(dtypes.int64, rows)
    scores = r.output((rows, 1), 3)
    if best.size:
        grid = blocks(best.size, 8, 1 << 16)
        r.launch(code, "best_classes", grid, 256, logits, best, values, i64(steps), i64(rows), i64(classes))
    if rows:
        r.launch(
            code, "mark_labels", blocks(rows), 256, best, values, lengths, usable, flags, scores, longest, i64(steps),
            i64(rows), i64(classes - 1), i32(merge),
        )  # fmt: skip
    r.launch(code, "label_shape", 1, 256, longest, r.output((2,), 2), i64(rows))
    places = chosen(r, flags)
    indices, labels = r.output((places.size, 2)), r.output((places.size,), 1)
    if places.size:
        r.launch(
            code, "write_labels", blocks(places.size), 256, places, best, indices, labels, i64(places.size), i64(steps)
        )
