"""A name that nobody knows is taken for the nearest one, and for none where nothing is near."""

from __future__ import annotations

import pytest
from graphdock.suggest import did_you_mean


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("matmull", "matmul"),
        ("amtmul", "matmul"),  # two neighbours changed
        ("xep", "exp"),
        ("Mat_Mul", "matmul"),
        ("reducesum", "reduce_sum"),
        ("zebra", None),
        ("", None),
        ("matmul" * 20, None),  # no slip, and not compared
    ],
)
def test_the_nearest_name(name, nearest):
    hint = did_you_mean(name, ["matmul", "reduce_sum", "exp"])
    assert hint == (None if nearest is None else f"did you mean {nearest!r}?")


def test_names_that_are_alike_and_no_slip_need_to_be_much_alike():
    assert did_you_mean("reduce_mean", ["reduce_max"]) is not None
    assert did_you_mean("gather", ["scatter"]) is None
    assert did_you_mean("cpu", []) is None


def test_known_names_may_be_any_iterable():
    assert did_you_mean("ab", (name for name in ("abc", "xyz"))) == "did you mean 'abc'?"
