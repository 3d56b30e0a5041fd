"""Forms: what all nodes of one op with one kernel have in common, so that lowering asks for it once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graphdock.contracts.ir import PlanNode, arg_of
from graphdock.contracts.kernel import KernelDef, ViewRule
from graphdock.contracts.opdef import ArgDef

__all__ = ["Form", "form_of"]


@dataclass(frozen=True, slots=True)
class Form:
    """A node's arguments, flattened, and what its kernel says of them.

    Attributes:
      args: of each input. ``outputs``: the name of the argument behind each output.
      steered: elements of an input in host memory steer the kernel.
      random: it draws.
      plans: the kernel writes into given memory. ``all_or_nothing``: it does so once nothing can be refused any more.
      views: of each output, the input that it may be a view of, and when; empty where one of them may not.
      inplace: of each output, the inputs whose buffer it may take over.
    """

    args: Sequence[ArgDef]
    outputs: tuple[str, ...]
    steered: bool
    random: bool
    plans: bool
    all_or_nothing: bool
    views: tuple[tuple[int, ViewRule], ...]
    inplace: tuple[tuple[int, ...], ...]


def form_of(node: PlanNode, kernel: KernelDef, known: dict[tuple[int, ...], Form]) -> Form:
    """The form of a node.

    Args:
      known: forms by the identity of OpDef and kernel, which the plan keeps alive, and by the number of outputs.
    """
    if not node.opdef.plain:  # attributes say which inputs are whose
        return _made(node, kernel)
    key = id(node.opdef), id(kernel), len(node.inputs), len(node.outputs)
    form = known.get(key)
    if form is None:
        form = known[key] = _made(node, kernel)
    return form


def _made(node: PlanNode, kernel: KernelDef) -> Form:
    opdef, args = node.opdef, arg_of(node)
    names = [a.name for a in args]
    given = opdef.outputs if len(opdef.outputs) == len(node.outputs) else opdef.outputs[:1] * len(node.outputs)
    outputs = tuple([a.name for a in given])
    views = [kernel.views.get(name) for name in outputs]
    return Form(
        args,
        outputs,
        any(a.memory == "host" for a in opdef.inputs),
        "random" in opdef.effects,
        "planned" in kernel.modes,
        "all_or_nothing" in kernel.modes,
        () if None in views else tuple([(names.index(rule.input), rule) for rule in views if rule is not None]),
        tuple([tuple(map(names.index, kernel.inplace.get(name, ()))) for name in outputs]),
    )
