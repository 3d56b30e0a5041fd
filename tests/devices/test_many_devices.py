"""One device equals many, bitwise: on virtual cpu devices, on the fake asynchronous device, and on mixtures of both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

NAMES = (
    "forward data_dependent_shapes train_with_gradient_descent train_with_adam train_with_momentum sparse_updates counters cond"
    " while_loop while_until random_numbers"
).split()

CASES = {
    "three cpus": ({"device_count": {"cpu": 3}}, ("/device:cpu:0", "/device:cpu:1", "/device:cpu:2")),
    "three cpus, backwards": ({"device_count": {"cpu": 3}}, ("/device:cpu:2", "/device:cpu:1", "/device:cpu:0")),
    "fake": ({"backends": ("fake",)}, ()),
    "fake, no passes": ({"backends": ("fake",), "passes": {"fold": False, "cse": False, "algebra": False}}, ()),
    "fake, any shape": ({"backends": ("fake",), "shape_policy": "generic"}, ()),
    "fake, then cpu": ({"backends": ("fake", "cpu")}, ("/device:fake:0", "/device:cpu:0")),
    "cpu, then fake": ({"backends": ("fake", "cpu")}, ("/device:cpu:0", "/device:fake:0")),
    "two fakes": ({"backends": ("fake",), "device_count": {"fake": 2}}, ("/device:fake:1", "/device:fake:0")),
    "all of them": (
        {"backends": ("cpu", "fake"), "device_count": {"fake": 2, "cpu": 2}},
        ("/device:fake:1", "/device:cpu:1", "/device:fake:0", "/device:cpu:0"),
    ),
}


def test_the_list_is_whole(programs: Any) -> None:
    assert [p.__name__ for p in programs.ALL] == NAMES


@pytest.mark.modes
@pytest.mark.parametrize("debug", [False, True], ids=["", "debug"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled(12)
def test_results_are_those_of_one_cpu(programs: Any, results: Any, name: str, case: str, debug: bool) -> None:
    config, stages = CASES[case]
    program = getattr(programs, name)
    policy = {k: v for k, v in config.items() if k in ("passes", "shape_policy")}
    want = results(program, **policy)
    got = results(program, stages, debug=debug, **config)
    assert len(got) == len(want)
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        assert a.dtype == b.dtype and a.shape == b.shape, i
        assert a.tobytes() == b.tobytes(), f"result {i}: {a} != {b}"
        assert np.isfinite(a.astype(np.float64)).all()
