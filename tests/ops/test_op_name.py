"""Names of ops of Python functions, and the op types that they stand for."""

from __future__ import annotations

import itertools

import graphdock as tf
import pytest
from graphdock.errors import InvalidArgumentError
from graphdock.ops.op_name import type_of


@pytest.mark.parametrize(
    ("name", "op_type"),
    [("geo::haversine", "geo.Haversine"), ("my_lab::top_k2_mask", "my_lab.TopK2Mask"), ("g::a", "g.A")],
)
def test_names(name, op_type):
    assert type_of(name) == op_type


@pytest.mark.parametrize(
    "name",
    ["haversine", "geo.haversine", "geo::Haversine", "geo::a_1", "geo::", "::a", "Geo::a", "geo::a::b", "geo::a__b", 3],
)
def test_a_name_that_is_none(name):
    with pytest.raises(InvalidArgumentError, match="is no name of a custom op"):
        tf.custom_op(name)


def test_no_two_names_make_one_type():
    names = ["".join(p) for n in range(1, 6) for p in itertools.product("ab1_", repeat=n)]
    types = {}
    for name in names:
        try:
            made = type_of(f"n::{name}")
        except InvalidArgumentError:
            continue
        assert types.setdefault(made, name) == name
    assert len(types) > 300


@pytest.mark.parametrize("namespace", ["core", "std", "graphdock"])
def test_graphdocks_own_namespaces_are_taken(namespace):
    with pytest.raises(InvalidArgumentError, match="is graphdock's own"):
        tf.custom_op(f"{namespace}::cube")
