"""Kernels of lists of tensors. None is a list of nothing: what a gradient is that nobody has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.contracts import BuildContext, KernelDef, dtypes, errors
from graphdock.shape import Dims, show

from graphdock_data.arrays.tensor_list import Rules, TensorList, summed

__all__ = ["KERNELS"]


def _dims(given: np.ndarray) -> Dims:
    """The shape that a tensor says: -1 for a dim that is not known, a scalar where the rank is not."""
    return None if not given.ndim else tuple([None if d < 0 else d for d in given.tolist()])


def _gradient(dtype: dtypes.DType) -> TensorList:
    return TensorList(Rules(dtype, "of a gradient", grows=True, lenient=True), None, 0, {})


def _reserve(ctx: BuildContext) -> Callable[..., Any]:
    flags = [ctx.attr(n) for n in ("dynamic_size", "clear_after_read", "write_once", "identical_element_shapes")]
    rules = Rules(ctx.attr("element_dtype"), ctx.attr("array_name") or ctx.node.origin, *flags)

    def reserve(element_shape: np.ndarray, num_elements: np.ndarray) -> TensorList:
        if num_elements < 0:
            raise errors.InvalidArgumentError(f"TensorArray {rules.name}: its size is {int(num_elements)}")
        return TensorList(rules, _dims(element_shape), int(num_elements), {})

    return reserve


def _set_item(ctx: BuildContext) -> Callable[..., Any]:
    dtype = ctx.attr("element_dtype")

    def write(array: TensorList | None, index: np.ndarray, item: np.ndarray) -> TensorList:
        return (_gradient(dtype) if array is None else array).written(int(index), item)

    return write


def _get_item(ctx: BuildContext) -> Callable[..., Any]:
    dtype = ctx.attr("element_dtype")

    def read(array: TensorList | None, index: np.ndarray, dims: np.ndarray) -> np.ndarray:
        made = _gradient(dtype) if array is None else array
        (item,) = made.read([int(index)], _dims(dims))
        return np.array(item)

    return read


def _scatter(ctx: BuildContext) -> Callable[..., Any]:
    dtype, add = ctx.attr("element_dtype"), ctx.attr("add")

    def scatter(array: TensorList | None, value: np.ndarray, indices: np.ndarray) -> TensorList:
        made = _gradient(dtype) if array is None else array
        return made.scattered(indices.tolist(), [value[i, ...] for i in range(len(value))], add)

    return scatter


def _stacked(items: list[np.ndarray], dims: Dims, dtype: dtypes.DType, of: TensorList) -> np.ndarray:
    if not items:
        known = dims if of.dims is None or None in of.dims else of.dims
        if known is None or None in known:
            raise errors.UnimplementedError(
                "TensorArray has size zero, but element shape is not fully defined", got=show(known)
            )
        return np.empty((0, *known), dtype.np)
    for i, item in enumerate(items):
        if item.shape != items[0].shape:
            raise errors.InvalidArgumentError(
                f"TensorArray has inconsistent shapes.  Index 0 has shape: {show(items[0].shape)} but index {i} has shape: "
                f"{show(item.shape)}"
            )
    out = np.empty((len(items), *items[0].shape), dtype.np)
    for i, item in enumerate(items):
        out[i] = item
    return out


def _gather(ctx: BuildContext) -> Callable[..., Any]:
    dtype = ctx.attr("element_dtype")

    def gather(array: TensorList | None, indices: np.ndarray, dims: np.ndarray) -> np.ndarray:
        made, known = _gradient(dtype) if array is None else array, _dims(dims)
        return _stacked(made.read(indices.tolist(), known), known, dtype, made)

    return gather


def _stack(ctx: BuildContext) -> Callable[..., Any]:
    dtype, count = ctx.attr("element_dtype"), ctx.attr("num_elements")

    def stack(array: TensorList | None, dims: np.ndarray) -> np.ndarray:
        made, known = _gradient(dtype) if array is None else array, _dims(dims)
        if not made.rules.lenient and count not in (-1, len(made)):
            raise errors.InvalidArgumentError(f"the list has {len(made)} elements", expected=str(count))
        return _stacked(made.read(range(max(count, len(made))), known), known, dtype, made)

    return stack


def _from_tensor(ctx: BuildContext) -> Callable[..., Any]:
    rules = Rules(ctx.attr("element_dtype"))

    def unstack(tensor: np.ndarray, dims: np.ndarray) -> TensorList:
        kept = tensor.copy()
        return TensorList(rules, _dims(dims), len(kept), {i: kept[i, ...] for i in range(len(kept))})

    return unstack


def _concat(ctx: BuildContext) -> Callable[..., Any]:
    dtype = ctx.attr("element_dtype")

    def concat(array: TensorList | None, dims: np.ndarray, leading: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        made, known = _gradient(dtype) if array is None else array, _dims(dims)
        if leading.size:  # it says how many there are, and how long those are that nobody wrote
            sizes, rest = leading.tolist(), None if known is None else known[1:]
            items = [made.read([i], None if rest is None else (size, *rest))[0] for i, size in enumerate(sizes)]
        else:
            items = made.read(range(len(made)), known)
        if not items:
            if known is None or None in known[1:]:
                raise errors.UnimplementedError(
                    "TensorArray has size zero, but element shape is not fully defined", got=show(known)
                )
            return np.empty([0, *[d or 0 for d in known[1:]]], dtype.np), np.empty(0, np.int64)
        for i, item in enumerate(items):
            if not item.ndim:
                raise errors.InvalidArgumentError(
                    f"Concat saw a scalar shape at index {i} but requires at least vectors."
                )
            if item.shape[1:] != items[0].shape[1:]:
                raise errors.InvalidArgumentError(
                    f"TensorArray has inconsistent shapes.  Index 0 has (excepting dimension 0) shape: "
                    f"{show(items[0].shape[1:])} but index {i} has (excepting dimension 0) shape: {show(item.shape[1:])}"
                )
        return np.concatenate(items), np.array([len(i) for i in items], np.int64)

    return concat


def _split(ctx: BuildContext) -> Callable[..., Any]:
    dtype = ctx.attr("element_dtype")

    def split(array: TensorList | None, value: np.ndarray, lengths: np.ndarray) -> TensorList:
        made = _gradient(dtype) if array is None else array
        if not value.ndim:
            raise errors.InvalidArgumentError("Expected value to be at least a vector, but received shape: []")
        if lengths.sum() != len(value):
            raise errors.InvalidArgumentError(
                f"Expected sum of lengths to be equal to values.shape[0], but sum of lengths is {int(lengths.sum())} and value's "
                f"shape is: {show(value.shape)}"
            )
        if array is not None and len(array) != len(lengths) and not array.rules.grows:
            raise errors.InvalidArgumentError(
                f"TensorArray's size is not equal to the size of lengths ({len(array)} vs. {len(lengths)}), and the TensorArray is "
                "not marked as dynamically resizeable"
            )
        ends = np.cumsum(lengths)
        parts = [value[end - size : end] for end, size in zip(ends.tolist(), lengths.tolist(), strict=True)]
        return made.scattered(range(len(parts)), parts)

    return split


def _length(array: TensorList | None) -> np.ndarray:
    return np.array(0 if array is None else len(array), np.int32)


def _close(array: TensorList | None) -> None:
    if array is not None:
        array.close()


KERNELS = [
    KernelDef("TensorListReserve", "host", _reserve, modes=("fresh",)),
    KernelDef("TensorListSetItem", "host", _set_item, layout="strided", modes=("fresh",)),
    KernelDef("TensorListGetItem", "host", _get_item, modes=("fresh",)),
    KernelDef("TensorListScatterIntoExistingList", "host", _scatter, layout="strided", modes=("fresh",)),
    KernelDef("TensorListGather", "host", _gather, modes=("fresh",)),
    KernelDef("TensorListStack", "host", _stack, modes=("fresh",)),
    KernelDef("TensorListFromTensor", "host", _from_tensor, layout="strided", modes=("fresh",)),
    KernelDef("TensorListConcatV2", "host", _concat, modes=("fresh",)),
    KernelDef("GraphdockTensorListSplit", "host", _split, layout="strided", modes=("fresh",)),
    KernelDef("TensorListLength", "host", lambda ctx: _length, modes=("fresh",)),
    KernelDef("GraphdockTensorListClose", "host", lambda ctx: _close),
    KernelDef("AddLists", "host", lambda ctx: lambda *lists: summed(lists), modes=("fresh",)),
]
