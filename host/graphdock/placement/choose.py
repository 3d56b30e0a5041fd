"""Choosing a kernel: pin, then order of backends, then priority; a tie is an error. One Decision records it all.

What a kernel takes is said by its facts (op, device, dtypes, attributes, label), which a manifest holds too. Those that they let
through are asked by rank, the highest first: only then is the module of a kernel imported, and its ``check`` called. When one takes
the node, those of lower rank are not asked.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, TypeAlias

from graphdock.contracts.device import HOST_MEMORY
from graphdock.contracts.ir import PlanNode
from graphdock.contracts.kernel import Candidate, Decision, KernelDef
from graphdock.contracts.kernel_facts import check_against
from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.dtypes import DType
from graphdock.errors import ConfigError, KernelTieError, did_you_mean
from graphdock.plugin.host import Host
from graphdock.plugin.kernel_registry import RegisteredKernel

__all__ = ["Chooser", "Choice"]


@lazy_dataclass(frozen=True, slots=True)
class Choice:
    """A kernel and the record of why; ``kernel`` is None when no candidate fits, and the record says why not."""

    kernel: RegisteredKernel | None
    decision: Decision


#: Kernels of an op, each with the reason against it.
Found: TypeAlias = "Sequence[tuple[RegisteredKernel, str | None]]"


@lazy_dataclass(slots=True)
class _Known:
    """The kernels of a device type for nodes of one op that op, dtypes and attributes do not tell apart.

    Attributes:
      found: the kernels, with the reasons that their facts alone decide.
      ranks: places in ``found`` of those without a reason, the highest rank first; equal ones together.
      choices: all reasons, those of kernels that were asked too -> what is chosen.
      settled: what is chosen for all nodes of these that no kernel has refused; None where kernels are asked about each.
    """

    found: Found
    ranks: Sequence[Sequence[int]]
    choices: dict[tuple[str | None, ...], Choice] = field(default_factory=dict)
    settled: Choice | None = None

    def with_reasons(self, reasons: Sequence[str | None]) -> Found:
        """The kernels with other reasons."""
        return [(registered, reason) for (registered, _), reason in zip(self.found, reasons, strict=True)]


@lazy_dataclass(slots=True)
class _OfOp:
    """Facts of one op on one device type, as long as the op has these kernels.

    Attributes:
      types: the op's type variables. ``on_host``: it runs nowhere else.
      constrained: some kernel takes some values of an attribute only, so that dtypes do not decide.
      by_types: dtypes -> what nodes of these have in common.
    """

    registered: Sequence[RegisteredKernel]
    types: tuple[str, ...]
    on_host: bool
    constrained: bool
    by_types: dict[Any, _Known] = field(default_factory=dict)


class Chooser:
    """Chooses kernels for one session's configuration.

    Args:
      backends: names of plugins in the session's order.
      pins: ``"Op@device"`` -> ``"plugin.kernel"``.
      deterministic: only kernels that give the same bits on every run.
    """

    def __init__(
        self, host: Host, backends: Sequence[str], pins: Mapping[str, str], deterministic: bool = False
    ) -> None:
        self._host = host
        self._deterministic = deterministic
        self._refused: Mapping[PlanNode, Mapping[str, str]] = {}
        self._rank = {name: i for i, name in enumerate(backends)}
        self._pins = dict(pins)
        self._ops: dict[tuple[str, str], _OfOp] = {}
        self._held: dict[int, tuple[RegisteredKernel, KernelDef]] = {}  # by id: a row of a manifest has no hash
        for key in pins:
            op, at, device = key.partition("@")
            if not at or not device:
                raise ConfigError(f"kernels: {key!r} is not a pin", expected="a key such as 'MatMul@cuda'")
            if op not in host.ops:
                raise ConfigError(
                    f"kernels: the pin {key!r} is for {op!r}, and there is no op of that name",
                    hint=did_you_mean(op, host.ops.names()),
                )

    def without(self, refused: Mapping[PlanNode, Mapping[str, str]]) -> Chooser:
        """This chooser, for a plan in which kernels have refused nodes: node -> full name -> the reason."""
        other = copy.copy(self)
        other._refused = refused
        return other

    def choose(self, node: PlanNode, device_type: str) -> Choice:
        """The kernel for a node on a device type.

        Raises:
          KernelTieError: two kernels of equal rank. InvalidArgumentError: a kernel that may be chosen names what the op does not
            have. ConfigError: the pin names a kernel that is not there or does not fit. PluginError, ManifestError: the module of a
            kernel can't be imported, or is not what the manifest says.
        """
        known = self._known(node, device_type)
        pin = self._pins.get(f"{node.op}@{device_type}") if self._pins else None
        if pin is not None:
            return self._pinned(node, device_type, pin, known.found)
        if known.settled is not None and not self._refused:
            return known.settled
        reasons = self._asked(node, known)
        choice = known.choices.get(reasons)
        if choice is None:
            choice = known.choices[reasons] = self._chosen(node, device_type, known.with_reasons(reasons))
            first = known.ranks[0] if known.ranks and not self._refused else ()
            if first and all(self._held[id(known.found[i][0])][1].check is None for i in first):
                known.settled = choice
        return choice

    def _chosen(self, node: PlanNode, device_type: str, found: Found) -> Choice:
        fitting = [r for r, reason in found if reason is None]
        if not fitting:
            return Choice(None, self._decision("none", "none", f"no kernel on {device_type}", None, found, {}))
        best = min(self._order(r) for r in fitting)
        winners = [r for r in fitting if self._order(r) == best]
        if len(winners) > 1:
            first, second = winners[:2]
            raise KernelTieError(
                f"{first.full_name} (of {first.package}) and {second.full_name} (of {second.package}) tie for "
                f"{node.op} on {device_type}",
                op=node.name,
                site=node.site,
                hint=f'settle it under [session.kernels]: "{node.op}@{device_type}" = "{first.full_name}"',
            )
        winner = winners[0]
        rule, lost = self._rule(winner, fitting, node)
        return Choice(winner, self._decision(winner.full_name, rule, _WHY[rule], winner, found, lost))

    def pinned(self, node: PlanNode, device_type: str, name: str) -> Choice:
        """The kernel of a full name for a node on a device type. Raises ConfigError where it is not there, or does not fit."""
        return self._pinned(node, device_type, name, self._known(node, device_type).found)

    def fits(self, node: PlanNode, device_type: str) -> bool:
        """Return whether a kernel on a device type fits the node, whatever is pinned and whoever ties."""
        return None in self._asked(node, self._known(node, device_type))

    def passed_over(self, node: PlanNode, device_type: str, why: str) -> tuple[Candidate, ...]:
        """The kernels of a device type that the node does not run on; ``why`` is what keeps those from it that would fit."""
        known = self._known(node, device_type)
        found = known.with_reasons(self._asked(node, known, whole=True))
        return tuple([Candidate(r.full_name, r.facts.device, reason or why) for r, reason in found])

    def unlisted(self, node: PlanNode) -> list[tuple[str, str]]:
        """(plugin, device type) of installed plugins that are not in ``backends`` and have a kernel for the node's op and types.

        Manifests answer for plugins that are not loaded.
        """
        found: dict[tuple[str, str], None] = {}
        for r in self._host.kernels.for_op(node.op):
            if r.plugin not in self._rank and not r.facts.label and self._unfit(r, node) is None:
                found[r.plugin, r.facts.device] = None
        for state in self._host.plugins():
            if state.usable and state.name not in self._rank and "register_kernels" not in state.done:
                for row in state.kernels_of(node.op):
                    if _misfit(row.types, node) is None:
                        found[state.name, row.device] = None
        return list(found)

    def left_out(self, op: str) -> str | None:
        """Return which plugin of graphdock's would bring a kernel of an op, and why it is not here."""
        return self._host.who_brings("kernels", op)

    def _asked(self, node: PlanNode, known: _Known, whole: bool = False) -> tuple[str | None, ...]:
        """The reasons against the kernels, those of their ``check`` too, down to the rank at which one takes the node.

        Args:
          whole: down to the lowest.
        """
        reasons = [reason for _, reason in known.found]
        refused = self._refused.get(node)
        for rank in known.ranks:
            for i in rank:
                registered = known.found[i][0]
                reasons[i] = self._refusal(registered, node) or (refused.get(registered.full_name) if refused else None)
            if not whole and any(reasons[i] is None for i in rank):
                break
        return tuple(reasons)

    def _refusal(self, registered: RegisteredKernel, node: PlanNode) -> str | None:
        """Return why the kernel itself does not take the node; imports its module where that was not done yet."""
        held = self._held.get(id(registered))
        if held is None:
            held = registered, registered.kernel
            if held[1] is not registered.facts:
                check_against(held[1], node.opdef, registered.plugin)
            self._held[id(registered)] = held
        kernel = held[1]
        return None if kernel.check is None else kernel.check(node)

    def _known(self, node: PlanNode, device_type: str) -> _Known:
        """Return what is known of all nodes with this one's op and dtypes; of this one alone, where attributes play a part."""
        op, attrs = node.op, node.attrs
        mine = self._ops.get((op, device_type))
        # plugins that are loaded later may have kernels for the host's ops
        if mine is None or self._host.kernels.read(op) is not mine.registered or mine.on_host:
            registered = self._host.kernels.for_op(op)
            if mine is None or mine.registered is not registered:
                self._check_names(registered, node)
                types, on_host = tuple([t.name for t in node.opdef.types]), "host" in node.opdef.traits
                mine = _OfOp(registered, types, on_host, any(r.facts.attrs for r in registered))
                self._ops[op, device_type] = mine
        # of a DType the name, which hashes sooner
        key = tuple([t.name if type(t := attrs.get(name)) is DType else t for name in mine.types])
        known = None if mine.constrained else mine.by_types.get(key)
        if known is None:
            found = [(r, self._reason(r, node)) for r in mine.registered if r.facts.device in (device_type, "host")]
            ranks: dict[tuple[int, int], list[int]] = {}
            for i, (r, reason) in enumerate(found):
                if reason is None:
                    ranks.setdefault(self._order(r), []).append(i)
            known = _Known(found, [ranks[order] for order in sorted(ranks)])
            if not mine.constrained:
                mine.by_types[key] = known
        return known

    def _check_names(self, registered: Sequence[RegisteredKernel], node: PlanNode) -> None:
        """Hold what the kernels of an op say against the op, once: what stands in no backend of the session ends none."""
        for item in registered:
            if isinstance(item.facts, KernelDef) and self._may_serve(item, node):
                check_against(item.facts, node.opdef, item.plugin)

    def _may_serve(self, registered: RegisteredKernel, node: PlanNode) -> bool:
        own = registered.package == node.opdef.package or registered.plugin in ("user", "host")
        return own or registered.plugin in self._rank or self._serves_hosts(registered, node)

    def _serves_hosts(self, registered: RegisteredKernel, node: PlanNode) -> bool:
        """Return whether it is a kernel on the host, for an op that runs nowhere else, of a plugin without devices.

        ``backends`` orders devices, and has nothing to say of it.
        """
        on_host = "host" in node.opdef.traits and registered.kernel.device == HOST_MEMORY
        return on_host and not self._host.devices.of_plugin(registered.plugin)

    def _reason(self, registered: RegisteredKernel, node: PlanNode) -> str | None:
        if not self._may_serve(registered, node):
            return f"{registered.plugin} is not in backends"
        if registered.facts.label:
            return f"its label {registered.facts.label!r} asks for a pin"
        return self._mismatch(registered, node)

    def _mismatch(self, registered: RegisteredKernel, node: PlanNode) -> str | None:
        if self._deterministic and not registered.facts.deterministic:
            return "it may give other bits on another run, and the session is deterministic"
        return self._unfit(registered, node)

    @staticmethod
    def _unfit(registered: RegisteredKernel, node: PlanNode) -> str | None:
        misfit = _misfit(registered.facts.types, node)
        if misfit is not None:
            return misfit
        for name, values in registered.facts.attrs.items():
            if node.attrs.get(name) not in values:
                return f"{name} is {node.attrs.get(name)!r}; it takes {', '.join(map(repr, values))}"
        return None

    def _order(self, registered: RegisteredKernel) -> tuple[int, int]:
        return self._rank.get(registered.plugin, len(self._rank)), -registered.facts.priority

    def _rule(
        self, winner: RegisteredKernel, fitting: Sequence[RegisteredKernel], node: PlanNode
    ) -> tuple[str, dict[str, str]]:
        lost: dict[str, str] = {}
        rule = "only"
        for other in fitting:
            if other is winner:
                continue
            if self._order(other)[0] != self._order(winner)[0]:
                lost[other.full_name] = f"{other.plugin} stands later in backends"
                rule = "backends"
            else:
                lost[other.full_name] = f"priority {other.facts.priority} is below {winner.facts.priority}"
                rule = rule if rule == "backends" else "priority"
        if rule == "only" and winner.plugin not in self._rank:
            rule = "host op" if self._serves_hosts(winner, node) else "own package"
        return rule, lost

    def _pinned(self, node: PlanNode, device_type: str, pin: str, found: Found) -> Choice:
        for registered, _ in found:
            if registered.full_name != pin:
                continue
            reason = self._mismatch(registered, node) or self._refusal(registered, node)
            reason = reason or self._refused.get(node, {}).get(pin)
            if reason is not None:
                raise ConfigError(
                    f'kernels: the pin "{node.op}@{device_type}" = "{pin}" does not fit {node.name}: {reason}',
                    op=node.name,
                    site=node.site,
                )
            lost = {r.full_name: "another kernel is pinned" for r, why in found if why is None and r is not registered}
            return Choice(registered, self._decision(pin, "pin", _WHY["pin"], registered, found, lost))
        names = [r.full_name for r, _ in found]
        message = f'kernels: the pin "{node.op}@{device_type}" names {pin!r}, which is no kernel for it'
        raise ConfigError.unknown(message, pin, names)

    @staticmethod
    def _decision(
        name: str,
        rule: str,
        why: str,
        winner: RegisteredKernel | None,
        found: Found,
        lost: Mapping[str, str],
    ) -> Decision:
        candidates = [Candidate(winner.full_name, winner.facts.device)] if winner is not None else []
        for registered, reason in found:
            if registered is not winner:
                text = reason or lost.get(registered.full_name)
                candidates.append(Candidate(registered.full_name, registered.facts.device, text))
        return Decision(name, rule, why, tuple(candidates))


def _misfit(types: Mapping[str, Sequence[str]], node: PlanNode) -> str | None:
    """The first type of a node that is none of those that a kernel takes."""
    for name, allowed in types.items():
        bound = node.attrs.get(name)
        for dtype in bound if isinstance(bound, tuple) else (bound,):
            if isinstance(dtype, DType) and dtype.name not in allowed:
                return f"{name} is {dtype.name}; it takes {', '.join(allowed)}"
    return None


_WHY = {
    "only": "the only kernel that fits",
    "backends": "first in backends",
    "priority": "highest priority",
    "own package": "the op's own package brings it",
    "host op": "the op runs on the host only, and the plugin has no device",
    "pin": "pinned in the session's configuration",
}
