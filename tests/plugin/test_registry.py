"""The registries of a host: ops and kernels by name, added once, and libraries held to what they promise."""

from __future__ import annotations

import graphdock as tf
import pytest
from graphdock.contracts.opdef import OpDef
from graphdock.errors import InternalError, UnknownOpError
from graphdock.plugin.registry import OpRegistry


def test_a_library_that_builds_an_op_under_another_name_breaks_a_promise():
    registry = OpRegistry()
    registry.add_library({"a.Right": lambda: OpDef("a.Wrong")}, {}, "a")
    with pytest.raises(InternalError, match=r"builds 'a.Wrong' under the name 'a.Right'"):
        registry.get("a.Right")


def test_an_op_is_built_at_its_first_use_and_once():
    built = []

    def build():
        built.append(1)
        return OpDef("a.Op")

    registry = OpRegistry()
    registry.add_library({"a.Op": build}, {}, "a")
    assert "a.Op" in registry and "a.Op" in registry.names() and built == []
    assert registry.get("a.Op") is registry.get("a.Op") and built == [1]


def test_an_op_that_nobody_declares_suggests_the_nearest():
    registry = OpRegistry()
    registry.add_library({"MatMul": lambda: OpDef("MatMul")}, {}, "a")
    with pytest.raises(UnknownOpError, match="Matmul") as caught:
        registry.get("Matmul")
    assert "MatMul" in caught.value.hint


def test_kernels_of_an_op_are_listed_with_their_package():
    host = tf.default_host()
    host.backend("cpu")
    names = {r.full_name: r.package for r in host.kernels.for_op("MatMul")}
    assert names["cpu.mat_mul"] == "graphdock_cpu"
