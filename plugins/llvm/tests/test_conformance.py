"""The conformance kit over the plugin's ops, against the cpu's kernels and numeric gradients."""

from __future__ import annotations

import pytest
from graphdock_testing.conformance import Conformance, Missing

OPS = (
    "Concat",
    "Conv2D",
    "Conv2DBackpropFilter",
    "Conv2DBackpropInput",
    "FusedBatchNorm",
    "FusedBatchNormGrad",
    "Gather",
    "MatMul",
    "MatMulSum",
    "MaxPool",
    "MaxPoolGrad",
    "Pack",
    "ResourceScatterAdd",
    "ResourceScatterSub",
    "ResourceScatterUpdate",
    "ResourceSparseApplyAdagrad",
    "ResourceSparseApplyGradientDescent",
    "ResourceSparseApplyMomentum",
    "SparseSoftmaxCrossEntropyWithLogits",
    "SparseTensorDenseMatMul",
    "Split",
    "SplitV",
    "Unpack",
    "UnsortedSegmentSum",
)
KIT = Conformance("llvm")
CASES = [case for op in OPS for case in KIT.cases(op)]


def test_every_op_that_has_a_kernel_is_checked():
    assert {r.kernel.op for r in KIT.host.kernels.all() if r.plugin == "llvm"} - {"Region"} == set(OPS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@pytest.mark.sampled(8)
@pytest.mark.modes
def test_case(case):
    try:
        KIT.check(case)
    except Missing as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("case", list(KIT.cases("compiler llvm.region")), ids=lambda case: case.data["check"])
def test_the_region_compiler_is_shown_all_that_it_asks_for(case):
    KIT.check(case)  # Untested where it takes none of a kind
