"""Variants of samples: what is equal stays equal; places along a dim are never beyond it; extremes stay within bounds."""

from __future__ import annotations

import math

import numpy as np
from graphdock_opgen.variants import LARGE, extents, extreme, resized, takes_extremes


def sample(**inputs):
    return {"inputs": inputs, "attrs": {}, "types": {}, "note": ""}


PRODUCT = sample(a={"shape": (3, 4)}, b={"shape": (4, 5)}, c={"shape": (1, 5)})


def shapes(found):
    return {n: t["shape"] for n, t in found["inputs"].items()}


def test_extents_are_those_that_may_differ():
    assert extents(PRODUCT) == [3, 4, 5]


def test_equal_extents_stay_equal_and_one_stays_one():
    for found in resized(PRODUCT, "other", 0):
        (m, k), (again, n), (one, last) = shapes(found).values()
        assert k == again and n == last and one == 1 and len({m, k, n}) == 3


def test_a_large_one_is_beyond_a_block_and_not_far_beyond():
    for found in resized(sample(x={"shape": (2, 3, 2)}), "large", 0):
        assert LARGE <= math.prod(shapes(found)["x"]) <= 2 * LARGE


def test_an_empty_one_has_no_elements():
    assert [shapes(found)["a"] for found in resized(PRODUCT, "empty", 0)][:2] == [(0, 4), (3, 0)]


def test_places_are_never_beyond_their_dim():
    rows = sample(x={"shape": (3, 4)}, ids={"shape": (5,), "dtype": "int32", "low": 0, "high": 2})
    assert list(resized(rows, "empty", 0)) == []
    for found in resized(rows, "other", 0):
        assert shapes(found)["x"][0] >= 3
    axes = sample(x={"shape": (3, 4)}, axis={"value": (1,)})
    assert list(resized(axes, "empty", 0)) == [] and list(resized(axes, "empty", 0, ["axis"]))


def test_extremes_are_for_what_has_no_bounds():
    bounded = sample(x={"shape": (64,), "low": 0.5}, y={"shape": (64,)}, n={"shape": (64,)})
    arrays = {"x": np.ones(64, np.float32), "y": np.ones(64, np.float32), "n": np.ones(64, np.int32)}
    made = extreme(bounded, arrays, 1)
    assert made["x"] is arrays["x"] and made["n"] is arrays["n"]
    assert np.isnan(made["y"]).any() and np.isinf(made["y"]).any() and takes_extremes(bounded, arrays)
