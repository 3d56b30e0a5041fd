"""Host.register: a plugin without a package."""

from __future__ import annotations

import types
from typing import Any

import pytest
import recorder
from graphdock.contracts import KernelDef, hookimpl
from graphdock.errors import AlreadyExistsError, PluginError
from graphdock.plugin.host import Host


class Kernels:
    """A plugin may be any hashable object with marked methods."""

    def __init__(self, fail: bool = False) -> None:
        self.fail = fail

    @hookimpl
    def register_kernels(self, host: Any) -> Any:
        if self.fail:
            raise RuntimeError("no kernels today")
        return [KernelDef("Square", "cpu", lambda ctx: None, name="mine")]


def test_it_is_a_backend_like_any_other() -> None:
    host = Host()
    backend = host.register("recorder", recorder)
    assert (backend.name, backend.device_types) == ("recorder", ("recorder",))
    assert host.backend("recorder") == backend
    assert [i.index for i in host.device_infos("recorder")] == [0, 1]
    (entry,) = [e for e in host.ledger if e.plugin == "recorder"]
    assert (entry.stage, entry.is_fault) == ("registered", False)


def test_hosts_share_nothing() -> None:
    Host().register("recorder", recorder)
    assert all(e.plugin != "recorder" for e in Host().ledger)


def test_names_are_unique() -> None:
    host = Host()
    host.register("mine", Kernels())
    for name in ("mine", "cpu"):
        with pytest.raises(AlreadyExistsError, match=f"a plugin named '{name}' is there already"):
            host.register(name, Kernels())
    assert [r.full_name for r in host.kernels.for_op("Square") if r.plugin == "mine"] == ["mine.mine"]


def test_a_failing_hook_is_told_and_leaves_nothing() -> None:
    host = Host()
    with pytest.raises(PluginError, match="no kernels today") as caught:
        host.register("mine", Kernels(fail=True))
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert all(r.plugin != "mine" for r in host.kernels.all())


def test_a_wrong_hook_is_told() -> None:
    module = types.ModuleType("mine")

    @hookimpl
    def register_kernel() -> list[KernelDef]:
        return []

    vars(module)["register_kernel"] = register_kernel
    with pytest.raises(PluginError, match="register_kernel"):
        Host().register("mine", module)
