"""Lowering of reads and updates of variables."""

from __future__ import annotations

from graphdock.contracts.ir import PlanNode, Value
from graphdock.contracts.kernel import PLANNED
from graphdock.runtime.lower.base import Base
from graphdock.runtime.lower.records import Slot
from graphdock.runtime.source import Block
from graphdock.runtime.storage import Root
from graphdock.runtime.variable_store import VariableState
from graphdock.shape import concrete

__all__ = ["Variables"]


class Variables(Base):
    """A read aliases its variable only while no write can run in the plan; else it is a copy."""

    def touch(self, handle: Value, node: PlanNode, block: Block, writes: bool) -> VariableState:
        """The variable behind a handle; notes that it is read (and must hold a value) or written.

        Whether it holds one is checked when the step begins, but where it is read: in a branch of a cond, which may not run, and
        in a plan that destroys the variable.
        """
        owner = self.handles[handle]
        state = self.variable(owner, node)
        (self.out.written if writes else self.out.read).add(state)
        destroyed = owner in self.destroyed
        if node.verb != "assign" and (destroyed or (state not in self.assigned and state not in self.out.checked)):
            if self.branches or destroyed:
                name = self.state_name(state)
                block.add(f"if not {name}.initialized: unset({name})", node)
            else:
                self.out.checked[state] = node
        return state

    def variable_slot(self, state: VariableState) -> Slot:
        if not state.static:
            return Slot(f"{self.state_name(state)}.buffer", (), True, False, "variable")
        for name, known in self.out.variables.items():
            if known is state:
                return Slot(name, (), True, True, "variable")
        name = self.name("w")
        self.out.variables[name] = state
        return Slot(name, (), True, True, "variable")

    def state_name(self, state: VariableState) -> str:
        for name, known in self.out.states.items():
            if known is state:
                return name
        name = self.name("x")
        self.out.states[name] = state
        return name

    def read(self, node: PlanNode, block: Block, at: int) -> None:
        state = self.touch(node.inputs[0], node, block, False)
        value = node.outputs[0]
        slot = self.variable_slot(state)
        if not state.static or concrete(value.shape) is None:
            expr = self.name("v")
            call = f"{self.state_name(state)}.snapshot"
            block.add(
                f"{expr} = {call}()" if self.locked else f"{expr} = under(({self.state_name(state)},), {call})", node
            )
            root = Root("fresh", self.home[value], value.dtype, (), at, at, expr)
            self.keep(value, Slot(expr, (root,), True, False, "fresh"), at)
            return
        writes = self.facts.writes.get(self.handles[node.inputs[0]], ())
        until = self.facts.reach.get(value, at)
        if self.locked and not any(at < w <= until for w in writes):
            self.slots[value] = slot
            return
        made = self.output(value, PLANNED, [], None, "", at, block)  # type: ignore[arg-type]
        copy = self.method(state.device.memory_space, "copy")
        if self.locked:
            block.add(f"{copy}({slot.expr}, {made.expr})", node)
        else:
            block.add(f"under(({self.state_name(state)},), {copy}, {slot.expr}, {made.expr})", node)

    def assign(self, node: PlanNode, block: Block, at: int) -> None:
        state = self.touch(node.inputs[0], node, block, True)
        name = self.state_name(state)
        space = state.device.memory_space
        slot = self.slot(node.inputs[1], space)
        value = node.inputs[1]
        if state.static and value.shape == state.dims:
            target = self.variable_slot(state)
            call = [self.method(space, "copy"), slot.expr, target.expr]
        else:
            call = [f"{name}.assign", slot.expr]
        if self.locked:
            block.add(f"{call[0]}({', '.join(call[1:])})", node)
        else:
            block.add(f"under(({name},), {', '.join(call)})", node)
        (block if self.capture is None else self.out.after).add(f"{name}.initialized = True", node)
        self.assigned.add(state)  # until the branch or body that this stands in ends
