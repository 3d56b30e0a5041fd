"""Whole numbers of a plan as affine forms: what a loop's counter, its bound and the size of a list have to do with one another.

Forms are taken as if int32 had no end. That is safe where they are compared with the size of a list, which is a whole number of
int32 that is not negative: a form that lies between zero and it has not wrapped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from graphdock.contracts import PlanGraph, PlanNode, Value, dtypes
from graphdock.contracts.bodies import captures, carried, elements
from graphdock.shape import Symbol

__all__ = ["Affine", "Base", "Facts", "Scopes", "length_of", "root_of"]

#: What a sum is made of: a scalar, or a dim of which nothing is known but that it is one.
Base: TypeAlias = "Value | Symbol"

#: So deep a sum is looked into.
_DEEP = 16


@dataclass(frozen=True, slots=True)
class Affine:
    """A sum of multiples of what a step knows, and a number."""

    terms: tuple[tuple[Base, int], ...] = ()
    number: int = 0

    def plus(self, other: Affine, times: int = 1) -> Affine:
        """The sum with so many times another one."""
        found = dict(self.terms)
        for base, factor in other.terms:
            found[base] = found.get(base, 0) + times * factor
        return Affine(tuple([t for t in found.items() if t[1]]), self.number + times * other.number)

    def minus(self, other: Affine) -> Affine:
        return self.plus(other, -1)

    def add(self, number: int) -> Affine:
        return Affine(self.terms, self.number + number)

    def times(self, factor: int) -> Affine:
        return Affine().plus(self, factor)

    @property
    def known(self) -> int | None:
        """The number that it is; None where a step tells."""
        return None if self.terms else self.number

    def is_zero(self) -> bool:
        return not self.terms and self.number == 0

    def at_least_zero(self) -> bool:
        """Return whether it is proven to be zero or more: dims are."""
        return self.number >= 0 and all(isinstance(base, Symbol) and factor > 0 for base, factor in self.terms)


class Facts:
    """Findings about loops.

    Attributes:
      dims: dim of which nothing is known -> what it is. ``finals``: result of a loop -> what it is; where there would be less than
        none of the iterations or rows, there are none.
      most: result of a loop -> what it is at most.
    """

    def __init__(self) -> None:
        self.dims: dict[Symbol, Affine] = {}
        self.finals: dict[Value, Affine] = {}
        self.most: dict[Value, Affine] = {}


class Scopes:
    """All levels of a plan: what inner ones have of outer ones, and what is known of whole numbers.

    Attributes:
      facts: what was found out about loops that have changed.
      scalars: dim of which nothing is known -> a scalar that is it.
    """

    def __init__(self, graph: PlanGraph, facts: Facts) -> None:
        self.facts = facts
        self.scalars: dict[Symbol, Value] = {}
        #: input of a body that is captured -> the node with the body, and which of its inputs that is; the same of elements
        self._captured: dict[Value, tuple[PlanNode, int]] = {}
        self._elements: dict[Value, tuple[PlanNode, int]] = {}
        for level in graph.all_graphs():
            for node in level.holders:
                self.see(node)

    def see(self, node: PlanNode) -> None:
        """Take note of a node with bodies that is new, or has other inputs."""
        for position, _, inside in captures(node):
            self._captured.update(dict.fromkeys(inside, (node, position)))
        first = carried(node.opdef, node.attrs)
        self._elements.update({element: (node, first + i) for i, (_, element) in enumerate(elements(node))})

    def outermost(self, value: Value) -> Value:
        """Value that another one is where it is made."""
        while value in self._captured:
            node, position = self._captured[value]
            value = node.inputs[position]
        return value

    def history_of(self, element: Value) -> tuple[Value, PlanNode] | None:
        """The history of which a value is the element of an iteration, and the loop; None for any other."""
        if element not in self._elements:
            return None
        node, position = self._elements[element]
        return node.inputs[position], node

    def affine(self, value: Value, known: Mapping[Value, Affine] | None = None, deep: int = _DEEP) -> Affine:
        """A scalar of int32 as a sum. ``known``: what some values are."""
        value = self.outermost(value)
        if known is not None and value in known:
            return known[value]
        if value in self.facts.finals:
            return self.facts.finals[value]
        node = value.node
        if node is None or not deep or value.dtype is not dtypes.int32:
            return Affine(((value, 1),))
        if node.verb == "constant" and node.attrs["value"].shape == ():
            return Affine((), int(node.attrs["value"]))
        if node.op in ("Add", "Sub") and all(v.shape == () for v in node.inputs):
            a, b = (self.affine(v, known, deep - 1) for v in node.inputs)
            return a.plus(b, 1 if node.op == "Add" else -1)
        if node.op == "Maximum" and (least := node.constant(1)) is not None and least.shape == () and least == 0:
            return self.affine(node.inputs[0], known, deep - 1)  # see Facts.finals
        if node.op == "TensorListLength":
            length = length_of(self.outermost(node.inputs[0]), self)
            return Affine(((value, 1),)) if length is None else length
        dim = _dim_of(node)
        if dim is not None:
            found = self.dim(*dim)
            if found is not None:
                for base, _ in found.terms:
                    if isinstance(base, Symbol):
                        self.scalars.setdefault(base, value)
                return found
        return Affine(((value, 1),))

    def at_least_zero(self, form: Affine) -> bool:
        """Return whether a form is proven to be zero or more."""
        if form.at_least_zero():
            return True
        for base, factor in form.terms:
            most = self.facts.most.get(base) if factor < 0 and isinstance(base, Value) else None
            if most is not None and form.minus(Affine(((base, factor),))).plus(most, factor).at_least_zero():
                return True
        return False

    def dim(self, tensor: Value, axis: int) -> Affine | None:
        """A dim of a tensor; None where nothing is known of it."""
        if tensor.shape is not None and tensor.shape[axis] is not None:
            return Affine((), int(tensor.shape[axis] or 0))
        symbol = tensor.extent[axis] if isinstance(tensor.extent, tuple) else None
        if not isinstance(symbol, Symbol):
            return None
        return self.facts.dims.get(symbol) or Affine(((symbol, 1),))

    def scalar(self, base: Base, level: PlanGraph) -> Value | None:
        """The value of a level that is what a sum is made of; None where the level has none."""
        if isinstance(base, Symbol):
            if base not in self.scalars:
                return None
            base = self.scalars[base]
        here: Iterable[Value] = (*level.inputs, *(() if base.node is None else base.node.outputs))
        for value in here:
            if self.outermost(value) is base and (value.node is None or value.node in level.nodes):
                return value
        return None


def _dim_of(node: PlanNode) -> tuple[Value, int] | None:
    """The tensor and the axis, where a node takes one dim off a shape."""
    if node.op != "StridedSlice" or node.attrs["shrink_axis_mask"] != 1 or node.inputs[0].node is None:
        return None
    shape, begin = node.inputs[0].node, node.constant(1)
    if shape.op != "Shape" or begin is None or begin.shape != (1,) or node.attrs["begin_mask"]:
        return None
    tensor, axis = shape.inputs[0], int(begin[0])
    return (tensor, axis) if tensor.shape is not None and 0 <= axis < len(tensor.shape) else None


def root_of(array: Value, scopes: Scopes) -> PlanNode | None:
    """The node that makes the list of which another one came by writing; None where that is not known."""
    node = scopes.outermost(array).node
    while node is not None and node.op in (
        "TensorListSetItem",
        "TensorListScatterIntoExistingList",
        "GraphdockTensorListSplit",
    ):
        node = scopes.outermost(node.inputs[0]).node
    return node


def length_of(array: Value, scopes: Scopes) -> Affine | None:
    """The number of elements that a list has and keeps; None where that is not known."""
    root = root_of(array, scopes)
    if root is None or root.op != "TensorListReserve" or root.attrs["dynamic_size"]:
        return None
    return scopes.affine(root.inputs[1])
