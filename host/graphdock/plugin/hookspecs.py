"""Every hook of the platform, on one page.

A plugin is a module named by an entry point of the group ``graphdock``. It implements any of these with
``@graphdock.contracts.hookimpl``; each may take ``host`` or no argument, and returns an iterable. Hooks run once,
when a session first needs the plugin, never at import; one that raises takes back everything its plugin registered.
"""

# ruff: noqa: B903
from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pluggy

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
        RegionCompiler,
        ResourceKind,
        SessionFactory,
    )
    from graphdock.plugin.host import Host

hookspec = pluggy.HookspecMarker("graphdock")


@hookspec
def register_devices(host: Host) -> Iterable[DeviceFactory]:  # type: ignore[empty-body]
    """Return the factories of the device types this plugin owns."""


@hookspec
def register_ops(host: Host) -> Iterable[OpLibrary]:  # type: ignore[empty-body]
    """Return the op libraries this plugin declares, as opgen generated them."""


@hookspec
def register_kernels(host: Host) -> Iterable[KernelDef | KernelModule]:  # type: ignore[empty-body]
    """Return kernels, for any op and any device type, or modules of them, which are imported when a plan chooses one."""


@hookspec
def register_region_compilers(host: Host) -> Iterable[RegionCompiler]:  # type: ignore[empty-body]
    """Return what makes one kernel of connected nodes of a device type, for sessions that list the plugin in ``backends``."""


@hookspec
def register_patterns(host: Host) -> Iterable[Pattern | PatternLibrary]:  # type: ignore[empty-body]
    """Return what people write in several ops and one declared op computes; it is looked for whatever ``backends`` lists."""


@hookspec
def register_passes(host: Host) -> Iterable[Pass]:  # type: ignore[empty-body]
    """Return what changes plans while they are made, whatever ``backends`` lists; the manifest names the hook in ``hooks``."""


@hookspec
def register_resource_kinds(host: Host) -> Iterable[ResourceKind]:  # type: ignore[empty-body]
    """Return kinds of resources that outlive steps; the spec of an op that makes handles names one (``resource:``)."""


@hookspec
def register_executors(host: Host) -> Iterable[Executor]:  # type: ignore[empty-body]
    """Return engines that compile and run placed graphs; ``SessionConfig(executor=...)`` chooses one by its ``name``."""


@hookspec
def register_session_factories(host: Host) -> Iterable[SessionFactory]:  # type: ignore[empty-body]
    """Return what opens sessions elsewhere; ``Session("ray://...")`` chooses one by its ``scheme``."""


@hookspec
def register_graph_formats(host: Host) -> Iterable[GraphFormat]:  # type: ignore[empty-body]
    """Return forms of graphs that ``tf.import_graph_def``, ``graphdock import`` and ``Graph.as_graph_def`` read and write."""


@hookspec
def register_checkpoint_formats(host: Host) -> Iterable[CheckpointFormat]:  # type: ignore[empty-body]
    """Return forms of checkpoints that are read besides graphdock's own."""
