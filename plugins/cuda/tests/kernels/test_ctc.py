"""Long labels with repetitions, whose states and steps are more than a warp's, beside the cpu's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from graphdock.ops import apply_op


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("collapse", [True, False])
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


def test_greedy_decoding(run: Callable[..., Any]) -> None:
    x = np.random.default_rng(2).standard_normal((700, 3, 3)).astype(np.float32)
    lengths = np.array([700, 0, 333], np.int32)

    def made(inputs: Any, n: Any) -> Any:
        return list(apply_op("CTCGreedyDecoder", inputs=inputs, sequence_length=n))

    for mine, theirs in zip(run(made, x, lengths), run(made, x, lengths, backend="cpu"), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)
