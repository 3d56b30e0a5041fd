"""Rates and costs are finite numbers, and what is none is refused by name."""

from __future__ import annotations

import pytest
from graphdock.contracts import Rates, checked_seconds
from graphdock.errors import InvalidArgumentError


def test_the_slower_of_arithmetic_and_memory_counts_and_a_launch_is_added():
    rates = Rates(flops=1e9, bytes=1e10, launch=1e-6)
    assert rates.seconds(2_000_000, 100) == pytest.approx(2e-3 + 1e-6)
    assert rates.seconds(0, 10_000_000) == pytest.approx(1e-3 + 1e-6)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -1.0, 0.0, None, "fast"])
@pytest.mark.parametrize("name", ["flops", "bytes"])
def test_a_rate_that_is_none_is_refused(name, wrong):
    with pytest.raises(InvalidArgumentError, match=f"Rates: {name} is wrong"):
        Rates(**{"flops": 1.0, "bytes": 1.0, name: wrong})


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -1e-9, None])
def test_a_cost_that_is_none_is_refused(wrong):
    with pytest.raises(InvalidArgumentError, match="the cost of MatMul is wrong"):
        checked_seconds("MatMul", wrong)
    assert checked_seconds("MatMul", 0) == 0.0
