"""Every hook of the platform, on one page: its specification, what its items are, and where they are registered.

A plugin is a module named by an entry point of the group ``graphdock``. It implements any of these with
``@graphdock.contracts.hookimpl``; each may take ``host`` or no argument, and returns an iterable. Hooks run once,
when a session first needs the plugin, never at import; one that raises takes back everything its plugin registered.
"""

# ruff: noqa: B903
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

import pluggy

from graphdock import contracts
from graphdock.contracts.lazy_dataclass import lazy_dataclass

if TYPE_CHECKING:
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
        Placer,
        RegionCompiler,
        ResourceKind,
        SessionFactory,
        Transport,
    )
    from graphdock.plugin.host import Host
    from graphdock.plugin.state import PluginState


class Registry(Protocol):
    """Holder of the items of a hook, as an attribute of the host."""

    def register(self, by: PluginState, item: Any, /) -> int:
        """Keep one item of a plugin, under the host's lock, and return how many things that are.

        What it raises makes the whole plugin fail.
        """

    def discard(self, plugin: str, /) -> None:
        """Take back everything of a plugin; of ops, everything of a package."""


@lazy_dataclass(frozen=True, slots=True)
class Hook:
    """One hook of the platform.

    Attributes:
      items: the contracts that its items are, one of them each.
      registry: the attribute of the host that its items are registered with.
      own_first: graphdock's own plugins register theirs before any other does.
      noun: what one of them is, where manifests list their names, which must differ; else None.
      key: the attribute that is its name.
      of_every_plan: plans ask for it, whatever ``backends`` lists, of the plugins whose manifests name it.
    """

    items: tuple[str, ...]
    registry: str
    own_first: bool = False
    noun: str | None = None
    key: str = "name"
    of_every_plan: bool = False

    @property
    def singular(self) -> str:
        """Return what one of its items is called."""
        return self.noun or self.registry.removesuffix("s").replace("_", " ")

    @property
    def types(self) -> tuple[type, ...]:
        """The classes of the contracts, imported when the first item is looked at."""
        return tuple([getattr(contracts, name) for name in self.items])


#: Name of a hook -> what is known of it, in the order in which a plugin's hooks run.
HOOKS: dict[str, Hook] = {}
_hookspec = pluggy.HookspecMarker("graphdock")


def _hook(*items: str, registry: str, **facts: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def declare(specification: Callable[..., Any]) -> Callable[..., Any]:
        HOOKS[specification.__name__] = Hook(items, registry, **facts)
        return _hookspec(specification)

    return declare


@_hook("DeviceFactory", registry="devices")
def register_devices(host: Host) -> Iterable[DeviceFactory]:  # type: ignore[empty-body]
    """Return the factories of the device types this plugin owns."""


@_hook("OpLibrary", registry="ops")
def register_ops(host: Host) -> Iterable[OpLibrary]:  # type: ignore[empty-body]
    """Return the op libraries this plugin declares, as opgen generated them."""


@_hook("KernelDef", "KernelModule", registry="kernels")
def register_kernels(host: Host) -> Iterable[KernelDef | KernelModule]:  # type: ignore[empty-body]
    """Return kernels, for any op and any device type, or modules of them, which are imported when a plan chooses one."""


@_hook("RegionCompiler", registry="region_compilers")
def register_region_compilers(host: Host) -> Iterable[RegionCompiler]:  # type: ignore[empty-body]
    """Return what makes one kernel of connected nodes of a device type, for sessions that list the plugin in ``backends``."""


@_hook("Pattern", "PatternLibrary", registry="patterns", of_every_plan=True)
def register_patterns(host: Host) -> Iterable[Pattern | PatternLibrary]:  # type: ignore[empty-body]
    """Return what is written in several ops and one op computes, whatever ``backends`` lists; the manifest names the hook."""


@_hook("Pass", registry="passes", noun="pass", of_every_plan=True)
def register_passes(host: Host) -> Iterable[Pass]:  # type: ignore[empty-body]
    """Return what changes plans while they are made, whatever ``backends`` lists; the manifest names the hook in ``hooks``."""


@_hook("Placer", registry="placers", own_first=True, noun="placer")
def register_placers(host: Host) -> Iterable[Placer]:  # type: ignore[empty-body]
    """Return what chooses the devices of nodes; ``SessionConfig(placer=...)`` takes one by its ``name``."""


@_hook("ResourceKind", registry="resource_kinds", noun="resource kind")
def register_resource_kinds(host: Host) -> Iterable[ResourceKind]:  # type: ignore[empty-body]
    """Return kinds of resources that outlive steps; the spec of an op that makes handles names one (``resource:``)."""


@_hook("Executor", registry="executors", own_first=True, noun="executor")
def register_executors(host: Host) -> Iterable[Executor]:  # type: ignore[empty-body]
    """Return engines that compile and run placed graphs; ``SessionConfig(executor=...)`` chooses one by its ``name``."""


@_hook("SessionFactory", registry="session_factories", noun="session factory", key="scheme")
def register_session_factories(host: Host) -> Iterable[SessionFactory]:  # type: ignore[empty-body]
    """Return what opens sessions elsewhere; ``Session("ray://...")`` chooses one by its ``scheme``."""


@_hook("Transport", registry="transports", noun="transport", key="scheme")
def register_transports(host: Host) -> Iterable[Transport]:  # type: ignore[empty-body]
    """Return what carries calls and tensors between tasks of several processes, for targets of its ``scheme``."""


@_hook("GraphFormat", registry="graph_formats", noun="graph format")
def register_graph_formats(host: Host) -> Iterable[GraphFormat]:  # type: ignore[empty-body]
    """Return forms of graphs that ``tf.import_graph_def``, ``graphdock import`` and ``Graph.as_graph_def`` read and write."""


@_hook("CheckpointFormat", registry="checkpoint_formats", noun="checkpoint format")
def register_checkpoint_formats(host: Host) -> Iterable[CheckpointFormat]:  # type: ignore[empty-body]
    """Return forms of checkpoints that are read besides graphdock's own."""
