"""Lowering: from a placed plan graph to buffers, bound kernels and the source of a step.

One pass over the nodes decides, for every value, where its elements lie (a :class:`Slot`) and writes the statement that makes it.
Storage rules (DESIGN section 4): whatever escapes is written to a fresh buffer or copied; a read of a variable aliases it only
while no write can run; a view shares its source's storage; an elementwise output takes over a dying input's.
"""

from __future__ import annotations

from graphdock.contracts.device import HOST_MEMORY
from graphdock.contracts.ir import PlanGraph
from graphdock.runtime.capture import whole
from graphdock.runtime.lower.flow import Flow
from graphdock.runtime.lower.kernels import Kernels
from graphdock.runtime.lower.records import Lowered, Slot
from graphdock.runtime.source import Block, Line
from graphdock.runtime.spaces import SCALAR
from graphdock.runtime.storage import Root

__all__ = ["Lowering"]


class Lowering(Kernels, Flow):
    """Lowers one plan. Used once, under the planner's lock."""

    def run(self) -> Lowered:
        graph, out = self.graph, self.out
        for value in graph.inputs:
            feed = self.name("f")
            out.feeds.append(feed)
            root = Root("feed", HOST_MEMORY, value.dtype, (), 0, 0, feed)
            self.keep(value, Slot(feed, (root,), True, False, "feed"), 0)
        for value in graph.outputs:
            target = self.facts.of(value)
            if target.shape is not None and target.shape != () and None not in target.shape:
                self.escapes.add(target)
        self.level(graph, out.block)
        self.fetches(out.block)
        if self.debug:
            self.poison()
        if self.capture is not None:
            if out.capturable and whole(out.block):
                out.captured_by = self.capture
            else:
                out.block.items = [*out.before.items, *out.block.items, *out.after.items]
        return out

    def level(self, graph: PlanGraph, block: Block) -> None:
        for node in graph.nodes:
            at = self.facts.position[node]
            if node.verb == "alias":
                self.alias[node.outputs[0]] = node.inputs[0]
                source = self.resolve(node.inputs[0])
                if source in self.slots:
                    until = self.facts.last.get(node.outputs[0], at)
                    for root in self.slots[source].roots:
                        root.use(until)
            elif node.opdef.verb.silent:
                pass
            elif node.verb == "branch":
                self.cond(node, block, at)
            elif node.verb == "loop":
                self.loop(node, block, at)
            elif node.verb == "move":
                self.transfer(node, block, at)
            elif node.verb == "read":
                self.read(node, block, at)
            elif node.verb == "assign":
                self.assign(node, block, at)
            elif node.verb == "host":
                self.host_op(node, block, at)
            elif node.outputs and self.home.get(node.outputs[0]) == SCALAR:
                self.scalar(node, block)
            else:
                self.kernel(node, block, at)
            self.after[at] = (block, len(block.items))

    def fetches(self, block: Block) -> None:
        given: set[Root] = set()
        for value in self.graph.outputs:
            slot = self.slot(value, HOST_MEMORY)
            for root in slot.roots:
                root.use(self.facts.final)
            if value.shape == ():
                expr = f"{slot.expr}[()]"
            elif slot.kind in ("escape", "fresh") and value.shape is not None and slot.roots[0] not in given:
                given.add(slot.roots[0])
                expr = slot.expr
            elif value.shape is None:
                expr = f"fetch_any({slot.expr})"
            else:
                expr = f"{slot.expr}.copy()"
            self.out.results.append(expr)

    def poison(self) -> None:
        """Debug mode: overwrite every planned buffer once it is dead."""
        dying: dict[int, list[str]] = {}
        for root in self.out.roots:
            if root.kind == "planned" and root.last < self.facts.final:
                dying.setdefault(root.last, []).append(root.name)
        inserts: dict[int, list[tuple[int, str]]] = {}
        blocks: dict[int, Block] = {}
        for position, names in dying.items():
            where = self.after.get(position)
            if where is None:
                continue
            block, index = where
            blocks[id(block)] = block
            inserts.setdefault(id(block), []).extend((index, n) for n in names)
        for key, items in inserts.items():
            block = blocks[key]
            for index, name in sorted(items, reverse=True):
                block.items.insert(index, Line(f"poison({name})"))
