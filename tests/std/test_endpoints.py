"""The endpoint table of std: what it promises exists, and reading it stays light."""

from __future__ import annotations

import importlib
import subprocess
import sys

import graphdock as tf
from graphdock.contracts.op_table import spelled_out
from graphdock.plugin.endpoints import published_names
from graphdock_std import names
from graphdock_std._gen.endpoints import ENDPOINTS as GENERATED

ENDPOINTS = published_names(("graphdock_std._gen.endpoints", "graphdock_std.names"), "std")


def test_every_endpoint_leads_to_something() -> None:
    for name, target in ENDPOINTS.items():
        module, _, attribute = target.partition(":")
        assert hasattr(importlib.import_module(module), attribute), (name, target)


def test_no_endpoint_is_also_a_namespace() -> None:
    spaces = {name.rpartition(".")[0] for name in ENDPOINTS} - {""}
    assert not spaces & set(ENDPOINTS)


def test_no_name_stands_in_two_tables() -> None:
    assert len(ENDPOINTS) == len(GENERATED) + len(spelled_out(names.FUNCTIONS)) + len(spelled_out(names.ENDPOINTS))


def test_names_at_the_root_and_below_math_are_the_same_function() -> None:
    assert tf.math.add is tf.add
    assert tf.math.reduce_sum is tf.reduce_sum
    assert tf.linalg.matmul is tf.matmul
    assert tf.math.floormod is tf.mod


def test_reading_the_table_imports_neither_numpy_nor_the_graph_layer() -> None:
    code = (
        "import sys; import graphdock_std.names; from graphdock_std._gen.endpoints import ENDPOINTS; assert 'add' in ENDPOINTS; "
        "print([m for m in ('numpy', 'graphdock.graph.graph', 'graphdock_std.math.functions') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
