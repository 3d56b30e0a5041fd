"""On how many threads a kernel computes by default."""

from __future__ import annotations

import pytest
from graphdock import cores


@pytest.mark.parametrize(
    ("said", "expected"), [(None, 6), ("", 6), ("4", 4), ("4,2", 4), ("64", 6), ("0", 6), ("-1", 6), ("many", 6)]
)
def test_the_environment_may_lower_it(monkeypatch, said, expected):
    monkeypatch.setattr(cores, "cores", lambda: 6)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if said is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert cores.threads() == expected


def test_cores_are_those_of_the_process():
    assert cores.cores() >= 1
