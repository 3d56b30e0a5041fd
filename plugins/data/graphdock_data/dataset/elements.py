"""Nested structures of elements: tuples, namedtuples and dicts around components. A list is a component, as in ``tf.data``.

A SparseTensor is three components: its indices, its values and its shape. In a structure a :class:`Sparse` stands for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import ArgumentTypeError

from graphdock_data.dataset.stages.stage import Dims, Stage

__all__ = [
    "Sparse",
    "Window",
    "dims_of",
    "flatten",
    "flatten_up_to",
    "flattening",
    "map_up_to",
    "pack",
    "refuse_windows",
    "reshaped",
    "sparse_at",
    "spread",
    "spread_kinds",
    "windows_at",
]


@dataclass(frozen=True, slots=True)
class Sparse:
    """A SparseTensor in a structure. ``dims``: of the whole tensor, as far as they are known."""

    dims: Dims

    def kinds(self, kind: Any) -> list[Any]:
        """The dtypes of its three components."""
        return [_tf.int64, kind, _tf.int64]

    def shapes(self) -> list[Dims]:
        """The shapes of its three components."""
        rank = None if self.dims is None else len(self.dims)
        return [(None, rank), (None,), (rank,)]

    def tensor(self, indices: Any, values: Any, dense_shape: Any) -> Any:
        """The SparseTensor of three components; one of a known shape says so."""
        known = self.dims is not None and None not in self.dims
        return _tf.SparseTensor(indices, values, _ops.constant(self.dims, _tf.int64) if known else dense_shape)


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """A dataset in a structure: a window of elements, which is one component, their list.

    Attributes:
      given: the stage that hands them over. dataset: over it, as functions of elements get it.
    """

    given: Stage
    dataset: Any

    def tensor(self, rows: Any = None) -> Any:
        """The dataset, for a function of elements."""
        return self.dataset


def _nested(value: Any) -> bool:
    return isinstance(value, tuple | Mapping) and not isinstance(value, _tf.SparseTensorValue)


def dims_of(shape: Any) -> tuple[int | None, ...] | None:
    """A TensorShape as a tuple; None where its rank is not known."""
    return None if shape.ndims is None else tuple(shape.as_list())


def flatten(structure: Any) -> list[Any]:
    """The components, left to right; of a dict in the order of its sorted keys."""
    return list(_leaves(structure))


def _leaves(structure: Any) -> Iterator[Any]:
    if not _nested(structure):
        yield structure
    elif isinstance(structure, Mapping):
        for key in sorted(structure):
            yield from _leaves(structure[key])
    else:
        for item in structure:
            yield from _leaves(item)


def pack(template: Any, components: Any, sparse: Callable[..., Any] | None = None) -> Any:
    """Components in a structure like ``template``.

    Args:
      sparse: what stands for a :class:`Sparse` or a :class:`Window`: called with it and its components, three or one; default: one
        component does.
    """
    left = iter(components)

    def build(part: Any) -> Any:
        if isinstance(part, Mapping):
            made = {key: build(part[key]) for key in sorted(part)}
            ordered = {key: made[key] for key in part}
            return ordered if type(part) is dict else type(part)(ordered)  # type: ignore[call-arg]
        if _nested(part):
            items = [build(item) for item in part]
            return type(part)(*items) if hasattr(part, "_fields") else tuple(items)
        if sparse is not None and isinstance(part, Sparse):
            return sparse(part, next(left), next(left), next(left))
        if sparse is not None and isinstance(part, Window):
            return sparse(part, next(left))
        return next(left)

    return build(template)


def flatten_up_to(template: Any, value: Any) -> list[Any]:
    """The parts of a value that stand where the components of ``template`` do; a list stands for a tuple.

    Raises:
      TypeError, ValueError: the value has another structure.
    """
    if isinstance(template, Mapping):
        if not isinstance(value, Mapping):
            raise TypeError(f"The two structures don't have the same sequence type: a dict is expected, not {value!r}")
        if set(template) != set(value):
            raise ValueError(
                f"The two dictionaries don't have the same set of keys: {sorted(template)}, {sorted(value)}"
            )
        return [leaf for key in sorted(template) for leaf in flatten_up_to(template[key], value[key])]
    if isinstance(template, tuple):
        if not isinstance(value, tuple | list):
            raise TypeError(f"The two structures don't have the same sequence type: a tuple is expected, not {value!r}")
        if len(template) != len(value):
            raise ValueError(f"The two structures don't have the same length: {len(template)} and {len(value)}")
        return [leaf for one, item in zip(template, value, strict=True) for leaf in flatten_up_to(one, item)]
    return [value]


def flattening(template: Any) -> Callable[[Any], list[Any]]:
    """:func:`flatten_up_to` of one template; of a tuple without others in it, without a recursion."""
    if not isinstance(template, tuple) or any(isinstance(part, Mapping | tuple) for part in template):
        return lambda value: flatten_up_to(template, value)
    count = len(template)

    def flat(value: Any) -> list[Any]:
        return list(value) if type(value) is tuple and len(value) == count else flatten_up_to(template, value)

    return flat


def map_up_to(function: Callable[[Any], Any], template: Any, value: Any) -> Any:
    """``function`` of each part of a value that stands where a component of ``template`` does, in that structure."""
    return pack(template, [function(part) for part in flatten_up_to(template, value)])


def spread(value: Any) -> tuple[Any, list[Any]]:
    """The structure of nested values, and their components as tensors of the default graph.

    Raises:
      TypeError: something can't become a tensor.
    """
    leaves: list[Any] = []
    tensors: list[Any] = []
    for part in flatten(value):
        if isinstance(part, _tf.SparseTensor | _tf.SparseTensorValue):
            sparse = _tf.convert_to_tensor_or_sparse_tensor(part)
            leaves.append(Sparse(dims_of(sparse.shape)))
            tensors += (sparse.indices, sparse.values, sparse.dense_shape)
        else:
            leaves.append(0)
            tensors.append(_ops.convert_to_tensor(part))
    return pack(value, leaves), tensors


def spread_kinds(types: Any, shapes: Any, classes: Any) -> tuple[Any, tuple[Any, ...], tuple[Dims, ...]]:
    """The structure that nested dtypes, shapes and classes tell of, with its components' dtypes and shapes."""
    leaves: list[Any] = []
    kinds: list[Any] = []
    dims: list[Dims] = []
    for kind, shape, what in zip(flatten(types), flatten(shapes), flatten(classes), strict=True):
        if issubclass(what, _tf.SparseTensor):
            sparse = Sparse(dims_of(shape))
            leaves.append(sparse)
            kinds += sparse.kinds(kind)
            dims += sparse.shapes()
        else:
            leaves.append(0)
            kinds.append(kind)
            dims.append(dims_of(shape))
    return pack(types, leaves), tuple(kinds), tuple(dims)


def sparse_at(structure: Any) -> tuple[int, ...]:
    """Places among the components where the three of each SparseTensor begin."""
    found, at = [], 0
    for leaf in flatten(structure):
        if isinstance(leaf, Sparse):
            found.append(at)
        at += 3 if isinstance(leaf, Sparse) else 1
    return tuple(found)


def windows_at(structure: Any) -> tuple[tuple[int, Stage], ...]:
    """Places among the components where windows stand, with the stages that hand over their elements."""
    found, at = [], 0
    for leaf in flatten(structure):
        if isinstance(leaf, Window):
            found.append((at, leaf.given))
        at += 3 if isinstance(leaf, Sparse) else 1
    return tuple(found)


def refuse_windows(structure: Any, what: str) -> None:
    """Raise TypeError where elements hold datasets, which only what makes datasets of elements takes."""
    if windows_at(structure):
        raise ArgumentTypeError(
            f"{what} takes tensors, and elements of this dataset are windows, which are datasets",
            hint="flat_map(lambda window: window.batch(size)) makes tensors of them",
        )


def reshaped(structure: Any, shapes: Sequence[Dims], change: Callable[[Dims], Dims]) -> tuple[Any, tuple[Dims, ...]]:
    """A structure and its components' shapes, once the shape of each tensor, dense or sparse, was changed."""
    leaves: list[Any] = []
    dims: list[Dims] = []
    for leaf in flatten(structure):
        at = len(dims)
        made = Sparse(change(leaf.dims)) if isinstance(leaf, Sparse) else leaf
        leaves.append(made)
        dims += made.shapes() if isinstance(made, Sparse) else [change(shapes[at])]
    return pack(structure, leaves), tuple(dims)
