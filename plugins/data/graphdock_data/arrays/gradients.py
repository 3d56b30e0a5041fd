"""Gradients of lists of tensors: the gradient by a list is a list, of which nobody has written what is zero."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import ops as _ops

apply_op = _ops.apply_op


def _total(grad: Any) -> Any:
    """The one list of a gradient that came in parts."""
    parts = grad.parts
    return parts[0] if len(parts) == 1 else apply_op("AddLists", inputs=list(parts))


def _nothing() -> Any:
    return apply_op("OptionalNone")


def _dims_of(tensor: Any, first: int = 0) -> Any:
    """The shape of a tensor from a dim on, taken beside it, so that a loop keeps no more than that of it."""
    dims = tensor.shape
    if dims.is_fully_defined():
        return _tf.constant(dims.as_list()[first:], "int32")
    with tensor.graph.as_default(), _tf.control_dependencies(None):
        return _tf.shape(tensor)[first:]


def _like(tensor: Any, first: int = 0) -> dict[str, Any]:
    """Arguments of what reads tensors like one from a list."""
    return {"element_shape": _dims_of(tensor, first), "element_dtype": tensor.dtype}


def set_item_list(op: Any, grad: Any) -> Any:
    """By the list: what is read of the element is no more the list's."""
    _, index, item = op.inputs
    zeros = _tf.zeros(_dims_of(item), item.dtype)
    return apply_op("TensorListSetItem", input_handle=_total(grad), index=index, item=zeros)


def set_item(op: Any, grad: Any) -> Any:
    """By the item."""
    _, index, item = op.inputs
    return apply_op("TensorListGetItem", input_handle=_total(grad), index=index, **_like(item))


def get_item(op: Any, grad: Any) -> Any:
    """A list of the one element."""
    return apply_op("TensorListSetItem", input_handle=_nothing(), index=op.inputs[1], item=grad)


def scatter_list(op: Any, grad: Any) -> Any:
    """By the list: what is read of the elements is no more the list's."""
    _, rows, indices = op.inputs
    zeros = _tf.zeros(_dims_of(rows), rows.dtype)
    return apply_op("TensorListScatterIntoExistingList", input_handle=_total(grad), tensor=zeros, indices=indices)


def scatter(op: Any, grad: Any) -> Any:
    """By the rows."""
    _, rows, indices = op.inputs
    return apply_op("TensorListGather", input_handle=_total(grad), indices=indices, **_like(rows, 1))


def gather(op: Any, grad: Any) -> Any:
    """A list of those elements; one that was read several times has the sum."""
    return apply_op(
        "TensorListScatterIntoExistingList", input_handle=_nothing(), tensor=grad, indices=op.inputs[1], add=True
    )


def stack(op: Any, grad: Any) -> Any:
    """A list of the rows."""
    indices = _tf.range(_tf.shape(grad)[0])
    return apply_op("TensorListScatterIntoExistingList", input_handle=_nothing(), tensor=grad, indices=indices)


def from_tensor(op: Any, grad: Any) -> Any:
    """The elements as rows."""
    rows = op.inputs[0]
    indices = _tf.range(_dims_of(rows)[0])
    return apply_op("TensorListGather", input_handle=_total(grad), indices=indices, **_like(rows, 1))


def concat(op: Any, grad: Any, _: Any) -> Any:
    """A list of the parts."""
    return apply_op("GraphdockTensorListSplit", input_handle=_nothing(), tensor=grad, lengths=op.outputs[1])


def split_list(op: Any, grad: Any) -> Any:
    """By the list: what is read of the elements is no more the list's."""
    _, value, lengths = op.inputs
    zeros = _tf.zeros(_dims_of(value), value.dtype)
    return apply_op("GraphdockTensorListSplit", input_handle=_total(grad), tensor=zeros, lengths=lengths)


def split(op: Any, grad: Any) -> Any:
    """By the tensor: the elements, one behind the other."""
    _, value, lengths = op.inputs
    whole = apply_op("TensorListConcatV2", input_handle=_total(grad), leading_dims=lengths, **_like(value))[0]
    whole.set_shape(value.shape)
    return whole
