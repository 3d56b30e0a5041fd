"""Connectionist temporal classification of longer labels than the samples of the spec have, against the cpu's kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError
from graphdock.graph.graph import Graph
from graphdock.testing.bench import run_program
from graphdock.testing.conformance import Conformance

Computed = Callable[..., list[np.ndarray]]


def _on_cpu(op: str, arrays: Mapping[str, np.ndarray], **attrs: Any) -> list[np.ndarray]:
    kit = Conformance("cpu")
    graph, bench = Graph(kit.host), kit._bench
    program = bench.build(graph, kit.host.ops.get(op), arrays, attrs)
    return list(run_program(bench.open(graph, plain=True), program, arrays))


def _case(lengths: list[int], sizes: list[int], steps: int, classes: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(steps)
    places = [(row, place) for row, size in enumerate(sizes) for place in range(size)]
    order = rng.permutation(len(places))
    return {
        "inputs": rng.standard_normal((steps, len(lengths), classes)),
        "labels_indices": np.array(places, np.int64).reshape(-1, 2)[order],
        "labels_values": rng.integers(0, classes - 1, len(places)).astype(np.int32),
        "sequence_length": np.array(lengths, np.int32),
    }


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("collapse", [False, True])
def test_loss_of_long_labels(computed: Computed, merge: bool, collapse: bool) -> None:
    arrays = _case([330, 40, 0, 7, 12], [150, 17, 0, 0, 13], 330, 9)
    attrs = {
        "ctc_merge_repeated": merge,
        "preprocess_collapse_repeated": collapse,
        "ignore_longer_outputs_than_inputs": True,
    }
    got, want = computed("CTCLoss", arrays, **attrs), _on_cpu("CTCLoss", arrays, **attrs)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


def test_the_gradient_is_that_of_the_loss(computed: Computed) -> None:
    arrays = _case([20, 11], [6, 3], 20, 40)
    loss, gradient = computed("CTCLoss", arrays)
    assert np.isfinite(loss).all()
    rng = np.random.default_rng(0)
    step = rng.standard_normal(arrays["inputs"].shape)
    ends = [computed("CTCLoss", {**arrays, "inputs": arrays["inputs"] + e * step})[0] for e in (1e-5, -1e-5)]
    np.testing.assert_allclose((ends[0] - ends[1]) / 2e-5, (gradient * step).sum((0, 2)), rtol=1e-6)


@pytest.mark.parametrize("merge", [False, True])
def test_greedy_labels(computed: Computed, merge: bool) -> None:
    arrays = _case([300, 0, 123], [], 300, 4)
    arrays["inputs"][:, :, 1:] = np.round(arrays["inputs"][:, :, 1:])  # some are equal
    given = {n: arrays[n] for n in ("inputs", "sequence_length")}
    got, want = (f("CTCGreedyDecoder", given, merge_repeated=merge) for f in (computed, _on_cpu))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_a_label_that_is_too_long_is_named(computed: Computed) -> None:
    with pytest.raises(InvalidArgumentError, match="row 1 is longer.*\n.*at most 2 classes, got 3"):
        computed("CTCLoss", _case([4, 2], [1, 3], 4, 5))
