"""Kinds of nodes with kernels, and the modes granted to their outputs: a view, a dying input's buffer, a planned one, a fresh one.

What is the same for all nodes of one op and kernel is a :class:`Form`; of one device, of equal dtypes and shapes besides, a
:class:`Kind`; each is decided once a plan. Values of one dtype and shape have one number, variables too, and so has a constant; a
kind is known by the numbers of what its nodes take and give. A kernel's function is shared by nodes of one kind, with equal modes
and attributes, where it can hold nothing of the first of them.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Hashable, Sequence
from dataclasses import field
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from graphdock.contracts.ir import PlanNode, Value, arg_of
from graphdock.contracts.kernel import (
    FRESH,
    PLANNED,
    ArgInfo,
    Bound,
    BuildContext,
    KernelDef,
    Lit,
    Mode,
    OutInfo,
    ViewRule,
    inplace,
    view,
)
from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.contracts.opdef import ArgDef
from graphdock.contracts.runtime.resources import Variable
from graphdock.dtypes import DType

from graphdock_executor.lower.records import Slot

if TYPE_CHECKING:
    from graphdock_executor.lower.state import State

__all__ = [
    "Form",
    "Granted",
    "Kind",
    "Kinds",
    "Shared",
    "attributes_of",
    "fixed_modes",
    "form_of",
    "grant",
    "is_shareable",
]

_ROOTS, _FIRST = operator.attrgetter("roots"), operator.itemgetter(0)
#: What never changes.
_CONSTANT = (
    type(None),
    type(...),
    bool,
    int,
    float,
    complex,
    slice,
    np.generic,
    np.dtype,
    np.ufunc,
    type(np.dot),
    DType,
    type,
)


@lazy_dataclass(frozen=True, slots=True)
class Form:
    """A node's arguments, flattened, and what its kernel says of them.

    Attributes:
      args: of each input. ``outputs``: the name of the argument behind each output.
      bare: dtypes of inputs and outputs say all that attributes do.
      steered: the inputs in host memory, whose elements steer the kernel.
      random: it draws. ``waits``: for other steps.
      plans: the kernel writes into given memory. ``all_or_nothing``: it does so once nothing can be refused any more.
      views: of each output, the input that it may be a view of, and when; empty where one of them may not.
      inplace: of each output, the inputs whose buffer it may take over.
    """

    args: Sequence[ArgDef]
    outputs: tuple[str, ...]
    bare: bool
    steered: tuple[int, ...]
    random: bool
    waits: bool
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
        opdef.plain and not opdef.attrs and {t.name for t in opdef.types} <= {a.dtype for a in (*args, *given)},
        tuple([i for i, a in enumerate(args) if a.memory == "host"]),
        "random" in opdef.effects,
        "waits" in opdef.effects,
        "planned" in kernel.modes,
        "all_or_nothing" in kernel.modes,
        () if None in views else tuple([(names.index(rule.input), rule) for rule in views if rule is not None]),
        tuple([tuple(map(names.index, kernel.inplace.get(name, ()))) for name in outputs]),
    )


def grant(state: State, node: PlanNode, form: Form, slots: Sequence[Slot], at: int, plans: bool) -> list[Mode]:
    """A mode per output, of those that the kernel accepts.

    Args:
      plans: it writes into given memory, and all outputs have a known shape.
    """
    outputs = node.outputs
    if form.views and all(not rule.needs_contiguous or slots[i].contiguous for i, rule in form.views):
        return [view(i) for i, _ in form.views]
    if form.all_or_nothing:
        return [PLANNED if v in state.direct_stores else FRESH for v in outputs]
    if not plans:
        return [FRESH] * len(outputs)
    result: list[Mode] = []
    taken: set[int] = set()
    for i, value in enumerate(outputs):
        mode = FRESH if value.dtype.kind == "V" else PLANNED
        for index in form.inplace[i]:
            if index not in taken and _can_take_over(state, node.inputs[index], value, slots, index, at):
                mode = inplace(index)
                taken.add(index)
                break
        result.append(mode)
    return result


def _can_take_over(state: State, source: Value, value: Value, slots: Sequence[Slot], index: int, at: int) -> bool:
    """Return whether an output may be written over that input: nobody reads it afterwards, and it fits."""
    slot = slots[index]
    if slot.kind != "planned" or len(slot.roots) != 1 or not slot.static:
        return False
    root = slot.roots[0]
    return (
        root.last <= at
        and root.kind == "planned"
        and source.dtype is value.dtype
        and source.shape == value.shape
        and root.shape == value.shape
        and value not in state.escapes
        and value not in state.direct
        and value not in state.retained
        and (len(slots) == 1 or list(map(_ROOTS, slots)).count(slot.roots) == 1)
    )


@lazy_dataclass(slots=True, eq=False)
class Shared:
    """A kernel that was made for a node, and what it was told.

    Attributes:
      proven: others alike may share it. ``is_plain``: their calls take inputs and planned outputs, and nothing else.
    """

    bound: Bound
    told: BuildContext
    proven: bool = False
    is_plain: bool = False


@lazy_dataclass(slots=True, eq=False)
class Granted:
    """Facts of nodes of one kind with equal modes. ``bounds``: attributes -> the kernel of the first node with these."""

    outputs: tuple[OutInfo, ...]
    bounds: dict[Hashable, Shared] = field(default_factory=dict)


@lazy_dataclass(slots=True, eq=False)
class Kind:
    """Facts of nodes that are lowered alike.

    Attributes:
      infos: of each input. ``unknown``: some input's shape is not known.
      plans: its outputs can be planned.
      fixed: the modes of the outputs, where nothing of the step decides on them.
      shares: nodes may share a kernel; False once one has made what they may not share. ``bare``: their attributes are equal.
      granted: modes, by identity -> facts.
    """

    form: Form
    infos: tuple[ArgInfo, ...]
    unknown: bool
    plans: bool
    fixed: list[Mode] | None
    shares: bool
    bare: bool
    granted: dict[Hashable, Granted] = field(default_factory=dict)


class Kinds:
    """Kinds of one plan, and the numbers of its values. What is known by identity the plan keeps alive."""

    def __init__(self) -> None:
        self.known: dict[Hashable, Kind] = {}
        self._numbers: dict[Hashable, int] = {}
        self.numbered: dict[Value, int] = {}  # those that were asked for

    def number(self, value: Value) -> int:
        """The number of a value that is no constant."""
        number = self.numbered.get(value)
        return self.new(value) if number is None else number

    def new(self, value: Value) -> int:
        """The number of a value that was not asked for before."""
        numbers = self._numbers
        number = self.numbered[value] = numbers.setdefault((value.dtype.name, value.shape), len(numbers))
        return number

    def constant(self, array: Any, value: Value) -> int:
        """The number of a constant, as an input that has its dtype and shape."""
        return self._numbers.setdefault((id(array), value.shape), len(self._numbers))

    def variable(self, variable: Variable) -> int:
        """The number of a variable, whose buffer a kernel gets."""
        return self._numbers.setdefault((variable.dtype.name, variable.dims, True), len(self._numbers))


def fixed_modes(form: Form, plans: bool, outputs: Sequence[Value]) -> list[Mode] | None:
    """The modes of outputs, where nothing of the step decides on them; else None. A history is never planned."""
    if form.views or form.all_or_nothing:
        return None
    if not plans:
        return [FRESH] * len(outputs)
    return None if any(form.inplace) else [FRESH if v.dtype.kind == "V" else PLANNED for v in outputs]


def attributes_of(node: PlanNode) -> Hashable:
    """Attributes of a node, as a key that tells from each other what kernels may tell from each other; None where there is none.

    Those whose names begin with ``_`` are the host's own.
    """
    try:
        key = tuple(node.attrs.items())
        if float in map(type, node.attrs.values()) or "_" in map(_FIRST, node.attrs):
            key = tuple([(k, repr(v) if type(v) is float else v) for k, v in key if k[0] != "_"])
        hash(key)
    except TypeError:
        return None
    return key


def is_shareable(bound: Bound, node: PlanNode) -> bool:
    """Return whether a kernel holds nothing of the node that it was made for but its attributes, and keeps nothing between calls.

    Functions without closures can't, and neither can those over what never changes: numbers, dtypes, read-only arrays, and more
    such functions. Objects that it is handed must be such, too. Of strings only attributes count: others may be names.
    """
    stack: list[Any] = [bound.compute, *(a.value for a in bound.args or () if isinstance(a, Lit))]
    seen: set[int] = set()
    while stack:
        item = stack.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, FunctionType):
            try:
                stack += [cell.cell_contents for cell in item.__closure__ or ()]
            except ValueError:  # a cell that is not filled yet
                return False
            stack += [*(item.__defaults__ or ()), *(item.__kwdefaults__ or {}).values()]
        elif isinstance(item, functools.partial):
            stack += [item.func, *item.args, *item.keywords.values()]
        elif isinstance(item, (tuple, frozenset)):
            stack += item
        elif isinstance(item, str):
            if not any(item is value or item == value for value in node.attrs.values() if isinstance(value, str)):
                return False
        elif isinstance(item, np.ndarray):
            if item.flags.writeable:
                return False
            stack.append(item.base)
        elif isinstance(item, BuiltinFunctionType):
            if not isinstance(item.__self__, (ModuleType, type(None))):
                return False
        elif not isinstance(item, _CONSTANT):
            return False
    return True
