"""Values that the way back of a loop keeps in each iteration, where a sum that it would carry through all of them costs more.

The gradient by something that the loop captures is the sum over its iterations. Of a gather it is rows, kept as IndexedSlices; of a
product of matrices the factors are kept, and one product after the loop sums over the iterations too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from graphdock.contracts.opdef import resolve
from graphdock.dtypes import int32
from graphdock.gradients.gradient_body import value_dims, value_in
from graphdock.gradients.indexed_slices import IndexedSlices
from graphdock.graph.graph import Graph, get_default_graph
from graphdock.graph.tensor import Tensor
from graphdock.ops.apply import apply_op
from graphdock.ops.convert import constant
from graphdock.ops.core import shape as shape_of
from graphdock.shape import size

__all__ = ["DeferredAccumulation", "defer_accumulation"]


@dataclass(frozen=True, slots=True)
class DeferredAccumulation:
    """Record kept instead of a sum.

    Attributes:
      tensors: of the body, kept in every iteration.
      total: makes the gradient of their histories, in the default graph.
    """

    tensors: tuple[Tensor, ...]
    total: Callable[[Sequence[Tensor]], Any]


def defer_accumulation(grad: Any, source: Tensor, body: Graph) -> DeferredAccumulation | None:
    """Return what to keep of ``grad``, the gradient by the captured tensor ``source`` in one iteration; None where it is to
    be summed.
    """
    if isinstance(grad, IndexedSlices):
        return None if grad.values._dims is None else _rows(grad, source)
    if grad.op.graph is body and grad.op.op_def.stacked is not None:
        return _product(grad)
    return None


def _rows(grad: IndexedSlices, source: Tensor) -> DeferredAccumulation:
    """The rows of all iterations. Where those may differ in their number, each row is kept with a mark of its own."""
    import graphdock as tf

    kept = [grad.values, grad.indices]
    if grad.indices._dims is None or None in grad.indices._dims:
        kept = [_cut_back(grad.values), grad.indices, tf.ones_like(grad.indices, tf.bool)]

    def total(histories: Sequence[Tensor]) -> IndexedSlices:
        shape = _shape_of_value(source)
        values = _end_to_end(histories[0], kept[0], shape)
        indices, *there = (tf.reshape(_stacked(h, like), [-1]) for h, like in zip(histories[1:], kept[1:], strict=True))
        if there:
            values, indices = (tf.boolean_mask(rows, there[0]) for rows in (values, indices))
        return IndexedSlices(values, indices, shape)

    return DeferredAccumulation(tuple(kept), total)


def _product(grad: Tensor) -> DeferredAccumulation | None:
    """The factors of a product, where they have fewer elements than it, as far as that is known."""
    op = grad.op
    given, made = [size(t._dims) for t in op.inputs], size(grad._dims)
    if any(t._dims is None for t in op.inputs) or not made:
        return None
    if None not in given and sum(n for n in given if n is not None) > made:
        return None
    assert op.op_def.stacked is not None
    function = resolve(op.op_def.stacked)

    def total(histories: Sequence[Tensor]) -> Tensor:
        result: Tensor = function(op, *[_stacked(h, t) for h, t in zip(histories, op.inputs, strict=True)])
        result._dims = grad._dims
        return result

    return DeferredAccumulation(tuple([_cut_back(t) for t in op.inputs]), total) if function(op) else None


def _cut_back(element: Tensor) -> Tensor:
    """The element, whose gradient has its shape: what comes back from a stack is as large as the largest of all elements."""
    import graphdock as tf

    dims = element._dims or ()
    return tf.pad(element, [[0, 0]] * len(dims)) if None in dims else element


def _stacked(history: Tensor, element: Tensor) -> Tensor:
    """The elements of a history, with a dim in front; zeros past the end of those that are smaller than others."""
    dims = [-1 if d is None else d for d in element._dims or ()]
    made: Tensor = apply_op(
        "HistoryStack", history=history, dims=constant([-1, *dims], int32), T=element.dtype, padded=-1 in dims
    )
    return made


def _end_to_end(history: Tensor, element: Tensor, shape: Tensor) -> Tensor:
    """The elements of a history, joined along their first dim: rows of a tensor of ``shape``, which is said for none, too."""
    import graphdock as tf

    stacked = _stacked(history, element)
    rest = (element._dims or (None,))[1:]
    known = [d for d in rest if d]
    if len(known) == len(rest):
        return tf.reshape(stacked, constant([-1, *known], int32))
    sizes = shape_of(stacked)
    made: Tensor = tf.reshape(stacked, tf.concat([sizes[:1] * sizes[1:2], shape[1:]], 0))
    made.set_shape([None, *rest])
    return made


def _shape_of_value(tensor: Tensor) -> Tensor:
    """The shape of a captured tensor, or of the value of the variable behind a handle, in the default graph."""
    graph = get_default_graph()
    dims = value_dims(tensor)
    if dims is not None and None not in dims:
        return constant([d or 0 for d in dims], int32)
    return shape_of(value_in(graph, tensor))
