"""Lowering of the verb ``host``: the host calls a function of its own, on host memory and on resources."""

from __future__ import annotations

from graphdock.contracts.device import HOST_MEMORY
from graphdock.contracts.ir import PlanNode, arg_of
from graphdock.contracts.runtime.resources import Resource, Variable

from graphdock_executor.lower.records import Build
from graphdock_executor.lower.state import State, extend_lifetime, fresh, slot
from graphdock_executor.lower.variables import access, resource_name
from graphdock_executor.step_program.names import Name, Operand
from graphdock_executor.step_program.statements import Block, Call
from graphdock_executor.storage import Root

__all__ = ["lower_host"]


def lower_host(state: State, node: PlanNode, block: Block, at: int) -> None:
    name = state.names.new("kernel")
    state.out.builds.append(Build(name, node, None, None))
    state.out.first_bounds.append(None)
    args: list[Operand] = []
    roots: list[Root] = []
    reads: list[Resource] = []
    writes: list[Resource] = []
    for value, arg in zip(node.inputs, arg_of(node), strict=True):
        if value.dtype.name == "resource":
            variable = state.given.resource(state.given.placed.handles[value])
            assert isinstance(variable, Variable)
            (state.out.written if arg.mutates else state.out.read).add(variable)
            (writes if arg.mutates else reads).append(variable)
            args.append(resource_name(state, variable))
        else:
            where = slot(state, value, HOST_MEMORY)
            args.append(where.at)
            roots.extend(where.roots)
    made = []
    for value in node.outputs:
        where = fresh(state, value, HOST_MEMORY, at, "value")
        made.append((value, where))
        extend_lifetime(state, value, where, at)
    names = tuple([where.at for _, where in made if isinstance(where.at, Name)])
    if "waits" in node.opdef.effects:
        state.active = None  # what the user's function makes current is not known
    lock_set = access(state, reads, writes)
    block.add(Call(name, tuple(args), names, lock_set, node=node, reads=tuple(roots), hold="the host runs it"))
    if state.given.placed.check_numerics:
        from graphdock_executor.lower.check_numerics import check_finite

        for value, where in made:
            check_finite(state, value, where, block, node)
