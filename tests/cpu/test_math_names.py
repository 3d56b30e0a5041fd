"""The endpoint table of std: what it promises exists, and reading it stays light."""

from __future__ import annotations

import importlib
import subprocess
import sys

import graphdock as tf
import pytest
from graphdock.errors import InternalError
from graphdock_std.endpoints import MODULES, table_of


def test_every_endpoint_leads_to_something() -> None:
    from graphdock_std.endpoints import ENDPOINTS

    for name, target in ENDPOINTS.items():
        module, _, attribute = target.partition(":")
        assert hasattr(importlib.import_module(module), attribute), (name, target)


def test_no_endpoint_is_also_a_namespace() -> None:
    from graphdock_std.endpoints import ENDPOINTS

    spaces = {name.rpartition(".")[0] for name in ENDPOINTS} - {""}
    assert not spaces & set(ENDPOINTS)


def test_names_at_the_root_and_below_math_are_the_same_function() -> None:
    assert tf.math.add is tf.add
    assert tf.math.reduce_sum is tf.reduce_sum
    assert tf.linalg.matmul is tf.matmul
    assert tf.math.floormod is tf.mod


def test_reading_the_table_imports_neither_numpy_nor_the_graph_layer() -> None:
    code = (
        "import sys; from graphdock_std.endpoints import ENDPOINTS; assert 'matmul' in ENDPOINTS; "
        "print([m for m in ('numpy', 'graphdock.graph.graph', 'graphdock_std.math') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_tables_say_what_their_modules_say() -> None:
    for name in MODULES:
        module = importlib.import_module(name)
        with open(module.__file__ or "", encoding="utf-8") as file:
            assert table_of(file.read(), name) == module.ENDPOINTS


@pytest.mark.parametrize(
    "source",
    [
        "",
        "x = 1\n",
        "ENDPOINTS = 3\n",
        "ENDPOINTS = {n: f(n) for n in names}\n",
        "ENDPOINTS = {\n  'a': 1,\n}\n",
        "ENDPOINTS = {\n",
    ],
)
def test_a_table_that_needs_its_module_is_refused(source: str) -> None:
    with pytest.raises(InternalError, match=r"some\.module has no table of endpoints"):
        table_of(source, "some.module")
