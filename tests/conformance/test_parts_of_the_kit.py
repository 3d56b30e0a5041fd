"""The kit's own parts: which dtypes a sample runs with, the table of outcomes, differences that touch one element at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from graphdock.contracts import KernelDef, KernelRefused, OpDef, PrepareContext, Prepared
from graphdock.plugin.host import Host
from graphdock_opgen.samples import bindings
from graphdock_testing import queued
from graphdock_testing.conformance import Conformance, Refused
from graphdock_testing.numeric import central_differences, difference
from graphdock_testing.report import Compliance


def test_a_sample_runs_with_each_dtype_of_each_variable_that_it_does_not_fix() -> None:
    case = {"types": {"T": ("float32", "float64"), "I": ("int32", "int64")}, "args": {"x": "T", "i": "I"}}
    free: dict[str, Any] = {"types": {}, "inputs": {"x": {"shape": [2]}, "i": {"shape": [2]}}, "attrs": {}}
    found = [(b["T"], b["I"]) for b in bindings(OpDef("A"), case, free)]
    assert found == [("float32", "int32"), ("float64", "int32"), ("float32", "int64")]
    fixed = {**free, "inputs": {"x": {"shape": [2]}, "i": {"value": [1], "dtype": "int64"}}}
    assert [(b["T"], b["I"]) for b in bindings(OpDef("A"), case, fixed)] == [("float32", "int64"), ("float64", "int64")]
    told = {**free, "types": {"T": "float64"}}
    assert [(b["T"], b["I"]) for b in bindings(OpDef("A"), case, told)] == [("float64", "int32"), ("float64", "int64")]


def test_a_cell_shows_the_worst_of_its_cases() -> None:
    table = Compliance("chip")
    for dtype, outcomes in {"float32": ["ok", "failed"], "int32": ["missing", "ok"], "bool": ["ok", "xfail"]}.items():
        for outcome in outcomes:
            table.add("Add", dtype, outcome)
    cells = {d: table.cell("Add", d) for d in ("float32", "int32", "bool", "int8")}
    assert cells == {"float32": "FAIL", "int32": "ok", "bool": "xfail", "int8": ""}


def test_differences_move_one_element_at_a_time_and_put_it_back() -> None:
    start, moved = np.array([1.0, 2.0, 3.0]), []

    def product(x: Any) -> float:
        moved.append(int((x != start).sum()))
        return float(np.prod(x))

    slopes = central_differences(product, [start], 0, 0.25)
    assert moved == [1] * 6
    np.testing.assert_allclose(slopes, [6.0, 3.0, 2.0], rtol=1e-12)


def test_nan_equals_nan_and_dtypes_must_agree() -> None:
    a = np.array([1.0, np.nan], np.float32)
    assert difference(a, a.copy()) is None
    assert difference(a, np.array([1.0, 0.0], np.float32)) is not None
    assert "dtype is float32" in str(difference(a, a.astype(np.float64)))


def test_a_decomposition_is_not_the_kernel_that_refused() -> None:
    """The step's numbers are right, and say nothing of the kernel."""
    host = Host()
    queued.install(host, seed=1)
    host.backend("queued")
    (standing,) = [k for k in host.kernels.for_op("Rsqrt") if k.kernel.device == "queued"]

    def refuse(ctx: PrepareContext) -> Prepared:
        raise KernelRefused("its source does not compile")

    proud = replace(standing, facts=KernelDef("Rsqrt", "queued", prepare=refuse, name="proud"))
    host.kernels._by_op["Rsqrt"] = tuple(
        [proud if k is standing else k for k in host.kernels.for_op("Rsqrt") if k.kernel.device in ("queued", "host")]
    )
    kit = Conformance("queued", host=host, oracle="reference")
    for kind in ("value", "gradient"):
        case = next(c for c in kit.cases("Rsqrt") if c.kind == kind)
        with pytest.raises(Refused, match="the kernels of queued refuse .*Rsqrt.*what Rsqrt decomposes to ran instead"):
            kit.check(case)
