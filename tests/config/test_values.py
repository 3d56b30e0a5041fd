"""Values of a configuration: what each field takes, the form it is kept in, and errors that name where it stands."""

from __future__ import annotations

import dataclasses

import pytest
from graphdock.config.session_config import SessionConfig
from graphdock.config.values import CHECKS, FIELDS, plain
from graphdock.errors import ConfigError


def check(name, value):
    return CHECKS[name](value, "here")


def test_every_field_of_a_configuration_has_a_check():
    assert set(FIELDS) == set(CHECKS)
    public = {f.name for f in dataclasses.fields(SessionConfig) if not f.name.startswith("_")}
    assert set(FIELDS) <= public


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("backends", ["a", "b"], ("a", "b")),
        ("backends", "a, b", ("a", "b")),
        ("fallback", "forbid", "forbid"),
        ("fallback", {"MatMul": "allow"}, {"MatMul": "allow"}),
        ("kernels", {"MatMul@cuda": "cuda.lt"}, {"MatMul@cuda": "cuda.lt"}),
        ("device_count", {"cpu": "2"}, {"cpu": 2}),
        ("cluster", {"ps": 1, "worker": "4"}, {"ps": 1, "worker": 4}),
        ("plan_for", {"cuda": "sm_90a"}, {"cuda": "sm_90a"}),
        ("memory_limit", {"cuda": "1.5 GiB", "cpu": 7, "x": "3KB"}, {"cuda": 3 * 2**29, "cpu": 7, "x": 3000}),
        ("passes", {"fold": False}, {"fold": False}),
        ("plan_cache_size", "8", 8),
        ("shape_policy", "exact", "exact"),
        ("operation_timeout", None, None),
        ("operation_timeout", 2, 2.0),
        ("options", {"cuda": {"a": 1}}, {"cuda": {"a": 1}}),
    ],
)
def test_values_that_are_taken(name, value, kept):
    found = plain(check(name, value))
    assert found == kept


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("backends", []),
        ("backends", ["a", "a"]),
        ("fallback", "perhaps"),
        ("fallback", {"MatMul": "perhaps"}),
        ("kernels", {"MatMul": "cuda.lt"}),
        ("kernels", {"MatMul@cuda": "lt"}),
        ("kernels", ["MatMul@cuda"]),
        ("device_count", {"cpu": -1}),
        ("cluster", {"ps": 0}),
        ("cluster", {"/job:ps": 1}),
        ("cluster", {"ps": ["host:2222"]}),
        ("memory_limit", {"cuda": "much"}),
        ("memory_limit", {"cuda": -1}),
        ("memory_limit", {"cuda": True}),
        ("plan_cache_size", 0),
        ("plan_cache_size", True),
        ("shape_policy", "exactly"),
        ("intra_op_threads", -1),
        ("operation_timeout", 0),
        ("operation_timeout", "soon"),
        ("operation_timeout", 10**400),
        ("operation_timeout", 10**5000),
        ("operation_timeout", float("inf")),
        ("operation_timeout", float("nan")),
        ("plan_cache_size", 10**5000),
        ("plan_cache_size", "9" * 5000),
        ("memory_limit", {"cuda": "9" * 400}),
        ("memory_limit", {"cuda": 10**400}),
        ("memory_limit", {"cuda": " " * 100_000 + "x"}),
        ("device_count", {"cpu": 2**31}),
        ("fallback", []),
        ("shape_policy", {}),
        ("executor", ""),
        ("placer", ""),
        ("placer", 3),
        ("lock", ""),
        ("lock", 3),
        ("executor", 3),
        ("options", {"cuda": 3}),
        ("debug", "perhaps"),
    ],
    ids=lambda v: v if isinstance(v, str) and len(v) < 40 else "",
)
def test_values_that_are_refused_say_where_they_stand(name, value):
    with pytest.raises(ConfigError, match="^here: ") as caught:
        check(name, value)
    assert caught.value.expected


def test_a_near_miss_is_suggested():
    with pytest.raises(ConfigError) as caught:
        check("fallback", "forbidden")
    assert caught.value.hint == "did you mean 'forbid'?"


def test_tables_are_kept_read_only():
    kept = check("options", {"cuda": {"a": 1}})
    with pytest.raises(TypeError):
        kept["cuda"]["a"] = 2
    assert type(plain(kept)) is dict and type(plain(kept)["cuda"]) is dict
