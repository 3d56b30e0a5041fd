"""Versions of the plugins that take part in a step: those of its tasks, and the session's, are to be the same.

graphdock's own plugins are of graphdock's version, which tasks compare when they meet a session. Of the others these take part: on
a task those with which it plans, namely those of its ``backends`` that have a device here or something for one, and those that
bring passes, patterns or the placer; of the session those that declare ops of the step's graph, and the one that carries messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphdock.contracts import errors
from graphdock.graph.operation import Operation
from graphdock.plugin.host import Host
from graphdock.session.session import Session

__all__ = ["Versions", "carrying", "check_versions", "declaring", "installed", "planning"]

#: Plugin -> version.
Versions = Mapping[str, str]


def installed(host: Host) -> dict[str, str]:
    """Version of each plugin that may be used, but for graphdock's own."""
    return {s.name: s.found.version for s in host.plugins() if s.usable and not s.found.is_own}


def planning(session: Session) -> list[str]:
    """Names of the plugins with which a session plans."""
    setting = session._planner.setting
    host, kinds = setting.host, {device.type for device in setting.devices}
    backends = [host.backend(name) for name in setting.config.backends]
    found = {b.name for b in backends if kinds.intersection((*b.device_types, *b.kernel_devices))}
    found |= {made.plugin for made in setting.compilers if made.compiler.device_type in kinds}
    found |= {row.plugin for row in setting.passes}
    found |= host.load_patterns().plugins(setting.config.backends)
    if setting.placer is not None:
        found.add(setting.placer[1])
    return sorted(found)


def declaring(host: Host, operations: Iterable[Operation]) -> dict[str, str]:
    """Version of each plugin of a session that declares one of these operations."""
    others = [s for s in host.plugins() if s.usable and not s.found.is_own]
    if not others:
        return {}
    packages, waiting = set[str](), list(operations)
    while waiting:
        op = waiting.pop()
        packages.add(op.op_def.package)
        waiting += [inner for body in op.bodies for inner in body.get_operations()]
    return {s.name: s.found.version for s in others if s.found.package in packages}


def carrying(host: Host, scheme: str) -> dict[str, str]:
    """Version of the plugin that carries a session's messages, where one does."""
    carrier = host.transports.entry(scheme)
    return {n: v for n, v in installed(host).items() if carrier is not None and carrier[1] == n}


def check_versions(parts: Sequence[tuple[str, Versions, Mapping[str, Any]]], carrier: Versions) -> None:
    """Return at once where all that takes part in a step is of one version each.

    Args:
      parts: of each part its task, what of the session's declares its ops, and what the task said when the session was opened
        there: ``plugins``, which are installed, and ``plans``, with which of them it plans.
      carrier: of the session's. Another plugin may carry the messages at a task's end.

    Raises:
      FailedPreconditionError: a plugin is of two versions, with both tasks and both versions; or a task has none.
    """
    first = {name: ("the session", version) for name, version in carrier.items()}
    for task, mine, said in parts:
        plugins: Versions = said["plugins"]
        for name, version in mine.items():
            _same(first, name, "the session", version)
            if name not in plugins:
                raise errors.FailedPreconditionError(
                    f"{task} has no plugin {name!r}, which its part of the step needs",
                    expected=f"{name} {version}, as for the session",
                    hint="install it there; `graphdock doctor` says why one that is installed is not used",
                )
        for name in sorted({*mine, *carrier, *said["plans"]}.intersection(plugins)):
            _same(first, name, task, plugins[name])


def _same(first: dict[str, tuple[str, str]], name: str, who: str, version: str) -> None:
    other, found = first.setdefault(name, (who, version))
    if found != version:
        raise errors.FailedPreconditionError(
            f"the plugin {name!r} is of different versions: {found} for {other}, {version} for {who}",
            expected=found,
            got=version,
            hint="install one version for all tasks of a cluster",
        )
