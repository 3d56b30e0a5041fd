"""Lists of tensors whose elements are the rows of one tensor, as far as a plan knows: what is read of them is read of that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from graphdock.contracts import PlanGraph, PlanNode, Value
from graphdock.shape import Dims, compatible

from graphdock_data.passes.affine import Affine, Scopes, root_of
from graphdock_data.passes.trips import NotKnown

__all__ = [
    "Listed",
    "dims_given",
    "forgets",
    "is_gradient",
    "is_nothing",
    "keeps_promise",
    "listed",
    "named",
    "reads_of",
    "row",
    "span_of",
]

#: ops that write to the list that is their first input
WRITES = ("TensorListSetItem", "TensorListScatterIntoExistingList", "GraphdockTensorListSplit")


@dataclass(frozen=True, slots=True)
class Listed:
    """A list, of whose elements those from ``low`` to before ``end`` are the rows of a tensor, and no others were written.

    Attributes:
      root: the node that makes the list that was written; None for one whose size is that of its rows, or of a gradient, which
        has no size and is zeros besides.
      size: of the list; None of a gradient. ``nodes``: those that are not needed where the rows are read.
    """

    rows: Value
    low: Affine
    end: Affine
    root: PlanNode | None
    size: Affine | None
    nodes: Sequence[PlanNode]


def listed(array: Value, known: Mapping[Value, Listed], scopes: Scopes) -> Listed:
    """Knowledge of a list. ``known``: lists that loops have made.

    Raises:
      NotKnown: its elements are not the rows of one tensor, or writing them may be an error.
    """
    if array in known:
        return known[array]
    node = array.node
    if node is None:
        raise NotKnown("it is not made where the loop stands")
    if node.op == "TensorListFromTensor":
        rows, count = node.inputs[0], scopes.dim(node.inputs[0], 0)
        if count is None or not _fits(rows, dims_given(node, 1)):
            raise NotKnown("the shape of its elements is not known")
        return Listed(rows, Affine(), count, None, count, (node,))
    root = node.inputs[0].node if node.op == "TensorListScatterIntoExistingList" else None
    if root is None or root.verb != "none" and root.op != "TensorListReserve":
        raise NotKnown("its elements are not the rows of one tensor")
    rows, span = node.inputs[1], span_of(node.inputs[2], scopes)
    count = scopes.dim(rows, 0)
    if span is None or count is None or not span[1].minus(span[0]).minus(count).is_zero():
        raise NotKnown("which of its elements are the rows of a tensor is not known")
    low, end = span
    if not low.at_least_zero():
        raise NotKnown("which of its elements are the rows of a tensor is not known")
    if node.control or root.control:
        raise NotKnown("what makes it waits for something else")
    if root.verb == "none":
        return Listed(rows, low, end, None, None, (node,))
    size = scopes.affine(root.inputs[1])
    if not root.attrs["dynamic_size"] and not scopes.at_least_zero(size.minus(end)):
        raise NotKnown("whether all rows that are written before the loop have a place in it is not known")
    if not _fits(rows, dims_given(root, 0)) or root.attrs["element_dtype"] is not rows.dtype:
        raise NotKnown("the shape of its elements is not known")
    return Listed(rows, low, end, root, size, (node, root))


def span_of(indices: Value, scopes: Scopes) -> tuple[Affine, Affine] | None:
    """The first of indices that rise by one, and what follows the last; None for others."""
    node = indices.node
    if node is None:
        return None
    if node.verb == "constant":
        array = node.attrs["value"]
        first = int(array[0]) if array.ndim == 1 and len(array) else 0
        if array.ndim != 1 or not np.array_equal(array, np.arange(first, first + len(array))):
            return None
        return Affine((), first), Affine((), first + len(array))
    if node.op == "Range" and (step := node.constant(2)) is not None and step == 1:
        low, end = (scopes.affine(v) for v in node.inputs[:2])
        return low, end
    return None


def dims_given(node: PlanNode, index: int) -> Dims | bool:
    """The shape that an input says, with None for a dim that is not known; True where a step says it."""
    array = node.constant(index)
    if array is None:
        return True
    return None if not array.ndim else tuple([None if d < 0 else int(d) for d in array.tolist()])


def _fits(rows: Value, dims: Dims | bool) -> bool:
    """Return whether the rows of a tensor are all of a shape that is known, and may be elements of that one."""
    dims_of_row = row(rows)
    return (
        not isinstance(dims, bool)
        and dims_of_row is not None
        and None not in dims_of_row
        and compatible(dims, dims_of_row)
    )


def keeps_promise(node: PlanNode, dims: Dims) -> bool:
    """Return whether what stands for a node's result, of this shape, is of the one that the program has promised."""
    promised = node.outputs[0].shape
    return (
        compatible(promised, dims) if node.guard is None else dims is not None and None not in dims and promised == dims
    )


def row(rows: Value) -> Dims:
    """The shape of a row."""
    return None if rows.shape is None else rows.shape[1:]


def reads_of(level: PlanGraph) -> Counter[Value]:
    """Number of times that a level reads each value, but for a list's length, or returns it."""
    found = Counter(level.outputs)
    for node in level.nodes:
        if node.op != "TensorListLength":
            found.update(node.inputs)
    return found


def named(array: Value, scopes: Scopes) -> str:
    """Name of a list for messages."""
    root = root_of(array, scopes)
    if root is None or root.op != "TensorListReserve":
        return array.name
    return str(root.attrs["array_name"] or root.origin)


def is_nothing(array: Value) -> bool:
    """Return whether a list is that of a gradient that nobody has written."""
    return array.node is not None and array.node.verb == "none"


def is_gradient(array: Value) -> bool:
    """Return whether a list is that of a gradient: it grows, and is zeros where nobody has written."""
    node = array.node
    while node is not None and node.op in WRITES:
        node = node.inputs[0].node
    if node is not None and node.op == "AddLists":
        return all(map(is_gradient, node.inputs))
    return node is not None and node.verb == "none"


def forgets(array: Value, scopes: Scopes) -> bool:
    """Return whether an element of a list may be read once only, as far as it is known."""
    root = root_of(array, scopes)
    if root is not None and root.op == "TensorListReserve":
        return bool(root.attrs["clear_after_read"])
    return not is_gradient(array) and (root is None or root.op != "TensorListFromTensor")
