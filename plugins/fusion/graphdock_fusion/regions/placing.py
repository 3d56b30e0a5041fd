"""Places of values in a space: the axis of each of their dims.

A dim that the plan does not know is a symbol (:class:`graphdock.shape.Symbol`), and equal to itself alone: two values of one symbol
lie on one axis, and whatever would have to be 1 or equal to something else is in no region.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from graphdock.contracts.ir import PlanNode, Value, arg_of
from graphdock.shape import Symbol, plain, show

from graphdock_fusion.regions.forms import Form
from graphdock_fusion.regions.typed import NotInRegion, Unknown

__all__ = ["Dims", "Shape", "Space", "known", "local_shape", "place", "place_input", "put"]

#: Dims of a value, each a number or a symbol.
Shape: TypeAlias = "tuple[int | Symbol, ...]"
#: Extents of the axes, in order; dims of size 1 are none of them.
Space: TypeAlias = "tuple[int | Symbol, ...]"
#: The axis of each dim of a value; None for a dim of size 1.
Dims: TypeAlias = "tuple[int | None, ...]"


def local_shape(node: PlanNode, form: Form) -> Shape:
    """The shape in which a node's formulas stand: what its inputs broadcast to, or its output's where it reduces nothing."""
    if form.space:
        return _own_space(node, form)
    if not form.reduces and node.outputs:
        return known(node.outputs[0])
    shape: Shape = ()
    for arg, value in zip(arg_of(node), node.inputs, strict=True):
        if arg.memory != "host" and arg.name not in form.leading and arg.name not in form.writes:
            shape = _broadcast(shape, known(value))
    return shape


def place(node: PlanNode, form: Form, shape: Shape, space: Space, inside: Mapping[Value, Dims]) -> Dims:
    """The axis of each dim of the shape in which a node's formulas stand.

    Args:
      inside: values that the region makes -> where they lie.

    Raises:
      NotInRegion: the shape does not lie in the space, or the node's inputs contradict each other.
    """
    if form.space or tuple(d for d in shape if d != 1) == space:
        return put(shape, tuple(range(len(space))), space)
    found: list[int | None] = [None] * len(shape)
    for arg, value in zip(arg_of(node), node.inputs, strict=True):
        if value not in inside or arg.memory == "host":
            continue
        dims = inside[value]
        if arg.name in form.gathers:
            raise NotInRegion(f"{value.name}, of what is gathered by {node.name}, is made in the region")
        if form.reshapes:
            return put(shape, tuple(d for d in dims if d is not None), space)
        offset = 0 if arg.name in form.leading else len(shape) - len(dims)
        for i, axis in enumerate(dims):
            if axis is None:
                continue
            if found[offset + i] not in (None, axis):
                raise NotInRegion(f"the inputs of {node.name} lie on different axes")
            found[offset + i] = axis
    for size, axis in zip(shape, found, strict=True):
        if size != (1 if axis is None else space[axis]):
            raise NotInRegion(
                f"{node.name} of shape {show(plain(shape))} does not lie in the space {show(plain(space))}"
            )
    if [a for a in found if a is not None] != sorted({a for a in found if a is not None}):
        raise NotInRegion(f"the dims of {node.name} are in another order")
    return tuple(found)


def place_input(node: PlanNode, name: str, value: Value, form: Form, local: Dims, space: Space) -> Dims:
    """The axis of each dim of a value that a node reads, of which ``local`` are the axes of the node's own shape."""
    shape = known(value)
    if form.space:
        return tuple([local[form.space.index(axis)] for axis in form.axes_of(node, name)])
    if form.reshapes:
        return put(shape, tuple(a for a in local if a is not None), space)
    if name in form.gathers:
        return (None, *_last(value, shape[1:], local[len(local) - len(shape) + 1 :], space))
    return _last(value, shape, local[: len(shape)] if name in form.leading else local[len(local) - len(shape) :], space)


def _last(value: Value, shape: Shape, part: Dims, space: Space) -> Dims:
    """The axis of each dim of a shape, of which ``part`` are those of the dims that it broadcasts to."""
    for size, axis in zip(shape, part, strict=True):
        here = 1 if axis is None else space[axis]
        if size not in (1, here) and (isinstance(size, Symbol) or isinstance(here, Symbol)):
            raise Unknown(f"whether a dim of {value.name} is 1 or another one's size is not known")
    return tuple(None if size == 1 else axis for size, axis in zip(shape, part, strict=True))


def put(shape: Shape, axes: Sequence[int], space: Space) -> Dims:
    """The dims of a shape on these axes, one after another; dims of size 1 on none. Raises NotInRegion where they do not fit."""
    if [size for size in shape if size != 1] != [space[a] for a in axes]:
        raise NotInRegion(
            f"shape {show(plain(shape))} does not lie on axes of {show(plain(tuple(space[a] for a in axes)))}"
        )
    left = iter(axes)
    return tuple(None if size == 1 else next(left) for size in shape)


def _own_space(node: PlanNode, form: Form) -> Shape:
    """Extents of the axes that a form names, as its inputs have them."""
    found: dict[str, int | Symbol] = {}
    for arg, value in zip(arg_of(node), node.inputs, strict=True):
        axes, shape = form.axes_of(node, arg.name), known(value)
        if len(axes) != len(shape):
            raise NotInRegion(f"{value.name} has rank {len(shape)}, not {len(axes)}")
        for axis, size in zip(axes, shape, strict=True):
            if (other := found.setdefault(axis, size)) != size:
                fault = Unknown if isinstance(size, Symbol) or isinstance(other, Symbol) else NotInRegion
                raise fault(f"whether the inputs of {node.name} fit each other is not known")
    return tuple([found[axis] for axis in form.space])


def known(value: Value) -> Shape:
    """Dims of a value. Raises Unknown where any is neither a number nor a symbol."""
    if value.shape is not None and None not in value.shape:
        return value.shape  # type: ignore[return-value]
    if not isinstance(value.extent, tuple):
        raise Unknown(f"the shape of {value.name} is not known")
    return value.extent


def _broadcast(a: Shape, b: Shape) -> Shape:
    if len(a) < len(b):
        a, b = b, a
    b = (1,) * (len(a) - len(b)) + b
    for x, y in zip(a, b, strict=True):
        if x != y and 1 not in (x, y):
            fault = Unknown if isinstance(x, Symbol) or isinstance(y, Symbol) else NotInRegion
            raise fault(f"shapes {show(plain(a))} and {show(plain(b))} do not lie in one space")
    return tuple(y if x == 1 else x for x, y in zip(a, b, strict=True))
