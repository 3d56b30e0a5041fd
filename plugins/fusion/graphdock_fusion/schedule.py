"""Scheduling: the order of a plan's nodes in which fewest bytes of buffers are alive at once, for a step over its budget of memory.

Several orders are tried, the program's own among them, and the one with the lowest peak is taken, which so is never higher: a
traversal that begins with the operand that needs most (R. Sethi, J. D. Ullman: The generation of optimal code for arithmetic
expressions, 1970), list scheduling by bytes gained, and both orders with nodes that free memory run as early as they may.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush
from math import prod

from graphdock.contracts import HOST_MEMORY, PlanContext, PlanGraph, PlanNode, Rewriter, Value
from graphdock.units import in_bytes

__all__ = ["Lifetimes", "hasten", "nbytes", "schedule"]


def schedule(graph: PlanGraph, context: PlanContext) -> None:
    """Arrange the plan's own level, where buffers of a device type are over its budget."""
    budgets = context.memory_budget
    lives = Lifetimes(graph, context)
    before: Mapping[str, int] = lives.peaks(range(len(lives.nodes)))
    peaks = before
    if all(before.get(kind, 0) <= budget for kind, budget in budgets.items()):
        return
    while True:  # until no order is better, so that the pass finds nothing when it runs again
        order, found = _best(lives, peaks, budgets)
        if found == peaks:
            break
        peaks = found
        with Rewriter(graph) as change:
            change.arrange([lives.nodes[i] for i in order])
        lives = Lifetimes(graph, context)
    for kind in budgets:
        most, was = peaks.get(kind, 0), before.get(kind, 0)
        context.notes.append(
            f"orders nodes on {kind}: {in_bytes(most)} of buffers at most, {in_bytes(was)} as they stood"
        )


def _best(
    lives: Lifetimes, own: Mapping[str, int], budgets: Mapping[str, int]
) -> tuple[Sequence[int], Mapping[str, int]]:
    """The order of fewest bytes over the budgets, then of lowest peaks; none with a peak above those of the nodes' own order."""

    def rank(peaks: Mapping[str, int]) -> tuple[int, int]:
        return sum(max(0, peaks.get(kind, 0) - budget) for kind, budget in budgets.items()), sum(peaks.values())

    best: tuple[Sequence[int], Mapping[str, int]] = range(len(lives.nodes)), own
    for order in _orders(lives):
        peaks = lives.peaks(order)
        if all(peaks[kind] <= most for kind, most in own.items()) and rank(peaks) < rank(best[1]):
            best = order, peaks
    return best


def nbytes(node: PlanNode, value: Value) -> int:
    """Bytes of a buffer that a node makes; 0 of what is none, or has no known shape."""
    kept = node.opdef.verb.kernel or (node.verb == "move" and node.attrs["target"] != HOST_MEMORY)
    if node.device is None or not kept or value.dtype.kind in "RV" or value.shape is None:
        return 0
    return 0 if None in value.shape else value.dtype.size * prod(d for d in value.shape if d is not None)


class Lifetimes:
    """Nodes of a level: those that each waits for, the buffers that it makes, and who reads them by whatever name.

    Attributes:
      nodes: in the order in which they stood. Nodes and buffers are numbers in all that follows.
      behind: node -> those that it has to come after: makers of inputs, what it waits for, and what has to read a variable before
        it writes that one, which else would be copied.
      makes: node -> its buffers. ``reads``: node -> buffers. ``readers``: buffer -> nodes.
      sizes: bytes of each buffer. ``kinds``: device type of each. ``fetched``: those that are alive to the end.
    """

    def __init__(self, graph: PlanGraph, context: PlanContext) -> None:
        self.nodes = list(graph.nodes)
        at = {node: i for i, node in enumerate(self.nodes)}
        root: dict[Value, Value] = {}
        number: dict[Value, int] = {}
        self.sizes: list[int] = []
        self.kinds: list[str] = []
        self.readers: list[list[int]] = []
        self.reads: list[list[int]] = []
        self.makes: list[list[int]] = []
        self.behind: list[list[int]] = []
        of_variable: dict[PlanNode, list[int]] = {}  # read -> those that read its value
        for i, node in enumerate(self.nodes):
            registered = context.kernels.get(node)
            views = node.verb == "alias" or (registered is not None and bool(registered.kernel.views))
            named = views and bool(node.inputs) and len(node.outputs) == 1
            roots = dict.fromkeys(root.get(value, value) for value in node.inputs)
            self.reads.append([number[value] for value in roots if value in number])
            for buffer in self.reads[-1]:
                self.readers[buffer].append(i)
            for value in roots:
                if value.node is not None and value.node.verb == "read":
                    of_variable.setdefault(value.node, []).append(i)
            self.makes.append([])
            for value in node.outputs:
                if named:
                    root[value] = root.get(node.inputs[0], node.inputs[0])
                elif size := nbytes(node, value):
                    number[value] = len(self.sizes)
                    self.makes[-1].append(len(self.sizes))
                    self.sizes.append(size)
                    self.kinds.append((node.device and node.device.type) or "")
                    self.readers.append([])
            waits = {at[v.node] for v in node.inputs if v.node is not None}
            waits.update(at[other] for other in (*node.control, *node.order))
            waits.update(r for other in node.order for r in of_variable.get(other, ()) if r != i)
            self.behind.append(sorted(waits))
        self.fetched = {number[v] for v in (root.get(v, v) for v in graph.outputs) if v in number}

    def peaks(self, order: Sequence[int]) -> dict[str, int]:
        """Device type -> most bytes of its buffers that are alive at once."""
        held, most = dict.fromkeys(self.kinds, 0), dict.fromkeys(self.kinds, 0)
        left = [len(readers) for readers in self.readers]
        for node in order:
            for buffer in self.makes[node]:
                kind = self.kinds[buffer]
                held[kind] += self.sizes[buffer]
                most[kind] = max(most[kind], held[kind])
            for buffer in self.reads[node]:
                left[buffer] -= 1
            for buffer in (*self.reads[node], *self.makes[node]):
                if not left[buffer] and buffer not in self.fetched:
                    held[self.kinds[buffer]] -= self.sizes[buffer]
        return most


def _orders(lives: Lifetimes) -> Iterator[Sequence[int]]:
    own = range(len(lives.nodes))
    deep = _depth_first(lives)
    yield _listed(lives, own, eager=True)
    yield deep
    yield _listed(lives, deep, eager=True)
    yield _listed(lives, own, eager=False)
    yield _listed(lives, deep, eager=False)


def _depth_first(lives: Lifetimes) -> list[int]:
    """Nodes behind what they need, of which the one that needs most beyond what it leaves is first."""
    needs: list[int] = []
    leaves = [sum(lives.sizes[b] for b in made) for made in lives.makes]
    first: list[list[int]] = []
    for node, behind in enumerate(lives.behind):
        first.append(sorted(behind, key=lambda n: (leaves[n] - needs[n], n)))
        held = need = 0
        for other in first[-1]:
            need = max(need, held + needs[other])
            held += leaves[other]
        needs.append(max(need, held + leaves[node]))
    order: list[int] = []
    seen = [False] * len(first)
    for last in range(len(first)):
        stack = [last] if not seen[last] else []
        while stack:
            node = stack[-1]
            ahead = [n for n in first[node] if not seen[n]]
            if ahead:
                stack.append(ahead[0])
                continue
            stack.pop()
            if not seen[node]:
                seen[node] = True
                order.append(node)
    return order


def _listed(lives: Lifetimes, base: Sequence[int], eager: bool) -> list[int]:
    """Of the nodes that may run next, one that frees most; else, of those that free nothing, the next of an order.

    Args:
      eager: nodes that take memory follow the order, too. Otherwise the one that takes least is next.
    """
    place = [0] * len(base)
    for i, node in enumerate(base):
        place[node] = i
    left = [set(readers) for readers in lives.readers]
    waits = [len(behind) for behind in lives.behind]
    ahead: list[list[int]] = [[] for _ in base]
    for node, behind in enumerate(lives.behind):
        for other in behind:
            ahead[other].append(node)
    heap: list[tuple[int, int, int]] = []
    done = [False] * len(base)

    def gain(node: int) -> int:
        takes = sum(lives.sizes[b] for b in lives.makes[node] if lives.readers[b] or b in lives.fetched)
        for buffer in lives.reads[node]:
            if len(left[buffer]) == 1 and buffer not in lives.fetched:
                takes -= lives.sizes[buffer]
        return min(takes, 1) if eager else takes

    def offer(node: int) -> None:
        heappush(heap, (gain(node), place[node], node))

    for node, count in enumerate(waits):
        if not count:
            offer(node)
    order: list[int] = []
    while heap:
        *_, node = heappop(heap)
        if done[node]:
            continue
        done[node] = True
        order.append(node)
        for buffer in lives.reads[node]:
            left[buffer].discard(node)
            if len(left[buffer]) == 1:
                (last,) = left[buffer]
                if not waits[last]:
                    offer(last)  # its bytes are freed by this one alone now
        for other in ahead[node]:
            waits[other] -= 1
            if not waits[other]:
                offer(other)
    return order


def hasten(graph: PlanGraph) -> None:
    """Put nodes without outputs behind the last of what they need, and of what reads a variable before they write it."""
    at = {node: i for i, node in enumerate(graph.nodes)}
    last: dict[PlanNode, int] = {}  # node -> the last that reads from it, through other names
    for node in reversed(graph.nodes):
        own = last.get(node, at[node])
        for value in node.inputs:
            if value.node is not None:
                until = own if node.verb == "alias" else at[node]
                last[value.node] = max(last.get(value.node, 0), until)
    keys: dict[PlanNode, int] = {}
    for node in graph.nodes:
        keys[node] = at[node]
        update = node.opdef.verb.kernel and not node.outputs and not node.bodies
        if update or node.verb == "read" or (node.opdef.verb.silent and node.verb != "alias"):
            behind = [*(v.node for v in node.inputs if v.node is not None), *node.control, *node.order]
            reads = [last.get(n, 0) for n in node.order if update and n.verb == "read"]
            keys[node] = min(at[node], max([*(keys[n] for n in behind), *reads], default=0))
    order = sorted(graph.nodes, key=lambda node: (keys[node], at[node]))
    if order != graph.nodes:
        with Rewriter(graph) as change:
            change.arrange(order)
