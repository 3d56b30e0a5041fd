"""Every hook is documented, knows what it returns, and is exercised by the toy package."""

import inspect
from pathlib import Path

import pytest
from graphdock.contracts import KernelDef, hookimpl
from graphdock.errors import PluginError
from graphdock.plugin import hookspecs
from graphdock.plugin.hookspecs import HOOKS
from graphdock.plugin.host import Host

SPECS = {n: f for n, f in vars(hookspecs).items() if n.startswith("register_")}


def test_the_page_and_the_loader_agree():
    assert set(SPECS) == set(HOOKS)


@pytest.mark.parametrize("name", SPECS)
def test_every_hook_is_documented_and_takes_the_host_only(name):
    assert inspect.getdoc(SPECS[name])
    assert list(inspect.signature(SPECS[name]).parameters) == ["host"]


@pytest.mark.parametrize("name", SPECS)
def test_the_toy_package_implements_every_hook(name):
    source = (
        Path(__file__).parents[1] / "packages" / "graphdock-toy" / "src" / "graphdock_toy" / "plugin.py"
    ).read_text()
    assert f"def {name}(" in source


def test_a_hook_may_be_named_otherwise_with_specname(site):
    source = (
        "from graphdock.contracts import KernelDef, hookimpl\n"
        "@hookimpl(specname='register_kernels')\n"
        "def my_kernels(): return [KernelDef('Identity', 'cpu', lambda ctx: None)]\n"
    )
    site.plugin("renamed", source)
    host = Host()
    host.backend("renamed")
    assert [k.full_name for k in host.kernels.for_op("Identity") if k.plugin == "renamed"] == ["renamed.identity"]


def test_a_wrapper_is_refused(site):
    source = (
        "from graphdock.contracts import hookimpl\n"
        "@hookimpl(wrapper=True)\n"
        "def register_kernels():\n    return (yield)\n"
    )
    site.plugin("wrapping", source)
    host = Host()
    with pytest.raises(Exception, match="is a wrapper"):
        host.backend("wrapping")


def test_a_hook_may_return_nothing_or_a_generator(site):
    source = (
        "from graphdock.contracts import KernelDef, hookimpl\n"
        "@hookimpl\n"
        "def register_devices(): return None\n"
        "@hookimpl\n"
        "def register_kernels(host): yield KernelDef('Identity', 'cpu', lambda ctx: None)\n"
    )
    site.plugin("lazy", source)
    host = Host()
    assert host.backend("lazy").kernel_devices == ("cpu",)


def test_an_object_in_memory_is_a_plugin_too(site):
    class Plugin:
        @hookimpl
        def register_kernels(self, host):
            return [KernelDef("Identity", "cpu", lambda ctx: None, "mine")]

    host = Host()
    assert host.register("memory", Plugin()).kernel_devices == ("cpu",)
    assert "memory.mine" in [k.full_name for k in host.kernels.for_op("Identity")]
    assert host.backend("memory").name == "memory"


def test_a_hook_with_a_wrong_argument_is_named_with_it(site):
    class Plugin:
        @hookimpl
        def register_kernels(self, session, host, more=None):
            return []

    with pytest.raises(PluginError, match="hook 'register_kernels' takes 'session', which it is not offered"):
        Host().register("memory", Plugin())


def test_a_plugin_is_called_alone_whoever_else_has_the_hook_under_whatever_name(site):
    called = []

    class First:
        @hookimpl(specname="register_kernels")
        def kernels_of_mine(self):
            called.append("first")

    class Second:
        @hookimpl
        def register_kernels(self):
            called.append("second")

    host = Host()
    host.register("first", First())
    host.register("second", Second())
    assert called == ["first", "second"]


def test_two_functions_for_one_hook_are_called_both(site):
    class Plugin:
        @hookimpl
        def register_kernels(self):
            return [KernelDef("Identity", "cpu", lambda ctx: None, "mine")]

        @hookimpl(specname="register_kernels")
        def more(self):
            return [KernelDef("Identity", "cpu", lambda ctx: None, "more", label="later")]

    host = Host()
    host.register("memory", Plugin())
    assert {"memory.mine", "memory.more"} <= {k.full_name for k in host.kernels.for_op("Identity")}
    assert next(e for e in host.ledger if e.plugin == "memory").added.kernels == 2


def test_what_all_hooks_registered_is_taken_back_when_the_last_one_raises(toy):
    from graphdock_toy import plugin

    def fails():
        raise OSError("too late")

    class Plugin:
        pass

    *hooks, last = HOOKS
    for name in hooks:
        setattr(Plugin, name, staticmethod(hookimpl(getattr(plugin, name))))
    setattr(Plugin, last, staticmethod(hookimpl(fails)))
    host = Host(block=["toy"])
    with pytest.raises(PluginError, match="too late"):
        host.register("copy", Plugin())
    registries = [item for item in vars(host).values() if hasattr(item, "discard") and item is not host.ops]
    assert len(registries) == len({hook.registry for hook in HOOKS.values()} - {"ops"})
    for registry in registries:
        before = vars(registry).copy()
        registry.discard("copy")
        assert vars(registry) == before
    assert not [name for name in host.ops.declared() if name.startswith("toy.")]
