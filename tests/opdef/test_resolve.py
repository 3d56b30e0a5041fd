"""``"module:name"`` strings of specs: resolved once, and the nearest name for one that is not there."""

from __future__ import annotations

import sys
import types

import pytest
from graphdock.errors import NotFoundError
from graphdock.opdef.resolve import resolve
from graphdock.shape import broadcast


def test_the_object_itself_comes_back():
    assert resolve("graphdock.shape:broadcast") is broadcast


def test_a_name_in_a_spec_that_its_module_lacks_is_named_with_the_nearest():
    with pytest.raises(NotFoundError, match="module graphdock.shape has no 'brodcast'") as caught:
        resolve("graphdock.shape:brodcast")
    assert caught.value.hint == "did you mean 'broadcast'?"


def test_a_module_that_is_nowhere_is_pythons_own_error():
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        resolve("no_such_module:f")


def test_what_was_found_is_found_again_and_what_failed_is_tried_again(monkeypatch):
    module = types.ModuleType("resolve_test_module")
    monkeypatch.setitem(sys.modules, "resolve_test_module", module)
    with pytest.raises(NotFoundError):
        resolve("resolve_test_module:late")
    module.late = object()
    first = resolve("resolve_test_module:late")
    module.late = object()
    assert resolve("resolve_test_module:late") is first
