"""Values of formulas: elementwise, over rows, with attributes, and what has none."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock.contracts import ArgDef, AttrDef, OpDef, RegionForm
from graphdock_opgen.formula_values import NoValue, formula_values

X, OUT = ArgDef("x", "float32", "[*S]"), ArgDef("y", "float32", "[*S]")
A = np.array([[-1.5, 0.25, 2.0], [3.0, -0.5, 7.0]], np.float32)


def value(array=A, out=None, attrs=None, **facts):
    opdef = OpDef("lab.Op", inputs=(X,), outputs=(OUT,), attrs=(AttrDef("axis", "int", 0),), **facts)
    return formula_values(opdef, {"x": array}, attrs or {"axis": 0}, [A if out is None else out])[0]


def test_a_scalar_formula():
    np.testing.assert_allclose(value(scalar="select(x > 0, x * x, -x)"), np.where(A > 0, A * A, -A))


def test_rows_and_axes_of_an_attribute():
    rows = RegionForm({"y": "x / sum(x, -1)"})
    np.testing.assert_allclose(value(region=rows), A / A.sum(-1, keepdims=True), rtol=1e-6)
    axis = RegionForm({"y": "x - m"}, {"m": "sum(x, axis) / count(axis)"})
    np.testing.assert_allclose(value(region=axis), A - A.mean(0), rtol=1e-6)


def test_whole_numbers_by_nothing_are_nothing():
    whole = np.array([7, -7, 3], np.int32)
    zero = value(whole, whole, scalar="floordiv(x, x - x)")
    assert zero.dtype == np.int32 and not zero.any()


@pytest.mark.parametrize("text", ["x + uniform()", "index(0)"])
def test_what_draws_or_counts_places_has_no_value(text):
    with pytest.raises(NoValue):
        value(region=RegionForm({"y": text}))


def test_an_attribute_must_be_as_when_says():
    with pytest.raises(NoValue, match="axis is 0"):
        value(region=RegionForm({"y": "x"}, when={"axis": 1}))
