"""Keeping to a budget of memory: what is read late is computed again, or waits in the host's memory, until a step fits.

First, what only takes values in, as updates of variables do, runs as early as it may. Then, at the place where most bytes are
alive, values that are kept over it for later readers are candidates: those go first that free most bytes per second of computing
or copying (T. Chen, B. Xu, C. Zhang, C. Guestrin: Training deep nets with sublinear memory cost, 2016; M. Rhu and others: vDNN,
2016). What draws random numbers, or touches a resource, is never computed again; it may be swapped.
"""

from __future__ import annotations

from dataclasses import dataclass

from graphdock.contracts import PlanContext, PlanGraph, PlanNode, Rewriter, Swap, Value
from graphdock.contracts.ir import copy_node
from graphdock.units import in_bytes

from graphdock_fusion.schedule import hasten, nbytes

__all__ = ["recompute", "swap"]

#: Most nodes that are computed again for one value.
_CHAIN = 16
#: Places of equal peaks that are tried one after the other before that is all.
_PATIENCE = 16
#: Part of a budget that is filled: packing buffers side by side takes the rest.
_FILLED = 0.9
#: Seconds of a node of which nobody knows any.
_UNKNOWN = 10e-6


def recompute(graph: PlanGraph, context: PlanContext) -> None:
    """Compute values of the plan's own level again, for each device type that has a budget."""
    hasten(graph)
    _fit(graph, context, True)


def swap(graph: PlanGraph, context: PlanContext) -> None:
    """Keep values of the plan's own level in the host's memory for a while, for each device type that has a budget."""
    _fit(graph, context, False)


def _fit(graph: PlanGraph, context: PlanContext, again: bool) -> None:
    for kind, budget in context.memory_budget.items():
        work = _Fitting(graph, context, kind, again, context.switches.get("swap", True))
        before = work.peak()[0]
        work.fit(int(budget * _FILLED))
        after = work.peak()[0]
        computed, swapped = work.counts()
        if computed or swapped:
            work.apply()
        short = f", {in_bytes(after - budget)} more than the budget" if after > budget else ""
        did = [f"computes {computed} nodes on {kind} again"] if again else []
        did += [f"swaps {swapped} values to the host's memory"] if swapped else []
        if did:
            context.notes.append(
                f"{', '.join(did)}: {in_bytes(after)} of buffers at most, {in_bytes(before)} without it{short}"
            )


@dataclass(frozen=True, slots=True)
class _Choice:
    """Nodes to compute again before a reader, in order; what that frees at the peak. ``swap``: of the value that they name."""

    nodes: tuple[PlanNode, ...]
    reader: PlanNode
    freed: int
    seconds: float
    swap: Swap | None = None


class _Fitting:
    """The order of a plan's nodes, with copies and transfers, and who reads what; the graph itself is changed at the end.

    Args:
      again: values may be computed again. swaps: they may be swapped.
    """

    def __init__(self, graph: PlanGraph, context: PlanContext, kind: str, again: bool, swaps: bool) -> None:
        self._graph, self._context, self._kind = graph, context, kind
        self._again, self._swaps = again, swaps
        self._known: dict[Value, Swap | None] = {}
        self._transfers: set[PlanNode] = set()
        self._order = list(graph.nodes)
        self._inputs: dict[PlanNode, list[Value]] = {n: list(n.inputs) for n in graph.nodes}
        self._copies: dict[PlanNode, PlanNode] = {}  # copy -> what it copies
        self._kept = set(graph.outputs)
        self._index()

    def _index(self) -> None:
        """Positions, readers and spans of what is planned now."""
        self._at = {node: i for i, node in enumerate(self._order)}
        self._root: dict[Value, Value] = {}
        self._readers: dict[Value, list[int]] = {}
        self._span: dict[Value, list[int]] = {}
        self._names: dict[Value, list[PlanNode]] = {}  # value -> nodes that give it other names
        for i, node in enumerate(self._order):
            for value in self._inputs[node]:
                root = self._root.get(value, value)
                self._readers.setdefault(root, []).append(i)
                if root in self._span:
                    self._span[root][1] = i
            for value in node.outputs:
                if self._is_another_name(node):
                    source = self._inputs[node][0]
                    self._root[value] = root = self._root.get(source, source)
                    self._names.setdefault(root, []).append(node)
                elif self._nbytes(node, value):
                    self._span[value] = [i, i]
        self._until: dict[Value, int] = {}  # value -> the last that reads it by this name, or by one of this name
        for i, node in zip(range(len(self._order) - 1, -1, -1), reversed(self._order), strict=True):
            own = max([i, *(self._until.get(v, 0) for v in node.outputs if v in self._root)])
            for value in self._inputs[node]:
                self._until[value] = max(self._until.get(value, 0), own)
        self._held = {self._root.get(value, value) for value in self._kept}
        for root in self._held & self._span.keys():
            self._span[root][1] = len(self._order)

    def _is_another_name(self, node: PlanNode) -> bool:
        registered = self._context.kernels.get(self._copies.get(node, node))
        views = registered is not None and bool(registered.kernel.views)
        return bool(self._inputs[node]) and len(node.outputs) == 1 and (node.verb == "alias" or views)

    def _nbytes(self, node: PlanNode, value: Value) -> int:
        """Bytes of a buffer; 0 of what is none, and of what is in another kind of memory or has no known shape."""
        return nbytes(node, value) if node.device is not None and node.device.type == self._kind else 0

    def peak(self) -> tuple[int, int]:
        """The most bytes that are alive at once, and where."""
        change = [0] * (len(self._order) + 2)
        for value, (first, last) in self._span.items():
            assert value.node is not None
            nbytes = self._nbytes(value.node, value)
            change[first] += nbytes
            change[last + 1] -= nbytes
        held = most = place = 0
        for i, more in enumerate(change):
            held += more
            if held > most:
                most, place = held, i
        return most, place

    def counts(self) -> tuple[int, int]:
        """Nodes that are computed again, and values that are swapped."""
        return len(self._copies), len(self._transfers) // 2

    def fit(self, budget: int) -> None:
        """Choose what is computed again or swapped until the peak is within the budget, or nothing helps."""
        best, waited, limit = self.peak()[0], 0, len(self._order)
        kept = self._order, dict(self._inputs), dict(self._copies), set(self._transfers)
        while best > budget and waited < _PATIENCE and len(self._copies) <= limit:
            most, place = self.peak()
            taken: set[PlanNode] = set()
            excess = most - budget
            for choice in sorted(self._choices(place), key=lambda c: -c.freed / c.seconds):
                nodes = set(choice.nodes)
                if choice.swap is not None:
                    nodes.update(v.node for v in choice.swap.out.inputs if v.node is not None)
                if excess <= 0 or not taken.isdisjoint(nodes):
                    continue
                taken |= nodes
                excess -= choice.freed
                self._take(choice)
            if not taken:
                break
            self._index()
            waited += 1
            if (after := self.peak()[0]) < best:
                best, waited = after, 0
                kept = self._order, dict(self._inputs), dict(self._copies), set(self._transfers)
        self._order, self._inputs, self._copies, self._transfers = kept
        self._index()

    def _choices(self, place: int) -> list[_Choice]:
        found = []
        for value, (first, last) in self._span.items():
            if first < place < last and value not in self._held:
                later = [i for i in self._readers.get(value, ()) if i >= place]
                if later and later[0] > place and value.node is not None:
                    ways = [self._choice(value.node, place, later[0])] if self._again else []
                    if (swap := self._swap(value, value.node)) is not None:
                        ways.append(self._choice(value.node, place, later[0], swap))
                    found += [choice for choice in ways if choice is not None]
        return found

    def _swap(self, value: Value, node: PlanNode) -> Swap | None:
        """The transfers of a value, which no transfer has brought or takes."""
        if not self._swaps or node.verb == "move" or len(node.outputs) != 1:
            return None
        if any(self._order[i].verb == "move" for i in self._readers.get(value, ())):
            return None  # once is enough
        if value not in self._known:
            self._known[value] = self._context.swap(value)
        return self._known[value]

    def _choice(self, node: PlanNode, place: int, reader: int, swap: Swap | None = None) -> _Choice | None:
        """Nodes that have to be computed again for a node's reader: it, unless it is swapped, other names of what it makes that are
        read there, and what these read that is gone by then."""
        chain: dict[PlanNode, None] = {}
        stack = [node]
        while stack:
            each = stack.pop()
            if each in chain:
                continue
            swapped = swap is not None and each is node
            if len(chain) == _CHAIN or not (swapped or self._may_repeat(each)):
                return None
            chain[each] = None
            for value in each.outputs:
                for name in self._names.get(value, ()):
                    if self._at[name] < reader <= self._until.get(name.outputs[0], 0):
                        stack.append(name)
            for value in () if swapped else self._inputs[each]:
                root = self._root.get(value, value)
                span = self._span.get(root)
                if value.node is not None and (value is not root or (span is not None and span[1] < reader)):
                    stack.append(value.node)
        nodes = tuple(sorted(chain, key=self._at.__getitem__))
        freed = 0
        for each in nodes:
            for value in each.outputs:
                first, last = self._span.get(value, (0, 0))
                if first < place < last and value not in self._held and place not in self._readers[value]:
                    freed += self._nbytes(each, value)
        if not freed:
            return None
        predict = self._context.seconds
        if swap is not None:
            nodes = tuple([n for n in nodes if n is not node])
        seconds = sum(predict(self._copies.get(n, n)) or _UNKNOWN for n in nodes)
        if swap is not None:
            seconds += swap.seconds or 2 * _UNKNOWN
        return _Choice(nodes, self._order[reader], freed, seconds, swap)

    def _may_repeat(self, node: PlanNode) -> bool:
        if node.bodies or node.control or node.order or node.opdef.effects or node.opdef.accesses or node.streams:
            return False
        if node.verb == "alias":
            return True
        known = self._copies.get(node, node) in self._context.kernels
        return known and "stateful" not in node.opdef.traits and not any(v.dtype.kind in "RV" for v in node.inputs)

    def _take(self, choice: _Choice) -> None:
        """Put copies before the reader, and let all who come behind it read those."""
        became: dict[Value, Value] = {}
        made = []
        if choice.swap is not None:
            out, back = choice.swap.out, choice.swap.back
            (value,) = out.inputs
            assert value.node is not None
            became[value] = back.outputs[0]
            self._transfers |= {out, back}
            self._inputs[out], self._inputs[back] = [value], list(back.inputs)
            behind = self._order.index(value.node) + 1
            self._order = [*self._order[:behind], out, *self._order[behind:]]  # the order of before may be kept
            made.append(back)
        for node in choice.nodes:
            copy = copy_node(node, [became.get(v, v) for v in self._inputs[node]])
            number = len(self._copies) + 1
            copy.name = f"{node.name}/again{number}"
            for value in copy.outputs:
                value.name = f"{value.name}/again{number}"
            self._inputs[copy] = list(copy.inputs)
            self._copies[copy] = self._copies.get(node, node)
            became.update(zip(node.outputs, copy.outputs, strict=True))
            made.append(copy)
        at = self._order.index(choice.reader)
        for node in self._order[at:]:
            self._inputs[node] = [became.get(v, v) for v in self._inputs[node]]
        self._order = [*self._order[:at], *made, *self._order[at:]]

    def apply(self) -> None:
        """Write all of it into the graph."""
        kernels = self._context.kernels
        with Rewriter(self._graph) as change:
            pending: list[PlanNode] = []
            for node in self._order:
                if node in self._copies or node in self._transfers:
                    if self._copies.get(node, node) in kernels:
                        kernels[node] = kernels[self._copies[node]]
                    pending.append(node)
                    continue
                for copy in pending:
                    change.insert(copy, before=node)
                    if self._inputs[copy] != list(copy.inputs):
                        change.rebind(copy, inputs=self._inputs[copy])
                pending.clear()
                if self._inputs[node] != list(node.inputs):
                    change.rebind(node, inputs=self._inputs[node])
