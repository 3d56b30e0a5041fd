"""Placing a plan: a device for every node, honouring constraints, colocation and the order of backends.

Nodes that the user colocated, and those that touch one resource, form a group (union-find). A group goes to the first device of
the session's order that satisfies every request in it and has a kernel for each of its nodes.

Where a variable lives is settled before, whatever the plan does with it: where it is, once it exists; else on the first device that
satisfies the request of its handle. A kernel that takes its handle runs there too, or falls back alone, to a copy of the variable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, TypeAlias

from graphdock.contracts.ir import PlanGraph, PlanNode, Value, arg_of
from graphdock.contracts.kernel import Decision
from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.contracts.passes import RegionNote
from graphdock.contracts.resource import VARIABLE
from graphdock.device_name import DeviceSpec
from graphdock.errors import InvalidArgumentError
from graphdock.placement.choose import Chooser
from graphdock.plugin.kernel_registry import RegisteredKernel

if TYPE_CHECKING:
    from graphdock.placement.missing_kernels import MissingKernel
    from graphdock.placement.problem import Simulation

__all__ = ["Decomposed", "Movable", "Placement", "place", "warn_of_fallbacks"]

#: Nodes that share a device and take no variable, and the devices that they may be on, as far as their scopes say.
Movable: TypeAlias = "tuple[Sequence[PlanNode], Sequence[DeviceSpec]]"

_HOST = Decision("host", "host", "the host runs it itself")


@lazy_dataclass(frozen=True, slots=True)
class Decomposed:
    """A node that became several, because the device type that it prefers has no kernel for it but for them.

    Attributes:
      node: the user's operation. ``op``: its type. ``parts``: op types of what it became. ``why``: why it has no kernel there.
    """

    node: str
    op: str
    device_type: str
    parts: tuple[str, ...]
    why: str


@lazy_dataclass
class Placement:
    """Device and kernel of every node; filled by :func:`place`.

    Attributes:
      kernels: node -> kernel; interpreted nodes are absent.
      fallbacks: nodes that run on another device type than they prefer, with the reason.
      notes: what passes said of nodes that they looked at together.
      decomposed: nodes that became several. ``tried``: node -> why its decomposition was of no use.
      missing: nodes without a kernel; none in a plan that is made.
      movable: what a placer may place otherwise. ``simulation``: what became of that; None where the host's rules decide.
      locked: of a plan that is explained, what a lock file says of each node. ``lock_notes``: what no longer holds of one.
    """

    kernels: dict[PlanNode, RegisteredKernel] = field(default_factory=dict)
    fallbacks: list[tuple[PlanNode, str]] = field(default_factory=list)
    notes: list[RegionNote] = field(default_factory=list)
    decomposed: list[Decomposed] = field(default_factory=list)
    tried: Mapping[PlanNode, str] = field(default_factory=dict)
    missing: list[MissingKernel] = field(default_factory=list)
    movable: list[Movable] = field(default_factory=list)
    simulation: Simulation | None = None
    locked: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    lock_notes: Sequence[str] = ()


class _Groups:
    def __init__(self) -> None:
        self._parent: dict[PlanNode, PlanNode] = {}

    def find(self, node: PlanNode) -> PlanNode:
        parent = self._parent
        root = node
        while (up := parent.get(root)) is not None:
            root = up
        while node is not root:
            parent[node], node = root, parent[node]
        return root

    def union(self, a: PlanNode, b: PlanNode) -> None:
        ra, rb = self.find(a), self.find(b)
        if ra is not rb:
            self._parent[rb] = ra


def place(
    graph: PlanGraph,
    handles: Mapping[Value, Value],
    devices: Sequence[DeviceSpec],
    chooser: Chooser,
    fallback: Callable[[str], str],
    device_type: Callable[[str], str],
    lives: Callable[[PlanNode], Sequence[DeviceSpec]],
    tried: Mapping[PlanNode, str],
    thorough: bool,
    choose: Callable[[Placement], None] | None = None,
) -> Placement:
    """Set ``device`` and ``decision`` of every node of the graph and its bodies.

    Args:
      handles: handle anywhere in the graph -> the output of the node that makes it.
      devices: the session's devices in order of preference, whole names.
      fallback: op type -> ``forbid``, ``warn`` or ``allow`` (DESIGN section 3).
      device_type: what a scope calls a device type -> its own name (aliases).
      lives: the node of a variable's handle -> the devices in whose memory the variable is; none before it exists.
      tried: node -> why its decomposition was of no use, for messages.
      choose: puts what is movable elsewhere, where the host's rules do not decide.
      thorough: decisions name the kernels on all other device types too, and why they lost.

    Raises:
      InvalidArgumentError: no such device, or colocated nodes that ask for different ones.
      KernelNotFoundError: nodes for which no device that they may run on has a kernel; lists all of them by op, with each
        candidate and why it lost.
    """
    nodes = [n for level in graph.all_graphs() for n in level.nodes]
    known = {d.type for d in devices}
    for node in nodes:
        if node.requested is not None and node.requested.type not in known and node.requested.type is not None:
            node.requested = replace(node.requested, type=device_type(node.requested.type))
    placer = _Placer(handles, devices, chooser, fallback, lives, Placement(tried=tried))
    placer.run(nodes)
    if placer.out.missing:
        from graphdock.placement.missing_kernels import not_found

        raise not_found(placer.out.missing)
    if choose is not None:
        placer.note_movable(nodes)
        choose(placer.out)
    if thorough:
        placer.add_other_devices()
    return placer.out


def warn_of_fallbacks(placement: Placement, fallback: Callable[[str], str]) -> None:
    """One warning for all nodes of a plan that run on another device type than they prefer, where the policy is ``warn``."""
    loud = [(n, why) for n, why in placement.fallbacks if fallback(n.op) == "warn"]
    if loud:
        import logging  # few sessions say anything

        lines = "; ".join(f"{n.name} ({n.op}) on {n.device.short() if n.device else '?'}: {why}" for n, why in loud)
        nodes_fall = "node falls" if len(loud) == 1 else "nodes fall"
        logging.getLogger("graphdock").warning("%d %s back to another device: %s", len(loud), nodes_fall, lines)


def _is_variable(node: PlanNode) -> bool:
    """Return whether a node makes the handle of a variable."""
    return node.verb == "handle" and node.opdef.resource == VARIABLE.name


def _groups(
    nodes: Sequence[PlanNode], handles: Mapping[Value, Value]
) -> tuple[dict[PlanNode, list[PlanNode]], set[PlanNode]]:
    """Node that shares a device with others -> all that share it, in order; and the nodes that take handles.

    A variable's handle has a group at least of its own.
    """
    union = _Groups()
    by_name: dict[str, PlanNode] = {}
    if any(["_colocate" in n.attrs for n in nodes]):
        by_name = {origin: n for n in nodes for origin in n.origins}
    special: dict[PlanNode, None] = {}
    takers: set[PlanNode] = set()
    for node in nodes:
        for value in node.outputs if node.verb == "handle" else node.inputs:
            if value.dtype.kind == "R" and not node.bodies:
                owner = handles[value].node
                assert owner is not None
                if owner is not node:
                    takers.add(node)
                    if node.verb == "kernel" and _is_variable(owner):
                        continue  # it may run elsewhere, on a copy
                    union.union(owner, node)
                    special[owner] = None
                special[node] = None
        if by_name and "_colocate" in node.attrs:
            for name in node.attrs["_colocate"]:
                target = by_name.get(name)
                if target is not None:
                    union.union(target, node)
                    special[target] = special[node] = None
    members: dict[PlanNode, list[PlanNode]] = {}  # root -> its group
    result: dict[PlanNode, list[PlanNode]] = {}
    for node in nodes if special else ():
        if node in special:
            root = union.find(node)
            group = members.get(root)
            if group is None:
                group = members[root] = []
            group.append(node)
            result[node] = group
    return result, takers


def _request(members: Sequence[PlanNode]) -> tuple[DeviceSpec | None, PlanNode | None]:
    merged: DeviceSpec | None = None
    by: PlanNode | None = None
    for node in members:
        if node.requested is None:
            continue
        if merged is None:
            merged, by = node.requested, node
            continue
        for name in ("job", "task", "type", "index"):
            a, b = getattr(merged, name), getattr(node.requested, name)
            if a is not None and b is not None and a != b:
                assert by is not None
                raise InvalidArgumentError(
                    f"{by.name} and {node.name} share a device (a variable, or colocate_with), but ask for "
                    f"{merged.short()} and {node.requested.short()}",
                    op=node.name,
                    site=node.site,
                )
        merged = merged.merge(node.requested)
    return merged, by


@lazy_dataclass(frozen=True, slots=True)
class _Allowed:
    """The devices that nodes may run on, in order, and what their scopes ask for; ``absent``: the session has no such device."""

    of: Sequence[DeviceSpec]
    request: DeviceSpec | None
    absent: bool = False


class _Placer:
    """Places the nodes of one plan; arguments are those of :func:`place`. ``out`` is filled in."""

    def __init__(
        self,
        handles: Mapping[Value, Value],
        devices: Sequence[DeviceSpec],
        chooser: Chooser,
        fallback: Callable[[str], str],
        lives: Callable[[PlanNode], Sequence[DeviceSpec]],
        out: Placement,
    ) -> None:
        self._handles = handles
        self._devices = devices
        self._chooser = chooser
        self._fallback = fallback
        self._lives = lives
        first: dict[str | None, DeviceSpec] = {}
        for device in devices:
            first.setdefault(device.type, device)
        self._first_of_each_type = list(first.values())
        self._anywhere = _Allowed(self._first_of_each_type, None)
        self._takers: set[PlanNode] = set()
        self.out = out

    def run(self, nodes: Sequence[PlanNode]) -> None:
        groups, self._takers = _groups(nodes, self._handles)
        anchors: dict[PlanNode, PlanNode | None] = {}  # first of a group -> a variable that is in it
        for node, members in groups.items():
            if node is members[0]:
                anchors[node] = next((n for n in members if _is_variable(n)), None)
                if anchors[node] is not None:
                    self._settle_variables(members)
        first = self._devices[0]
        for node in nodes:
            if node not in groups:
                taken = self._variables_of(node) if node in self._takers else None
                if taken:
                    self._near(node, taken)
                elif node.requested is not None or not self._alone(node, first):
                    self._group([node], self._allowed([node]))
            elif node in anchors:
                members, anchor = groups[node], anchors[node]
                if anchor is None:
                    self._group(members, self._allowed(members))
                    continue
                for member in members:
                    if member.device is None or member.verb != "handle":
                        self._near(member, [*self._variables_of(member), anchor])

    def note_movable(self, nodes: Sequence[PlanNode]) -> None:
        """Note the groups whose devices the rules chose freely, with all devices of the session that their scopes leave them."""
        groups, _ = _groups(nodes, self._handles)
        for node in nodes:
            members = groups.get(node, [node])
            if members[0] is not node or any(n.verb in ("handle", "move") or n.opdef.verb.bodies for n in members):
                continue
            if any(v.dtype.name == "resource" for n in members for v in (*n.inputs, *n.outputs)):
                continue
            if not any(n in self.out.kernels for n in members):
                continue
            request, _ = _request(members)
            home = node.device
            assert home is not None
            allowed = [d for d in self._devices if request is None or request.matches(d)]
            if any(self._fallback(n.op) == "forbid" for n in members):
                allowed = [d for d in allowed if d.type == home.type]
            if len(allowed) > 1:
                self.out.movable.append((members, allowed))

    def add_other_devices(self) -> None:
        """Say in each decision what kept the node from the device types that it does not run on."""
        types = list(dict.fromkeys(d.type for d in self._devices if d.type is not None))
        for node in self.out.kernels:
            assert node.device is not None and node.decision is not None
            own, asked = node.device.type, node.requested
            if own is None or (decision := node.decision).rule == "fallback":
                continue  # which says it
            known = {(c.name, c.device) for c in decision.candidates}
            for other in types:
                if other == own:
                    continue
                why = f"{other} comes after {own} in the order of devices"
                if types.index(other) < types.index(own):
                    why = f"the node stays on {own}, with what it shares a device with"
                if asked is not None and asked.type is not None:
                    why = f"the device scope asks for {asked.short()}"
                more = [c for c in self._chooser.passed_over(node, other, why) if (c.name, c.device) not in known]
                if decision.rule == "only" and any(c.reason == why for c in more):
                    decision = replace(decision, why=f"the only kernel that fits on {own}")
                decision = replace(decision, candidates=(*decision.candidates, *more))
            node.decision = decision

    def _variables_of(self, node: PlanNode) -> list[PlanNode]:
        """The nodes of the variables' handles that a node takes, those that it writes first."""
        handles = self._handles
        if node.bodies or node.verb == "alias" or node not in self._takers:
            return []
        writes: list[PlanNode] = []
        reads: list[PlanNode] = []
        for value, arg in zip(node.inputs, arg_of(node), strict=True):
            owner = handles[value].node if value in handles else None
            if owner is not None and _is_variable(owner):
                (writes if arg.mutates else reads).append(owner)
        return writes + reads

    def _settle_variables(self, members: Sequence[PlanNode]) -> None:
        """Settle where the variables of a group live: each by its own request, for others of the group are not in every plan."""
        same: dict[PlanNode, list[PlanNode]] = {}
        for node in members:
            owner = self._handles[node.outputs[0]].node if _is_variable(node) else None
            if owner is not None:
                same.setdefault(owner, []).append(node)
        _request([n for made in same.values() for n in made])
        for owner, made in same.items():
            allowed, lives = self._allowed(made).of, self._lives(owner)
            home = next((d for d in lives if d in allowed), allowed[0]) if lives else allowed[0]
            for node in made:
                node.device, node.decision = home, _HOST

    def _near(self, node: PlanNode, stays: Sequence[PlanNode]) -> None:
        """Place a node that touches variables (``stays``), or is colocated with one, where that lives, or else by itself."""
        near = node.device or stays[0].device
        assert near is not None
        if not node.opdef.verb.kernel:
            node.device, node.decision = near, _HOST
            return
        _request([*stays, node])
        if node.requested is None:
            if self._alone(node, near):
                return
            allowed = _Allowed([near, *(d for d in self._first_of_each_type if d.type != near.type)], None)
        else:
            allowed = self._allowed([node])
            if near in allowed.of:
                allowed = replace(allowed, of=[near])
        self._group([node], allowed)

    def _allowed(self, members: Sequence[PlanNode]) -> _Allowed:
        request, by = _request(members)
        if request is None:
            return self._anywhere
        allowed = [d for d in self._devices if request.matches(d)]
        if not allowed and all(self._fallback(n.op) == "allow" for n in members):
            return _Allowed(self._first_of_each_type, request, absent=True)
        if not allowed:
            assert by is not None
            raise InvalidArgumentError(
                f"{by.name} asks for the device {request.short()}, which this session does not have",
                op=by.name,
                site=by.site,
                expected="one of " + ", ".join(d.short() for d in self._devices),
                hint=f'write tf.device("/{self._devices[0].short()}"), or set device_count or backends in the session\'s '
                'configuration, or fallback = "allow"',
            )
        return _Allowed(allowed, request)

    def _alone(self, node: PlanNode, device: DeviceSpec) -> bool:
        """Place a node on the device that it prefers, as its scopes leave it free to; False where that has no kernel for it."""
        assert device.type is not None
        decision = _HOST
        if node.verb == "kernel":
            choice = self._chooser.choose(node, device.type)
            if choice.kernel is None:
                return False
            self.out.kernels[node], decision = choice.kernel, choice.decision
        node.device, node.decision = device, decision
        return True

    def _group(self, members: Sequence[PlanNode], allowed: _Allowed) -> None:
        request = allowed.request
        work = [n for n in members if n.opdef.verb.kernel]
        policies = {self._fallback(n.op) for n in work} or {"warn"}
        fallback = next(p for p in ("forbid", "warn", "allow") if p in policies)
        missing: list[tuple[PlanNode, Decision]] = []
        ranked = list(allowed.of)
        if request is not None and fallback == "allow" and not allowed.absent:
            ranked += [d for d in self._first_of_each_type if d not in ranked]
        for device in ranked:
            assert device.type is not None
            choices = [(n, self._chooser.choose(n, device.type)) for n in work]
            lacking = [(n, c.decision) for n, c in choices if c.kernel is None]
            if lacking:
                missing += lacking
                continue
            moved = device.type != ranked[0].type
            if moved and missing and fallback == "forbid" and request is None:
                missing += [(n, c.decision) for n, c in choices]
                break
            for node in members:
                node.device, node.decision = device, _HOST
            for node, choice in choices:
                assert choice.kernel is not None
                self.out.kernels[node] = choice.kernel
                node.decision = choice.decision
                if allowed.absent or (moved and missing):
                    why = f"this session has no {request.short()}" if request is not None and allowed.absent else ""
                    why = why or _why_not(missing, node, ranked[0])
                    self.out.fallbacks.append((node, why))
                    node.decision = Decision(
                        choice.decision.kernel,
                        "fallback",
                        f"FALLBACK ({fallback}): {why}",
                        choice.decision.candidates + tuple(c for _, d in missing if _ is node for c in d.candidates),
                    )
            return
        from graphdock.placement.missing_kernels import missing_kernel

        self.out.missing.append(
            missing_kernel(self._chooser, work, missing, request, fallback, self._devices, self.out.tried)
        )


def _why_not(missing: Sequence[tuple[PlanNode, Decision]], node: PlanNode, preferred: DeviceSpec) -> str:
    for other, decision in missing:
        if other is node:
            reasons = [f"{c.name}: {c.reason}" for c in decision.candidates if c.reason]
            return "; ".join(reasons) or f"{preferred.type} has no kernel for {node.op}"
    other = missing[0][0]
    return f"it stays with {other.name}, and {preferred.type} has no kernel for {other.op}"
