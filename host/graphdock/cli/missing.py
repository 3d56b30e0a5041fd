"""``graphdock kernels --missing BACKEND``: the ops that a backend has no kernel for, why, and what runs in their place."""

from __future__ import annotations

from typing import Any

from graphdock.plugin.host import Host

__all__ = ["missing"]

#: What stands where the manifest says nothing.
UNSTATED = "not stated"


def missing(host: Host, backend: str) -> dict[str, Any]:
    """What a backend's devices lack, as ``--json`` prints it.

    Raises:
      UnknownBackendError, PluginError: there is no such backend, or it can't be used.
    """
    loaded = host.backend(backend)
    devices = set(loaded.kernel_devices) | {"host"}
    state = next(s for s in host.plugins() if s.name == backend)
    stated = {op: lack.reason for lack in (state.manifest.lacks if state.manifest else ()) for op in lack.ops}
    rows, covered = [], 0
    for opdef in map(host.ops.get, sorted(host.ops.names())):
        if not opdef.verb.kernel:
            continue
        here = [r for r in host.kernels.for_op(opdef.name) if r.plugin == backend and r.kernel.device in devices]
        if here:
            covered += 1
            continue
        rows.append(
            {
                "op": opdef.name,
                "package": opdef.package,
                "reason": stated.get(opdef.name, UNSTATED),
                "instead": "its decomposition" if opdef.decomposition else "a fallback, by the session's policy",
            }
        )
    return {"backend": backend, "kernels": covered, "ops": covered + len(rows), "missing": rows}
