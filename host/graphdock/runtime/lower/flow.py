"""Lowering of Cond and While to native ``if`` and ``while``."""

from __future__ import annotations

from collections.abc import Sequence

from graphdock.contracts.ir import PlanGraph, PlanNode, Value
from graphdock.runtime.lower.base import Base
from graphdock.runtime.lower.records import Slot
from graphdock.runtime.source import Block
from graphdock.runtime.spaces import SCALAR
from graphdock.runtime.storage import Root
from graphdock.shape import concrete

__all__ = ["Flow"]


class Flow(Base):
    """A loop variable owns two buffers, read and written in turn; what a body returns is written straight into its place."""

    def producers(self, body: PlanGraph, direct: Sequence[tuple[Value, Root, str]]) -> None:
        """Let the producers of body outputs write straight into the given storage, where they can."""
        for value, root, expr in direct:
            node = value.node
            registered = self.kernels.get(node) if node is not None else None
            if node is None or registered is None or node not in body.nodes:
                continue
            if "planned" in registered.kernel.modes and value.shape == root.shape:
                self.direct[value] = (root, expr)

    def cond(self, node: PlanNode, block: Block, at: int) -> None:
        end = self.facts.end[node]
        predicate = self.slot(node.inputs[0], SCALAR).expr
        targets: list[Slot] = []
        for i, value in enumerate(node.outputs):
            space = self.home[value]
            shapes = [b.outputs[i].shape for b in node.bodies]
            if space == SCALAR:
                targets.append(Slot(self.name("s"), (), True, False, "scalar"))
            elif concrete(value.shape) is not None and all(s == value.shape for s in shapes):
                root = self.root("planned", space, value, at)
                targets.append(Slot(root.name, (root,), True, True, "cond"))
            else:
                expr = self.name("v")
                targets.append(Slot(expr, (Root("fresh", space, value.dtype, (), at, end, expr),), True, False, "cond"))
        before = set(self.assigned)
        for header, body in zip((f"if {predicate}:", "else:"), node.bodies, strict=True):
            block.add(header, node)
            inner = block.nested()
            self.producers(
                body, [(v, t.roots[0], t.expr) for v, t in zip(body.outputs, targets, strict=True) if t.static]
            )
            self.branches += 1
            self.level(body, inner)
            self.branches -= 1
            for value, outer, target in zip(body.outputs, node.outputs, targets, strict=True):
                self.hand_over(value, outer, target, inner, node)
            if not inner.items:
                inner.add("pass", node)
            self.assigned = set(before)
        for value, target in zip(node.outputs, targets, strict=True):
            self.keep(value, target, end)
        self.after[end] = (block, len(block.items))

    def hand_over(self, value: Value, outer: Value, target: Slot, block: Block, node: PlanNode) -> None:
        """Make ``target`` hold a branch's output."""
        source = self.slot(value, self.home[outer])
        if target.kind == "scalar":
            block.add(f"{target.expr} = {source.expr}", node)
        elif source.expr == target.expr:
            return
        elif target.static:
            block.add(f"{self.method(self.home[outer], 'copy')}({source.expr}, {target.expr})", node)
        elif source.kind == "fresh":
            block.add(f"{target.expr} = {source.expr}", node)
        else:
            block.add(f"{target.expr} = {self.copier(self.home[outer], value)}({source.expr})", node)

    def loop(self, node: PlanNode, block: Block, at: int) -> None:
        end = self.facts.end[node]
        cond, body = node.bodies
        count = len(node.outputs)
        params: list[Slot] = []
        nexts: list[Slot | None] = []
        for i in range(count):
            value, parameter = node.inputs[i], body.inputs[i]
            space = self.home[parameter]
            source = self.slot(value, space)
            if space == SCALAR:
                slot = Slot(self.name("l"), (), True, False, "scalar")
                block.add(f"{slot.expr} = {source.expr}", node)
                nexts.append(None)
            elif concrete(parameter.shape) is not None and body.outputs[i].shape == parameter.shape == value.shape:
                first = self.root("loop", space, parameter, at)
                second = self.root("loop", space, parameter, at)
                slot = Slot(self.name("l"), (first, second), True, False, "loop")
                after = Slot(self.name("m"), (second, first), True, False, "loop")
                block.add(f"{self.method(space, 'copy')}({source.expr}, {first.name})", node)
                block.add(f"{slot.expr} = {first.name}", node)
                block.add(f"{after.expr} = {second.name}", node)
                nexts.append(after)
            else:
                expr = self.name("l")
                slot = Slot(expr, (Root("fresh", space, value.dtype, (), at, end, expr),), True, False, "loop")
                block.add(f"{expr} = {self.copier(space, value)}({source.expr})", node)
                nexts.append(None)
            params.append(slot)
            for graph in (cond, body):
                self.slots[graph.inputs[i]] = slot
        limit = node.attrs["maximum_iterations"]
        if limit >= 0:
            counter = self.name("n")
            block.add(f"{counter} = 0", node)
        block.add("while True:", node)
        inner = block.nested()
        before = set(self.assigned)
        self.level(cond, inner)
        test = self.slot(cond.outputs[0], SCALAR).expr
        inner.add(f"if not {test}: break", node)
        if limit >= 0:
            inner.add(f"if {counter} >= {limit}: break", node)
            inner.add(f"{counter} = {counter} + 1", node)
        self.producers(
            body, [(v, n.roots[0], n.expr) for v, n in zip(body.outputs, nexts, strict=False) if n is not None]
        )
        self.level(body, inner)
        self.advance(node, body, params, nexts, inner)
        self.assigned = before
        for value, slot in zip(node.outputs, params, strict=True):
            self.keep(value, slot, end)
        self.after[end] = (block, len(block.items))

    def advance(
        self, node: PlanNode, body: PlanGraph, params: Sequence[Slot], nexts: Sequence[Slot | None], block: Block
    ) -> None:
        """End of an iteration: every next value is in place before any loop variable changes."""
        left: list[str] = []
        right: list[str] = []
        for i, (slot, following) in enumerate(zip(params, nexts, strict=True)):
            value = body.outputs[i]
            space = self.home[body.inputs[i]]
            source = self.slot(value, space)
            if source.expr == slot.expr:
                continue
            if following is not None:
                if source.expr != following.expr:
                    block.add(f"{self.method(space, 'copy')}({source.expr}, {following.expr})", node)
                left += [slot.expr, following.expr]
                right += [following.expr, slot.expr]
            elif slot.kind == "scalar" or source.kind == "fresh":
                left.append(slot.expr)
                right.append(source.expr)
            else:
                left.append(slot.expr)
                right.append(f"{self.copier(space, value)}({source.expr})")
        if left:
            block.add(f"{', '.join(left)} = {', '.join(right)}", node)
