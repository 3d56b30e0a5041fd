"""KernelDefs: their short names, and what makes one whole."""

from __future__ import annotations

from graphdock.contracts.kernel import KernelDef


def test_short_names_of_kernels_are_snake_case():
    names = {op: KernelDef(op, "cpu", lambda ctx: print).short_name for op in ("MatMul", "LRN", "so3.TensorProduct")}
    assert names == {"MatMul": "mat_mul", "LRN": "lrn", "so3.TensorProduct": "tensor_product"}


def test_a_name_that_is_given_is_kept():
    assert KernelDef("MatMul", "cpu", lambda ctx: print, name="fast").short_name == "fast"
