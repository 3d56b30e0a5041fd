"""Kernels of connectionist temporal classification: its loss with the derivative, and two decoders.

All is computed in float64; sums of probabilities are logarithms of sums of exponentials.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, KernelDef, errors

__all__ = ["KERNELS"]


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    wide = logits.astype(np.float64)
    wide -= wide.max(-1, keepdims=True)
    return wide - np.log(np.exp(wide).sum(-1, keepdims=True))


def _lengths(steps: int, given: np.ndarray) -> np.ndarray:
    outside = (given < 0) | (given > steps)
    if outside.any():
        raise errors.InvalidArgumentError(
            "sequence_length is out of range", expected=f"0 to {steps}", got=str(int(given[outside][0]))
        )
    return given.astype(np.int64)


def _labels(indices: np.ndarray, values: np.ndarray, rows: int, blank: int) -> list[list[int]]:
    """The labels of each row, in the order of their places."""
    outside = (values < 0) | (values >= blank)
    if outside.any():
        got = str(int(values[outside][0]))
        raise errors.InvalidArgumentError(
            "a label is no class", expected=f"0 to {blank - 1}: class {blank} is the blank", got=got
        )
    strangers = (indices[:, 0] < 0) | (indices[:, 0] >= rows)
    if strangers.any():
        raise errors.InvalidArgumentError(
            f"a label of row {int(indices[strangers][0, 0])}", expected=f"rows from 0 to {rows - 1}"
        )
    labels: list[list[int]] = [[] for _ in range(rows)]
    for i in np.lexsort((indices[:, 1], indices[:, 0])):
        labels[indices[i, 0]].append(int(values[i]))
    return labels


def _without_repeats(label: Sequence[int]) -> list[int]:
    return [c for i, c in enumerate(label) if i == 0 or c != label[i - 1]]


def _shifted(scores: np.ndarray, by: int) -> np.ndarray:
    """Scores of the states ``by`` before; none before the first."""
    out = np.full_like(scores, -np.inf)
    if by > 0:
        out[:, by:] = scores[:, :-by]
    else:
        out[:, :by] = scores[:, -by:]
    return out


class _Lattice:
    """States of a batch of labels: each label between blanks, and which may follow which."""

    def __init__(self, labels: list[list[int]], blank: int, merge: bool) -> None:
        rows, longest = len(labels), max(map(len, labels), default=0)
        self.sizes = np.array([len(label) for label in labels], np.int64)
        self.classes = np.full((rows, 2 * longest + 1), blank)
        for row, label in enumerate(labels):
            self.classes[row, 1 : 2 * len(label) : 2] = label
        states = np.arange(2 * longest + 1)
        self.absent = states > 2 * self.sizes[:, None]
        is_label = self.classes != blank
        repeated = np.zeros(self.classes.shape, bool)
        repeated[:, 2:] = self.classes[:, 2:] == self.classes[:, :-2]
        #: Reached from the label before, over the blank between.
        self.skips = is_label & ~(repeated & merge)
        #: Reached from itself.
        self.stays = ~is_label if not merge else np.ones(self.classes.shape, bool)
        #: Where a path may end: the last label, and the blank behind it.
        self.ends = (states == 2 * self.sizes[:, None]) | (states == 2 * self.sizes[:, None] - 1)

    def forward(self, emitted: np.ndarray) -> np.ndarray:
        """Logarithms of what leads to each state, with what it emits; ``emitted`` is ``[time, rows, states]``."""
        out = np.full(emitted.shape, -np.inf)
        if len(emitted):
            out[0, :, :2] = emitted[0, :, :2]
            out[0][self.absent] = -np.inf
        for t in range(1, len(emitted)):
            last = out[t - 1]
            reached = np.logaddexp(np.where(self.stays, last, -np.inf), _shifted(last, 1))
            reached = np.logaddexp(reached, np.where(self.skips, _shifted(last, 2), -np.inf))
            out[t] = np.where(self.absent, -np.inf, reached + emitted[t])
        return out

    def backward(self, emitted: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Logarithms of what follows each state, without what it emits."""
        out = np.full(emitted.shape, -np.inf)
        for t in range(len(emitted) - 1, -1, -1):
            if t + 1 < len(emitted):
                following = out[t + 1] + emitted[t + 1]
                reached = np.logaddexp(np.where(self.stays, following, -np.inf), _shifted(following, -1))
                out[t] = np.logaddexp(reached, _shifted(np.where(self.skips, following, -np.inf), -2))
            last = lengths == t + 1
            out[t][last] = np.where(self.ends[last], 0.0, -np.inf)
        return out


def _loss(ctx: BuildContext) -> Bound:
    collapse, merge, ignore = (
        ctx.attr(n) for n in ("preprocess_collapse_repeated", "ctc_merge_repeated", "ignore_longer_outputs_than_inputs")
    )
    dtype = ctx.outputs[0].dtype.np

    def compute(inputs: Any, indices: Any, values: Any, sequence_length: Any) -> tuple[np.ndarray, np.ndarray]:
        steps, rows, classes = inputs.shape
        lengths = _lengths(steps, sequence_length)
        labels = _labels(indices, values, rows, classes - 1)
        if collapse:
            labels = [_without_repeats(label) for label in labels]
        lattice = _Lattice(labels, classes - 1, merge)
        ignored = lattice.sizes > lengths
        if ignored.any() and not ignore:
            row = int(np.argmax(ignored))
            raise errors.InvalidArgumentError(
                f"the label of row {row} is longer than its sequence",
                expected=f"at most {lengths[row]} classes",
                got=str(lattice.sizes[row]),
                hint="ignore_longer_outputs_than_inputs=True leaves such rows out",
            )
        logs = _log_softmax(inputs) if inputs.size else inputs.astype(np.float64)
        emitted = np.take_along_axis(logs, np.broadcast_to(lattice.classes, (steps, *lattice.classes.shape)), 2)
        with np.errstate(all="ignore"):
            ahead = lattice.forward(emitted)
            total = np.where(lengths == 0, np.where(lattice.sizes == 0, 0.0, -np.inf), -np.inf)
            for row in np.flatnonzero(lengths):
                total[row] = np.logaddexp.reduce(ahead[lengths[row] - 1, row][lattice.ends[row]])
            both = ahead + lattice.backward(emitted, lengths) - total[:, None]
        loss = np.where(ignored, 0.0, -total)
        live = (np.arange(steps)[:, None] < lengths) & ~ignored
        shares = live & (total != -np.inf)  # of a label that no path makes the slope is the softmax
        slope = np.exp(logs)
        where = np.ogrid[:steps, :rows, :1]
        np.subtract.at(
            slope, (where[0], where[1], lattice.classes[None]), np.exp(np.where(shares[..., None], both, -np.inf))
        )
        slope[~live] = 0.0
        return loss.astype(dtype), slope.astype(dtype)

    if ctx.fresh:
        return Bound(compute)

    def planned(*args: Any) -> None:
        for out, made in zip(args[4:], compute(*args[:4]), strict=True):
            np.copyto(out, made)

    return Bound(planned)


def _sparse(labels: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    places = [(row, i) for row, label in enumerate(labels) for i in range(len(label))]
    values = [c for label in labels for c in label]
    shape = np.array([len(labels), max(map(len, labels), default=0)], np.int64)
    return np.array(places, np.int64).reshape(-1, 2), np.array(values, np.int64), shape


def _greedy(ctx: BuildContext) -> Bound:
    merge = ctx.attr("merge_repeated")

    def decode(inputs: Any, sequence_length: Any) -> tuple[np.ndarray, ...]:
        steps, rows, classes = inputs.shape
        lengths = _lengths(steps, sequence_length)
        best = inputs.argmax(2) if inputs.size else np.zeros((steps, rows), np.int64)
        labels = []
        for row in range(rows):
            path = best[: lengths[row], row].tolist()
            labels.append([c for c in (_without_repeats(path) if merge else path) if c != classes - 1])
        live = np.arange(steps)[:, None] < lengths
        scores = -np.where(live, inputs.max(2), 0).sum(0, dtype=np.float64)
        return *_sparse(labels), scores[:, None].astype(inputs.dtype)

    return Bound(decode)


Beam = tuple[tuple[int, ...], float, float]


def _step(beams: list[Beam], logs: np.ndarray, width: int) -> list[Beam]:
    """The prefixes after one more step: label, and logarithms of its paths that end in a blank, and in its last class."""
    blank = len(logs) - 1
    ending, staying = np.array([b[1] for b in beams]), np.array([b[2] for b in beams])
    total = np.logaddexp(ending, staying)
    last = np.array([b[0][-1] if b[0] else blank for b in beams])
    longer = total[:, None] + logs[:-1]
    of_labels = np.flatnonzero(last != blank)
    longer[of_labels, last[of_labels]] = ending[of_labels] + logs[last[of_labels]]
    kept_blank, kept_label = total + logs[blank], np.where(last != blank, staying + logs[last], -np.inf)
    places = {b[0]: i for i, b in enumerate(beams)}
    for i, (label, _, _) in enumerate(beams):
        parent = places.get(label[:-1]) if label else None
        if parent is not None:
            kept_label[i] = np.logaddexp(kept_label[i], longer[parent, label[-1]])
            longer[parent, label[-1]] = -np.inf
    scores = np.concatenate([np.logaddexp(kept_blank, kept_label), longer.reshape(-1)])
    chosen = np.argsort(-scores, kind="stable")[:width]
    out: list[Beam] = []
    for i in chosen[np.isfinite(scores[chosen])].tolist():
        if i < len(beams):
            out.append((beams[i][0], float(kept_blank[i]), float(kept_label[i])))
        else:
            parent, added = divmod(i - len(beams), blank)
            out.append(((*beams[parent][0], added), -math.inf, float(scores[i])))
    return out


def _beam_search(ctx: BuildContext) -> Bound:
    width, top, merge = (ctx.attr(n) for n in ("beam_width", "top_paths", "merge_repeated"))

    def decode(inputs: Any, sequence_length: Any) -> tuple[np.ndarray, ...]:
        steps, rows, _ = inputs.shape
        lengths = _lengths(steps, sequence_length)
        logs = _log_softmax(inputs) if inputs.size else inputs.astype(np.float64)
        found: list[list[Sequence[int]]] = [[] for _ in range(top)]
        scores = np.zeros((rows, top))
        for row in range(rows):
            beams: list[Beam] = [((), 0.0, -math.inf)]
            with np.errstate(all="ignore"):
                for t in range(lengths[row]):
                    beams = _step(beams, logs[t, row], width)
                    if not beams:
                        raise errors.InvalidArgumentError(
                            f"inputs give no class of row {row} a probability at step {t}"
                        )
            if len(beams) < top:
                raise errors.InvalidArgumentError(
                    f"row {row} has fewer labels than top_paths", expected=str(top), got=str(len(beams))
                )
            for path in range(top):
                label, ending, staying = beams[path]
                found[path].append(_without_repeats(label) if merge else label)
                scores[row, path] = np.logaddexp(ending, staying)
        parts = [_sparse(labels) for labels in found]
        return *(part[i] for i in range(3) for part in parts), scores.astype(inputs.dtype)

    return Bound(decode)


KERNELS = [
    KernelDef("CTCLoss", "cpu", _loss),
    KernelDef("CTCGreedyDecoder", "cpu", _greedy, modes=("fresh",)),
    KernelDef("CTCBeamSearchDecoder", "cpu", _beam_search, modes=("fresh",)),
]
