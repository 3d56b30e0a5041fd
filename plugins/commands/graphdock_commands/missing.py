"""``graphdock kernels --missing BACKEND``: the ops that a backend has no kernel for, why, and what runs in their place."""

from __future__ import annotations

from typing import Any

from graphdock.contracts import HOST_MEMORY
from graphdock.plugin.host import Host

#: What stands where the manifest says nothing.
UNSTATED = "not stated"
#: What stands there of an op that the backend's region compiler takes.
IN_REGIONS = "it is a part of regions: one kernel with its neighbours"


def missing(host: Host, backend: str) -> dict[str, Any]:
    """Return what a backend's devices lack, as ``--json`` prints it.

    Raises:
      UnknownBackendError, PluginError: there is no such backend, or it can't be used.
    """
    loaded = host.backend(backend)
    devices = set(loaded.kernel_devices) | {"host"}
    manifest = host.state(backend).manifest
    stated = {op: row.reason for row in (manifest.unsupported if manifest else ()) for op in row.ops}
    fuses = bool(host.region_compilers.of_plugin(backend))
    others = _others(host, backend, set(loaded.kernel_devices))
    rows, covered = [], 0
    for opdef in [opdef for opdef in map(host.ops.get, host.ops.names()) if opdef.verb.kernel]:
        kernels = [(r.plugin, r.facts.device) for r in host.kernels.for_op(opdef.name)]
        if any(device == HOST_MEMORY or plugin == backend and device in devices for plugin, device in kernels):
            covered += 1
            continue
        instead = "its decomposition" if opdef.decomposition else "a fallback, by the session's policy"
        rows.append(
            {
                "op": opdef.name,
                "package": opdef.package,
                "reason": stated.get(opdef.name, IN_REGIONS if fuses and (opdef.scalar or opdef.region) else UNSTATED),
                "instead": others.get(opdef.name, instead),
            }
        )
    return {"backend": backend, "kernels": covered, "ops": covered + len(rows), "missing": rows}


def _others(host: Host, backend: str, devices: set[str]) -> dict[str, str]:
    """Op -> who else has a kernel of it for the same devices, as the manifests of the installed plugins say."""
    found: dict[str, str] = {}
    for state in host.plugins():
        for row in state.kernel_rows if state.name != backend else ():
            if row.device in devices:
                found.setdefault(row.op, f"the kernel of {state.name}")
    return found
