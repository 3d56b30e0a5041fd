"""Checks of whether what a loaded plugin registered fits together, and of what only a session would import."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

from graphdock.contracts import Device, DeviceFactory, Executor, Program, Queue, SessionFactory
from graphdock.contracts.returned import unfinished
from graphdock.errors import ManifestError, PluginError
from graphdock.plugin import lint
from graphdock.plugin.endpoints import read_table
from graphdock.plugin.hookspecs import HOOKS
from graphdock.plugin.host import Host
from graphdock.plugin.state import PluginState, first_of

__all__ = ["check_modules", "check_parts", "names_brought"]


def check_parts(host: Host, state: PluginState) -> None:
    """See whether what a loaded plugin registered fits together and is what its package says; the first misfits are recorded."""
    if not state.loaded or state.manifest is None:
        return
    declared = host.ops.declared_by(state.found.package)
    mine = [k.kernel for k in host.kernels.all() if k.plugin == state.name]
    known = {*host.ops.declared(), *(name for s in host.plugins() for name in s.op_names)}
    stated = [s.manifest for s in host.plugins() if s.manifest is not None]
    devices = {*host.devices.names(), *(d.type for m in stated for d in m.devices)}
    namespaces = {state.name, *(name.rpartition(".")[0] for name in declared)}
    found = [
        *(() if state.found.in_memory else lint.spec_drift(Path(state.manifest.path).parent, declared)),
        *(() if state.found.in_memory else lint.stale_libraries(Path(state.manifest.path).parent)),
        *lint.unknown_ops(mine, known, namespaces),
        *lint.unknown_devices(mine, devices, [c.compiler for c in host.region_compilers.of_plugin(state.name)]),
        *lint.unknown_arguments(mine, lambda op: host.ops.get(op) if op in host.ops else None),
        *lint.ambiguous_kernels(mine),
        *unfinished(state.found.package, [Device, Executor, Program, Queue, DeviceFactory, SessionFactory]),
        *(() if state.found.is_own else _unpublished(host, state)),
    ]
    if found:
        state.fault("inconsistent", first_of(found), whole="; ".join(found))
    elif state.stage == "registered":
        state.cause = "; ".join(lint.absent_ops(mine, known, devices)) or None


def _unpublished(host: Host, state: PluginState) -> Iterator[str]:
    """Names below ``tf`` that a plugin publishes and nobody can use."""
    try:
        table = read_table(state)
    except PluginError as error:
        yield error.text
        return
    facade = importlib.import_module("graphdock")
    for name, target in table.items():
        try:
            if not _is_there(target):
                yield f"tf.{name}: there is no {target}"
            elif facade._is_hosts(name):
                yield f"tf.{name} is the host's own"
            elif host.endpoints.target(name) != target:
                yield f"tf.{name} is published by a plugin of graphdock's, which comes first"
        except PluginError as error:
            yield f"tf.{name}: {error.message}" if error.__cause__ else error.message


def _is_there(target: str) -> bool:
    module, _, attribute = target.partition(":")
    try:
        return hasattr(importlib.import_module(module), attribute)
    except Exception as error:  # whatever the plugin's module raises
        raise PluginError(f"{module} can't be imported: {type(error).__name__}: {error}") from error


def check_modules(host: Host, state: PluginState) -> None:
    """Import the modules of a plugin's kernels that a session imports when it needs one; the first fault is recorded."""
    if state.loaded:
        _ = state.kernel_rows  # one that can't be read stops it
    for module in host.kernels.modules(state.name):
        if not state.loaded:
            return
        try:
            module.load()
        except ManifestError as error:
            state.stop("manifest drift", error.message, error.hint, error)
        except PluginError as error:
            state.fault("import failed", error.message, error)


def names_brought(host: Host, state: PluginState) -> list[str]:
    """Return what a loaded plugin registered of what is asked for by a name alone, such as ``op 'shop.Legs'``."""
    ops = [f"op {name!r}" for name in host.ops.declared_by(state.found.package)]
    named = [hook for hook in HOOKS.values() if hook.noun is not None]
    return ops + [
        f"{hook.noun} {name!r}" for hook in named for name in getattr(host, hook.registry).names_of(state.name)
    ]
