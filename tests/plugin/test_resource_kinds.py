"""Resource kinds from plugins: found by name, one per name, and taken back with their plugin."""

from __future__ import annotations

import types

import pytest
from graphdock.contracts import VARIABLE, ResourceKind, hookimpl
from graphdock.errors import NotFoundError, PluginError
from graphdock.plugin.host import Host

OTHER = """\
from graphdock.contracts import ResourceKind, hookimpl

@hookimpl
def register_resource_kinds(): return [ResourceKind("{name}", dict)]
"""


def test_the_hosts_own_kind_is_there_without_any_plugin():
    assert Host(autoload=False).resource_kind("variable") is VARIABLE


def test_a_kind_is_found_through_the_package_that_names_it(toy, site):
    site.plugin("breaking", "raise RuntimeError('nobody asked for this one')\n")
    host = Host()
    kind = host.resource_kind("toy.Counters", "graphdock_toy")
    assert (kind.name, kind.lock) == ("toy.Counters", "step")
    assert host.resource_kind("toy.Counters") is kind
    assert [e.stage for e in host.ledger if e.plugin == "breaking"] == ["found"]


def test_a_kind_is_found_whoever_brings_it(site):
    site.plugin("tables", OTHER.replace("{name}", "other.Table"))
    assert Host().resource_kind("other.Table", "somebody").name == "other.Table"


def test_names_that_nobody_brings(site):
    site.plugin("tables", OTHER.replace("{name}", "other.Table"))
    with pytest.raises(NotFoundError) as caught:
        Host(allow=["tables"]).resource_kind("othr.Table")
    assert caught.value.message == "no resource kind named 'othr.Table'"
    assert caught.value.hint == "did you mean 'other.Table'?"
    assert "variable" in caught.value.expected


@pytest.mark.parametrize("name", ["other.Table", "variable"])
def test_two_kinds_of_one_name(site, name):
    site.plugin("one", OTHER.replace("{name}", "other.Table"))
    site.plugin("two", OTHER.replace("{name}", name))
    host = Host()
    host.backend("one")
    owner = "graphdock" if name == "variable" else "one"
    with pytest.raises(PluginError, match=f"'two' brings the resource kind '{name}', which plugin '{owner}' has"):
        host.backend("two")
    assert host.resource_kinds.names() == ["other.Table", "variable"]


def test_a_plugin_that_fails_later_leaves_no_kind():
    module = types.ModuleType("mine")

    @hookimpl
    def register_resource_kinds():
        return [ResourceKind("mine.Kind", dict)]

    @hookimpl
    def register_executors():
        raise RuntimeError("no executors today")

    vars(module).update(register_resource_kinds=register_resource_kinds, register_executors=register_executors)
    host = Host()
    with pytest.raises(PluginError, match="no executors today"):
        host.register("mine", module)
    assert host.resource_kinds.names() == ["variable"]


def test_an_item_that_is_no_kind_is_told(site):
    site.plugin("wrong", OTHER.replace('ResourceKind("{name}", dict)', "dict"))
    with pytest.raises(PluginError, match="register_resource_kinds returned a wrong item"):
        Host().backend("wrong")


def test_kernels_for_any_device_are_for_no_device_type(toy):
    """``host`` in a KernelDef stands for host memory, whatever the device."""
    assert Host().backend("toy").kernel_devices == ("cpu", "toy")
