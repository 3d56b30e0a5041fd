"""The conformance kit over the plugin's ops and patterns, against the cpu's kernels and numeric gradients."""

from __future__ import annotations

import pytest
from graphdock_testing.conformance import Conformance, Missing

OPS = (
    "AvgPool",
    "AvgPoolGrad",
    "Conv2D",
    "Conv2DBackpropFilter",
    "Conv2DBackpropInput",
    "DepthwiseConv2dNative",
    "DepthwiseConv2dNativeBackpropFilter",
    "DepthwiseConv2dNativeBackpropInput",
    "FusedConv2D",
    "FusedMatMul",
    "MatMul",
    "MaxPool",
    "MaxPoolGrad",
)
KIT = Conformance("onednn")
CASES = [case for op in (*OPS, *KIT.parts) for case in KIT.cases(op)]


def test_every_op_that_has_a_kernel_is_checked():
    assert {r.kernel.op for r in KIT.host.kernels.all() if r.plugin == "onednn"} == set(OPS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@pytest.mark.sampled(16)
@pytest.mark.modes
def test_case(case):
    try:
        KIT.check(case)
    except Missing as reason:
        pytest.skip(str(reason))
