"""What to change so that a node gets a kernel: each hint names a change that is enough by itself."""

from __future__ import annotations

from collections.abc import Sequence

from graphdock.contracts.ir import PlanNode
from graphdock.device_name import DeviceSpec
from graphdock.placement.choose import Chooser

__all__ = ["what_to_change"]

_ALLOW = 'loosen the device scope, or set fallback = "allow"'
_WARN = 'set fallback = "warn" under [session]'


def what_to_change(
    chooser: Chooser,
    nodes: Sequence[PlanNode],
    lacking: PlanNode,
    request: DeviceSpec | None,
    fallback: str,
    devices: Sequence[DeviceSpec],
) -> str:
    """The hint for nodes that must share a device, and of which ``lacking`` has no kernel where it may run.

    Args:
      request: what their scopes ask for. ``fallback``: their policy. ``devices``: the session's.
    """
    types = list(dict.fromkeys(d.type for d in devices if d.type is not None))
    held = None
    if request is not None and fallback != "allow":
        held = _ALLOW
    elif request is None and fallback == "forbid":
        held = _WARN
    if any(all(chooser.fits(n, t) for n in nodes) for t in types):
        return held or f"take {lacking.name} out of its colocation"
    if len(nodes) > 1 and any(chooser.fits(lacking, t) for t in types):
        names = ", ".join(n.name for n in nodes if n is not lacking)
        return f"no device has kernels for all that share one: take {lacking.name} out of its colocation with {names}"
    unlisted = chooser.unlisted(lacking)
    wanted = types[0] if request is None else request.type
    near = [plugin for plugin, device in unlisted if device == wanted or device == "host"]
    if near:
        return f"add {near[0]!r} to backends: it has a kernel for {lacking.op} on {wanted}"
    if unlisted:
        plugin, device = unlisted[0]
        return f"add {plugin!r} to backends: it has a kernel for {lacking.op} on {device}" + (
            f"; and {held}" if held else ""
        )
    left_out = chooser.left_out(lacking.op)
    if left_out is not None:
        return f"a kernel for {lacking.op}: {left_out}"
    return f"no installed plugin has a kernel for {lacking.op} of these types: write one, or install a backend that has"
