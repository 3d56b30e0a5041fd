"""Cutting regions out of a level of a plan: each as a graph of its own, in time that depends on the region, not on the level."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from graphdock.contracts.ir import PlanGraph, PlanNode, Region, Value, arg_of, copy_node
from graphdock.contracts.rewriter import Rewriter
from graphdock.contracts.streams import streams_of
from graphdock.device_name import DeviceSpec
from graphdock.errors import PlanError

__all__ = ["Cutter", "cut_region", "put_back"]


class Cutter:
    """Cuts regions out of one level, which must not change meanwhile. Making one costs the level's size.

    Regions that were taken count as one node each from then on: what would make a cycle with one of them is refused.

    Attributes:
      visited: how many nodes have been looked at by all cuts together.
    """

    def __init__(self, graph: PlanGraph) -> None:
        self.graph = graph
        self.visited = 0
        self._place = {node: i for i, node in enumerate(graph.nodes)}
        self._readers: dict[Value, list[PlanNode]] = {}
        self._followers: dict[PlanNode, list[PlanNode]] = {}
        self._returned = set(graph.outputs)
        self._targets = set(graph.targets)
        #: member of a region that was taken -> all of its members, in order
        self._taken: dict[PlanNode, Sequence[PlanNode]] = {}
        for node in graph.nodes:
            for value in node.inputs:
                self._readers.setdefault(value, []).append(node)
            for before in (*node.control, *node.order):
                self._followers.setdefault(before, []).append(node)

    def cut(
        self, nodes: Collection[PlanNode], device: DeviceSpec, lies_in: Callable[[Value], Value | None] | None = None
    ) -> Region:
        """The region of these nodes as a graph of its own; the plan stays as it is.

        Constants of one element, and those that nodes want in host memory, are copied into the region; others enter. The nodes
        of its graph keep their control and order edges among each other; what leads to them from outside stands in
        ``Region.control`` and ``Region.order``.

        Args:
          lies_in: value that would enter -> the one in which it lies and that enters in its place, or None; the nodes between,
            which only say where, are copied, too.

        Raises:
          PlanError: a node is not of this level or taken already, or a path leaves the nodes and comes back, so that no single
            kernel could stand for them.
        """
        place = self._place
        for node in nodes:
            if node not in place:
                raise PlanError(f"{node.name} is no node of graph {self.graph.name}")
            if node in self._taken:
                raise PlanError(f"{node.name} is in another region already")
        chosen = sorted(set(nodes), key=place.__getitem__)
        self.visited += len(chosen)
        inside = set(chosen)
        self._check_convex(chosen, inside)
        graph = PlanGraph(f"{self.graph.name}/{chosen[0].name}" if chosen else self.graph.name)
        copies: dict[PlanNode, PlanNode] = {}
        values: dict[tuple[Value, bool], Value] = {}  # (value, whether it is wanted in host memory)
        entering: list[Value] = []
        control: dict[PlanNode, None] = {}
        order: dict[PlanNode, None] = {}
        parts: set[PlanNode] = set()

        def copied(maker: PlanNode, inputs: Sequence[Value]) -> PlanNode:
            copy = copies.get(maker)
            if copy is None:
                copy = copies[maker] = copy_node(maker, inputs)
                graph.add(copy)
            return copy

        def part(value: Value, whole: Value) -> Value:
            if value is whole:
                return enter(value, False)
            maker = value.node
            assert maker is not None
            args = zip(maker.inputs, arg_of(maker), strict=True)
            parts.add(copied(maker, [enter(v, True) if arg.memory == "host" else part(v, whole) for v, arg in args]))
            return copies[maker].outputs[value.index]

        def enter(value: Value, host: bool) -> Value:
            maker, key = value.node, (value, host)
            if maker in inside:
                assert maker is not None
                return copies[maker].outputs[value.index]
            if key in values:
                return values[key]
            if maker is not None and maker.verb == "constant" and (host or maker.attrs["value"].size == 1):
                values[key] = copied(maker, ()).outputs[value.index]
            elif lies_in is not None and not host and (whole := lies_in(value)) is not None:
                values[key] = part(value, whole)
            else:
                name = value.name if (value, not host) not in values else f"{value.name}/host"
                values[key] = Value(name, value.dtype, value.shape)
                values[key].extent = value.extent
                graph.inputs.append(values[key])
                entering.append(value)
            return values[key]

        for node in chosen:
            host = {i for i, arg in enumerate(arg_of(node)) if arg.memory == "host"}
            inputs = [enter(value, i in host) for i, value in enumerate(node.inputs)]
            control.update((n, None) for n in node.control if n not in inside)
            order.update((n, None) for n in node.order if n not in inside)
            copies[node] = copy_node(
                node,
                inputs,
                [copies[n] for n in node.control if n in inside],
                [copies[n] for n in node.order if n in inside],
            )
            graph.add(copies[node])
        leaving = [v for n in chosen for v in n.outputs if self.leaves(v, inside)]
        graph.outputs = [copies[v.node].outputs[v.index] for v in leaving if v.node is not None]
        source = {copy: node for node, copy in copies.items()}
        streams = tuple(dict.fromkeys(s for n in chosen for s in streams_of(n)))
        region = Region(graph, device, tuple(entering), tuple(leaving), source, tuple(control), tuple(order), streams)
        region.parts = parts
        return region

    def take(self, nodes: Iterable[PlanNode]) -> None:
        """From now on these nodes, which were cut, count as one."""
        members = sorted(nodes, key=self._place.__getitem__)
        self._taken.update((node, members) for node in members)

    def dies(self, value: Value, inside: Collection[PlanNode]) -> bool:
        """Return whether nothing of the level reads a value but these nodes, and it is neither returned nor an input or
        constant.
        """
        if value.node is None or value.node.verb == "constant":
            return False
        return value not in self._returned and all(n in inside for n in self._readers.get(value, ()))

    def precedes(self, node: PlanNode, inside: Collection[PlanNode]) -> bool:
        """Return whether any of these nodes reads an output of a node, or waits for it."""
        return any(after in inside for after in self._after(node))

    def leaves(self, value: Value, inside: Collection[PlanNode]) -> bool:
        """Return whether anything but these nodes reads a value, or it is returned, or computed for its own sake: by a target that
        writes nothing, of whose outputs none is read."""
        readers = self._readers.get(value, ())
        if value in self._returned or any(reader not in inside for reader in readers):
            return True
        node = value.node
        if node not in self._targets or node is None or node.opdef.accesses or node.opdef.effects:
            return False
        return not any(self._readers.get(v) or v in self._returned for v in node.outputs)

    def _after(self, node: PlanNode) -> Iterable[PlanNode]:
        for value in node.outputs:
            yield from self._readers.get(value, ())
        yield from self._followers.get(node, ())

    def _check_convex(self, chosen: Sequence[PlanNode], inside: set[PlanNode]) -> None:
        """Walk on from the nodes to whatever stands before the last of them; a way that comes back is refused."""
        if not chosen:
            return
        last = self._place[chosen[-1]]
        seen: set[PlanNode] = set()
        stack = [n for c in chosen for n in self._after(c) if n not in inside]
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            members = self._taken.get(node) or (node,)
            if self._place[members[0]] > last:
                continue
            seen.update(members)
            self.visited += len(members)
            for member in members:
                for after in self._after(member):
                    if after in inside:
                        raise PlanError(
                            f"a region with {after.name} needs {member.name}, which depends on the region and is not in it"
                        )
                    if after not in seen:
                        stack.append(after)


def cut_region(graph: PlanGraph, nodes: Collection[PlanNode], device: DeviceSpec) -> Region:
    """One region of a level, as :meth:`Cutter.cut`; who cuts several makes one :class:`Cutter`."""
    return Cutter(graph).cut(nodes, device)


def put_back(change: Rewriter, node: PlanNode, region: Region) -> None:
    """Put a region's own nodes in the place of the node that stands for it; their devices and decisions are as they were.

    They read the plan's own constants again, which were left there, wherever they stand, and what was arranged as it was.
    """
    graph, nodes = region.graph, []
    change.arrange(change.graph.nodes)
    for inner in region.graph.nodes:
        if inner.verb == "constant":
            change.redirect(inner.outputs[0], region.source[inner].outputs[0])
        else:
            nodes.append(inner)
    read = list(node.inputs)
    for i in region.arranged:
        maker = read[i].node
        assert maker is not None
        read[i] = maker.inputs[0] if maker.verb == "kernel" else region.entering[i]
    own = PlanGraph(graph.name, graph.inputs, nodes, graph.outputs)
    change.splice(node, own, own_names=True, given=[change.value(v) for v in read])
