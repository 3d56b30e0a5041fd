"""Effects of nodes on resources and on the world, the resources that their handles name, and so the order that nodes must keep.

Two accesses of one resource conflict unless both only read. Two nodes that talk to the world conflict. An access ``uses``
conflicts with nothing, and neither does drawing random numbers: every draw has an identity of its own. A node with bodies does what
its bodies do; the resources of a body are those it captures, or names itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from graphdock.contracts.bodies import given
from graphdock.contracts.ir import PlanGraph, PlanNode, Value, arg_of
from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.contracts.opdef import OpDef
from graphdock.contracts.resource import VARIABLE
from graphdock.errors import InvalidArgumentError

__all__ = [
    "Touched",
    "check_handles",
    "conflicts",
    "effects_of",
    "handle_of",
    "lay_order",
    "may_touch",
    "only_reads",
    "resource_name",
    "talks",
]


def resource_name(node: PlanNode) -> tuple[str, str]:
    """Container and name of the resource that a node of the verb ``handle`` names."""
    attrs = node.attrs
    return attrs.get("container", ""), attrs.get("shared_name", "") or node.origins[0]


def handle_of(graph: PlanGraph) -> dict[Value, Value]:
    """Resource value anywhere in the graph or its bodies -> the output of the node that makes the handle.

    Of several such nodes for one resource, which share kind, container and name, the first stands for all.
    """
    table: dict[Value, Value] = {}
    first: dict[tuple[str | None, tuple[str, str]], Value] = {}
    for level in graph.all_graphs():
        for node in level.nodes:
            verb = node.verb
            if verb == "kernel":
                continue
            if verb == "handle":
                value = node.outputs[0]
                table[value] = first.setdefault((node.opdef.resource, resource_name(node)), value)
            elif verb == "alias" or node.opdef.verb.primitive:
                sources = node.inputs if node.verb == "merge" else node.inputs[:1]
                named = [table[v] for v in sources if v in table]
                if len(named) == len(sources) and len(set(named)) == 1:
                    table.update((v, named[0]) for v in node.outputs if v.dtype.kind == "R")
            elif node.bodies:
                for which, body in enumerate(node.bodies):
                    for value, inner in zip(given(node, which), body.inputs, strict=True):
                        if value.dtype.name == "resource" and value in table:
                            table[inner] = table[value]
    return table


def check_handles(graph: PlanGraph, handles: Mapping[Value, Value] | None = None) -> None:
    """See that every op which takes a handle gets one, of the kind that its spec says.

    Args:
      handles: what :func:`handle_of` answers for the graph, where it is known.

    Raises:
      InvalidArgumentError: names the op, and what it got.
    """
    table = handle_of(graph) if handles is None else handles
    for level in graph.all_graphs():
        for node in level.nodes:
            for i, value in enumerate(node.inputs):
                if value.dtype.kind == "R":
                    if node.bodies or node.verb == "alias" or node.opdef.verb.primitive:
                        break
                    _check(node, value, arg_of(node)[i].resource or VARIABLE.name, table)


def _check(node: PlanNode, value: Value, wanted: str, table: Mapping[Value, Value]) -> None:
    owner = table[value].node if value in table else None
    if owner is None:
        made = "is fed" if value.node is None else f"is made by a {value.node.op}"
        raise InvalidArgumentError(
            f"{node.op} takes a handle to a {wanted}, and {value.name} {made}",
            op=node.origin,
            site=node.site,
            hint="only ops that execute as handle make handles",
        )
    if owner.opdef.resource != wanted:
        raise InvalidArgumentError(
            f"{node.op} takes a handle to a {wanted}",
            op=node.origin,
            site=node.site,
            got=f"{owner.origin}, a handle to a {owner.opdef.resource or 'kind that its op does not name'}",
        )


@lazy_dataclass(frozen=True, slots=True)
class Touched:
    """Resources that one node touches.

    Attributes:
      resources: the handle that stands for each resource -> whether the node writes it (True) or only reads it.
      world: it does something that others can see, in an order that they can see.
    """

    resources: Mapping[Value, bool]
    world: bool


def effects_of(
    graph: PlanGraph, handles: Mapping[Value, Value] | None = None
) -> list[tuple[PlanGraph, dict[PlanNode, Touched]]]:
    """Every level with those of its nodes that touch something, in their order; outer levels first.

    Linear in the size of the graph and its bodies, each of which is looked at once.

    Args:
      handles: what :func:`graphdock.contracts.effects.handle_of` answers for the graph, where it is known.
    """
    handles = handle_of(graph) if handles is None else handles
    plain: dict[int, bool] = {}  # by identity of the OpDef, which the graph keeps alive
    inside: dict[PlanGraph, Touched] = {}
    levels: list[tuple[PlanGraph, dict[PlanNode, Touched]]] = []
    for level in reversed(list(graph.all_graphs())):  # a body comes before the graph around it
        found: dict[PlanNode, Touched] = {}
        for node in level.nodes:
            opdef = node.opdef
            skip = plain.get(id(opdef))
            if skip is None:
                skip = plain[id(opdef)] = not may_touch(opdef)
            if skip:
                continue
            touched = _union([inside[b] for b in node.bodies]) if node.bodies else _leaf(node, handles)
            if touched.world or touched.resources:
                found[node] = touched
        inside[level] = _union(list(found.values()))
        levels.append((level, found))
    levels.reverse()
    return levels


def conflicts(found: Mapping[PlanNode, Touched]) -> Iterator[tuple[PlanNode, list[tuple[PlanNode, Value | None]]]]:
    """Each node of a level that must follow others, with those and the reason: the resource, or None for the world.

    A read follows the last write, a write the reads since and the last write. Every other conflict follows from these, so that
    their number is linear in the number of accesses.
    """
    written: dict[Value, PlanNode] = {}
    read: dict[Value, list[PlanNode]] = {}
    talked: PlanNode | None = None
    for node, touched in found.items():
        before: list[tuple[PlanNode, Value | None]] = []
        for resource, writes in touched.resources.items():
            last = written.get(resource)
            if last is not None:
                before.append((last, resource))
            if writes:
                before.extend([(reader, resource) for reader in read.pop(resource, ())])
                written[resource] = node
            else:
                read.setdefault(resource, []).append(node)
        if touched.world:
            if talked is not None:
                before.append((talked, None))
            talked = node
        if before:
            yield node, before


def lay_order(graph: PlanGraph) -> None:
    """Lay the order edges of the graph and its bodies, as their nodes stand; edges that were there go."""
    for _, found in effects_of(graph):
        for node in found:
            node.order = ()
        for node, before in conflicts(found):
            node.order = tuple(dict.fromkeys([n for n, _ in before]))


def may_touch(opdef: OpDef) -> bool:
    """Return whether a node of it touches something that conflicts, or has bodies, which may."""
    return opdef.verb.bodies or talks(opdef) or not opdef.accesses <= {"uses"}


def only_reads(opdef: OpDef) -> bool:
    """Return whether a node of it reads resources and does nothing else: until one of them is written, equal nodes are equal."""
    return opdef.accesses == {"reads"} and not opdef.effects and not opdef.verb.bodies


def talks(opdef: OpDef) -> bool:
    """Return whether it does something that others can see. Of an op that is only said to be stateful the worst is assumed."""
    if "io" in opdef.effects:
        return True
    return opdef.is_active and not opdef.effects and not opdef.accesses


def _leaf(node: PlanNode, handles: Mapping[Value, Value]) -> Touched:
    resources: dict[Value, bool] = {}
    for value, arg in zip(node.inputs, arg_of(node), strict=True):
        if arg.access in ("reads", "writes"):
            resource = handles.get(value, value)
            resources[resource] = resources.get(resource, False) or arg.access == "writes"
    return Touched(resources, talks(node.opdef))


def _union(parts: Sequence[Touched]) -> Touched:
    if len(parts) == 1:
        return parts[0]
    resources: dict[Value, bool] = {}
    for part in parts:
        for resource, writes in part.resources.items():
            resources[resource] = resources.get(resource, False) or writes
    return Touched(resources, any(p.world for p in parts))
