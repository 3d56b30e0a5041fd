"""The nodes of a GraphDef in an order in which they can be added, once their form is checked.

The one edge that leads back is that from a NextIteration to a Merge: the Merge comes first.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import Any

from graphdock.errors import InvalidArgumentError, NotFoundError, did_you_mean
from graphdock.ops import Tensor, check_name

from graphdock_tensorflow.plain_data.attr_values import expect, shown

__all__ = ["NODE_KEYS", "check_keys", "comes_later", "in_order"]

#: What a node may have.
NODE_KEYS = (
    "name",
    "op",
    "version",
    "inputs",
    "input_lengths",
    "device",
    "colocate",
    "gradient",
    "attrs",
    "output_shapes",
)


def check_keys(value: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    """Raises InvalidArgumentError: a key of ``value`` is none of ``known``."""
    for key in value:
        if key not in known:
            raise InvalidArgumentError(
                f"GraphDef: {where} has an unknown key {shown(key)}", hint=did_you_mean(str(key), known)
            )


def in_order(nodes: Sequence[Any], where: str, replaced: Mapping[str, Tensor]) -> list[dict[str, Any]]:
    """The nodes, each after those it needs; of those that could come next, the first of the file does. Checks their form."""
    by_name: dict[str, dict[str, Any]] = {}
    for i, node in enumerate(nodes):
        at = f"{where}[{i}]"
        expect(node, dict, at)
        check_keys(node, NODE_KEYS, at)
        name = expect(node.get("name"), str, f"{at}: name")
        check_name(name, inner=True)
        expect(node.get("op"), str, f"{at}: op")
        for item in expect(node.get("inputs", []), list, f"{at}: inputs"):
            expect(item, str, f"{at}: inputs")
        if name in by_name:
            raise InvalidArgumentError(f"GraphDef: two nodes are named {name!r}")
        by_name[name] = node
    needs = {name: _needs(node, by_name, replaced) for name, node in by_name.items()}
    names = list(by_name)
    place = {name: i for i, name in enumerate(names)}
    readers: dict[str, list[str]] = {name: [] for name in names}
    pending: dict[str, int] = {}
    for name, before in needs.items():
        pending[name] = len(before)
        for other in before:
            readers[other].append(name)
    ready = [i for i, name in enumerate(names) if not pending[name]]  # in rising order, which is a heap
    result: list[dict[str, Any]] = []
    while ready:
        name = names[heapq.heappop(ready)]
        result.append(by_name[name])
        for reader in readers[name]:
            pending[reader] -= 1
            if not pending[reader]:
                heapq.heappush(ready, place[reader])
    if len(result) < len(names):
        stuck = _on_a_cycle(next(n for n in names if pending[n]), needs, pending)
        raise InvalidArgumentError(f"GraphDef: the nodes make a cycle through {stuck!r}", op=stuck)
    return result


def _on_a_cycle(name: str, needs: Mapping[str, Sequence[str]], pending: Mapping[str, int]) -> str:
    """A node of the cycle that ``name``, a node that never becomes ready, waits for."""
    seen: set[str] = set()
    while name not in seen:
        seen.add(name)
        name = next(n for n in needs[name] if pending[n])
    return name


def _needs(node: dict[str, Any], known: Mapping[str, Any], replaced: Mapping[str, Tensor]) -> list[str]:
    """The nodes that ``node`` reads or follows, each once."""
    found: dict[str, None] = {}
    for item in node.get("inputs", []):
        full = item if ":" in item or item.startswith("^") else f"{item}:0"
        if full in replaced:
            continue
        name = item.removeprefix("^").partition(":")[0]
        if name not in known:
            raise NotFoundError(
                f"GraphDef: input {item!r} of node {node['name']!r} does not exist", hint=did_you_mean(name, known)
            )
        if not comes_later(node, item, known):
            found[name] = None
    return list(found)


def comes_later(node: Mapping[str, Any], item: str, known: Mapping[str, Any]) -> bool:
    """Return whether an input of a node is what a NextIteration gives to a Merge."""
    maker = known.get(item.partition(":")[0])
    return node["op"] == "Merge" and maker is not None and maker["op"] == "NextIteration"
