"""Every op that the plugin has a kernel for agrees with its spec's oracle, from the GPU's sources, run on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from graphdock_cuda.testing import kernels
from graphdock_testing.conformance import Conformance, Missing

OPS = ["device cuda", *sorted({k.op for k in kernels()})]


@pytest.mark.slow
@pytest.mark.parametrize("op", OPS)
@pytest.mark.sampled(216)
def test_op(conforms: Callable[[str], int], op: str) -> None:
    assert conforms(op) > 0, "no case was checked"


@pytest.mark.exhaustive
@pytest.mark.parametrize("op", OPS)
def test_every_case(every_kit: Conformance, op: str) -> None:
    if op in every_kit.untested:
        pytest.skip(f"the spec of {op} has no samples")
    checked = 0
    for case in every_kit.cases(op):
        try:
            every_kit.check(case)  # raises ConformanceError
        except Missing:  # of a dtype that its kernels do not take
            continue
        checked += 1
    assert checked
