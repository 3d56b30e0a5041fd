"""Values of several tensors, such as a SparseTensor, among loop variables and results of branches: they go part by part.

Such a class has a method ``_split``, which returns a namedtuple of its tensors. That one's ``_joined`` makes the value again, and
its ``_invariants`` spreads the shape that a program gives for the whole over the parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphdock import nest

__all__ = ["invariants", "is_composite", "joined", "split"]


def is_composite(leaf: Any) -> bool:
    """Whether it is a value of several tensors."""
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
