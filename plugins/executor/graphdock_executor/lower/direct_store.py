"""Values that a kernel writes straight into the variables that they are assigned to, so that nobody copies them there.

A kernel of mode ``all_or_nothing`` writes nothing before all that may be refused has been accepted. So a variable may lend it its
memory where the assignment comes right after the kernel, and nothing else in the plan knows the variable or the value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from graphdock.contracts.device import HOST_MEMORY
from graphdock.contracts.ir import PlanNode, Value
from graphdock.contracts.runtime.resources import Variable
from graphdock.dtypes import string

from graphdock_executor.lower.state import LoweringInput, State
from graphdock_executor.step_program.names import Name, Operand, helper

__all__ = ["direct_stores", "store_directly"]

#: Verbs of nodes that run nothing.
_IDLE = frozenset({"constant", "handle", "none"})


def direct_stores(given: LoweringInput) -> dict[Value, Variable]:
    """Value -> the variable in whose memory its kernel writes it.

    None in a step that holds no locks while it runs, for others see the variable between kernel and assignment; and none in debug
    mode, which fills outputs with what no result contains before a kernel is called.
    """
    makers = {n for n, kernel in given.placed.kernels.items() if "all_or_nothing" in kernel.modes and n.guard is None}
    if not makers or not given.locked or given.placed.debug:
        return {}
    used = _uses(given)
    nodes = given.placed.graph.nodes
    found: dict[Value, Variable] = {}
    for i, node in enumerate(nodes):
        if node in makers:
            for assign in _assignments(nodes[i + 1 :], node):
                value, variable = assign.inputs[1], given.resource(given.placed.handles[assign.inputs[0]])
                if used[value] == 1 and used[variable] == 1 and _fits(given, value, variable):
                    assert isinstance(variable, Variable)
                    found[value] = variable
    return found


def _assignments(behind: Sequence[PlanNode], maker: PlanNode) -> Iterator[PlanNode]:
    """The assignments of what a node makes, up to the first node that does anything else."""
    for node in behind:
        if node.verb == "assign" and node.inputs[1].node is maker and node.guard is None:
            yield node
        elif node.verb not in _IDLE:
            return


def _uses(given: LoweringInput) -> Counter[object]:
    """Of every value, and of every resource, how many inputs of nodes it is; a result of the step is used once more."""
    used: Counter[object] = Counter(given.placed.graph.outputs)
    for level in given.placed.graph.all_graphs():
        used.update(level.outputs)
        for node in level.nodes:
            used.update(node.inputs)
            used.update({given.resource(given.placed.handles[v]) for v in node.inputs if v in given.placed.handles})
    return used


def _fits(given: LoweringInput, value: Value, variable: object) -> bool:
    return (
        isinstance(variable, Variable)
        and variable.static
        and variable.dims == value.shape
        and variable.dtype is not string
        and variable.device.memory_space == HOST_MEMORY == given.placed.home[value]
    )


def store_directly(
    state: State, kernel: Name, variables: Sequence[Variable], args: Sequence[Operand]
) -> tuple[Operand, tuple[Operand, ...]]:
    """A function and arguments that stand for the launch of a kernel on variables' memory."""
    name = state.names.new("object")
    state.out.objects[name] = tuple(variables)
    return helper("all_or_nothing"), (kernel, name, *args)
