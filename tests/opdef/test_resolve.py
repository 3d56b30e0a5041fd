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


def test_a_module_that_is_nowhere_is_named():
    with pytest.raises(NotFoundError, match="there is no module 'no_such_module'") as caught:
        resolve("no_such_module:f")
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)
    with pytest.raises(NotFoundError, match="there is no module 'graphdock.no.such'"):
        resolve("graphdock.no.such:f")


def test_a_module_that_imports_what_is_nowhere_is_pythons_own_error(tmp_path, monkeypatch):
    (tmp_path / "resolve_test_lame.py").write_text("import no_such_module\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        resolve("resolve_test_lame:f")


def test_what_was_found_is_found_again_and_what_failed_is_tried_again(monkeypatch):
    module = types.ModuleType("resolve_test_module")
    monkeypatch.setitem(sys.modules, "resolve_test_module", module)
    with pytest.raises(NotFoundError):
        resolve("resolve_test_module:late")
    module.late = object()
    first = resolve("resolve_test_module:late")
    module.late = object()
    assert resolve("resolve_test_module:late") is first
