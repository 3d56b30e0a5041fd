"""Lock files: the devices and kernels of a plan's nodes, pinned by ``graphdock explain --lock`` and replayed by other sessions.

A lock names nodes as the plan had them when they were placed, before any was joined with others. Where it says what no longer
holds, the session decides as if there were none, and says so.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphdock.contracts.ir import PlanGraph, PlanNode
from graphdock.device_name import DeviceSpec
from graphdock.errors import ConfigError
from graphdock.placement.choose import Chooser
from graphdock.placement.placer import Placement

__all__ = ["Lock", "locked"]

_SCHEMA = 1
_log = logging.getLogger("graphdock")


def _nodes(graph: PlanGraph, kernels: Mapping[PlanNode, Any]) -> dict[str, PlanNode]:
    """Name of each node that has a kernel -> the node; those of bodies behind the names of their graphs."""
    return {
        f"{'' if level is graph else level.name + '/'}{node.name}": node
        for level in graph.all_graphs()
        for node in level.nodes
        if node in kernels
    }


def locked(graph: PlanGraph, placement: Placement) -> dict[str, dict[str, str]]:
    """Name of each node -> its op, device and kernel, as lock files have them."""
    found = {}
    for name, node in _nodes(graph, placement.kernels).items():
        assert node.device is not None
        kernel = placement.kernels[node].full_name
        found[name] = {"op": node.op, "device": node.device.short(), "kernel": kernel}
    return found


class Lock:
    """A lock file, as a session replays it. Read once, when the session is made.

    Raises:
      ConfigError: it can't be read, or is no lock file; names it.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._warned: set[str] = set()
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise ConfigError(f"lock: {path} can't be read: {error}") from error
        nodes = data.get("nodes") if isinstance(data, dict) and data.get("schema") == _SCHEMA else None
        wrong = not isinstance(nodes, dict) or not all(
            isinstance(row, dict) and all(isinstance(row.get(key), str) for key in ("op", "device", "kernel"))
            for row in nodes.values()
        )
        if wrong:
            raise ConfigError(f"lock: {path} is no lock file", expected="what `graphdock explain --lock FILE` writes")
        assert isinstance(nodes, dict)
        self._nodes: Mapping[str, Mapping[str, str]] = nodes

    @staticmethod
    def write(path: str | Path, plans: Sequence[Mapping[str, Mapping[str, str]]]) -> int:
        """Write what :func:`locked` found of some plans into one file; how many nodes that are. Raises OSError."""
        nodes = {name: dict(row) for plan in plans for name, row in plan.items()}
        text = json.dumps({"schema": _SCHEMA, "nodes": nodes}, indent=1) + "\n"
        Path(path).write_text(text, encoding="utf-8")
        return len(nodes)

    def replay(
        self, graph: PlanGraph, placement: Placement, chooser: Chooser, devices: Sequence[DeviceSpec]
    ) -> Sequence[str]:
        """Give the nodes of a plan what the lock says; a line for each thing that no longer holds."""
        lines: list[str] = []
        named = _nodes(graph, placement.kernels)
        rows = {node: self._nodes[name] for name, node in named.items() if name in self._nodes}
        by_name = {d.short(): d for d in devices}
        free = {id(node): (members, allowed) for members, allowed in placement.movable for node in members}
        for node, row in rows.items():
            if row["op"] != node.op:
                lines.append(f"{node.name} is {node.op}, and was {row['op']}")
                continue
            self._place(node, row, by_name, free, placement, chooser, lines.append)
            if placement.kernels[node].full_name != row["kernel"] and node.device is not None:
                self._pin(node, row["kernel"], placement, chooser, lines.append)
        if not rows and named:
            lines.append("it names no node of this plan")
        elif missing := len(named) - len(rows):
            lines.append(f"{missing} of {len(named)} nodes are new")
        said = [f"lock {self._path}: {line}" for line in lines]
        new = [line for line in said if line not in self._warned]
        if new:
            self._warned.update(new)
            _log.warning("%s", "; ".join(new))
        return said

    @staticmethod
    def _place(
        node: PlanNode,
        row: Mapping[str, str],
        by_name: Mapping[str, DeviceSpec],
        free: Mapping[int, tuple[Sequence[PlanNode], Sequence[DeviceSpec]]],
        placement: Placement,
        chooser: Chooser,
        say: Callable[[str], object],
    ) -> None:
        assert node.device is not None
        if node.device.short() == row["device"]:
            return
        device = by_name.get(row["device"])
        if device is None:
            say(f"{node.name} was on {row['device']}, which this session does not have")
            return
        members, allowed = free.get(id(node), ((), ()))
        if device not in allowed:
            say(f"{node.name} was on {row['device']}, and is bound to {node.device.short()} now")
            return
        assert device.type is not None
        choices = {n: chooser.choose(n, device.type) for n in members if n in placement.kernels}
        lacking = next((n for n, choice in choices.items() if choice.kernel is None), None)
        if lacking is not None:
            say(f"{node.name} was on {row['device']}, where {lacking.name} ({lacking.op}) has no kernel any more")
            return
        for member in members:
            member.device = device
        for member, choice in choices.items():
            assert choice.kernel is not None
            placement.kernels[member], member.decision = choice.kernel, choice.decision

    @staticmethod
    def _pin(node: PlanNode, kernel: str, placement: Placement, chooser: Chooser, say: Callable[[str], object]) -> None:
        assert node.device is not None and node.device.type is not None
        try:
            choice = chooser.pinned(node, node.device.type, kernel)
        except ConfigError as error:
            say(f"{node.name} had the kernel {kernel}: {error.message}")
            return
        assert choice.kernel is not None
        placement.kernels[node] = choice.kernel
        node.decision = replace(choice.decision, rule="pin", why="pinned by the lock file")
