"""Checks that a step's results are finite (the setting ``check_numerics``)."""

from __future__ import annotations

from graphdock.contracts.device import HOST_MEMORY
from graphdock.contracts.ir import PlanNode, Value
from graphdock.runtime.lower.records import Slot
from graphdock.runtime.lower.state import State
from graphdock.runtime.program.names import Literal, helper
from graphdock.runtime.program.statements import Block, Call

__all__ = ["check_finite"]


def check_finite(state: State, value: Value, where: Slot, block: Block, node: PlanNode) -> None:
    """Raise where a floating result holds NaN or infinity."""
    if value.dtype.is_floating and state.given.home[value] == HOST_MEMORY:
        block.add(Call(helper("finite"), (where.at, Literal(value.name)), node=node, reads=where.roots))
