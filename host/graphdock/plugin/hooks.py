"""The table of hooks: what the items of each are, and how one is registered.

A hook is a row here and its specification in ``hookspecs``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from graphdock.contracts import (
    CheckpointFormat,
    DeviceFactory,
    Executor,
    GraphFormat,
    KernelDef,
    KernelModule,
    OpLibrary,
    Pass,
    Pattern,
    PatternLibrary,
    RegionCompiler,
    RegisteredCompiler,
    ResourceKind,
    SessionFactory,
)
from graphdock.contracts.passes import PHASES
from graphdock.errors import PluginError, did_you_mean
from graphdock.plugin.discovery import Found
from graphdock.plugin.registry import NamedRegistry, RegisteredPass, load_library

if TYPE_CHECKING:
    from graphdock.plugin.host import Host

__all__ = ["HOOKS", "Hook"]


class _Registry(Protocol):
    def discard(self, plugin: str, /) -> None:
        """Take back everything of a plugin."""


@dataclass(frozen=True, slots=True)
class Hook:
    """One hook of the platform.

    Attributes:
      item: the type, or types, of each item that it returns.
      add: registers one item of a plugin, under the host's lock, and returns how many things that are; what it raises makes the
        whole plugin fail.
      registry: the host's, from which a plugin's items are taken back; None for ops, which go by package.
    """

    item: type | tuple[type, ...]
    add: Callable[[Host, Found, Any], int]
    registry: Callable[[Host], _Registry] | None

    @property
    def name(self) -> str:
        """What an item is, for messages."""
        kinds = self.item if isinstance(self.item, tuple) else (self.item,)
        return " or ".join([kind.__name__ for kind in kinds])


def _named(item: type, registry: Callable[[Host], NamedRegistry[Any]], key: str = "name") -> Hook:
    """The hook whose items are kept as they are, by one of their attributes."""

    def add(host: Host, by: Found, it: Any) -> int:
        registry(host).add(getattr(it, key), it, by.plugin)
        return 1

    return Hook(item, add, registry)


def _add_device(host: Host, by: Found, factory: DeviceFactory) -> int:
    host.devices.add(factory, by.plugin)
    return 1


def _add_library(host: Host, by: Found, library: OpLibrary) -> int:
    loaded = load_library(library.module)
    assert loaded is not None
    host.ops.add_library(*loaded, by.package, library.specs)
    return len(loaded[0])


def _add_kernels(host: Host, by: Found, item: KernelDef | KernelModule) -> int:
    if isinstance(item, KernelModule):
        manifest = host.manifest(by)
        rows = None if manifest is None else manifest.kernels
        return host.kernels.add_module(item.name, rows, by.plugin, by.package)
    host.kernels.add(item, by.plugin, by.package)
    return 1


def _add_compiler(host: Host, by: Found, compiler: RegionCompiler) -> int:
    if (type(compiler).build is RegionCompiler.build) == (type(compiler).prepare is RegionCompiler.prepare):
        raise PluginError(
            f"plugin {by.plugin!r}: the region compiler {compiler.name!r} is declared in the wrong way",
            expected="build or prepare, and not both",
            got=type(compiler).__name__,
        )
    registered = RegisteredCompiler(by.plugin, by.package, compiler)
    host.region_compilers.add(registered.full_name, registered, by.plugin)
    return 1


def _add_pattern(host: Host, by: Found, pattern: Pattern | PatternLibrary) -> int:
    host.patterns.add(pattern, by.plugin, by.package)
    return 1


def _add_pass(host: Host, by: Found, each: Pass) -> int:
    if each.phase not in PHASES:
        raise PluginError(
            f"plugin {by.plugin!r}: the pass {each.name!r} is for the phase {each.phase!r}, which there is not",
            expected="one of " + ", ".join(PHASES),
            hint=did_you_mean(each.phase, PHASES),
        )
    host.passes.add(each.name, RegisteredPass(by.plugin, by.package, by.is_own, each), by.plugin)
    return 1


def _add_executor(host: Host, by: Found, executor: Executor) -> int:
    if not by.is_own:
        host.load_for("register_executors", own=True)  # whose names come first
    host.executors.add(executor.name, executor, by.plugin)
    return 1


#: Name of a hook -> what is known of it, in the order in which a plugin's hooks run.
HOOKS: dict[str, Hook] = {
    "register_devices": Hook(DeviceFactory, _add_device, lambda host: host.devices),
    "register_ops": Hook(OpLibrary, _add_library, None),
    "register_kernels": Hook((KernelDef, KernelModule), _add_kernels, lambda host: host.kernels),
    "register_region_compilers": Hook(RegionCompiler, _add_compiler, lambda host: host.region_compilers),
    "register_patterns": Hook((Pattern, PatternLibrary), _add_pattern, lambda host: host.patterns),
    "register_passes": Hook(Pass, _add_pass, lambda host: host.passes),
    "register_resource_kinds": _named(ResourceKind, lambda host: host.resource_kinds),
    "register_executors": Hook(Executor, _add_executor, lambda host: host.executors),
    "register_session_factories": _named(SessionFactory, lambda host: host.session_factories, key="scheme"),
    "register_graph_formats": _named(GraphFormat, lambda host: host.graph_formats),
    "register_checkpoint_formats": _named(CheckpointFormat, lambda host: host.checkpoint_formats),
}
