"""Long labels with repetitions, whose states and steps are more than a warp's, beside the cpu's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError
from graphdock.ops import apply_op


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("collapse", [True, False])
@pytest.mark.sampled(2)
def test_long_labels(run: Callable[..., Any], collapse: bool, merge: bool) -> None:
    rng = np.random.default_rng(1)
    counts, lengths = [40, 0, 150, 3], np.array([90, 5, 301, 20], np.int32)
    indices = np.array([[row, place] for row, n in enumerate(counts) for place in range(n)])
    values = rng.integers(0, 4, len(indices)).astype(np.int32)
    order = rng.permutation(len(indices))
    x = rng.standard_normal((301, 4, 6)).astype(np.float32)

    def made(inputs: Any, i: Any, v: Any, n: Any) -> Any:
        attrs = {"preprocess_collapse_repeated": collapse, "ctc_merge_repeated": merge}
        return list(apply_op("CTCLoss", inputs=inputs, labels_indices=i, labels_values=v, sequence_length=n, **attrs))

    arrays = (x, indices[order], values[order], lengths)
    for mine, theirs in zip(run(made, *arrays), run(made, *arrays, backend="cpu"), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)


def test_a_label_that_no_path_makes(run: Callable[..., Any]) -> None:
    """A repeated label needs a blank between, for which two steps have no room."""
    x = np.random.default_rng(3).standard_normal((4, 2, 3)).astype(np.float32)
    indices, values = np.array([[0, 0], [0, 1], [1, 0]]), np.array([1, 1, 0], np.int32)

    def made(inputs: Any, i: Any, v: Any, n: Any) -> Any:
        return list(apply_op("CTCLoss", inputs=inputs, labels_indices=i, labels_values=v, sequence_length=n))

    loss, slope = run(made, x, indices, values, np.array([2, 4], np.int32))
    assert loss[0] == np.inf and np.isfinite(loss[1])
    softmax = np.exp(x[:2, 0]) / np.exp(x[:2, 0]).sum(-1, keepdims=True)
    np.testing.assert_allclose(slope[:2, 0], softmax, rtol=1e-5)
    assert not slope[2:, 0].any()


def test_greedy_decoding(run: Callable[..., Any]) -> None:
    x = np.random.default_rng(2).standard_normal((700, 3, 3)).astype(np.float32)
    lengths = np.array([700, 0, 333], np.int32)

    def made(inputs: Any, n: Any) -> Any:
        return list(apply_op("CTCGreedyDecoder", inputs=inputs, sequence_length=n))

    for mine, theirs in zip(run(made, x, lengths), run(made, x, lengths, backend="cpu"), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)


def _beams(inputs: Any, n: Any, **attrs: Any) -> list[Any]:
    made = apply_op("CTCBeamSearchDecoder", inputs=inputs, sequence_length=n, **attrs)
    return [*made.decoded_indices, *made.decoded_values, *made.decoded_shape, made.log_probability]


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize(("classes", "width", "top"), [(4, 5, 5), (3, 270, 20), (300, 7, 2)])
@pytest.mark.sampled(2)
def test_beams(run: Callable[..., Any], classes: int, width: int, top: int, merge: bool) -> None:
    """Prefixes leave a narrow beam and come back; a wide one has more of them than a block has threads."""
    x = np.random.default_rng(classes).normal(0, 3, (40, 3, classes)).astype(np.float32)
    lengths, attrs = np.array([40, 9, 23], np.int32), {"beam_width": width, "top_paths": top, "merge_repeated": merge}

    def made(inputs: Any, n: Any) -> Any:
        return _beams(inputs, n, **attrs)

    *mine, scores = run(made, x, lengths)
    *theirs, expected = run(made, x, lengths, backend="cpu")
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(scores, expected, rtol=1e-5)


def test_of_equal_prefixes_the_first_stays(run: Callable[..., Any]) -> None:
    """Classes that are alike: more ties than the beam has places, in every step."""
    x, lengths = np.zeros((5, 1, 40), np.float64), np.array([5], np.int32)

    def made(inputs: Any, n: Any) -> Any:
        return _beams(inputs, n, beam_width=12, top_paths=12)

    for mine, theirs in zip(run(made, x, lengths), run(made, x, lengths, backend="cpu"), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


def test_a_row_without_a_beam(run: Callable[..., Any]) -> None:
    x, lengths = np.zeros((3, 3, 4), np.float32), np.array([0, 3, 3], np.int32)
    x[1, 1], x[2, 2] = np.nan, np.nan

    def made(inputs: Any, n: Any) -> Any:
        return _beams(inputs, n, beam_width=4, top_paths=1)

    with pytest.raises(InvalidArgumentError, match="no class of row 1 a probability at step 1"):
        run(made, x, lengths)
    assert run(made, x[:, :0], lengths[:0])[2].tolist() == [0, 0]
