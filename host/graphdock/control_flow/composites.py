"""Values of several tensors, such as a SparseTensor, among loop variables and results of branches: they go part by part.

Such a class has a method ``_split``, which returns a namedtuple of its tensors. That one's ``_joined`` makes the value again, and
its ``_invariants`` spreads the shape that a program gives for the whole over the parts. IndexedSlices go through a Cond as rows:
where only one branch has them, a tensor's rows are all its rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from graphdock import nest
from graphdock.control_flow.trace import body_scope
from graphdock.dtypes import DType, int32, int64
from graphdock.graph.body import BodyGraph
from graphdock.graph.tensor import Tensor
from graphdock.ops.core import shape as shape_of

__all__ = ["are_rows", "invariants", "is_composite", "joined", "split", "split_rows"]


def is_composite(leaf: Any) -> bool:
    """Return whether it is a value of several tensors."""
    return hasattr(leaf, "_split")


def split(structure: Any) -> Any:
    """The structure with the namedtuple of its parts in place of each value of several tensors."""
    return nest.map_structure(lambda leaf: leaf._split() if is_composite(leaf) else leaf, structure)


def invariants(structure: Any, given: Any) -> Any:
    """A structure of shapes, one for each leaf of ``structure``, with the shapes of all parts in place of a whole's.

    Raises:
      InvalidArgumentError: ``given`` is nested in another way.
    """
    shapes = nest.flatten_up_to(structure, given, "while_loop: shape_invariants", "loop_vars")
    leaves = nest.flatten(structure)
    spread = [
        leaf._split()._invariants(shape) if is_composite(leaf) else shape
        for leaf, shape in zip(leaves, shapes, strict=True)
    ]
    return nest.pack_sequence_as(structure, spread)


def joined(structure: Any) -> Any:
    """The structure with the values of several tensors again."""
    if hasattr(structure, "_joined"):
        return structure._joined()
    if isinstance(structure, Mapping):
        return {k: joined(v) for k, v in structure.items()}
    if not isinstance(structure, (list, tuple)):
        return structure
    items = [joined(item) for item in structure]
    if isinstance(structure, list):
        return items
    return type(structure)(*items) if hasattr(structure, "_fields") else tuple(items)


class _Rows(NamedTuple):
    """The parts of an IndexedSlices, as a structure of tensors."""

    values: Tensor
    indices: Tensor
    dense_shape: Tensor | None

    def _joined(self) -> Any:
        import graphdock as tf

        return tf.IndexedSlices(*self)


def are_rows(leaf: Any) -> bool:
    """Return whether it is an IndexedSlices."""
    return hasattr(leaf, "_parts")


def split_rows(bodies: tuple[BodyGraph, BodyGraph], results: tuple[Any, Any]) -> tuple[Any, Any]:
    """The results of two branches, alike: where one has IndexedSlices both have their parts; a tensor's rows are all its rows.

    What is nested differently is left to who compares them.
    """
    leaves = [nest.flatten(result) for result in results]
    if len(leaves[0]) != len(leaves[1]) or not any(are_rows(leaf) for side in leaves for leaf in side):
        return results
    for i, pair in enumerate(zip(*leaves, strict=True)):
        if not any(map(are_rows, pair)) or not all(are_rows(leaf) or isinstance(leaf, Tensor) for leaf in pair):
            continue
        rows = [_rows(body, leaf) for body, leaf in zip(bodies, pair, strict=True)]
        whole = all(r.dense_shape is not None for r in rows)
        wide = int64 if any(r.indices.dtype is int64 for r in rows) else int32
        for body, side, row in zip(bodies, leaves, rows, strict=True):
            side[i] = _Rows(row.values, _cast(body, row.indices, wide), _shape(body, row, wide) if whole else None)
    first, second = (nest.pack_sequence_as(r, side) for r, side in zip(results, leaves, strict=True))
    return first, second


def _rows(body: BodyGraph, leaf: Any) -> _Rows:
    if are_rows(leaf):
        values, indices, dims = leaf._parts
        return _Rows(body.capture(values), body.capture(indices), None if dims is None else body.capture(dims))
    import graphdock as tf

    with body_scope(body):
        dims = shape_of(leaf)
        return _Rows(leaf, tf.range(tf.gather(dims, 0)), dims)


def _cast(body: BodyGraph, tensor: Tensor, dtype: DType) -> Tensor:
    from graphdock.ops.core import cast

    if tensor.dtype is dtype:
        return tensor
    with body_scope(body):
        return cast(tensor, dtype)


def _shape(body: BodyGraph, rows: _Rows, dtype: DType) -> Tensor | None:
    return None if rows.dense_shape is None else _cast(body, rows.dense_shape, dtype)
