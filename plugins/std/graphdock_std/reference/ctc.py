"""Oracles of connectionist temporal classification: every path is looked at."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np


def _probabilities(row: Any) -> list[float]:
    exponentials = [math.exp(float(v)) for v in row]
    return [e / math.fsum(exponentials) for e in exponentials]


def _label(path: tuple[int, ...], blank: int, merge: bool) -> tuple[int, ...]:
    kept = [c for c, _ in itertools.groupby(path)] if merge else path
    return tuple(c for c in kept if c != blank)


def _paths(inputs: Any, row: int, length: int, merge: bool) -> list[tuple[tuple[int, ...], tuple[int, ...], float]]:
    """Each path, what it stands for, and its probability."""
    steps = [_probabilities(inputs[t, row]) for t in range(length)]
    classes = inputs.shape[2]
    return [
        (path, _label(path, classes - 1, merge), math.prod(p[c] for p, c in zip(steps, path, strict=True)))
        for path in itertools.product(range(classes), repeat=length)
    ]


def loss(
    inputs: Any,
    labels_indices: Any,
    labels_values: Any,
    sequence_length: Any,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
) -> list[np.ndarray]:
    """Minus the logarithm of the sum, and the softmax less the share of each class in it, where there is a path."""
    rows = inputs.shape[1]
    losses, slopes = np.zeros(rows), np.zeros(inputs.shape)
    for row in range(rows):
        places = sorted((int(p), int(v)) for (r, p), v in zip(labels_indices, labels_values, strict=True) if r == row)
        label = tuple(v for _, v in places)
        if preprocess_collapse_repeated:
            label = tuple(c for c, _ in itertools.groupby(label))
        length = int(sequence_length[row])
        if len(label) > length:
            assert ignore_longer_outputs_than_inputs
            continue
        right = [(path, p) for path, made, p in _paths(inputs, row, length, ctc_merge_repeated) if made == label]
        total = math.fsum(p for _, p in right)
        losses[row] = -math.log(total) if right else math.inf
        for t in range(length):
            for c, p in enumerate(_probabilities(inputs[t, row])):
                share = math.fsum(q for path, q in right if path[t] == c) / total if right else 0.0
                slopes[t, row, c] = p - share
    return [losses.astype(inputs.dtype), slopes.astype(inputs.dtype)]


def _sparse(labels: list[tuple[int, ...]]) -> list[np.ndarray]:
    places = [[row, i] for row, label in enumerate(labels) for i, _ in enumerate(label)]
    values = [c for label in labels for c in label]
    widest = max([len(label) for label in labels] + [0])
    return [
        np.array(places, np.int64).reshape(-1, 2),
        np.array(values, np.int64),
        np.array([len(labels), widest], np.int64),
    ]


def greedy(inputs: Any, sequence_length: Any, merge_repeated: bool = True) -> list[np.ndarray]:
    """The largest logit of each step."""
    labels, scores = [], []
    for row, length in enumerate(sequence_length):
        steps = [inputs[t, row].tolist() for t in range(int(length))]
        path = tuple(step.index(max(step)) for step in steps)
        labels.append(_label(path, inputs.shape[2] - 1, merge_repeated))
        scores.append([-math.fsum(max(step) for step in steps)])
    return [*_sparse(labels), np.array(scores).astype(inputs.dtype).reshape(-1, 1)]


def beam_search(
    inputs: Any, sequence_length: Any, beam_width: int, top_paths: int, merge_repeated: bool = True
) -> list[np.ndarray]:
    """All labels, by the sum of their paths: what a beam finds that is wide enough."""
    found: list[list[tuple[int, ...]]] = [[] for _ in range(top_paths)]
    scores = np.zeros((inputs.shape[1], top_paths))
    for row, length in enumerate(sequence_length):
        sums: dict[tuple[int, ...], float] = {}
        for _, label, p in _paths(inputs, row, int(length), True):
            sums[label] = sums.get(label, 0.0) + p
        assert len(sums) <= beam_width
        best = sorted(sums, key=sums.__getitem__, reverse=True)[:top_paths]
        for path, label in enumerate(best):
            found[path].append(tuple(c for c, _ in itertools.groupby(label)) if merge_repeated else label)
            scores[row, path] = math.log(sums[label])
    parts = [_sparse(labels) for labels in found]
    return [*(part[i] for i in range(3) for part in parts), scores.astype(inputs.dtype)]
