"""The table of public names of the standard library."""

from __future__ import annotations

import importlib.util
from importlib.machinery import ModuleSpec

import pytest
from _pytest.assertion.rewrite import AssertionRewritingHook
from graphdock_std import endpoints


def test_the_table_is_read_below_pytests_import_hook(pytestconfig: pytest.Config, monkeypatch) -> None:
    """pytest's hook loads every module of a distribution that brings a pytest plugin, and it has no get_source()."""
    expected = endpoints.ENDPOINTS
    found = importlib.util.find_spec

    def hooked(name: str) -> ModuleSpec | None:
        spec = found(name)
        assert spec is not None and spec.origin is not None
        hook = AssertionRewritingHook(pytestconfig)
        return importlib.util.spec_from_file_location(name, spec.origin, loader=hook)

    monkeypatch.setattr(importlib.util, "find_spec", hooked)
    assert endpoints._build() == expected
