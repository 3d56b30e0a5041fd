"""Predictions beside a step, node by node: sums, what is near, and what nobody knew."""

from __future__ import annotations

import pytest

from benchmarks.networks import PROGRAMS
from benchmarks.predictions import NETWORKS, compare


def test_sums_and_parts():
    found = compare({"a": 1.0, "b": 1.0, "gone": 5.0, "c": None}, {"a": 1.2, "b": 2.0, "c": 0.8})
    assert found.predicted == pytest.approx(2.8) and found.measured == pytest.approx(4.0)
    assert (
        found.error == pytest.approx(-0.3) and found.near == pytest.approx(0.3) and found.unknown == pytest.approx(0.2)
    )


def test_its_networks_are_those_of_networks():
    assert {p.name for p in PROGRAMS} >= set(NETWORKS)
