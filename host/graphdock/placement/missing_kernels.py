"""Nodes without a kernel: reported at once and grouped by op, with hints of which each is enough by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphdock.contracts.ir import PlanNode
from graphdock.contracts.kernel import Candidate, Decision
from graphdock.device_name import DeviceSpec
from graphdock.errors import KernelNotFoundError
from graphdock.placement.choose import Chooser

__all__ = ["MissingKernel", "missing_kernel", "not_found", "what_to_change"]

#: Most nodes of one op that a message names.
_NAMED = 5


@dataclass(frozen=True, slots=True)
class MissingKernel:
    """A node that no kernel fits.

    Attributes:
      what: op, types and where it was looked for: ``MatMul(T=float32) on any device of toy``.
      candidates: one line per kernel that was considered, with the reason why it lost.
      hint: what to do.
    """

    node: PlanNode
    what: str
    candidates: tuple[str, ...]
    hint: str


def missing_kernel(
    chooser: Chooser,
    work: Sequence[PlanNode],
    missing: Sequence[tuple[PlanNode, Decision]],
    request: DeviceSpec | None,
    fallback: str,
    devices: Sequence[DeviceSpec],
    tried: Mapping[PlanNode, str],
) -> MissingKernel:
    """The first of ``missing``, nodes that no kernel fits on some device, of ``work``, which must share one.

    Args:
      request, fallback, devices: as of :func:`what_to_change`. ``tried``: node -> why its decomposition was of no use.
    """
    node = missing[0][0]
    candidates: dict[str, Candidate] = {}
    for _, decision in missing:
        for c in decision.candidates:
            candidates.setdefault(f"{c.name} ({c.device})", c)
    lines = [f"{name}: {c.reason or 'fits, but fallback is forbidden'}" for name, c in candidates.items()]
    if node in tried:
        lines.append(f"its decomposition: {tried[node]}")
    types: Mapping[str, str] = {k: v.name for k, v in node.attrs.items() if hasattr(v, "as_numpy_dtype")}
    shown = ", ".join(f"{k}={v}" for k, v in types.items())
    where = (
        f"device {request.short()}"
        if request is not None
        else "any device of " + ", ".join(dict.fromkeys(d.type or "?" for d in devices))
    )
    hint = what_to_change(chooser, work, node, request, fallback, devices)
    return MissingKernel(node, f"{node.op}({shown}) on {where}", tuple(lines), hint)


def not_found(missing: Sequence[MissingKernel]) -> KernelNotFoundError:
    """The error for all of them; ``op`` and ``site`` are the first one's."""
    first = missing[0]
    if len(missing) == 1:
        message = f"no kernel for {first.what}; candidates:" + _listed(first.candidates, 4)
    else:
        groups: dict[str, list[MissingKernel]] = {}
        for each in missing:
            groups.setdefault(each.what, []).append(each)
        message = f"no kernel for {len(missing)} nodes:" + "".join(
            _group(what, found) for what, found in groups.items()
        )
    hints = dict.fromkeys(each.hint for each in missing)
    return KernelNotFoundError(message, op=first.node.name, site=first.node.site, hint="; ".join(hints))


def _group(what: str, missing: Sequence[MissingKernel]) -> str:
    names = ", ".join(each.node.name for each in missing[:_NAMED])
    more = f", and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
    candidates = tuple(dict.fromkeys(line for each in missing for line in each.candidates))
    return f"\n  {what}: {names}{more}; candidates:" + _listed(candidates, 4)


def _listed(lines: Sequence[str], indent: int) -> str:
    return "".join(f"\n{' ' * indent}{line}" for line in lines) or " none"


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
