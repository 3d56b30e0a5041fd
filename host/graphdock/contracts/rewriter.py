"""Making and changing plans: a Builder makes one node by node, a Rewriter changes it. Passes, placement, transfers and region
compilers say what changes, and it happens at once at the end.

    with Rewriter(graph) as change:
        change.insert(made, before=node)
        change.replace(node, made.outputs)

One Rewriter changes one level of a plan; a body is a level of its own. Until the ``with`` block ends the level is as it was; when
it ends by an exception it stays so. All changes are applied in one sweep over the level.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any

from graphdock.contracts.effects import may_touch, only_reads
from graphdock.contracts.ir import PlanGraph, PlanNode, Value, copy_node, make_node
from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.contracts.opdef import OpDef
from graphdock.device_name import DeviceSpec
from graphdock.dtypes import DType
from graphdock.errors import PlanError
from graphdock.shape import Dims, compatible, show

__all__ = ["Builder", "Rewriter"]

_ORDER = operator.attrgetter("order")


@lazy_dataclass(slots=True, eq=False)
class _Gone:
    """A node that goes.

    Attributes:
      control, order: the nodes that its followers follow instead.
      heirs: those of them that wait themselves for what it waited for, so that who read it need not.
      united: they take its origins.
    """

    control: Sequence[PlanNode] = ()
    order: Sequence[PlanNode] = ()
    heirs: frozenset[PlanNode] = frozenset()
    united: bool = True


class Builder:
    """Builds a PlanGraph node by node.

    b = Builder("main")
    x = b.input("x", float32, (None, 4))
    (y,) = b.node(opdef, "y", [x], {"T": float32}, [(float32, (None, 4))])
    graph = b.finish([y])
    """

    def __init__(self, name: str = "main") -> None:
        self.graph = PlanGraph(name)

    def input(self, name: str, dtype: DType, shape: Dims) -> Value:
        value = Value(name, dtype, shape)
        self.graph.inputs.append(value)
        return value

    def node(
        self,
        opdef: OpDef,
        name: str,
        inputs: Sequence[Value],
        attrs: Mapping[str, Any],
        outputs: Sequence[tuple[DType, Dims]],
        control: Iterable[PlanNode] = (),
        requested: DeviceSpec | None = None,
        site_of: Any = None,
        bodies: Sequence[PlanGraph] = (),
        origins: tuple[str, ...] = (),
        order: Iterable[PlanNode] = (),
    ) -> list[Value]:
        """Append a node and return its outputs; the node itself is ``outputs[0].node`` or ``graph.nodes[-1]``."""
        node = make_node(opdef, name, inputs, attrs, outputs, control, requested, site_of, bodies, origins, order)
        self.graph.add(node)
        return node.outputs

    def finish(self, outputs: Sequence[Value] = (), targets: Sequence[PlanNode] = ()) -> PlanGraph:
        """The graph, checked. Raises PlanError when it breaks the grammar."""
        from graphdock.contracts.ir_check import check

        self.graph.outputs = list(outputs)
        self.graph.targets = list(targets)
        check(self.graph)
        return self.graph


class Rewriter:
    """The changes of one level. Used once, by one thread.

    Raises, when the block ends:
      PlanError: a value is read that no node makes any more, or edges make a cycle. The level is as it was.
    """

    def __init__(self, graph: PlanGraph) -> None:
        self.graph = graph
        self._before: dict[PlanNode | None, list[PlanNode]] = {}
        self._values: dict[Value, Value] = {}
        self._gone: dict[PlanNode, _Gone] = {}
        self._bound: dict[PlanNode, dict[str, Any]] = {}
        self._level: dict[str, Any] = {}
        self._names: set[str] | None = None
        self._sort = False

    def __enter__(self) -> Rewriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.apply()

    # -- nodes

    def insert(self, node: PlanNode, before: PlanNode | None = None) -> PlanNode:
        """Put a new node before one of the level, or at the end; several before one stand in the order of their calls.

        Returns:
          ``node``.
        """
        self._before.setdefault(before, []).append(node)
        return node

    def replace(self, node: PlanNode, values: Sequence[Value | None], by: PlanNode | None = None) -> None:
        """Let readers of each output read a value instead; the node goes.

        Who follows the node by control or order follows the nodes that make the values, or ``by``; who read it waits for what it
        waited for. The nodes that stand for it take its origins.

        Args:
          values: one per output; None for one that nobody will read.
          by: the node that stands for this one among others, and waits for what they waited for; nodes are then sorted again.

        Raises:
          PlanError: a value has another dtype than the output, or a shape that can't be the output's.
        """
        makers = [] if by is None else [by]
        for output, value in zip(node.outputs, values, strict=True):
            if value is not None:
                self._check_stand_in(output, value)
                self._values[output] = value
                if by is None and value.node is not None:
                    makers.append(value.node)
        self._gone[node] = _Gone(makers, makers, frozenset([by] if by is not None else ()))
        self._sort = self._sort or by is not None

    def erase(self, node: PlanNode) -> None:
        """Drop a node whose outputs nobody reads; who followed it follows what it followed."""
        self._gone[node] = _Gone()

    def splice(
        self, node: PlanNode, graph: PlanGraph, own_names: bool = False, given: Sequence[Value] | None = None
    ) -> None:
        """Put the nodes of a graph in the place of a node. The graph is used up.

        Its inputs stand for the node's inputs, its outputs for the node's outputs. Its nodes wait for what the node waited for, and
        who followed the node follows them.

        Args:
          own_names: its nodes keep their origins, as those of a region that is put back, and their names, with a number behind
            where another one of the level has it; else they take the node's origins, and its name before their own.
          given: what the graph's inputs stand for, as those of a body; the node's inputs.
        """
        inside = set(graph.nodes)
        led = {b for n in graph.nodes for b in (*n.control, *(v.node for v in n.inputs if v.node is not None))}
        # a read that follows needs no edge to a read, but one to the write before that
        ordered = {b for n in graph.nodes if not only_reads(n.opdef) for b in n.order}
        self._values.update(zip(graph.inputs, node.inputs if given is None else given, strict=True))
        for inner in graph.nodes:
            if own_names:
                self.number(inner)
            else:
                inner.name = f"{node.name}/{inner.name}"
                inner.origins = node.origins
                for value in inner.outputs:
                    value.name = f"{node.name}/{value.name}"
            if not inner.control and inside.isdisjoint([v.node for v in inner.inputs]):
                inner.control = node.control
            if not inner.order and may_touch(inner.opdef):
                inner.order = node.order
            self.insert(inner, node)
        for output, value in zip(node.outputs, graph.outputs, strict=True):
            self._values[output] = value
        self._gone[node] = _Gone(
            [n for n in graph.nodes if n not in led],
            [n for n in graph.nodes if n not in ordered and may_touch(n.opdef)],
            frozenset(inside),
            united=False,
        )
        graph.nodes, graph.outputs, graph.targets = [], [], []

    def number(self, node: PlanNode) -> PlanNode:
        """Give a node from elsewhere a number behind its name where the level has one of its name: two bodies may each hold one.

        Returns:
          ``node``.
        """
        names = self._names
        if names is None:
            names = self._names = {
                v.name for v in (*self.graph.inputs, *[v for n in self.graph.nodes for v in n.outputs])
            }
        name, number = node.name, 0
        while not names.isdisjoint([v.name for v in node.outputs]):
            number += 1
            node.name = f"{name}_{number}"
            for value in node.outputs:
                value.name = node.name if value.index == 0 else f"{node.name}:{value.index}"
        names.update([v.name for v in node.outputs])
        return node

    def rebind(
        self,
        node: PlanNode,
        inputs: Sequence[Value] | None = None,
        outputs: Sequence[int] | None = None,
        attrs: Mapping[str, Any] | None = None,
        bodies: Sequence[PlanGraph] | None = None,
        control: Sequence[PlanNode] | None = None,
    ) -> None:
        """Give a node other inputs, attributes, bodies or nodes to wait for; ``outputs``: positions of those that it keeps."""
        given = {"inputs": inputs, "outputs": outputs, "attrs": attrs, "bodies": bodies, "control": control}
        fields = self._bound.setdefault(node, {})
        for name, value in given.items():
            if value is not None:
                fields[name] = value

    # -- values and the level itself

    def redirect(self, value: Value, other: Value) -> None:
        """Let every reader of ``value`` read ``other``; whatever makes ``value`` stays. Raises as :meth:`replace` does."""
        self._check_stand_in(value, other)
        self._values[value] = other

    def _check_stand_in(self, value: Value, other: Value) -> None:
        """Raise unless whoever reads ``value`` can read ``other``."""
        if value.dtype is other.dtype and compatible(value.shape, other.shape):
            extent, shape = value.extent, other.shape
            if other.extent is None and shape is not None and isinstance(extent, tuple):
                other.extent = tuple([e if d is None else d for d, e in zip(shape, extent, strict=True)])
            return
        maker = value.node
        named = f"%{value.name}" if maker is None else f"node {maker.name} ({maker.op})"
        raise PlanError(
            f"graph {self.graph.name}, {named}: %{other.name} can't stand for %{value.name}",
            expected=f"{value.dtype.name} of the shape {show(value.shape)}",
            got=f"{other.dtype.name} of the shape {show(other.shape)}",
            op=None if maker is None else maker.origin,
            site=None if maker is None else maker.site,
        )

    def value(self, value: Value) -> Value:
        """Value that readers of ``value`` will read."""
        values = self._values
        if value not in values:
            return value
        last = values[value]
        while last in values:
            last = values[last]
        while (following := values[value]) is not last:
            values[value], value = last, following
        return last

    def inputs(self, node: PlanNode) -> Sequence[Value]:
        """The inputs that a node of the level will have."""
        values = self._values
        if not values or values.keys().isdisjoint(node.inputs):
            return node.inputs
        return [self.value(v) for v in node.inputs]

    def seen(self, node: PlanNode) -> PlanNode:
        """The node as it will be: itself, or a copy with its inputs to come."""
        inputs = self.inputs(node)
        return node if inputs == node.inputs else copy_node(node, inputs)

    def takes(self, inputs: Sequence[Value]) -> None:
        """Set the inputs of the level."""
        self._level["inputs"] = inputs

    def returns(self, outputs: Sequence[Value]) -> None:
        """Set the outputs of the level."""
        self._level["outputs"] = outputs

    def keep(self, nodes: Iterable[PlanNode]) -> None:
        """Add targets: nodes that must run although no output needs them."""
        more = list(nodes)
        if more:
            self._level["targets"] = [*self._level.get("targets", self.graph.targets), *more]

    def arrange(self, nodes: Sequence[PlanNode]) -> None:
        """Let the level's nodes stand in this order, but each after those it needs."""
        self._level["nodes"] = nodes
        self._sort = True

    # -- the end

    def apply(self) -> None:
        """Apply the changes, once; the end of a ``with`` block does."""
        graph, gone, bound = self.graph, self._gone, self._bound
        if not (self._before or self._values or gone or bound or self._level):
            return
        sweep = _Sweep(self)
        nodes = self._level.get("nodes", graph.nodes)
        if self._before:
            before, held, start = self._before, nodes, 0
            nodes = []
            for at in [i for i, node in enumerate(held) if node in before]:
                nodes += [*held[start:at], *before[held[at]]]
                start = at
            nodes += [*held[start:], *before.get(None, ())]
            if len(nodes) != len(graph.nodes) + sum(map(len, before.values())):
                raise PlanError(f"graph {graph.name}: a node is put before one that it does not hold")
        # most nodes have to do with no change, and stay as they are
        lost = sweep.lost
        if lost:
            apart, touched = lost.isdisjoint, {*lost, *bound}
            kept = [
                n
                for n in nodes
                if apart(n.inputs)
                and n not in touched
                and (not n.control or apart(n.control))
                and (not n.order or apart(n.order))
                or sweep.node(n)
            ]
        else:
            kept = [*nodes]
            for node, fields in bound.items():
                inputs, control = fields.get("inputs", node.inputs), fields.get("control", node.control)
                sweep.edges[node] = list(inputs), tuple(control), node.order
        if len(kept) + len(gone) != len(nodes):
            raise PlanError(f"graph {graph.name}: a node is to go that it does not hold")
        given = self._level.get("outputs", graph.outputs)
        outputs = [self.value(v) for v in given]
        targets = sweep.targets(self._level.get("targets", graph.targets), given)
        for value in outputs:
            if value.node in gone:
                raise PlanError(f"graph {graph.name} returns %{value.name}, which is erased")
        if self._sort:
            kept = _sorted(graph, kept, sweep.edges)
        # from here on nothing can fail
        for node, (inputs, control, order) in sweep.edges.items():
            node.inputs, node.control, node.order = inputs, control, order
        for node, origins in sweep.origins.items():
            node.origins = tuple(dict.fromkeys([*node.origins, *origins]))
        for node, fields in bound.items():
            node.attrs = fields.get("attrs", node.attrs)
            node.bodies = tuple(fields.get("bodies", node.bodies))
            if "outputs" in fields:
                node.outputs = [node.outputs[i] for i in fields["outputs"]]
                for index, value in enumerate(node.outputs):
                    value.index = index
                if node.guard is not None:
                    left = [k for k, i in enumerate(fields["outputs"]) if i in node.guard.promised]
                    node.guard = replace(node.guard, promised=tuple(left))
        if self._before or any(["bodies" in fields for fields in bound.values()]):
            graph.nodes = kept
        else:
            graph.leave(kept)
        graph.outputs, graph.targets = outputs, targets
        graph.inputs = list(self._level.get("inputs", graph.inputs))


def keep_only(graph: PlanGraph, needed: set[PlanNode]) -> None:
    """Erase all other nodes, which nothing reads; no change is worked out where no order edge leads to one of them."""
    if not needed.issuperset(itertools.chain.from_iterable(map(_ORDER, needed))):
        with Rewriter(graph) as change:  # who was ordered after one of them is ordered after what that was
            for node in reversed(graph.nodes):
                if node not in needed:
                    change.erase(node)
    else:
        graph.leave(list(filter(needed.__contains__, graph.nodes)))


class _Sweep:
    """One way over the nodes, in order; it changes none.

    Attributes:
      lost: what nobody reads or follows any more: values that others stand for, nodes that go, and what those made.
      final: value that another one stands for -> the one that readers of it will read.
      edges: node that changes -> its inputs, control and order to come.
      origins: node -> the origins that it takes over.
    """

    def __init__(self, changes: Rewriter) -> None:
        self.changes = changes
        self.graph, self.gone, self.values = changes.graph, changes._gone, changes._values
        self.final = {v: changes.value(v) for v in self.values}
        self.edges: dict[PlanNode, tuple[list[Value], tuple[PlanNode, ...], tuple[PlanNode, ...]]] = {}
        self.origins: dict[PlanNode, list[str]] = {}
        self.lost: set[Value | PlanNode] = {*self.values, *self.gone}
        for node in self.gone:
            self.lost.update(node.outputs)
        #: node that goes -> the nodes that stay and that its followers follow: by control, by order
        self._around: dict[PlanNode, tuple[list[PlanNode], list[PlanNode]]] = {}
        #: output of such a node -> what its readers wait for from now on, because it did
        self._waited: dict[Value, list[PlanNode]] = {}

    def node(self, node: PlanNode) -> bool:
        """Return whether the node stays; notes what changes of it."""
        gone, bound, lost = self.gone, self.changes._bound, self.lost
        if node in gone:
            self._goes(node)
            return False
        inputs, control, order = node.inputs, node.control, node.order
        if node in bound:
            inputs = bound[node].get("inputs", inputs)
            control = tuple(bound[node].get("control", control))
        changed = inputs is not node.inputs
        waited: list[PlanNode] = []
        if not lost.isdisjoint(inputs):
            changed = True
            if self._waited:
                waited = [n for value in inputs for n in self._waits(value)]
        if changed:
            now = self.final.get
            before, inputs = inputs, list(map(now, inputs, inputs))
            if not lost.isdisjoint(inputs):
                old = next(old for value, old in zip(inputs, before, strict=True) if value.node in gone)
                raise PlanError(
                    f"graph {self.graph.name}: {node.name} ({node.op}) reads %{old.name}, which is erased",
                    op=node.origin,
                    site=node.site,
                )
        if waited or not lost.isdisjoint(control):
            control = tuple(dict.fromkeys([*self._stand(control, 0), *waited]))
        if not lost.isdisjoint(order):
            order = tuple(self._ordered(node))
        if changed or control != node.control or order is not node.order:
            self.edges[node] = list(inputs), control, order
        return True

    def targets(self, targets: Sequence[PlanNode], outputs: Sequence[Value]) -> list[PlanNode]:
        waited = [n for v in outputs for n in self._waits(v)] if self._waited else []
        return list(dict.fromkeys([*self._stand(targets, 0), *waited]))

    def _goes(self, node: PlanNode) -> None:
        control = self._stand(node.control, 0) if node.control else []
        order = self._ordered(node) if node.order else []
        gone = self.gone[node]
        makers = self._kept(gone.control)
        others = makers if gone.order is gone.control else self._kept(gone.order)
        if gone.united:
            for maker in makers:
                self.origins.setdefault(maker, []).extend(node.origins)
        if not (control or order):
            self._around[node] = makers, others
            return
        self._around[node] = (
            makers if makers and gone.heirs.issuperset(makers) else list(dict.fromkeys([*makers, *control])),
            others if others and gone.heirs.issuperset(others) else list(dict.fromkeys([*others, *order])),
        )
        if not control:
            return
        for value in node.outputs:
            stand_in = self.values[value].node if value in self.values else None
            if stand_in not in gone.heirs:
                self._waited[value] = [c for c in control if stand_in is None or c not in stand_in.control]

    def _kept(self, makers: Sequence[PlanNode]) -> list[PlanNode]:
        """The nodes that stay in place of ``makers``: who stands for one that goes itself."""
        found: dict[PlanNode, None] = {}
        if self.gone.keys().isdisjoint(makers):
            return list(dict.fromkeys(makers))
        stack = list(reversed(makers))
        while stack:
            maker = stack.pop()
            if maker not in self.gone:
                found[maker] = None
            elif maker in self._around:
                found.update(dict.fromkeys(self._around[maker][0]))
            else:
                stack.extend(reversed(self.gone[maker].control))
        return list(found)

    def _stand(self, nodes: Sequence[PlanNode], which: int) -> list[PlanNode]:
        found: dict[PlanNode, None] = {}
        for node in nodes:
            if node in self.gone:
                found.update(dict.fromkeys(self._around[node][which]))
            else:
                found[node] = None
        return list(found)

    def _ordered(self, node: PlanNode) -> list[PlanNode]:
        """Nodes that the node is ordered after.

        Two that only read need no edge, so that no product of edges arises where a write goes that stood between many reads.
        """
        reads = only_reads(node.opdef)
        found: dict[PlanNode, None] = {}
        for before in node.order:
            if before not in self.gone:
                found[before] = None
            else:
                found.update((n, None) for n in self._around[before][1] if not (reads and only_reads(n.opdef)))
        return list(found)

    def _waits(self, value: Value) -> list[PlanNode]:
        """Nodes that a reader of ``value`` waited for, because a replaced node that made it did."""
        found: list[PlanNode] = []
        while value in self.values:
            found += self._waited.get(value, ())
            value = self.values[value]
        return found


def _sorted(
    graph: PlanGraph,
    nodes: Sequence[PlanNode],
    edges: Mapping[PlanNode, tuple[list[Value], tuple[PlanNode, ...], tuple[PlanNode, ...]]],
) -> list[PlanNode]:
    """The nodes as they stand, but each after those it needs."""
    result: dict[PlanNode, None] = {}
    open_: set[PlanNode] = set()
    for first in nodes:
        stack = [first] if first not in result else []
        while stack:
            node = stack[-1]
            if node in result:
                stack.pop()
                continue
            inputs, control, order = edges.get(node) or (node.inputs, node.control, node.order)
            missing = [n for n in (*(v.node for v in inputs), *control, *order) if n is not None and n not in result]
            if not missing:
                result[node] = None
                open_.discard(node)
                stack.pop()
                continue
            open_.add(node)
            for before in missing:
                if before in open_:
                    raise PlanError(f"graph {graph.name}: {before.name} and {node.name} would wait for each other")
            stack.extend(reversed(missing))
    return list(result)
