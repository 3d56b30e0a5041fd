"""Distinct elements: the table of integers against a dict, where it is taken and where elements are sorted."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock_cpu.kernels import selection

KINDS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def by_dict(x: np.ndarray) -> tuple[list[int], list[int], list[int]]:
    """Distinct values in the order in which they occur, the number of each element's, how often each occurs."""
    numbers: dict[int, int] = {}
    places = [numbers.setdefault(v, len(numbers)) for v in x.tolist()]
    return list(numbers), places, np.bincount(places).tolist()


@pytest.mark.parametrize("few", [0, 1 << 20])
@pytest.mark.parametrize("kind", KINDS)
def test_distinct_integers_up_to_the_ends_of_their_kind(kind: str, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "FEW_VALUES", few)
    rng, ends = np.random.default_rng(0), np.iinfo(kind)
    drawn = [
        rng.integers(ends.min, ends.max, 300, kind, endpoint=True),
        rng.integers(0, 7, 300).astype(kind),
        ends.max - rng.integers(0, 50, 300).astype(kind),
        ends.min + rng.integers(0, 50, 300).astype(kind),
        np.array([ends.max, ends.min, ends.max], kind),
        np.array([5], kind),
    ]
    for x in drawn:
        with tf.Graph().as_default(), tf.Session() as sess:
            found: Any = sess.run(tf.unique_with_counts(tf.constant(x, kind)))
        assert tuple(part.tolist() for part in found) == by_dict(x)
        assert found[0].dtype == x.dtype
