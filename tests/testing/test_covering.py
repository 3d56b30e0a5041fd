"""The quick choice of conformance cases leaves out pairs, and nothing else."""

from __future__ import annotations

import pytest
from graphdock_testing.case import Case
from graphdock_testing.conformance import Conformance
from graphdock_testing.covering import covering


def case(index, kernel="", kind="value", op="Sum", **types):
    return Case(op, kind, index, types, {}, kernel)


@pytest.mark.parametrize("op", ["Sum", "MatMul", "Conv2D", "Const", "StridedSlice"])
def test_every_sample_and_every_binding_stays(op):
    every = list(Conformance("cpu").cases(op))
    chosen = list(covering(every))
    for kind in ("value", "error", "gradient"):
        a, b = ([c for c in cases if c.kind == kind] for cases in (every, chosen))
        assert {(c.kernel, c.index) for c in a} == {(c.kernel, c.index) for c in b}
        assert {(c.kernel, *sorted(c.types.items())) for c in a} == {(c.kernel, *sorted(c.types.items())) for c in b}
        assert len(a) == len(b) or kind == "value"
    assert [c for c in every if c in chosen] == chosen
    assert len(chosen) < len(every) or len(every) < 3


def test_a_case_that_brings_nothing_is_left_out():
    cases = [case(0, T="float32"), case(0, T="int32"), case(1, T="float32"), case(1, T="int32"), case(2, T="int32")]
    assert list(covering(cases)) == [cases[0], cases[3], cases[4]]


def test_kernels_and_ops_are_covered_each_by_itself():
    cases = [case(0, T="int32"), case(0, "a.b", T="int32"), case(0, op="Max", T="int32"), case(0, T="int32")]
    assert list(covering(cases)) == cases[:3]


def test_errors_and_gradients_all_stay():
    cases = [case(0, kind=kind, T="int32") for kind in ("value", "error", "error", "gradient", "gradient", "value")]
    assert list(covering(cases)) == cases[:5]
