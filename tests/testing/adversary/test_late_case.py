"""Kernels behind a busy queue: launches that block and host arguments that are read late are found in every run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from graphdock_testing.conformance import Conformance, ConformanceError

LAWS = str(Path(__file__).parents[2] / "laws")
sys.path.insert(0, LAWS)
from planted import events  # noqa: E402

sys.path.remove(LAWS)
pytestmark = [pytest.mark.plain, pytest.mark.slow]
WORDS = {"reads host arguments late": "behind a busy queue", "": "a launch queues work and returns"}


def check(launch, op):
    kit = Conformance("fault", host=events.event_host(launch=launch))
    (case,) = [c for c in kit.cases(op) if c.kind == "late"]
    kit.check(case)


def right(ctx, compute, args):
    return compute(*args)


@pytest.mark.parametrize("op", ["Tanh", "Sum", "RandomUniform", "ResourceApplyGradientDescent"])
@pytest.mark.sampled(2)
def test_nothing_is_found_in_a_kernel_that_is_right(op):
    check(right, op)


@pytest.mark.parametrize("name", events.LAUNCHES)
@pytest.mark.sampled(2)
def test_a_launch_with_a_fault_is_found(name):
    launch, op = events.LAUNCHES[name]
    with pytest.raises(ConformanceError, match=next(w for n, w in WORDS.items() if n in name)):
        check(launch, op)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", events.LAUNCHES)
def test_a_launch_with_a_fault_is_found_in_every_run(name):
    launch, op = events.LAUNCHES[name]
    for _ in range(10):
        with pytest.raises(ConformanceError):
            check(launch, op)


def test_a_device_that_is_done_at_once_and_one_without_queues_have_nothing_late():
    assert not [c for c in Conformance("cpu").cases("Tanh") if c.kind == "late"]
