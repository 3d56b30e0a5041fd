"""Facts of a pattern by itself."""

from __future__ import annotations

import dataclasses
import types

import pytest
from graphdock.contracts import CONSTANT, Operand, Pattern, hookimpl
from graphdock.errors import AlreadyExistsError, PluginError
from graphdock.plugin.host import Host


def pattern(name="p"):
    return Pattern(name, "Tanh", {"x": Operand((None,))}, lambda x: x, lambda x: x)


def host_with(*items):
    hook = hookimpl(specname="register_patterns")(lambda: items)
    host = Host()
    host.register("lab", types.SimpleNamespace(__name__="lab", register_patterns=hook))
    return host


def test_defaults():
    assert (CONSTANT.shape, CONSTANT.constant, CONSTANT.dtype) == ((), True, None)
    assert pattern().check is None and "float32" in pattern().dtypes
    with pytest.raises(dataclasses.FrozenInstanceError):
        pattern().name = "q"


def test_they_come_by_a_hook_in_their_order():
    host = host_with(pattern("b"), pattern("a"))
    host.backend("lab")
    assert [r.full_name for r in host.patterns.all()] == ["lab.b", "lab.a"]
    host.discard("lab", "lab")
    assert host.patterns.all() == []


@pytest.mark.parametrize(("items", "text"), [([pattern(), pattern()], "p"), (["pattern"], "wrong item")])
def test_what_is_none_or_there_already(items, text):
    with pytest.raises(PluginError, match=text) as caught:
        host_with(*items).backend("lab")
    assert text == "wrong item" or isinstance(caught.value.__cause__, AlreadyExistsError)
