"""Classes of dtypes in specs: what they hold, and their words on pages."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from graphdock_opgen.docs import dtype_words
from graphdock_opgen.op import expand_allow

CLASSES = {
    "floats": ("floating", {"float16", "bfloat16", "float32", "float64"}),
    "complex": ("complex", {"complex64", "complex128"}),
    "inexact": ("floating or complex", {"float16", "bfloat16", "float32", "float64", "complex64", "complex128"}),
    "index": ("int32 or int64", {"int32", "int64"}),
}


@pytest.mark.parametrize("name", CLASSES)
def test_classes(name: str) -> None:
    words, members = CLASSES[name]
    allowed = expand_allow([name])
    assert set(allowed) == members
    op: Any = SimpleNamespace(allow={"T": allowed})
    assert dtype_words(op, "T") == words


def test_numeric_is_real_and_complex() -> None:
    assert set(expand_allow(["numeric"])) == set(expand_allow(["real", "complex"]))
    op: Any = SimpleNamespace(allow={"T": expand_allow(["numeric"])})
    assert dtype_words(op, "T") == "integer, floating or complex"
    assert "bool" not in expand_allow(["numeric"]) and set(expand_allow(["numeric"])) < set(expand_allow(["any"]))
